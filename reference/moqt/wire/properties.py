"""Properties: Key-Value-Pairs of Tracks and Objects (MOQT-22 §8.3, §8.4, §10).

A block has no count: its octets are bounded from outside. Blocks travel as their exact octets
(a relay forwards what it does not understand), so these functions read a block without owning it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import TypeAlias

from moqt.wire.errors import LocalProtocolError, NeedMore, RemoteProtocolError
from moqt.wire.names import Location
from moqt.wire.varint import U64, Cursor, encode_prefixed, encode_vi64

Property: TypeAlias = tuple[int, int | bytes]
"""Type and value: an integer for an even type, octets for an odd one."""

MAX_VALUE_LENGTH = 65535
MANDATORY_TYPES = range(0x4000, 0x8000)
"""Types of Track Properties that a receiver must understand (MOQT-22 §3.7)."""


class PropertyType(IntEnum):
    """Registered Properties (MOQT-22 §10)."""

    OBJECT_DELIVERY_TIMEOUT = 0x02
    MAX_CACHE_DURATION = 0x04
    SUBGROUP_DELIVERY_TIMEOUT = 0x06
    IMMUTABLE_PROPERTIES = 0x0B
    DEFAULT_PUBLISHER_PRIORITY = 0x0E
    DEFAULT_PUBLISHER_GROUP_ORDER = 0x22
    DYNAMIC_GROUPS = 0x30
    PRIOR_GROUP_ID_GAP = 0x3C
    PRIOR_OBJECT_ID_GAP = 0x3E


def is_grease(value: int) -> bool:
    """Whether a type or code is reserved for exercising receivers: 0x7f*N + 0x9D (§13)."""
    return value >= 0x9D and (value - 0x9D) % 0x7F == 0


def encode_properties(properties: Iterable[Property]) -> bytes:
    """The block of these pairs, in ascending type order; equal types keep their order.

    Each pair is Delta Type (vi64), then a vi64 for an even type or Length (vi64) and octets for
    an odd one. Raises LocalProtocolError for a value of the wrong form or length.
    """
    pieces = []
    previous = 0
    for kind, value in sorted(properties, key=lambda pair: pair[0]):
        pieces.append(encode_vi64(kind - previous))
        previous = kind
        if isinstance(value, int):
            if kind % 2:
                raise LocalProtocolError(f"property 0x{kind:x} is odd: its value is octets")
            pieces.append(encode_vi64(value))
        else:
            if kind % 2 == 0:
                raise LocalProtocolError(f"property 0x{kind:x} is even: its value is an integer")
            if len(value) > MAX_VALUE_LENGTH:
                raise LocalProtocolError(
                    f"property 0x{kind:x} has at most 65535 octets, not {len(value)}"
                )
            pieces.append(encode_prefixed(value))
    return b"".join(pieces)


def _pairs(octets: bytes) -> Iterator[Property]:
    cursor = Cursor(octets)
    kind = 0
    while cursor.left:
        kind += cursor.vi()
        if kind > U64:
            raise RemoteProtocolError("the type of a Key-Value-Pair exceeds 2^64-1")
        if kind % 2 == 0:
            yield kind, cursor.vi()
            continue
        length = cursor.vi()
        if length > MAX_VALUE_LENGTH:
            raise RemoteProtocolError(
                f"Key-Value-Pair 0x{kind:x} has at most 65535 octets, not {length}"
            )
        yield kind, cursor.raw(length)


def decode_properties(octets: bytes) -> tuple[Property, ...]:
    """All pairs of a block, in order.

    Raises RemoteProtocolError (PROTOCOL_VIOLATION) for a type sum above 2^64-1, a value above
    65535 octets, or a block that ends inside a pair.
    """
    try:
        return tuple(_pairs(octets))
    except NeedMore:
        raise RemoteProtocolError("a block of Key-Value-Pairs ends inside a pair") from None


def find_property(octets: bytes, kind: int) -> int | bytes | None:
    """The first value of type `kind`, also searched in IMMUTABLE_PROPERTIES (MOQT-22 §10.7).

    Raises RemoteProtocolError for a block that does not parse; an unparsable immutable block
    holds nothing (`object_defect` and `track_defect` report it).
    """
    if not octets:
        return None
    pairs = decode_properties(octets)
    for found, value in pairs:
        if found == kind:
            return value
    for found, value in pairs:
        if found == PropertyType.IMMUTABLE_PROPERTIES and isinstance(value, bytes):
            try:
                inner = decode_properties(value)
            except RemoteProtocolError:
                continue
            for inside, immutable in inner:
                if inside == kind:
                    return immutable
    return None


def integer_property(octets: bytes, kind: int, default: int) -> int:
    """The value of an even type, or `default` when the block lacks it."""
    value = find_property(octets, kind)
    return value if isinstance(value, int) else default


def mandatory_properties(octets: bytes) -> tuple[int, ...]:
    """The types that a receiver must understand, immutable ones included (MOQT-22 §3.7)."""
    return tuple(kind for kind, _ in _flat(decode_properties(octets)) if kind in MANDATORY_TYPES)


def check_track_properties(octets: bytes) -> None:
    """Refuse Track Properties that end the session.

    Raises RemoteProtocolError for a block that does not parse, DEFAULT_PUBLISHER_GROUP_ORDER
    other than 1 and 2 (MOQT-22 §10.5), and DYNAMIC_GROUPS above 1 (§10.6).
    """
    if not octets:
        return
    for kind, value in _flat(decode_properties(octets)):
        if kind == PropertyType.DEFAULT_PUBLISHER_GROUP_ORDER and value not in (1, 2):
            raise RemoteProtocolError(
                f"DEFAULT_PUBLISHER_GROUP_ORDER must be 1 or 2, not {value!r}"
            )
        if kind == PropertyType.DYNAMIC_GROUPS and value not in (0, 1):
            raise RemoteProtocolError(f"DYNAMIC_GROUPS must be 0 or 1, not {value!r}")


def track_defect(octets: bytes) -> str | None:
    """Why Track Properties make the Track malformed, or None (MOQT-22 §10.4, §10.7).

    A DEFAULT_PUBLISHER_PRIORITY above 255 has no reaction in the text: it counts here.
    """
    if not octets:
        return None
    pairs = decode_properties(octets)
    if defect := _immutable_defect(pairs):
        return defect
    for kind, value in _flat(pairs):
        if (
            kind == PropertyType.DEFAULT_PUBLISHER_PRIORITY
            and isinstance(value, int)
            and value > 255
        ):
            return f"DEFAULT_PUBLISHER_PRIORITY must be 0 .. 255, not {value}"
    return None


def object_defect(location: Location, octets: bytes) -> str | None:
    """Why the Properties of one Object make its Track malformed, or None (MOQT-22 §12.1).

    Repeated or nested IMMUTABLE_PROPERTIES, repeated gaps, a gap larger than the ID before which
    it lies, a Mandatory Track Property.
    """
    if not octets:
        return None
    pairs = decode_properties(octets)
    if defect := _immutable_defect(pairs):
        return defect
    seen = set()
    for kind, value in _flat(pairs):
        if kind in MANDATORY_TYPES:
            return f"Mandatory Track Property 0x{kind:x} stands on an Object"
        if kind not in (PropertyType.PRIOR_GROUP_ID_GAP, PropertyType.PRIOR_OBJECT_ID_GAP):
            continue
        name = PropertyType(kind).name
        if kind in seen:
            return f"{name} stands twice on one Object"
        seen.add(kind)
        limit = location.group if kind == PropertyType.PRIOR_GROUP_ID_GAP else location.object
        if isinstance(value, int) and value > limit:
            return f"{name} {value} is larger than the ID {limit}"
    return None


def _immutable_defect(pairs: Iterable[Property]) -> str | None:
    blocks = [value for kind, value in pairs if kind == PropertyType.IMMUTABLE_PROPERTIES]
    if len(blocks) > 1:
        return "IMMUTABLE_PROPERTIES stands more than once"
    for block in blocks:
        try:
            inner = decode_properties(block) if isinstance(block, bytes) else ()
        except RemoteProtocolError as error:
            return f"IMMUTABLE_PROPERTIES does not parse: {error.reason}"
        if any(kind == PropertyType.IMMUTABLE_PROPERTIES for kind, _ in inner):
            return "IMMUTABLE_PROPERTIES holds itself"
    return None


def _flat(pairs: Iterable[Property]) -> Iterator[Property]:
    """Mutable pairs and the pairs inside IMMUTABLE_PROPERTIES, as far as those parse."""
    for kind, value in pairs:
        yield kind, value
        if kind == PropertyType.IMMUTABLE_PROPERTIES and isinstance(value, bytes):
            try:
                yield from decode_properties(value)
            except RemoteProtocolError:
                continue
