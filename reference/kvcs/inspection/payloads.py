"""Object payloads explained (KVCS 4)."""

from __future__ import annotations

from kvcs.errors import PayloadError, ProfileError
from kvcs.identity import P0
from kvcs.inspection.report import Report
from kvcs.names import Component, DataTrack
from kvcs.payload import FIELDS, HEADER_OCTETS, Expected, Header, check_object, decode_header

_MEANINGS = {
    "Layer": "the Group ID of its Object",
    "Block Index": "the Object ID of its Object",
    "Token Start": "position of the block's first token in the context",
    "Token Count": "tokens in the block",
    "Data Length": "octets of Data",
}


def explain_payload(
    octets: bytes, location: tuple[int, int] | None = None, track: DataTrack | None = None
) -> Report:
    """One payload; `location` and `track` say where it came from, if that is known."""
    report = Report("KVCS Object payload", octets)
    try:
        header = decode_header(octets)
    except PayloadError as error:
        report.defects += error.defects
        for field in FIELDS:
            if field.offset < len(octets):
                end = min(field.offset + field.octets, len(octets))
                cut = "" if end == field.offset + field.octets else "cut off"
                hexadecimal = octets[field.offset : end].hex()
                report.add(field.name, hexadecimal, cut, field.offset, end)
        return report
    at = location or (header.layer, header.block)
    report.defects += check_object(header, octets, at, _expected(track))
    found = {defect.name for defect in report.defects}
    for field, value in zip(FIELDS, header, strict=True):
        text = value.hex() if isinstance(value, bytes) else str(value)
        if field.name == "Data Digest":
            text = f"{text[:16]}..."
        meaning = _meaning(field.name, header, found)
        report.add(field.name, text, meaning, field.offset, field.offset + field.octets)
    data = len(octets) - HEADER_OCTETS
    if data:
        what = "the tensor of one block in one layer"
        report.add("Data", f"{data} octets", what, HEADER_OCTETS, len(octets))
    if location is None:
        report.notes.append(
            "whether Layer and Block Index are those of its Object shows only with its Location"
        )
    if header.flags:
        report.notes.append("a publisher sets Flags to zero (KVCS-4-6); a consumer ignores them")
    return report


def _expected(track: DataTrack | None) -> Expected:
    if track is None:
        return Expected()
    try:
        return Expected(component=track.component, codec=P0.codec_by_name(track.codec))
    except ProfileError:
        return Expected(component=track.component)


def _meaning(name: str, header: Header, found: set[str]) -> str:
    match name:
        case "Magic":
            return '"KVO1"' if "magic" not in found else 'should be "KVO1"'
        case "Version":
            return "of the payload format"
        case "Component":
            known = {component.value: component.label for component in Component}
            return known.get(header.component, "not registered")
        case "Flags" | "Reserved":
            return "ignored"
        case "Codec":
            try:
                codec = P0.codec_by_value(header.codec)
            except ProfileError:
                return "unknown to kvsp-p0"
            return codec if codec == "raw" else f"{codec} in kvsp-p0"
        case "Data Digest":
            if "length-mismatch" in found:
                return "not checked, the length is wrong"
            return "SHA-256 of Data: " + ("differs" if "digest-mismatch" in found else "matches")
    return _MEANINGS[name]
