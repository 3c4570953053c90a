"""Octets that a finding shows, with the names of the fields that they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvcs.errors import PayloadError
from kvcs.inspection.messages import explain_messages, is_message
from kvcs.inspection.report import Line
from kvcs.payload import FIELDS, decode_header
from moqt.wire.drafts import DRAFT_22

from kvcs_conformance.evidence.read import HEADER_OCTETS, Record
from kvcs_conformance.report.plain import plain

_MOST_FIELDS = 64
_MOST_OCTETS = 64


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its octets in hex (cut when many) from `offset` on, its name and its value."""

    offset: int
    octets: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Octets:
    """What a finding shows: `count` octets from `offset` of their structure on, in hex; those of
    an attempt were written by hand, mostly to be right up to near their end."""

    structure: str
    offset: int
    count: int
    hexadecimal: str
    fields: tuple[Field, ...]
    of_attempt: bool = False


def decode(finding: Mapping[str, Any], record: Record | None) -> Octets | None:
    """The octets of a finding, named by the record that it points at; None when it shows none."""
    shown = finding.get("octets")
    if not shown:
        return None
    octets, offset = bytes.fromhex(shown), finding.get("offset", 0)
    structure, fields = _fields(octets, offset, record.data if record else {})
    attempt = record is not None and record.name.startswith("kvcs:attempt")
    if attempt and offset == 0 and is_message(octets, DRAFT_22):
        structure, fields = "control message", _message(octets)
    kept = octets[:_MOST_OCTETS].hex(" ")
    return Octets(structure, offset, len(octets), kept, fields, attempt)


def _fields(octets: bytes, offset: int, data: Mapping[str, Any]) -> tuple[str, tuple[Field, ...]]:
    shown = octets.hex()
    if data.get("raw") and shown in data["raw"]:
        return "control message", _message(octets) if offset == 0 else ()
    if "payload" in data:
        head = bytes.fromhex(data["payload"]["head"])
        if data["track"]["name"].startswith("manifest"):
            return ("manifest" if octets in head else "", ())
        if octets and head[offset:].startswith(octets[: len(head) - offset]):
            return "payload", _header(head, offset, offset + len(octets))
    if "block" in data and (offset or len(octets) >= HEADER_OCTETS):
        head = (bytes(offset) + octets).ljust(HEADER_OCTETS, b"\0")
        # The header of the Object that a role reports about, or one field of it.
        return "payload", _header(head, offset, offset + len(octets))
    if shown in (data.get("properties") or "") or shown in _track_properties(data):
        return "properties", ()
    return "", ()


def _track_properties(data: Mapping[str, Any]) -> str:
    message = data.get("message")
    return str(message.get("track_properties", "")) if isinstance(message, dict) else ""


def _message(octets: bytes) -> tuple[Field, ...]:
    """The fields of a control message, with the indentation that shows what is inside of what."""
    report = explain_messages(octets, DRAFT_22)
    return tuple(_field(line, octets) for line in report.lines[:_MOST_FIELDS])


def _field(line: Line, octets: bytes) -> Field:
    value = " ".join(part for part in (line.value, line.meaning) if part)
    name = "  " * line.depth + line.name
    return Field(line.start, _hex(octets[line.start : line.end]), plain(name), plain(value))


def _header(head: bytes, start: int, end: int) -> tuple[Field, ...]:
    """The fields of the payload header that lie in octets `start` to `end`."""
    try:
        values: tuple[Any, ...] = tuple(decode_header(head[:HEADER_OCTETS]))
    except PayloadError:
        values = ()
    fields = []
    for i, field in enumerate(FIELDS):
        if field.offset < end and field.offset + field.octets > start:
            value = values[i] if i < len(values) else ""
            text = "" if isinstance(value, bytes) else str(value)
            octets = head[field.offset : field.offset + field.octets]
            fields.append(Field(field.offset, _hex(octets), field.name, text))
    return tuple(fields)


def _hex(octets: bytes) -> str:
    return octets.hex(" ") if len(octets) <= 32 else f"{octets[:30].hex(' ')} …"
