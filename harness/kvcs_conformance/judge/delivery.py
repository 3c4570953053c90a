"""Judge words for what is delivered to a request, and what they share of requests and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Record, Seen
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import TRACKS
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

LABEL = {"type": "string"}
SPAN = {"type": "array", "minItems": 2, "maxItems": 2}
_SAME_CONTENT = ("KVCS-3.4-4", "KVCS-6-7", "KVCS-8-3", "MOQT-R003", "MOQT-R078")
_SAME_MODE = ("MOQT-R004",)


def answer(evidence: Evidence, request: Asked) -> tuple[Record, Mapping[str, Any]] | None:
    """The response that a scripted node got to one of its requests."""
    for record in evidence.records(request.record.node, "kvcs:answered"):
        if record.data["request"] == request.request:
            return record, record.data["response"]
    return None


def delivered(evidence: Evidence, request: Asked) -> list[Seen]:
    """The Objects that came for one request, fills included, in order of arrival; those that the
    request's own filters exclude too."""
    return [
        seen
        for seen in evidence.objects(request.record.node, unwanted=True)
        if seen.request == request.request
    ]


def ended(evidence: Evidence, request: Asked) -> Record | None:
    """The record that says that a fetch's stream (or a subscription) came to its end."""
    for record in evidence.records(request.record.node, "kvcs:delivered", "kvcs:track-ended"):
        if record.data["request"] == request.request and record.data["complete"]:
            return record
    return None


def fenced(evidence: Evidence, request: Asked) -> bool:
    """Whether the node proved, after the request, that its peer had come that far."""
    return any(
        record.index > request.record.index
        for record in evidence.records(request.record.node, "kvcs:fence")
    )


def described(request: Asked) -> str:
    return f"{request.record.node}'s {request.kind} {request.track}".strip()


@judge("each-object-once", required=("of",), of=LABEL, layers=SPAN)
def each_object_once(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each request of the step gets every data Object of the layers (default: all) exactly once,
    whether by fill or by subscription. Absence counts once the track or the fetch ended."""
    first, last = arguments.get("layers", (0, evidence.layers - 1))
    right = {(g, o) for g in range(first, last + 1) for o in range(evidence.blocks)}
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        if request.track.startswith("manifest"):
            continue
        data = [seen for seen in delivered(evidence, request) if seen.is_data]
        counts = Counter(seen.location for seen in data)
        twice = next((s for s in reversed(data) if counts[s.location] > 1), None)
        stray = next((s for s in data if s.location not in right), None)
        missing = sorted(right - counts.keys())
        end = ended(evidence, request)
        if twice:
            yield contradicted(
                Reason.OBJECT_DUPLICATE,
                f"{described(request)}: {twice.location} came {counts[twice.location]} times",
                expected="every Object once",
                observed=" and ".join(
                    f"by {s.via} at {s.record.time:.3f} s"
                    for s in data
                    if s.location == twice.location
                ),
                record=twice.record,
            )
        elif stray:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{described(request)}: {stray.location} is outside of what was asked",
                expected=f"Groups {first} .. {last}, Objects 0 .. {evidence.blocks - 1}",
                observed=f"{stray.location} by {stray.via}",
                record=stray.record,
            )
        elif missing and end:
            yield contradicted(
                Reason.OBJECT_MISSING,
                f"{described(request)}: {missing[0]} never came and the delivery has ended",
                expected=f"{len(right)} Objects",
                observed=f"{len(counts)}; missing {_some(missing)}",
                record=end,
            )
        elif missing:
            yield unseen(f"{described(request)}: {_some(missing)} have not come, nor an end")
        else:
            ways = Counter(seen.via for seen in data)
            how = ", ".join(f"{n} by {via}" for via, n in sorted(ways.items()))
            yield upheld(f"{described(request)}: {len(right)} Objects once each, {how}")


@judge("came-both-ways", required=("of",), of=LABEL)
def came_both_ways(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The step's requests got Objects by fill and by subscription: the join really was half-way.
    Never contradicted."""
    for request in evidence.asked(arguments["of"]):
        ways = {seen.via for seen in delivered(evidence, request) if seen.is_data}
        if {"fill", "subscription"} <= ways:
            yield upheld(f"{described(request)}: by fill and by subscription")
        elif not request.track.startswith("manifest"):
            yield unseen(f"{described(request)}: only by {', '.join(sorted(ways)) or 'nothing'}")


@judge("same-octets", tracks=TRACKS, among={"type": "array", "minItems": 2, "items": LABEL})
def same_octets(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Whatever node gets an Object, however and how often: payload, Subgroup and priority at one
    Location are the same, and those that the publisher sent where its log is ours. Needs each
    Object twice at least. `among` limits it to what these steps got."""
    under_test = evidence.facts["sut"]
    asked = {
        (one.record.node, one.request)
        for label in arguments.get("among", ())
        for one in evidence.asked(label)
    }
    for track in evidence.tracks(arguments.get("tracks", "data")):
        first: dict[tuple[int, int], Seen] = {}
        times: Counter[tuple[int, int]] = Counter()
        wrong: Seen | None = None
        for node in evidence.logs:
            if node == under_test:
                continue
            for seen in evidence.objects(node, sent=_publishes(evidence, node)):
                if seen.track != track or not seen.is_data:
                    continue
                if "among" in arguments and (node, seen.request) not in asked:
                    continue
                times[seen.location] += 1
                known = first.setdefault(seen.location, seen)
                if wrong is None and _content(known) != _content(seen):
                    wrong = seen
        if wrong:
            known = first[wrong.location]
            yield contradicted(
                Reason.OBJECT_CHANGED,
                f"{track}: the Object at {wrong.location} is not the same everywhere",
                expected=f"as {known.record.node} had it: {_content_text(known)}",
                observed=f"{wrong.record.node}: {_content_text(wrong)}",
                record=wrong.record,
                octets=wrong.head.hex(),
                requires=_changed(known, wrong),
            )
        elif not times or min(times.values()) < 2:
            yield unseen(f"{track}: not every Object was seen twice")
        else:
            yield upheld(f"{track}: {len(times)} Objects seen {sum(times.values())} times, alike")


def _publishes(evidence: Evidence, node: str) -> bool:
    return bool(evidence.facts["nodes"].get(node, {}).get("kind") == "publisher")


def _changed(one: Seen, other: Seen) -> tuple[str, ...]:
    """The requirements that speak of the difference: a datagram is of no Subgroup."""
    modes = {one.subgroup is None, other.subgroup is None}
    return _SAME_CONTENT if len(modes) == 1 else _SAME_MODE


def _content(seen: Seen) -> tuple[object, ...]:
    return (seen.payload["sha256"], seen.subgroup, seen.priority)


def _content_text(seen: Seen) -> str:
    digest = seen.payload["sha256"][:16]
    return (
        f"{seen.payload['length']} octets, SHA-256 {digest}…, Subgroup {seen.subgroup}, "
        f"priority {seen.priority}"
    )


@judge("groups-ascend", required=("of",), of=LABEL)
def groups_ascend(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """On each fetch of the step Locations ascend."""
    for request in evidence.asked(arguments["of"]):
        objects = delivered(evidence, request)
        locations = [seen.location for seen in objects]
        if not locations:
            yield unseen(f"{described(request)}: no Object came")
        elif locations != sorted(locations):
            yield contradicted(
                Reason.ORDER_LAYERS,
                f"{described(request)}: Locations do not ascend",
                expected=str(sorted(locations)),
                observed=str(locations),
                record=objects[-1].record,
            )
        else:
            yield upheld(f"{described(request)}: {len(locations)} Locations ascend")


def shown(evidence: Evidence, request: Asked) -> list[Record]:
    """The NAMESPACE messages that a scripted node got for one SUBSCRIBE_NAMESPACE."""
    return [
        record
        for record in evidence.records(request.record.node, "kvcs:namespace")
        if record.data["request"] == request.request
    ]


@judge("namespaces-shown", required=("of", "publishers"), of=LABEL, publishers={"type": "array"})
def namespaces_shown(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The step's SUBSCRIBE_NAMESPACE is shown exactly the publications of these publishers. Absence
    and `publishers: []` count behind a fence of the node after the request, or when the request
    is refused."""
    right = {
        tuple(evidence.facts["publications"][name]["namespace"]) for name in arguments["publishers"]
    }
    for request in evidence.asked(arguments["of"]):
        records = shown(evidence, request)
        names = {tuple(record.data["namespace"]) for record in records}
        got = answer(evidence, request)
        closed = bool(got and got[1]["type"] == "RequestError") or fenced(evidence, request)
        extra = next((r for r in records if tuple(r.data["namespace"]) not in right), None)
        if extra:
            yield contradicted(
                Reason.NAMESPACE_LEAKED,
                f"{described(request)}: a namespace that does not match was shown",
                expected=f"{len(right)} publications",
                observed="/".join(extra.data["namespace"]),
                record=extra,
            )
        elif right - names and closed:
            yield contradicted(
                Reason.NAMESPACE_ABSENT,
                f"{described(request)}: a namespace that matches was not shown",
                expected="/".join(sorted(right - names)[0]),
                observed=f"{len(names)} of {len(right)} before the fence",
                record=got[0] if got else None,
            )
        elif not closed and (right - names or not right):
            yield unseen(f"{described(request)}: no fence came after it")
        else:
            yield upheld(f"{described(request)}: {len(names)} publications shown", request.record)


def _some(locations: list[tuple[int, int]]) -> str:
    more = f" and {len(locations) - 4} more" if len(locations) > 4 else ""
    return ", ".join(map(str, locations[:4])) + more
