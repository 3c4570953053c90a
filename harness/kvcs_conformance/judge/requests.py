"""Judge words for what a consumer asks for on the wire, by the log of our relay before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.consumer import RELAY, finished
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_NEXT_OBJECT, _ABSOLUTE_START, _GROUP_END = 5, 2, 3
_ASCENDING = 1


@judge("manifest-cose-asked-first")
def manifest_cose_asked_first(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """The consumer asks for "manifest.cose" before "manifest", and for "manifest" only after
    DOES_NOT_EXIST."""
    asked = [
        (record, message)
        for record, message in evidence.messages(RELAY, "Subscribe", "Fetch")
        if message["track"]["name"].startswith("manifest")
    ]
    if not asked:
        yield unseen("no manifest was asked for")
        return
    record, message = asked[0]
    plain = next(((r, m) for r, m in asked if m["track"]["name"] == "manifest"), None)
    refused = [
        answer
        for answer, error in evidence.messages(RELAY, "RequestError", sent=True)
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
            for record, message in evidence.messages(RELAY, "Subscribe", "Fetch")
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
    for record, message in evidence.messages(RELAY, kind):
        if message["track"]["name"] in evidence.data_tracks():
            yield record, message, message.get("parameters", {})


def _filter(parameters: Mapping[str, Any] | None) -> tuple[int, ...] | None:
    found = (parameters or {}).get("location_filter")
    if found is None:
        return None
    names = ("start_group", "start_object", "end_group_delta", "end_object")
    return (found["type_"], *(found.get(name, 0) for name in names))


@judge("asks-longest-prefix-first", publisher=NODE)
def asks_longest_prefix_first(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The first SUBSCRIBE_NAMESPACE of the consumer has the first four fields of the publication,
    which is anchored at the whole prompt, and none has fewer than four."""
    name = arguments.get("publisher", "publisher")
    right = evidence.facts["publications"][name]["namespace"][:4]
    asked = list(evidence.messages(RELAY, "SubscribeNamespace"))
    if not asked:
        yield unseen("no SUBSCRIBE_NAMESPACE was sent")
        return
    wide = next((entry for entry in asked if len(entry[1]["prefix"]) < len(right)), None)
    first = asked[0] if asked[0][1]["prefix"] != right else None
    if wrong := wide or first:
        yield contradicted(
            Reason.REQUEST_SHAPE,
            "SUBSCRIBE_NAMESPACE asks for something else than the whole prompt first",
            expected="/".join(right),
            observed="/".join(wrong[1]["prefix"]),
            record=wrong[0],
            octets=wrong[0].data.get("raw", ""),
        )
    else:
        yield upheld(f"the longest prefix first, {len(asked)} asked in all", asked[0][0])


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
