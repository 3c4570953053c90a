"""Keeping what a node saw: values as JSON, octets as hex, payloads as head, length and digests."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from functools import lru_cache
from typing import Any, TypeAlias

from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import ObjectStatus, RangeKind

from kvcs_conformance.evidence.read import HEADER_OCTETS, Record
from kvcs_conformance.evidence.reports import MALFORMED, flaw_of

_HEAD_OCTETS = 96
_NAMED = (ObjectStatus, RangeKind)
_PLAIN = frozenset({bool, int, str, float, type(None)})

Converter: TypeAlias = Callable[[Any], Any]


class Recorder:
    """The event log of one node, in memory.

    `clock` gives seconds on the run's clock. Records are what the judge will read, so a wait for
    an event looks at the same values as the judge does.
    """

    def __init__(self, node: str, clock: Callable[[], float]) -> None:
        self.node = node
        self.records: list[Record] = []
        self.reports: list[dict[str, Any]] = []
        """What the peer itself reported, event by event, as a peer in a process of its own writes
        it down."""
        self._clock = clock

    def report(self, event: Mapping[str, object]) -> bool:
        """Keep one report of a role, as it came; `event` names it.

        Whether it can be used: of one that does not follow the schema there is a record instead.
        """
        report = {str(key): _value(value) for key, value in event.items()}
        self.reports.append(report)
        if why := flaw_of(report):
            self.trace(MALFORMED, {"report": report, "why": why})
        return not why

    def trace(self, name: str, values: Mapping[str, object]) -> None:
        """Keep one event, `moqt:…` from a session or `kvcs:…` from a role."""
        event = {key: _value(value) for key, value in values.items() if key != "payload"}
        if name.startswith("moqt:object"):
            event["payload"] = _payload(values)
        self.records.append(
            Record(self.node, len(self.records), round(self._clock(), 6), name, event)
        )


def _payload(values: Mapping[str, object]) -> dict[str, object]:
    """A payload as evidence: digests let a judge check what the octets themselves would show.

    `data_sha256` covers what follows the 68 octets of a KVCS payload header. Manifests are kept
    whole.
    """
    octets = values.get("payload", b"")
    if not isinstance(octets, bytes | memoryview | bytearray):
        octets = b""
    track = values.get("track")
    whole = isinstance(track, FullTrackName) and track.name.startswith(b"manifest")
    kept = octets if whole else octets[:_HEAD_OCTETS]
    return {
        "length": len(octets),
        "sha256": hashlib.sha256(octets).hexdigest(),
        "data_sha256": hashlib.sha256(octets[HEADER_OCTETS:]).hexdigest(),
        "head": bytes(kept).hex(),
    }


def _value(value: object) -> Any:
    """Any value of a trace as JSON."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    return (_CONVERTERS.get(kind) or _converter(kind))(value)


def _converter(kind: type) -> Converter:
    """How values of this type become JSON; looked up once, for a run makes many of each."""
    found = _choose(kind)
    _CONVERTERS[kind] = found
    return found


def _choose(kind: type) -> Converter:
    if issubclass(kind, IntEnum):
        return _name if issubclass(kind, _NAMED) else int
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, bytes | memoryview | bytearray):
        return lambda value: bytes(value).hex()
    if issubclass(kind, FullTrackName):
        return _track
    if issubclass(kind, Location):
        return lambda value: [value.group, value.object]
    if dataclasses.is_dataclass(kind):
        return _fields(kind)
    if issubclass(kind, Mapping):
        return lambda value: {str(key): _value(part) for key, part in value.items()}
    if issubclass(kind, list | tuple | set | frozenset):
        return lambda value: [_value(part) for part in value]
    return _other


def _fields(kind: type) -> Converter:
    """A dataclass with its type and the fields that differ from their defaults."""
    name = kind.__name__
    fields = [
        (field.name, "type_" if field.name == "type" else field.name, field.default)
        for field in dataclasses.fields(kind)
    ]

    def convert(value: object) -> dict[str, Any]:
        kept: dict[str, Any] = {"type": name}
        for attribute, key, default in fields:
            part = getattr(value, attribute)
            if default is dataclasses.MISSING or part != default:
                kept[key] = _value(part)
        return kept

    return convert


@lru_cache(maxsize=4096)
def _track(value: FullTrackName) -> dict[str, Any]:
    return {
        "namespace": [part.hex() for part in value.namespace],
        "name": value.name.decode("ascii", "backslashreplace"),
    }


def _name(value: Any) -> str:
    return str(value.name)


def _other(value: object) -> Any:
    identifier = getattr(value, "id", None)
    return identifier if isinstance(identifier, int) else str(value)


_CONVERTERS: dict[type, Converter] = {}
