"""Judge words for Track and Object Properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE, TRACKS
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_IMMUTABLE = 0x0B
_NAMES = {
    0x02: "OBJECT_DELIVERY_TIMEOUT",
    0x04: "MAX_CACHE_DURATION",
    0x06: "SUBGROUP_DELIVERY_TIMEOUT",
}


def properties(octets: str) -> list[tuple[int, int | bytes]]:
    """The properties in these octets (hex), those inside Immutable Properties too."""
    from moqt.wire.properties import decode_properties

    found: list[tuple[int, int | bytes]] = []
    for kind, value in decode_properties(bytes.fromhex(octets)):
        if kind == _IMMUTABLE and isinstance(value, bytes):
            found += decode_properties(value)
        else:
            found.append((kind, value))
    return found


def track_properties(
    evidence: Evidence, node: str, tracks: tuple[str, ...]
) -> Iterator[tuple[Record, str, str]]:
    """Each answer that carried Track Properties: record, track name, octets in hex."""
    for record in evidence.records(node, "kvcs:track-properties"):
        if record.data["track"] in tracks:
            yield record, record.data["track"], record.data["properties"]


@judge(
    "properties-absent",
    required=("types",),
    tracks=TRACKS,
    types={"type": "array", "minItems": 1, "items": {"type": "integer"}},
    at=NODE,
)
def properties_absent(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """None of these property types is set on the tracks or on their Objects, inside Immutable
    Properties neither. Needs both an answer with the Track Properties and Objects."""
    node = arguments.get("at", "consumer")
    tracks = evidence.tracks(arguments.get("tracks", "data"))
    answered: set[str] = set()
    carriers = [*track_properties(evidence, node, tracks)]
    answered.update(track for _, track, _ in carriers)
    objects = [seen for seen in evidence.objects(node) if seen.track in tracks]
    carriers += [(seen.record, seen.track, seen.properties) for seen in objects]
    wrong = False
    for record, track, octets in carriers:
        for kind, value in properties(octets):
            if kind in arguments["types"] and not wrong:
                wrong = True
                yield contradicted(
                    Reason.PROPERTY_FORBIDDEN,
                    f"{track}: {_NAMES.get(kind, hex(kind))} is set",
                    expected="absent",
                    observed=f"{kind:#04x} = {value!r}",
                    record=record,
                    octets=octets,
                )
    for track in tracks:
        if track not in answered or not any(seen.track == track for seen in objects):
            yield unseen(f"{track}: no Track Properties or no Object was seen")
        elif not wrong:
            names = " and ".join(_NAMES.get(kind, hex(kind)) for kind in arguments["types"])
            yield upheld(f"{track}: neither the track nor an Object has {names}")


@judge(
    "retention-stated",
    tracks=TRACKS,
    at=NODE,
)
def retention_stated(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each track has MAX_CACHE_DURATION, not longer than the scenario's `retention`."""
    allowed = int(evidence.facts["retention_ms"])
    tracks = evidence.tracks(arguments.get("tracks", "data"))
    node = arguments.get("at", "consumer")
    for track in tracks:
        answers = [c for c in track_properties(evidence, node, tracks) if c[1] == track]
        if not answers:
            yield unseen(f"{track}: no Track Properties were seen")
            continue
        record, _, octets = answers[0]
        stated = [value for kind, value in properties(octets) if kind == 0x04]
        if not stated or not isinstance(stated[0], int) or stated[0] > allowed:
            yield contradicted(
                Reason.PROPERTY_ABSENT,
                f"{track}: the retention of the scope is not stated",
                expected=f"MAX_CACHE_DURATION of at most {allowed} ms",
                observed=f"{stated[0]!r} ms" if stated else "no such property",
                record=record,
                octets=octets,
            )
        else:
            yield upheld(f"{track}: MAX_CACHE_DURATION is {stated[0]} ms", record)
