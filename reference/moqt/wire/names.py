"""Track Namespaces, Full Track Names and Locations (MOQT-22 §2.4, §8.2, §8.7, §8.8)."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from moqt.wire.errors import LocalProtocolError, RemoteProtocolError
from moqt.wire.varint import Cursor, encode_prefixed, encode_vi64

TrackNamespace: TypeAlias = tuple[bytes, ...]
"""Zero to 32 fields of at least one octet each, at most 4096 octets in sum."""

MAX_NAMESPACE_FIELDS = 32
MAX_NAME_LENGTH = 4096

SESSION_NAMESPACE_FIELD = b".session"
"""First field of names that belong to the session itself (MOQT-22 §6.5)."""


class FullTrackName(NamedTuple):
    """Track Namespace and Track Name; together at most 4096 octets without length prefixes."""

    namespace: TrackNamespace
    name: bytes


class Location(NamedTuple):
    """Group ID and Object ID, ordered by Group, then Object; each 0 .. 2^64-1."""

    group: int
    object: int


def is_prefix(prefix: TrackNamespace, namespace: TrackNamespace) -> bool:
    """Whether `prefix` matches `namespace` field by field (MOQT-22 §2.4.2)."""
    return namespace[: len(prefix)] == prefix


def name_defect(namespace: TrackNamespace, name: bytes = b"") -> str | None:
    """Which limit of MOQT-22 §2.4.1 the name breaks, or None."""
    if len(namespace) > MAX_NAMESPACE_FIELDS:
        return f"a Track Namespace has at most 32 fields, not {len(namespace)}"
    if b"" in namespace:
        return "a Track Namespace field has at least one octet"
    length = sum(map(len, namespace)) + len(name)
    if length > MAX_NAME_LENGTH:
        return f"a Full Track Name has at most 4096 octets, not {length}"
    return None


def encode_namespace(namespace: TrackNamespace) -> bytes:
    """Number of Fields (vi64), then each field as Length (vi64) and octets (MOQT-22 §8.7).

    Raises LocalProtocolError for a namespace beyond its limits.
    """
    if defect := name_defect(namespace):
        raise LocalProtocolError(defect)
    return encode_vi64(len(namespace)) + b"".join(map(encode_prefixed, namespace))


def decode_namespace(cursor: Cursor) -> TrackNamespace:
    """One Track Namespace; RemoteProtocolError beyond its limits, NeedMore when cut."""
    count = cursor.vi()
    if count > MAX_NAMESPACE_FIELDS:
        raise RemoteProtocolError(f"a Track Namespace has at most 32 fields, not {count}")
    namespace = tuple(cursor.prefixed() for _ in range(count))
    if defect := name_defect(namespace):
        raise RemoteProtocolError(defect)
    return namespace


def encode_track(track: FullTrackName) -> bytes:
    """Track Namespace, then Track Name as Length (vi64) and octets.

    Raises LocalProtocolError for a name beyond its limits.
    """
    if defect := name_defect(*track):
        raise LocalProtocolError(defect)
    return encode_namespace(track.namespace) + encode_prefixed(track.name)


def decode_track(cursor: Cursor) -> FullTrackName:
    """Track Namespace and Track Name; RemoteProtocolError beyond their limits."""
    track = FullTrackName(decode_namespace(cursor), cursor.prefixed())
    if defect := name_defect(*track):
        raise RemoteProtocolError(defect)
    return track


_LITERAL = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_PART = re.compile(r"(?:[a-zA-Z0-9_]|\.[0-9a-f]{2})*")
_ESCAPE = re.compile(r"\.([0-9a-f]{2})")


def _format_part(octets: bytes) -> str:
    return "".join(chr(octet) if octet in _LITERAL else f".{octet:02x}" for octet in octets)


def _parse_part(text: str) -> bytes:
    if not _PART.fullmatch(text):
        raise LocalProtocolError(
            f"{text!r} is no printable name: letters, digits and _ stand for themselves, "
            "every other octet is '.' and two lower-case hex digits"
        )
    octets = bytearray()
    for position, piece in enumerate(_ESCAPE.split(text)):
        if position % 2 == 0:
            octets += piece.encode()
        elif (octet := int(piece, 16)) in _LITERAL:
            raise LocalProtocolError(f"'.{piece}' in {text!r} must be written {chr(octet)!r}")
        else:
            octets.append(octet)
    return bytes(octets)


def format_namespace(namespace: TrackNamespace) -> str:
    """The fields in printable form, joined by '-' (MOQT-22 §8.8)."""
    return "-".join(map(_format_part, namespace))


def format_name(track: FullTrackName) -> str:
    """The printable form of a Full Track Name: `field-field--name` (MOQT-22 §8.8)."""
    return f"{format_namespace(track.namespace)}--{_format_part(track.name)}"


def parse_name(text: str) -> FullTrackName:
    """The Full Track Name of a printable form; the inverse of `format_name`, strict.

    Raises LocalProtocolError for text that `format_name` would not have written.
    """
    fields, separator, name = text.partition("--")
    if not separator:
        raise LocalProtocolError(f"{text!r} lacks the '--' between namespace and Track Name")
    namespace = tuple(map(_parse_part, fields.split("-"))) if fields else ()
    track = FullTrackName(namespace, _parse_part(name))
    if defect := name_defect(*track):
        raise LocalProtocolError(defect)
    return track
