"""Judge words for a consumer: what it asks for on the wire, and what it reports to have used.

A report is the consumer's own word; it is held against the log of the relay that it asks, which
is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record, Seen
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

NUMBER = {"type": "integer", "minimum": 0}
TRACK = {"type": "string"}
_CONSUMER = "consumer"
_RELAY = "relay"
_NEXT_OBJECT, _ABSOLUTE_START, _RELATIVE_START, _GROUP_END = 5, 2, 1, 3
_ASCENDING = 1


def finished(evidence: Evidence) -> Record | None:
    """The report that the consumer is done: behind it nothing more is used."""
    return next(evidence.reports(_CONSUMER, "done"), None)


def _about(evidence: Evidence, arguments: Mapping[str, Any], event: str) -> list[Record]:
    """The consumer's reports of this kind about the Object that the arguments name."""
    return [
        record
        for record in evidence.reports(_CONSUMER, event)
        if record.data["track"] == arguments["track"]
        and record.data["layer"] == arguments["layer"]
        and record.data["block"] == arguments["block"]
    ]


def _sent(evidence: Evidence, arguments: Mapping[str, Any]) -> Seen | None:
    """The Object that the arguments name, as our relay sent it."""
    for seen in evidence.objects(_RELAY, sent=True):
        if seen.track == arguments["track"] and seen.location == (
            arguments["layer"],
            arguments["block"],
        ):
            return seen
    return None


_OBJECT = {"track": TRACK, "layer": NUMBER, "block": NUMBER}


@judge("object-not-used", required=("track", "layer", "block"), **_OBJECT)
def object_not_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer got this Object, reported it discarded, accepted nothing at its Location, and
    did not report its layer usable. Counts once the consumer is done."""
    place = f"{arguments['track']} ({arguments['layer']}, {arguments['block']})"
    accepted = _about(evidence, arguments, "object-accepted")
    usable = [
        record
        for record in evidence.reports(_CONSUMER, "layer-usable")
        if record.data["layer"] == arguments["layer"]
    ]
    discarded = _about(evidence, arguments, "object-discarded")
    used = accepted or usable
    sent = _sent(evidence, arguments)
    if sent is None:
        yield unseen(f"{place}: it was not sent to the consumer")
    elif used:
        what = "accepted" if accepted else f"used: layer {arguments['layer']} is called usable"
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"{place}: the Object fails a check and was {what}",
            expected="object-discarded, and the layer not usable",
            observed=f"{used[0].name.removeprefix('kvcs:')} at {used[0].time:.3f} s",
            record=used[0],
            octets=sent.head.hex(),
        )
    elif not finished(evidence):
        yield unseen(f"{place}: the consumer did not come to its end")
    elif discarded:
        reason = discarded[0].data.get("reason", "")
        yield upheld(f"{place}: discarded ({reason}), its layer not used", discarded[0])
    else:
        yield unseen(f"{place}: neither used nor reported as discarded")


@judge("object-used", required=("track", "layer", "block"), **_OBJECT)
def object_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer accepted this Object. Absence counts once it is done, or when it reported the
    Object as discarded."""
    place = f"{arguments['track']} ({arguments['layer']}, {arguments['block']})"
    accepted = _about(evidence, arguments, "object-accepted")
    discarded = _about(evidence, arguments, "object-discarded")
    if accepted:
        yield upheld(f"{place}: accepted", accepted[0])
    elif discarded or (finished(evidence) and _sent(evidence, arguments)):
        yield contradicted(
            Reason.DROPPED_GOOD_OBJECT,
            f"{place}: the Object is right and was not used",
            expected="object-accepted",
            observed=f"object-discarded: {discarded[0].data.get('reason', '')}"
            if discarded
            else "done without it",
            record=discarded[0] if discarded else finished(evidence),
        )
    else:
        yield unseen(f"{place}: the consumer did not come to its end")


@judge("layers-usable", required=("layers",), layers={"type": "array"})
def layers_usable(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Exactly these layers are reported usable. Absence counts once the consumer is done."""
    reports = list(evidence.reports(_CONSUMER, "layer-usable"))
    usable = {record.data["layer"] for record in reports}
    right = set(arguments["layers"])
    done = finished(evidence)
    extra = next((r for r in reports if r.data["layer"] not in right), None)
    if extra:
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"layer {extra.data['layer']} is called usable and cannot be",
            expected=f"layers {sorted(right)}",
            observed=f"layers {sorted(usable)}",
            record=extra,
        )
    elif right - usable and done:
        yield contradicted(
            Reason.DROPPED_GOOD_OBJECT,
            f"layer {min(right - usable)} was delivered whole and is not usable",
            expected=f"layers {sorted(right)}",
            observed=f"layers {sorted(usable)}",
            record=done,
        )
    elif right - usable or not done:
        yield unseen("the consumer did not come to its end")
    else:
        yield upheld(f"layers {sorted(right)} usable, no other", done)


@judge("tensors-right")
def tensors_right(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """What the consumer hands out has, layer by layer, the SHA-256 of what was published; a layer
    that it calls usable is among it."""
    right = evidence.facts["layer_digests"]
    handed = list(evidence.reports(_CONSUMER, "tensors"))
    wrong = next((r for r in handed if right[r.data["layer"]] != r.data["sha256"]), None)
    if wrong:
        yield contradicted(
            Reason.TENSORS,
            f"layer {wrong.data['layer']} comes out with other octets",
            expected=right[wrong.data["layer"]],
            observed=wrong.data["sha256"],
            record=wrong,
        )
    elif handed:
        yield upheld(f"{len(handed)} layers bit-identical", handed[-1])
    else:
        yield unseen("the consumer handed out no tensors")


@judge("publication-discarded", publisher=NODE)
def publication_discarded(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer reports the publication of this publisher discarded, and uses nothing of it."""
    name = arguments.get("publisher", "publisher")
    publication = evidence.facts["publications"][name]["namespace"][4]
    used = [
        record
        for record in evidence.reports(_CONSUMER, "layer-usable", "reused-tokens", "tensors")
        if record.data.get("tokens", 1)
    ]
    reports = [
        record
        for record in evidence.reports(_CONSUMER, "publication-discarded")
        if record.data["publication"] == publication
    ]
    if used:
        yield contradicted(
            Reason.USED_BAD_PUBLICATION,
            "something of the publication was used",
            expected="publication-discarded, no layer usable, no token reused",
            observed=f"{used[0].name.removeprefix('kvcs:')} at {used[0].time:.3f} s",
            record=used[0],
        )
    elif reports and finished(evidence):
        yield upheld(f"discarded: {reports[0].data.get('reason', '')}", reports[0])
    else:
        yield unseen("the publication was neither used nor reported as discarded")


@judge("publications-not-mixed")
def publications_not_mixed(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Every layer that the consumer calls usable of a publication rests on accepted Objects of
    that publication alone. Needs more than one publication to have been tried."""
    whole = len(evidence.data_tracks()) * evidence.blocks
    accepted: dict[tuple[str, int], set[tuple[str, int]]] = {}
    mixed = False
    for record in evidence.reports(_CONSUMER, "object-accepted", "layer-usable"):
        place = (record.data["publication"], record.data["layer"])
        if record.name == "kvcs:object-accepted":
            accepted.setdefault(place, set()).add((record.data["track"], record.data["block"]))
        elif len(accepted.get(place, ())) < whole and not mixed:
            mixed = True
            others = [p for p, layer in accepted if layer == place[1] and p != place[0]]
            yield contradicted(
                Reason.MIXED_PUBLICATIONS,
                f"layer {place[1]} was put together from two publications",
                expected=f"{whole} Objects of {place[0]}, because not both are deterministic",
                observed=f"{len(accepted.get(place, ()))} of it, others of {', '.join(others)}",
                record=record,
            )
    if mixed:
        return
    if not finished(evidence):
        yield unseen("the consumer did not come to its end")
    elif len(_tried(evidence)) < 2:
        yield unseen("only one publication was tried")
    else:
        yield upheld("two publications tried, none of their Objects combined", finished(evidence))


def _tried(evidence: Evidence) -> set[str]:
    """Publication IDs of which the consumer asked for a data track."""
    return {
        message["track"]["namespace"][4]
        for _, message in evidence.messages(_RELAY, "Subscribe", "Fetch")
        if message["track"]["name"] in evidence.data_tracks()
    }


@judge("publications-combined")
def publications_combined(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Objects of two publications were accepted, and layers are usable: the promise was taken."""
    publications = {
        record.data["publication"] for record in evidence.reports(_CONSUMER, "object-accepted")
    }
    usable = list(evidence.reports(_CONSUMER, "layer-usable"))
    if len(publications) > 1 and usable:
        yield upheld("Objects of two publications made a usable layer", usable[-1])
    else:
        yield unseen("no layer was put together from two publications")


@judge("manifest-cose-asked-first")
def manifest_cose_asked_first(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """The consumer asks for "manifest.cose" before "manifest", and for "manifest" only after
    DOES_NOT_EXIST."""
    asked = [
        (record, message)
        for record, message in evidence.messages(_RELAY, "Subscribe", "Fetch")
        if message["track"]["name"].startswith("manifest")
    ]
    if not asked:
        yield unseen("no manifest was asked for")
        return
    record, message = asked[0]
    plain = next(((r, m) for r, m in asked if m["track"]["name"] == "manifest"), None)
    refused = [
        answer
        for answer, error in evidence.messages(_RELAY, "RequestError", sent=True)
        if error["code"] == 0x10 and answer.index > record.index
    ]
    if message["track"]["name"] != "manifest.cose":
        yield contradicted(
            Reason.REQUEST_ORDER,
            "manifest was asked for first",
            expected="manifest.cose, then manifest after DOES_NOT_EXIST",
            observed=" then ".join(m["track"]["name"] for _, m in asked),
            record=record,
            octets=record.data.get("raw", ""),
        )
    elif plain and (not refused or refused[0].index > plain[0].index):
        yield contradicted(
            Reason.REQUEST_ORDER,
            "manifest was asked for though manifest.cose was not refused",
            expected="manifest only after DOES_NOT_EXIST (0x10)",
            observed=f"SUBSCRIBE manifest at {plain[0].time:.3f} s",
            record=plain[0],
            octets=plain[0].data.get("raw", ""),
        )
    else:
        yield upheld("manifest.cose was asked for first", record)


@judge("manifest-not-asked")
def manifest_not_asked(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """The consumer never asks for the unsigned "manifest". Counts once it is done."""
    plain = next(
        (
            record
            for record, message in evidence.messages(_RELAY, "Subscribe", "Fetch")
            if message["track"]["name"] == "manifest"
        ),
        None,
    )
    if plain:
        yield contradicted(
            Reason.REQUEST_ORDER,
            "the unsigned manifest was asked for",
            expected="manifest.cose only, because authenticity is required",
            observed=f"manifest at {plain.time:.3f} s",
            record=plain,
            octets=plain.data.get("raw", ""),
        )
    elif finished(evidence):
        yield upheld("only manifest.cose was asked for", finished(evidence))
    else:
        yield unseen("the consumer did not come to its end")


def _data_requests(
    evidence: Evidence, kind: str
) -> Iterator[tuple[Record, Mapping[str, Any], Mapping[str, Any]]]:
    for record, message in evidence.messages(_RELAY, kind):
        if message["track"]["name"] in evidence.data_tracks():
            yield record, message, message.get("parameters", {})


def _filter(parameters: Mapping[str, Any] | None) -> tuple[int, ...] | None:
    found = (parameters or {}).get("location_filter")
    if found is None:
        return None
    names = ("start_group", "start_object", "end_group_delta", "end_object")
    return (found["type_"], *(found.get(name, 0) for name in names))


@judge("joins-exactly-once")
def joins_exactly_once(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Every SUBSCRIBE of a data track carries LOCATION_FILTER Next Object (0x05) and
    FILL_PARAMETERS with LOCATION_FILTER Absolute Start (0x02) {0,0}."""
    requests = list(_data_requests(evidence, "Subscribe"))
    if not requests:
        yield unseen("no data track was subscribed to")
    for record, message, parameters in requests:
        live, fill = _filter(parameters), _filter(parameters.get("fill"))
        if live != (_NEXT_OBJECT, 0, 0, 0, 0) or fill != (_ABSOLUTE_START, 0, 0, 0, 0):
            yield contradicted(
                Reason.REQUEST_SHAPE,
                f"SUBSCRIBE {message['track']['name']} does not join exactly once",
                expected="LOCATION_FILTER 05, FILL_PARAMETERS with LOCATION_FILTER 02 00 00",
                observed=f"filter {live}, fill {fill}",
                record=record,
                octets=record.data.get("raw", ""),
            )
        else:
            yield upheld(f"SUBSCRIBE {message['track']['name']} has both filters", record)


@judge("fetches-layers", required=("layers",), layers={"type": "array"})
def fetches_layers(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every FETCH of a data track carries LOCATION_FILTER Absolute Start, Group End (0x03) from
    {a, 0} over b-a more Groups, and GROUP_ORDER Ascending."""
    first, last = arguments["layers"]
    right = (_GROUP_END, first, 0, last - first, 0)
    requests = list(_data_requests(evidence, "Fetch"))
    if not requests:
        yield unseen("no data track was fetched")
    for record, message, parameters in requests:
        got, order = _filter(parameters), parameters.get("group_order")
        if got != right or order != _ASCENDING:
            yield contradicted(
                Reason.REQUEST_SHAPE,
                f"FETCH {message['track']['name']} asks for something else",
                expected=f"LOCATION_FILTER 03 {first:02x} 00 {last - first:02x}, GROUP_ORDER 01",
                observed=f"filter {got}, group order {order}",
                record=record,
                octets=record.data.get("raw", ""),
            )
        else:
            yield upheld(f"FETCH {message['track']['name']} of layers {first} .. {last}", record)
