"""Key-Value-Pairs and the rules of Properties (MOQT-22 §8.3, §10, §12.1)."""

from __future__ import annotations

import pytest
from moqt.wire.errors import LocalProtocolError, RemoteProtocolError, SessionError
from moqt.wire.names import Location
from moqt.wire.properties import (
    Property,
    PropertyType,
    check_track_properties,
    decode_properties,
    encode_properties,
    find_property,
    integer_property,
    is_grease,
    mandatory_properties,
    object_defect,
    track_defect,
)
from moqt.wire.varint import U64

P = PropertyType
HERE = Location(5, 5)


def block(*pairs: Property) -> bytes:
    """The octets of these pairs."""
    return encode_properties(pairs)


def test_published_block() -> None:
    """Three Track Properties are the octets of the text, whatever order they are given in."""
    octets = bytes.fromhex("0287d0 02c0ea60 0a40")
    pairs: tuple[Property, ...] = (
        (P.OBJECT_DELIVERY_TIMEOUT, 2000),
        (P.MAX_CACHE_DURATION, 60000),
        (P.DEFAULT_PUBLISHER_PRIORITY, 64),
    )
    assert octets == encode_properties(reversed(pairs))
    assert pairs == decode_properties(octets)


def test_the_same_type_again() -> None:
    """A delta of 0 repeats a type; repeats keep their order."""
    octets = bytes.fromhex("0d 01 62 00 01 61")
    assert octets == block((0x0D, b"b"), (0x0D, b"a"))
    assert ((0x0D, b"b"), (0x0D, b"a")) == decode_properties(octets)


def test_limits_of_a_pair() -> None:
    """Type 2^64-1 and 65535 octets are accepted; more closes the session (R047, R048)."""
    last = b"\xff" * 9 + b"\x00"
    assert ((U64, b""),) == decode_properties(last)
    longest = bytes.fromhex("0d c0ffff") + b"a" * 65535
    assert ((0x0D, b"a" * 65535),) == decode_properties(longest)
    assert longest == block((0x0D, b"a" * 65535))
    for octets in (b"\x02\x00" + b"\xff" * 9 + b"\x00", bytes.fromhex("0d c10000") + b"a" * 65536):
        with pytest.raises(RemoteProtocolError) as caught:
            decode_properties(octets)
        assert SessionError.PROTOCOL_VIOLATION == caught.value.code


@pytest.mark.parametrize("text", ["02", "0280", "0d", "0d02 61", "0200 0d"])
def test_a_block_that_ends_inside_a_pair(text: str) -> None:
    """A cut block is a violation: its length came from outside."""
    with pytest.raises(RemoteProtocolError, match="inside a pair"):
        decode_properties(bytes.fromhex(text))


@pytest.mark.parametrize(
    "pair", [(1, 1), (2, b"a"), (-2, 1), (2**64, 1), (2, 2**64), (1, b"a" * 65536)]
)
def test_pairs_that_cannot_be_written(pair: Property) -> None:
    """An integer under an odd type, octets under an even one, and excess are refused."""
    with pytest.raises(LocalProtocolError):
        encode_properties([pair])


def test_look_up_searches_immutable_properties() -> None:
    """A property is found in the mutable list first, then inside IMMUTABLE_PROPERTIES (R174)."""
    inner = block((0x78, 7), (0x7A, 8))
    octets = block((P.IMMUTABLE_PROPERTIES, inner), (0x78, 9))
    assert 9 == find_property(octets, 0x78)
    assert 8 == find_property(octets, 0x7A)
    assert inner == find_property(octets, P.IMMUTABLE_PROPERTIES)
    assert None is find_property(octets, 0x7C)
    assert None is find_property(b"", 0x78)
    assert 8 == integer_property(octets, 0x7A, 1)
    assert 1 == integer_property(octets, 0x7C, 1)


def test_look_up_ignores_an_unparsable_immutable_block() -> None:
    """Octets that do not parse inside IMMUTABLE_PROPERTIES hold nothing."""
    octets = block((P.IMMUTABLE_PROPERTIES, b"\x0d\x05"), (0x78, 9))
    assert 9 == find_property(octets, 0x78)
    assert None is find_property(octets, 0x0D)
    assert () == mandatory_properties(octets)


def test_mandatory_types() -> None:
    """Types 0x4000 to 0x7FFF are mandatory, inside IMMUTABLE_PROPERTIES too (R179)."""
    inner = block((0x7FFF, b""), (0x8000, 0))
    octets = block((0x3FFF, b""), (0x4000, 1), (P.IMMUTABLE_PROPERTIES, inner))
    assert (0x7FFF, 0x4000) == mandatory_properties(octets)


@pytest.mark.parametrize(
    ("pair", "legal"),
    [
        ((P.DEFAULT_PUBLISHER_GROUP_ORDER, 0), False),
        ((P.DEFAULT_PUBLISHER_GROUP_ORDER, 1), True),
        ((P.DEFAULT_PUBLISHER_GROUP_ORDER, 2), True),
        ((P.DEFAULT_PUBLISHER_GROUP_ORDER, 3), False),
        ((P.DYNAMIC_GROUPS, 0), True),
        ((P.DYNAMIC_GROUPS, 1), True),
        ((P.DYNAMIC_GROUPS, 2), False),
        ((P.DEFAULT_PUBLISHER_PRIORITY, 256), True),
    ],
)
@pytest.mark.parametrize("immutable", [False, True])
def test_track_properties_that_close(pair: Property, legal: bool, immutable: bool) -> None:
    """Illegal GROUP_ORDER and DYNAMIC_GROUPS close the session, immutable or not (R171, R172)."""
    octets = block((P.IMMUTABLE_PROPERTIES, block(pair))) if immutable else block(pair)
    if legal:
        assert None is track_defect(octets) or pair[0] == P.DEFAULT_PUBLISHER_PRIORITY
        check_track_properties(octets)
        return
    with pytest.raises(RemoteProtocolError) as caught:
        check_track_properties(octets)
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (block((P.DEFAULT_PUBLISHER_PRIORITY, 255)), None),
        (block((P.DEFAULT_PUBLISHER_PRIORITY, 256)), "DEFAULT_PUBLISHER_PRIORITY"),
        (block((P.IMMUTABLE_PROPERTIES, b"")), None),
        (block((P.IMMUTABLE_PROPERTIES, b""), (P.IMMUTABLE_PROPERTIES, b"")), "more than once"),
        (block((P.IMMUTABLE_PROPERTIES, block((P.IMMUTABLE_PROPERTIES, b"")))), "holds itself"),
        (block((P.IMMUTABLE_PROPERTIES, b"\x02")), "does not parse"),
        (b"", None),
    ],
)
def test_malformed_track_properties(octets: bytes, why: str | None) -> None:
    """Nested or unparsable IMMUTABLE_PROPERTIES make a Track malformed (R175)."""
    defect = track_defect(octets)
    assert (defect is None) == (why is None)
    assert (why or "") in (defect or "")


GROUP_GAP, OBJECT_GAP = P.PRIOR_GROUP_ID_GAP, P.PRIOR_OBJECT_ID_GAP


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", None),
        (block((GROUP_GAP, 5), (OBJECT_GAP, 5)), None),
        (block((GROUP_GAP, 6)), "larger"),
        (block((OBJECT_GAP, 6)), "larger"),
        (block((GROUP_GAP, 1), (GROUP_GAP, 1)), "twice"),
        (block((OBJECT_GAP, 1), (P.IMMUTABLE_PROPERTIES, block((OBJECT_GAP, 1)))), "twice"),
        (block((0x4000, 1)), "Mandatory"),
        (block((0x3FFE, 1), (0x8000, 1)), None),
        (block((P.IMMUTABLE_PROPERTIES, b""), (P.IMMUTABLE_PROPERTIES, b"")), "more than once"),
    ],
)
def test_malformed_object_properties(octets: bytes, why: str | None) -> None:
    """Gaps beyond the ID or repeated, and mandatory types on an Object (R175, R176, R177)."""
    defect = object_defect(HERE, octets)
    assert (defect is None) == (why is None)
    assert (why or "") in (defect or "")


def test_grease_numbers() -> None:
    """0x7f*N + 0x9D is grease, its neighbours are not (R055)."""
    assert [0x9D, 0x11C] == [value for value in range(0x120) if is_grease(value)]
