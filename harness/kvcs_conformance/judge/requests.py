"""Judge words for what a consumer asks for on the wire, by the log of our relay before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.restores import LABEL, NUMBER, RELAY, asked, finished
from kvcs_conformance.verdicts import Reason

_NEXT_OBJECT, _RELATIVE_START, _ABSOLUTE_START, _GROUP_END = 5, 1, 2, 3
_ASCENDING = 1
_OBJECT_ID = 0x26


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


@judge("joins-exactly-once")
def joins_exactly_once(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Every SUBSCRIBE of a data track carries LOCATION_FILTER Next Object (0x05) and
    FILL_PARAMETERS with LOCATION_FILTER Absolute Start (0x02) {0,0}."""
    requests = list(_data_requests(evidence, "Subscribe"))
    if not requests:
        yield unseen("no data track was subscribed to")
    for record, message, parameters in requests:
        what = f"SUBSCRIBE {message['track']['name']}"
        live, fill = _filter(parameters), _filter(parameters.get("fill"))
        yield _part(
            live == (_NEXT_OBJECT, 0, 0, 0, 0),
            f"{what} begins with the Next Object",
            f"{what} does not begin with the Next Object",
            expected="LOCATION_FILTER 05",
            observed=f"filter {live}",
            record=record,
            clause="KVCS-7.2-1",
        )
        yield _part(
            fill == (_ABSOLUTE_START, 0, 0, 0, 0),
            f"{what} is filled from the start",
            f"{what} is not filled from the start",
            expected="FILL_PARAMETERS with LOCATION_FILTER 02 00 00",
            observed=f"fill {fill}",
            record=record,
            clause="KVCS-7.2-2",
        )


def _part(
    right: bool,
    held: str,
    broken: str,
    *,
    expected: str,
    observed: str,
    record: Record,
    clause: str,
) -> Finding:
    """The finding about one part of a request, which is about one clause alone."""
    if right:
        return replace(upheld(held, record), requires=(clause,))
    return contradicted(
        Reason.REQUEST_SHAPE,
        broken,
        expected=expected,
        observed=observed,
        record=record,
        octets=record.data.get("raw", ""),
        requires=(clause,),
    )


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
        what = f"FETCH {message['track']['name']}"
        got, order = _filter(parameters), parameters.get("group_order")
        yield _part(
            got == right,
            f"{what} of layers {first} .. {last}",
            f"{what} is not of layers {first} .. {last}",
            expected=f"LOCATION_FILTER 03 {first:02x} 00 {last - first:02x}",
            observed=f"filter {got}",
            record=record,
            clause="KVCS-7.3-1",
        )
        yield _part(
            order == _ASCENDING,
            f"{what} in ascending order",
            f"{what} does not ask for ascending order",
            expected="GROUP_ORDER 01",
            observed=f"group order {order}",
            record=record,
            clause="KVCS-7.3-2",
        )


@judge("joins-manifest")
def joins_manifest(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Every SUBSCRIBE of a manifest track carries LOCATION_FILTER Next Object (0x05) and
    FILL_PARAMETERS with LOCATION_FILTER Relative Start (0x01) of one Group."""
    found = [
        (record, message)
        for record, message in asked(evidence, "Subscribe")
        if message["track"]["name"].startswith("manifest")
    ]
    if not found:
        yield unseen("no manifest was subscribed to")
    for record, message in found:
        parameters = message.get("parameters", {})
        live, fill = _filter(parameters), _filter(parameters.get("fill"))
        if live != (_NEXT_OBJECT, 0, 0, 0, 0) or fill != (_RELATIVE_START, 1, 0, 0, 0):
            yield contradicted(
                Reason.REQUEST_SHAPE,
                f"SUBSCRIBE {message['track']['name']} does not ask for the current version",
                expected="LOCATION_FILTER 05, FILL_PARAMETERS with LOCATION_FILTER 01 01",
                observed=f"filter {live}, fill {fill}",
                record=record,
                octets=record.data.get("raw", ""),
            )
        else:
            yield upheld(f"SUBSCRIBE {message['track']['name']} has both filters", record)


@judge("filters-blocks", required=("blocks",), blocks=NUMBER)
def filters_blocks(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each FETCH of whole layers of a data track carries OBJECTID_FILTER with the one range from 0
    to the last of so many blocks; none does when `blocks` is 0."""
    blocks = arguments["blocks"]
    right = [[0, blocks - 1]] if blocks else []
    found = [
        (record, message, parameters)
        for record, message, parameters in _data_requests(evidence, "Fetch")
        if (_filter(parameters) or (0,))[0] == _GROUP_END
    ]
    if not found:
        yield unseen("no whole layers were fetched")
    for record, message, parameters in found:
        filters = parameters.get("range_filters", [])
        ranges = [list(span) for one in filters for span in one["ranges"]]
        if ranges != right or any(one["type_"] != _OBJECT_ID for one in filters):
            yield contradicted(
                Reason.REQUEST_SHAPE,
                f"FETCH {message['track']['name']} filters otherwise",
                expected=f"OBJECTID_FILTER {right}" if right else "no OBJECTID_FILTER",
                observed=f"{filters}",
                record=record,
                octets=record.data.get("raw", ""),
            )
        else:
            yield upheld(f"FETCH {message['track']['name']}: object ids {ranges}", record)


@judge("selects-one-encoding", of=LABEL)
def selects_one_encoding(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Of each segment of a publication the consumer asks for the "k" and the "v" track of one
    codec, or for one "kv" track, and for nothing else. Counts once the consumer is done."""
    selected: dict[tuple[str, str], set[str]] = {}
    last: Record | None = None
    for record, message in asked(evidence, "Subscribe", "Fetch"):
        component, _, rest = message["track"]["name"].partition(".")
        codec, _, segment = rest.rpartition(".")
        if component not in ("k", "v", "kv") or not codec:
            continue
        place = (message["track"]["namespace"][-1], segment)
        selected.setdefault(place, set()).add(f"{component}.{codec}")
        last = record
    wrong = next((names for names in selected.values() if not _one_encoding(names)), None)
    done = finished(evidence, arguments)
    if wrong:
        yield contradicted(
            Reason.REQUEST_SHAPE,
            "the tracks that were asked for are not one encoding",
            expected="k and v of one codec, or one kv",
            observed=", ".join(sorted(wrong)),
            record=last,
        )
    elif done:
        names = sorted({name for names in selected.values() for name in names})
        yield upheld(f"selected: {', '.join(names) or 'nothing'}", done)
    else:
        yield unseen("the consumer did not come to its end")


def _one_encoding(names: set[str]) -> bool:
    codecs = {name.partition(".")[2] for name in names}
    kinds = {name.partition(".")[0] for name in names}
    return len(codecs) == 1 and kinds in ({"k", "v"}, {"kv"})


@judge(
    "tracks-not-asked",
    required=("tracks",),
    tracks={"type": "array", "minItems": 1, "items": {"type": "string"}},
    of=LABEL,
)
def tracks_not_asked(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """None of these names is asked for. Counts once the consumer is done."""
    wrong = next(
        (
            (record, message)
            for record, message in asked(evidence, "Subscribe", "Fetch")
            if message["track"]["name"] in arguments["tracks"]
        ),
        None,
    )
    done = finished(evidence, arguments)
    if wrong:
        yield contradicted(
            Reason.REQUEST_SHAPE,
            f"{wrong[1]['track']['name']} was asked for",
            expected=f"nothing asked of {', '.join(arguments['tracks'])}",
            observed=f"{wrong[1]['type']} at {wrong[0].time:.3f} s",
            record=wrong[0],
            octets=wrong[0].data.get("raw", ""),
        )
    elif done:
        yield upheld(f"{', '.join(arguments['tracks'])} left aside", done)
    else:
        yield unseen("the consumer did not come to its end")
