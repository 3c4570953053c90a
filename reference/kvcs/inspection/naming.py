"""Track Namespaces and Track Names explained (KVCS 3.1, 3.2, MOQT-22 §8.7)."""

from __future__ import annotations

from dataclasses import replace

from kvcs.errors import TrackNameError
from kvcs.inspection.report import Report, where
from kvcs.inspection.trace import Stop, Trace
from kvcs.names import KVCS_1, NAMESPACE_FIELDS, DataTrack, check_namespace, parse_track_name

_FIELD_MEANINGS = (
    "the protocol and its version",
    "names the scope; derived from its secret scope key",
    "names model, weights, dtype and layout",
    "names the token prefix: the last Block Key of segment 0",
    "random, one per production of the cache",
)


def explain_namespace(octets: bytes) -> Report:
    """A KVCS namespace in its MOQT form: count of fields, then length and octets of each."""
    report = Report("KVCS Track Namespace", octets)
    trace = Trace(report)
    try:
        fields, places = trace_namespace(trace)
    except Stop:
        return report
    if trace.left:
        what = f"the namespace ends here, but the octets go on ({trace.left} more)"
        trace.wrong("trailing", "KVCS-3.1-1", what, trace.offset, len(octets))
    for defect in check_namespace(fields):
        index = int(defect.where.removeprefix("field ")) if "field" in defect.where else None
        start, end = (0, 1) if index is None else places[index]
        report.defects.append(replace(defect, where=where(start, end)))
    return report


def trace_namespace(
    trace: Trace, name: str = "Track Namespace"
) -> tuple[list[bytes], list[tuple[int, int]]]:
    """The fields of a namespace and where they lie; KVCS's names for them where they fit."""
    start = trace.offset
    count = trace.integer(f"{name}: fields")
    if count > 32:
        what = f"a Track Namespace has at most 32 fields, not {count}"
        trace.stop("namespace-fields", "MOQT-22 §2.4.1", what, start)
    fields: list[bytes] = []
    places = []
    kvcs = False
    with trace.deeper():
        for index in range(count):
            length = trace.integer(f"Field {index} length")
            place = trace.offset
            if length == 0:
                what = "a Track Namespace Field has at least one octet"
                trace.stop("namespace-field-empty", "MOQT-22 §2.4.1", what, place - 1, place)
            if index == 0:
                kvcs = trace.report.octets[place : place + 5] == KVCS_1[:5]
            label, meaning = _field(index, kvcs)
            show = _text if index == 0 or not kvcs else _brief
            fields.append(trace.raw(label, length, meaning, show))
            places.append((place, trace.offset))
    return fields, places


def _field(index: int, kvcs: bool) -> tuple[str, str]:
    if not kvcs or index >= len(NAMESPACE_FIELDS):
        return f"Field {index}", ""
    return f"Field {index}, {NAMESPACE_FIELDS[index][0]}", _FIELD_MEANINGS[index]


def _brief(octets: bytes) -> str:
    return octets.hex() if len(octets) <= 16 else f"{octets[:8].hex()}..."


def _text(octets: bytes) -> str:
    return ascii(octets.decode("latin-1"))


def explain_track_name(octets: bytes) -> Report:
    """A KVCS Track Name."""
    report = Report("KVCS Track Name", octets)
    trace_track_name(report, 0, len(octets), depth=0)
    if not octets:
        report.add("Track Name", "''", "empty")
    try:
        parse_track_name(octets)
    except TrackNameError as error:
        report.defects += error.defects
    return report


_COMPONENTS = {
    "K": "key tensors",
    "V": "value tensors",
    "KV": "key and value tensors, jointly encoded",
}


def trace_track_name(report: Report, start: int, end: int, depth: int) -> None:
    """Lines for a Track Name in octets `start` to `end`; its parts when KVCS knows them."""
    octets = report.octets[start:end]
    try:
        track = parse_track_name(octets)
    except TrackNameError:
        report.add("Track Name", _text(octets), "not a name of KVCS", start, end, depth)
        return
    if not isinstance(track, DataTrack):
        meaning = "the manifest track, " + (
            "signed (COSE_Sign1)" if octets.endswith(b"cose") else "plain JSON"
        )
        report.add("Track Name", track, meaning, start, end, depth)
        return
    codec = start + len(track.component.label) + 1
    segment = codec + len(track.codec) + 1
    report.add(
        "Component",
        track.component.label,
        _COMPONENTS[track.component.name],
        start,
        codec - 1,
        depth,
    )
    report.add("Codec", track.codec, "how Data is encoded", codec, segment - 1, depth)
    report.add("Segment", track.segment, "which range of blocks", segment, end, depth)
