"""One event of a log in a few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.filters import LocationFilterType

from kvcs_conformance.evidence.read import Record
from kvcs_conformance.report.plain import short

ECHOES = frozenset({"kvcs:asked", "kvcs:answered", "kvcs:track-properties", "kvcs:session"})
"""Events that say again, for the steps of a case, what a message beside them says."""

_LONGEST = 90
_HEX = frozenset("0123456789abcdef")
_SELF_EVIDENT = (
    "raw", "header", "time", "publication", "publication_id", "source", "segment", "request",
    "label",
)  # fmt: skip


def describe(record: Record) -> str:
    """What happened, for a reader who knows the protocol; never raises on odd data."""
    try:
        text = _described(record.name, record.data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        text = f"{_kind(record.name)} {_members(record.data, ())}"
    return short(text.strip(), _LONGEST)


def message_name(kind: str) -> str:
    """SUBSCRIBE_OK for SubscribeOk."""
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in kind).removeprefix("_")


def message_words(message: Mapping[str, Any], track: str = "") -> str:
    """A control message in a few words; `track` is what its request is about, if that is known."""
    name = message_name(str(message["type"]))
    about = message["track"]["name"] if "track" in message else track
    told = _DETAILS[name](message) if name in _DETAILS else ""
    return " ".join(part for part in (name, str(about), told) if part)


def _described(name: str, data: Mapping[str, Any]) -> str:
    if "message" in data:
        return f"{_kind(name).split()[-1]} {message_words(data['message'])}"
    if name.startswith("moqt:object"):
        return f"{_kind(name)} {object_words(data)}"
    if name.startswith("moqt:stream"):
        return f"{_kind(name)} {data['stream']}, {data['kind']}"
    if "block" in data and "track" in data:
        rest = _members(data, (*_SELF_EVIDENT, "track", "layer", "block", "reasons", "clause"))
        return f"{_kind(name)} {data['track']} ({data['layer']}, {data['block']}) {rest}"
    return f"{_kind(name)} {_members(data, _SELF_EVIDENT)}"


def object_words(data: Mapping[str, Any]) -> str:
    """Track, Location and size of an Object, or the status that it has instead."""
    normal = data["status"] == "NORMAL"
    what = f"{data['payload']['length']} octets" if normal else data["status"]
    return f"{data['track']['name']} ({data['group']}, {data['object']}) {what}"


def _kind(name: str) -> str:
    return name.partition(":")[2].replace("_", " ") or name


def _members(data: Mapping[str, Any], skipped: tuple[str, ...]) -> str:
    return " ".join(f"{k}={_value(k, v)}" for k, v in data.items() if k not in skipped)


def _value(name: str, value: object) -> str:
    if isinstance(value, dict) and "type" in value:
        return message_words(value)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        if name in ("namespace", "prefix", "suffix"):
            return namespace_words(value)
        return ",".join(_value("", part) for part in value)
    text = str(value)
    return f"{text[:6]}…" if len(text) >= 32 and set(text) <= _HEX else text


def _code(registry: type[IntEnum]) -> Callable[[int], str]:
    known = {member.value: member.name for member in registry}
    return lambda value: known.get(value, str(value))


def _refused(message: Mapping[str, Any]) -> str:
    reason = message.get("reason")
    return _code(RequestErrorCode)(message["code"]) + (f": {reason}" if reason else "")


def _names(member: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda message: namespace_words(message[member])


def namespace_words(fields: Sequence[str]) -> str:
    """The first and the last field of a namespace: the others differ less."""
    if not fields:
        return "()"
    middle = ["…"] if len(fields) > 2 else []
    last = [_field(fields[-1])] if len(fields) > 1 else []
    return f"{'/'.join([_field(fields[0]), *middle, *last])} ({len(fields)})"


def _field(octets: str) -> str:
    """A namespace field: as text when it is some, else the first of its octets."""
    raw = bytes.fromhex(octets)
    text = raw.decode("ascii", "replace")
    return text if text.isprintable() and text.isascii() else f"{octets[:6]}…"


def _range(message: Mapping[str, Any]) -> str:
    """The Locations that a request asks for (MOQT-22 §9.20.9)."""
    parameters = message.get("parameters", {})
    chosen = parameters.get("location_filter")
    fill = "+ fill" if "fill" in parameters else ""
    if not chosen:
        return fill
    group, item = chosen.get("start_group", 0), chosen.get("start_object", 0)
    last = group + chosen.get("end_group_delta", 0)
    told = {
        LocationFilterType.RELATIVE_START: f"from {group} Groups back",
        LocationFilterType.ABSOLUTE_START: f"from ({group}, {item})",
        LocationFilterType.ABSOLUTE_START_GROUP_END: f"({group}, {item}) to Group {last}",
        LocationFilterType.ABSOLUTE_RANGE: (
            f"({group}, {item}) to ({last}, {chosen.get('end_object', 0)})"
        ),
        LocationFilterType.NEXT_OBJECT: "next Object",
    }.get(chosen.get("type_", 0), "")
    return " ".join(part for part in (told, fill) if part)


_DETAILS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "REQUEST_ERROR": _refused,
    "PUBLISH_DONE": lambda message: _code(PublishDoneCode)(message["status_code"]),
    "PUBLISH_NAMESPACE": _names("namespace"),
    "SUBSCRIBE_NAMESPACE": _names("prefix"),
    "SUBSCRIBE_TRACKS": _names("prefix"),
    "NAMESPACE": _names("suffix"),
    "NAMESPACE_DONE": _names("suffix"),
    "FETCH": _range,
    "SUBSCRIBE": _range,
}
