"""Judge words for Objects that pass a relay: each field, each stream, as the publisher made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from moqt.wire.properties import PropertyType, decode_properties

from kvcs_conformance.evidence.read import Asked, Evidence, Seen
from kvcs_conformance.judge.delivery import LABEL, delivered, described, ended
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import (
    Stream,
    first_published,
    full_name,
    place,
    published,
    subgroup_streams,
)
from kvcs_conformance.verdicts import Reason

_PLACES = {
    "type": "array",
    "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}},
}
_GAPS = (PropertyType.PRIOR_GROUP_ID_GAP, PropertyType.PRIOR_OBJECT_ID_GAP)
_KNOWN = frozenset(PropertyType)


def _of_types(wanted: Callable[[int], bool]) -> Callable[[Seen], object]:
    def pick(one: Seen) -> object:
        pairs = decode_properties(bytes.fromhex(one.properties))
        return tuple(pair for pair in pairs if wanted(pair[0])) or None

    return pick


_FIELDS: dict[str, tuple[Reason, Callable[[Seen], object]]] = {
    "payload": (Reason.OBJECT_CHANGED, lambda one: (one.payload["length"], one.payload["sha256"])),
    "subgroup": (Reason.OBJECT_SUBGROUP, lambda one: one.subgroup),
    "mode": (Reason.OBJECT_MODE, lambda one: "datagram" if one.subgroup is None else "subgroup"),
    "priority": (Reason.PRIORITY, lambda one: one.priority),
    "properties": (Reason.PROPERTY_CHANGED, lambda one: one.properties or None),
    "immutable": (
        Reason.PROPERTY_CHANGED,
        _of_types(lambda kind: kind == PropertyType.IMMUTABLE_PROPERTIES),
    ),
    "group-gap": (Reason.PROPERTY_CHANGED, _of_types(lambda kind: kind == _GAPS[0])),
    "object-gap": (Reason.PROPERTY_CHANGED, _of_types(lambda kind: kind == _GAPS[1])),
    "unknown-properties": (Reason.PROPERTY_CHANGED, _of_types(lambda kind: kind not in _KNOWN)),
}
"""What is compared: the reason when it differs, and how to see it; None has nothing to say."""


@judge(
    "as-published",
    required=("of", "fields"),
    of=LABEL,
    fields={"type": "array", "minItems": 1, "items": {"enum": list(_FIELDS)}},
    via={"enum": ["subscription", "fill", "fetch"]},
    beyond=LABEL,
)
def as_published(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each Object that came for the step's requests has these fields as the origin first published
    it there; a gap property may be left out of a fetch. What comes in a datagram has no subgroup to
    compare. Needs an Object that has the field. With `beyond`, a field that had changed already
    when the step of that label got the Object says nothing."""
    known = first_published(evidence)
    earlier = {
        place(one): one
        for request in evidence.asked(arguments.get("beyond", ""))
        for one in delivered(evidence, request)
    }
    for request in evidence.asked(arguments["of"]):
        objects = [
            one for one in delivered(evidence, request) if arguments.get("via", one.via) == one.via
        ]
        stray = next((one for one in objects if place(one) not in known), None)
        if stray is not None:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{described(request)}: nobody published an Object at {stray.location}",
                expected="Objects that the publisher published",
                observed=f"{stray.location} by {stray.via}",
                record=stray.record,
            )
            continue
        for name in arguments["fields"]:
            _, look = _FIELDS[name]
            pairs = [(known[place(one)], one) for one in objects]
            pairs = [
                (right, one)
                for right, one in pairs
                if look(earlier.get(place(one), right)) == look(right)
            ]
            yield _same_field(request, name, pairs)


def _same_field(request: Asked, name: str, pairs: list[tuple[Seen, Seen]]) -> Finding:
    reason, look = _FIELDS[name]
    spoke = 0
    for right, one in pairs:
        wanted, got = look(right), look(one)
        if wanted is None and got is None:
            continue
        if name == "subgroup" and (wanted is None or got is None):
            continue  # the mode has changed, which is another field
        dropped = got is None and one.via != "subscription" and name.endswith("-gap")
        if wanted != got and not dropped:
            return contradicted(
                reason,
                f"{described(request)}: {name} of the Object at {one.location} is not as published",
                expected=str(wanted),
                observed=f"{got} by {one.via}",
                record=one.record,
                octets=one.properties if "propert" in name or "gap" in name else one.head.hex(),
            )
        spoke += 1
    if not spoke:
        return unseen(f"{described(request)}: no Object came that has {name}")
    return upheld(f"{described(request)}: {name} as published, {spoke} times")


@judge(
    "exactly",
    required=("of",),
    of=LABEL,
    objects=_PLACES,
    without=_PLACES,
    via={"enum": ["subscription", "fill", "fetch"]},
    others={"const": True},
)
def exactly(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each request of the step gets these Normal Objects (default: all that were published in its
    track, `without` these), each once and no other; `via` limits it to what came that way, with
    `others` more may come. Absence counts once the delivery ended."""
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        name = full_name(evidence, request)
        known = {
            one.location
            for one in published(evidence)
            if (one.namespace, one.track) == name and one.status == "NORMAL"
        }
        right = {(g, o) for g, o in arguments.get("objects", known)}
        right -= {(g, o) for g, o in arguments.get("without", ())}
        yield _exactly(evidence, request, right, arguments)


def _exactly(
    evidence: Evidence, request: Asked, right: set[tuple[int, int]], arguments: Mapping[str, Any]
) -> Finding:
    via, others = arguments.get("via"), arguments.get("others", False)
    came = (one for one in delivered(evidence, request) if via in (None, one.via))
    got = [one for one in came if one.status == "NORMAL" and (not others or one.location in right)]
    counts = Counter(one.location for one in got)
    twice = next((one for one in reversed(got) if counts[one.location] > 1), None)
    stray = next((one for one in got if one.location not in right), None)
    missing = sorted(right - counts.keys())
    end = ended(evidence, request)
    if twice is not None:
        return contradicted(
            Reason.OBJECT_DUPLICATE,
            f"{described(request)}: {twice.location} came {counts[twice.location]} times",
            expected="every Object once",
            observed=" and ".join(
                f"by {one.via} at {one.record.time:.3f} s"
                for one in got
                if one.location == twice.location
            ),
            record=twice.record,
        )
    if stray is not None:
        return contradicted(
            Reason.OBJECT_UNEXPECTED,
            f"{described(request)}: {stray.location} is not to come",
            expected=f"{sorted(right)}",
            observed=f"{stray.location} by {stray.via}",
            record=stray.record,
        )
    if missing and end is not None:
        return contradicted(
            Reason.OBJECT_MISSING,
            f"{described(request)}: {missing[0]} never came and the delivery has ended",
            expected=f"{len(right)} Objects",
            observed=f"{len(counts)}; missing {missing}",
            record=end,
        )
    if missing or (not right and end is None):
        return unseen(f"{described(request)}: {missing} have not come, nor an end")
    what = "once each" if others else "once each, no other"
    return upheld(f"{described(request)}: {len(right)} Objects {what}")


def _runs(evidence: Evidence, request: Asked) -> Iterator[tuple[Stream, list[Seen]]]:
    """Each subgroup stream of a request, with what was published in its Subgroup, in order."""
    for stream in subgroup_streams(evidence, request):
        if stream.objects:
            first = stream.objects[0]
            yield (
                stream,
                [
                    one
                    for one in published(evidence)
                    if (one.namespace, one.track) == (first.namespace, first.track)
                    and (one.group, one.subgroup) == (stream.group, stream.subgroup)
                ],
            )


@judge("first-object-kept", required=("of",), of=LABEL)
def first_object_kept(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """FIRST_OBJECT is set on each subgroup stream that begins with the first Object ever published
    in the Subgroup, and on no other."""
    for request in evidence.asked(arguments["of"]):
        told = 0
        for stream, run in _runs(evidence, request):
            begins = bool(run) and stream.objects[0].location == run[0].location
            begins = begins and run[0].record.data.get("first", True)
            flag = bool(stream.header.get("first_object", False))
            if flag is not begins:
                yield contradicted(
                    Reason.STREAM_FLAG,
                    f"{described(request)}: FIRST_OBJECT is wrong on {stream}",
                    expected="set" if begins else "clear",
                    observed="set" if flag else "clear",
                    record=stream.record,
                )
                break
            told += begins
        else:
            if told:
                yield upheld(f"{described(request)}: FIRST_OBJECT on {told} streams")
            else:
                yield unseen(f"{described(request)}: no stream began with a first Object")


@judge("end-of-group-kept", required=("of",), of=LABEL)
def end_of_group_kept(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """END_OF_GROUP is set on the streams of the Subgroups that were published with it, and on no
    other."""
    for request in evidence.asked(arguments["of"]):
        told = 0
        for stream, run in _runs(evidence, request):
            right = any(one.record.data.get("end_of_group") for one in run)
            flag = bool(stream.header.get("end_of_group", False))
            if flag is not right:
                yield contradicted(
                    Reason.STREAM_FLAG,
                    f"{described(request)}: END_OF_GROUP is wrong on {stream}",
                    expected="set" if right else "clear",
                    observed="set" if flag else "clear",
                    record=stream.record,
                )
                break
            told += right
        else:
            if told:
                yield upheld(f"{described(request)}: END_OF_GROUP on {told} streams")
            else:
                yield unseen(f"{described(request)}: no Subgroup was published with END_OF_GROUP")


@judge("streams-without-holes", required=("of",), of=LABEL)
def streams_without_holes(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Objects of each subgroup stream are an unbroken run of what was published in the
    Subgroup, in that order. Needs a stream of two Objects."""
    for request in evidence.asked(arguments["of"]):
        long = 0
        for stream, run in _runs(evidence, request):
            got = [one.location for one in stream.objects]
            right = [one.location for one in run]
            start = right.index(got[0]) if got[0] in right else len(right)
            if got != right[start : start + len(got)]:
                yield contradicted(
                    Reason.STREAM_HOLE,
                    f"{described(request)}: {stream} leaves out or reorders Objects",
                    expected=f"a run of {right}",
                    observed=str(got),
                    record=stream.objects[-1].record,
                )
                break
            long += len(got) > 1
        else:
            if long:
                yield upheld(f"{described(request)}: {long} streams in order and without holes")
            else:
                yield unseen(f"{described(request)}: no stream brought two Objects")


@judge("one-stream-per-subgroup", required=("of",), of=LABEL)
def one_stream_per_subgroup(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """No Subgroup comes on a second stream unless the one before was reset."""
    for request in evidence.asked(arguments["of"]):
        last: dict[tuple[int, int | None], Stream] = {}
        for stream in subgroup_streams(evidence, request):
            before = last.get((stream.group, stream.subgroup))
            if before is not None and before.reset is None:
                yield contradicted(
                    Reason.STREAM_SECOND,
                    f"{described(request)}: a Subgroup came on two streams",
                    expected=f"{before} alone",
                    observed=f"{stream} as well",
                    record=stream.record,
                )
                break
            last[stream.group, stream.subgroup] = stream
        else:
            if last:
                yield upheld(f"{described(request)}: {len(last)} Subgroups on a stream each")
            else:
                yield unseen(f"{described(request)}: no subgroup stream came")


@judge("next-object-only", required=("of",), of=LABEL)
def next_object_only(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Where the publisher leaves Object IDs out without a word, no subgroup stream goes on over
    them: on each stream every Object ID is the one before plus one. Needs a Subgroup with such a
    hole."""
    for request in evidence.asked(arguments["of"]):
        holed = False
        for stream, run in _runs(evidence, request):
            ids = [one.object for one in stream.objects]
            leap = next((b for a, b in pairwise(ids) if b != a + 1), None)
            if leap is not None:
                yield contradicted(
                    Reason.STREAM_HOLE,
                    f"{described(request)}: {stream} goes on over a hole",
                    expected="a new stream behind the hole",
                    observed=f"Object IDs {ids} on one stream",
                    record=stream.objects[-1].record,
                )
                break
            holed |= any(b.object > a.object + 1 for a, b in pairwise(run))
        else:
            if holed:
                yield upheld(f"{described(request)}: no stream goes on over the hole")
            else:
                yield unseen(f"{described(request)}: no Subgroup with a hole came")


@judge("hole-splits-stream", required=("of", "group"), of=LABEL, group={"type": "integer"})
def hole_splits_stream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Objects of this Group's Subgroup come on several streams, and each but the last is reset:
    FIN would say that it is whole."""
    for request in evidence.asked(arguments["of"]):
        streams = [
            stream
            for stream in subgroup_streams(evidence, request)
            if stream.group == arguments["group"]
        ]
        whole = next((stream for stream in streams[:-1] if stream.fin is not None), None)
        if whole is not None:
            yield contradicted(
                Reason.STREAM_END,
                f"{described(request)}: {whole} ended with FIN, and the Subgroup went on",
                expected="RESET_STREAM",
                observed="FIN",
                record=whole.fin,
            )
        elif len(streams) > 1 and all(stream.reset is not None for stream in streams[:-1]):
            yield upheld(f"{described(request)}: {len(streams)} streams, the earlier ones reset")
        else:
            yield unseen(f"{described(request)}: {len(streams)} streams of the Group")
