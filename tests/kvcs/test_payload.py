"""The Object payload: the example's 68 octets, every check, arbitrary octets."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.errors import PayloadError
from kvcs.names import Component
from kvcs.payload import (
    FIELDS,
    HEADER_OCTETS,
    Expected,
    Header,
    build_payload,
    check_object,
    data_of,
    decode_header,
    encode_header,
)

from tests.kvcs import vectors as v

AT = (0, 1)
EXPECTED = Expected(Component.K, codec=1, token_start=4, token_count=4, raw_octets=16)


def names(payload: bytes, location: tuple[int, int] = AT, **expected: Any) -> list[str]:
    """The names of the defects of one Object."""
    return [
        defect.name
        for defect in check_object(decode_header(payload), payload, location, Expected(**expected))
    ]


def changed(**fields: Any) -> bytes:
    """The example payload with header fields replaced."""
    return encode_header(decode_header(v.EXAMPLE_HEADER)._replace(**fields)) + v.EXAMPLE_DATA


def test_the_example_header_is_read() -> None:
    """All fields of the example's 68 octets, big-endian (KVCS-A-2, KVCS-4-1, A5)."""
    digest = sha256(v.EXAMPLE_DATA).digest()
    expected = Header(b"KVO1", 1, 1, 0, 0, 1, 4, 4, 1, 0, 16, digest)
    assert expected == decode_header(v.EXAMPLE_HEADER)


def test_the_example_payload_is_built() -> None:
    """The k Object at Group 0, Object 1 is the example, octet for octet (KVCS-A-2, KVCS-4-14)."""
    built = build_payload(Component.K, 0, 1, 4, 4, 1, memoryview(v.EXAMPLE_DATA))
    assert v.EXAMPLE_PAYLOAD == built


def test_the_profile_header_vector() -> None:
    """The k Object of kvsp-p0 §10 at layer 0, block 1 (KVCS-4-15)."""
    built = build_payload(Component.K, 0, 1, 4, 4, 1, v.p0_section(0, 1, 0))
    assert v.P0_HEADER == built[:HEADER_OCTETS]
    assert 68 + 8192 == len(built)


def test_the_example_passes_every_check() -> None:
    """No defect at its own Location, with everything expected that is known."""
    header = decode_header(v.EXAMPLE_PAYLOAD)
    assert [] == check_object(header, v.EXAMPLE_PAYLOAD, AT, EXPECTED)


def test_field_table_covers_the_header() -> None:
    """The fields stand one after the other from octet 0 to 67 (KVCS-4-1)."""
    ends = [field.offset + field.octets for field in FIELDS]
    assert [field.offset for field in FIELDS] == [0, *ends[:-1]]
    assert HEADER_OCTETS == ends[-1]


def test_reading_copies_no_data() -> None:
    """Data is a view of the payload."""
    payload = bytearray(v.EXAMPLE_PAYLOAD)
    data = data_of(payload)
    payload[-1] = 0xAA
    assert 0xAA == data[-1]


@pytest.mark.parametrize("octets", range(HEADER_OCTETS))
def test_a_short_payload_is_refused(octets: int) -> None:
    """Fewer than 68 octets are no header; the defect names the octet (KVCS-4-21, field case 5)."""
    with pytest.raises(PayloadError) as caught:
        decode_header(v.EXAMPLE_PAYLOAD[:octets])
    assert [("header-truncated", f"octet {octets}")] == [
        (defect.name, defect.where) for defect in caught.value.defects
    ]


@pytest.mark.parametrize(
    ("change", "defect", "clause", "where"),
    [
        ({"magic": b"KVO2"}, "magic", "KVCS-4-18", "octets 0..3"),
        ({"version": 0}, "version", "KVCS-4-18", "octet 4"),
        ({"version": 2}, "version", "KVCS-4-18", "octet 4"),
        ({"version": 255}, "version", "KVCS-4-18", "octet 4"),
        ({"layer": 1}, "layer-mismatch", "KVCS-4-19", "octets 8..11"),
        ({"block": 2}, "block-index-mismatch", "KVCS-4-20", "octets 12..15"),
        ({"data_length": 15}, "length-mismatch", "KVCS-4-21", "octets 32..35"),
        ({"data_length": 17}, "length-mismatch", "KVCS-4-21", "octets 32..35"),
        ({"data_length": 0}, "length-mismatch", "KVCS-4-21", "octets 32..35"),
        ({"data_length": 2**32 - 1}, "length-mismatch", "KVCS-4-21", "octets 32..35"),
        ({"digest": bytes(32)}, "digest-mismatch", "KVCS-4-22", "octets 36..67"),
    ],
)
def test_mandatory_checks(change: dict[str, Any], defect: str, clause: str, where: str) -> None:
    """Each check of KVCS 4 fails alone, with its octets (KVCS-4-18 to KVCS-4-22)."""
    payload = changed(**change)
    found = check_object(decode_header(payload), payload, AT)
    assert [(defect, clause, where, True)] == [
        (item.name, item.clause, item.where, item.mandatory) for item in found
    ]


@pytest.mark.parametrize(
    ("change", "defect", "clause"),
    [
        ({"component": 2}, "component-mismatch", "KVCS-4-5"),
        ({"component": 0}, "component-mismatch", "KVCS-4-5"),
        ({"token_start": 0}, "token-start-mismatch", "KVCS-4-10"),
        ({"token_count": 3}, "token-count-mismatch", "KVCS-4-11"),
        ({"codec": 2}, "codec-mismatch", "KVCS-4-12"),
    ],
)
def test_robustness_checks_are_told_apart(change: dict[str, Any], defect: str, clause: str) -> None:
    """Fields that KVCS 4 does not check are told, and not as mandatory (A6, field case 21)."""
    payload = changed(**change)
    found = check_object(decode_header(payload), payload, AT, EXPECTED)
    assert [(defect, clause, False)] == [(d.name, d.clause, d.mandatory) for d in found]
    assert [] == names(payload) or change == {"component": 0}


def test_raw_data_of_another_size_is_told() -> None:
    """Data Length other than the geometry's is a robustness defect (KVCS-9-1)."""
    assert ["raw-length-mismatch"] == names(v.EXAMPLE_PAYLOAD, raw_octets=8192)


@pytest.mark.parametrize("component", [0, 4, 255])
def test_an_unregistered_component_is_told(component: int) -> None:
    """Even where no component is expected (KVCS-4-4, KVCS-12-3)."""
    assert ["component-unknown"] == names(changed(component=component))


def test_flags_and_reserved_are_ignored() -> None:
    """Any Flags and Reserved are accepted (KVCS-4-7)."""
    assert [] == names(changed(flags=0xFFFF, reserved=0xFFFF))


@pytest.mark.parametrize("octets", [0, 1, 2**20])
def test_data_of_any_size(octets: int) -> None:
    """Empty, tiny and large Data are accepted (KVCS-4-21)."""
    assert [] == names(build_payload(Component.V, 0, 1, 4, 4, 1, bytes(octets)))


def test_field_case_23() -> None:
    """Zeroed, shortened, lengthened and foreign Data are each refused (field case 23)."""
    header = v.EXAMPLE_HEADER
    assert ["digest-mismatch"] == names(header + bytes(16))
    assert ["length-mismatch"] == names(v.EXAMPLE_PAYLOAD[:-1])
    assert ["length-mismatch"] == names(v.EXAMPLE_PAYLOAD + b"\x00")
    assert ["length-mismatch"] == names(v.EXAMPLE_PAYLOAD * 2)
    assert ["block-index-mismatch"] == names(v.EXAMPLE_PAYLOAD, (0, 2))
    assert ["layer-mismatch"] == names(v.EXAMPLE_PAYLOAD, (3, 1))


def test_locations_beyond_32_bits_never_match() -> None:
    """A Group ID of 2^32 is not layer 0 (A18)."""
    assert ["layer-mismatch"] == names(v.EXAMPLE_PAYLOAD, (2**32, 1))


def test_every_flipped_bit_of_a_checked_field_is_found() -> None:
    """Any single bit outside Flags and Reserved is noticed (KVCS-A-2)."""
    for bit in range(8 * len(v.EXAMPLE_PAYLOAD)):
        payload = bytearray(v.EXAMPLE_PAYLOAD)
        payload[bit // 8] ^= 1 << bit % 8
        found = check_object(decode_header(payload), payload, AT, EXPECTED)
        ignored = bit // 8 in (6, 7, 30, 31)
        assert ignored == (found == []), f"bit {bit}"


def test_a_little_endian_header_is_refused() -> None:
    """Integers in the wrong byte order do not pass (A5)."""
    assert {"block-index-mismatch", "length-mismatch"} <= set(
        names(changed(block=1 << 24, data_length=16 << 24))
    )


@pytest.mark.parametrize(
    "field", ["layer", "block", "token_start", "token_count", "codec", "component"]
)
@pytest.mark.parametrize("value", [-1, 2**64])
def test_values_that_do_not_fit_are_refused(field: str, value: int) -> None:
    """Building a header with such a value is a PayloadError."""
    with pytest.raises(PayloadError, match="does not fit"):
        changed(**{field: value})


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**16 - 1),
    st.binary(max_size=64),
)
@settings(max_examples=100, deadline=None)
def test_every_payload_round_trips(
    layer: int, block: int, start: int, count: int, codec: int, data: bytes
) -> None:
    """Fields at their extremes survive; the payload passes at its Location (KVCS-4-1)."""
    payload = build_payload(Component.KV, layer, block, start, count, codec, data)
    header = decode_header(payload)
    assert (layer, block, start, count, codec) == (
        header.layer,
        header.block,
        header.token_start,
        header.token_count,
        header.codec,
    )
    assert data == data_of(payload)
    assert payload == encode_header(header) + data
    assert [] == check_object(header, payload, (layer, block))


@given(st.binary(max_size=120), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@settings(max_examples=150, deadline=None)
def test_any_octets_are_read_or_refused(octets: bytes, group: int, object_id: int) -> None:
    """Short octets are refused; longer ones are read and, being no payload, found wrong."""
    if len(octets) < HEADER_OCTETS:
        with pytest.raises(PayloadError):
            decode_header(octets)
    else:
        assert check_object(decode_header(octets), octets, (group, object_id))
