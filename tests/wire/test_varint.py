"""Integers and the cursor (MOQT-22 §8.1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moqt.wire.errors import LocalProtocolError, NeedMore
from moqt.wire.varint import U64, Cursor, encode_vi64, read_vi64

SHORTEST = {
    0: "00",
    37: "25",
    127: "7f",
    128: "8080",
    300: "812c",
    1000: "83e8",
    5000: "9388",
    0x2F00: "af00",
    15_293: "bbbd",
    16_383: "bfff",
    16_384: "c04000",
    30_000: "c07530",
    2**21 - 1: "dfffff",
    2**21: "e0200000",
    226_442_877: "ed7f3e7d",
    0x132B3E28: "f0132b3e28",
    2_893_212_287_960: "faa1a0e403d8",
    151_288_809_941_952: "fc8998abc66bc0",
    70_423_237_261_249_041: "fefa318fa8e3ca11",
    2**64 - 1: "ffffffffffffffffff",
}


@pytest.mark.parametrize("value", SHORTEST)
def test_shortest_forms(value: int) -> None:
    """Each published value is written in its shortest form and read back."""
    octets = bytes.fromhex(SHORTEST[value])
    assert octets == encode_vi64(value)
    assert (value, len(octets)) == read_vi64(octets, 0, len(octets))


@pytest.mark.parametrize(
    ("largest", "length"),
    [(2 ** (7 * length) - 1, length) for length in range(1, 9)] + [(U64, 9)],
)
def test_each_length_holds_what_the_table_says(largest: int, length: int) -> None:
    """The largest value of each length takes that many octets, the next one takes one more."""
    assert length == len(encode_vi64(largest))
    if largest < U64:
        assert length + 1 == len(encode_vi64(largest + 1))


def test_longer_forms_are_read() -> None:
    """37 in two, five and nine octets is 37."""
    for text in ("8025", "f000000025", "ff0000000000000025"):
        octets = bytes.fromhex(text)
        assert (37, len(octets)) == read_vi64(octets, 0, len(octets))


@pytest.mark.parametrize("value", [-1, 2**64])
def test_only_64_bits_are_written(value: int) -> None:
    """A value that no vi64 holds is refused with our own error."""
    with pytest.raises(LocalProtocolError, match=r"2\^64-1"):
        encode_vi64(value)


@given(st.integers(0, U64), st.binary(max_size=3))
def test_round_trip_and_no_reading_past_the_end(value: int, rest: bytes) -> None:
    """Any value comes back with the offset behind it; every shorter end needs more octets."""
    octets = encode_vi64(value)
    assert (value, len(octets)) == read_vi64(octets + rest, 0, len(octets + rest))
    for end in range(len(octets)):
        with pytest.raises(NeedMore):
            read_vi64(octets + rest, 0, end)


@pytest.mark.parametrize("octets_type", [bytes, bytearray, memoryview])
def test_cursor_reads_its_window_only(octets_type: type) -> None:
    """A cursor starts at its offset, stops at its end, and gives bytes for any buffer."""
    cursor = Cursor(octets_type(bytes.fromhex("ee 01 8080 1234 02 6162 ff")), 1, 9)
    assert (1, 128, 0x1234, b"ab") == (cursor.u8(), cursor.vi(), cursor.u16(), cursor.prefixed())
    assert 0 == cursor.left
    assert b"" == cursor.rest()
    for read in (cursor.u8, cursor.u16, cursor.vi, cursor.prefixed):
        with pytest.raises(NeedMore):
            read()


def test_cursor_does_not_trust_lengths() -> None:
    """A length of 2^64-1 asks for more octets and allocates nothing."""
    with pytest.raises(NeedMore):
        Cursor(b"\xff" * 9 + b"abc").prefixed()
