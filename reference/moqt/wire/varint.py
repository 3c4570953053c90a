"""The integers of MOQT (MOQT-22 §8.1) and a cursor over octets that never reads past its end.

The count of leading 1 bits of the first octet is the count of octets that follow; the other bits
are the value, most significant first. One octet holds 7 bits, nine octets hold all 64. Longer
forms than necessary are legal on receipt; we send the shortest.
"""

from __future__ import annotations

from typing import TypeAlias

from moqt.wire.errors import LocalProtocolError, NeedMore

Octets: TypeAlias = bytes | bytearray | memoryview

U64 = 2**64 - 1

_ONE_OCTET = tuple(bytes((value,)) for value in range(128))
_LENGTH = tuple(9 - (octet ^ 0xFF).bit_length() for octet in range(256))
_MASK = (0, *((1 << 7 * length) - 1 for length in range(1, 9)), U64)


def encode_vi64(value: int) -> bytes:
    """The shortest form of `value`: 1 to 9 octets (MOQT-22 §8.1).

    Raises LocalProtocolError outside 0 .. 2^64-1.
    """
    if 0 <= value < 0x80:
        return _ONE_OCTET[value]
    if 0 <= value < 0x4000:
        return (0x8000 | value).to_bytes(2, "big")
    if not 0 <= value <= U64:
        raise LocalProtocolError(f"an integer must be 0 .. 2^64-1, not {value}")
    length = (value.bit_length() + 6) // 7
    if length > 8:
        return b"\xff" + value.to_bytes(8, "big")
    prefix = (0xFF00 >> (length - 1)) & 0xFF
    return (prefix << 8 * (length - 1) | value).to_bytes(length, "big")


def read_vi64(octets: Octets, offset: int, end: int) -> tuple[int, int]:
    """The integer at `offset` and the offset behind it; NeedMore when it passes `end`."""
    if offset >= end:
        raise NeedMore
    first = octets[offset]
    if first < 0x80:
        return first, offset + 1
    length = _LENGTH[first]
    after = offset + length
    if after > end:
        raise NeedMore
    return int.from_bytes(octets[offset:after], "big") & _MASK[length], after


def encode_prefixed(octets: bytes) -> bytes:
    """Length (vi64), then the octets."""
    return encode_vi64(len(octets)) + octets


class Cursor:
    """Reads structures from `octets[offset:end]`; every method raises NeedMore when they end."""

    __slots__ = ("_end", "_octets", "offset")

    def __init__(self, octets: Octets, offset: int = 0, end: int | None = None) -> None:
        self._octets = octets
        self._end = len(octets) if end is None else min(end, len(octets))
        self.offset = offset

    @property
    def left(self) -> int:
        """Octets that are not read yet."""
        return self._end - self.offset

    def vi(self) -> int:
        """One vi64."""
        value, self.offset = read_vi64(self._octets, self.offset, self._end)
        return value

    def u8(self) -> int:
        """One octet."""
        if self.offset >= self._end:
            raise NeedMore
        self.offset += 1
        return self._octets[self.offset - 1]

    def u16(self) -> int:
        """Two octets, most significant first."""
        return int.from_bytes(self.raw(2), "big")

    def raw(self, count: int) -> bytes:
        """`count` octets."""
        start = self.offset
        if count > self._end - start:
            raise NeedMore
        self.offset = start + count
        return bytes(self._octets[start : self.offset])

    def rest(self) -> bytes:
        """All octets up to the end."""
        return self.raw(self._end - self.offset)

    def prefixed(self) -> bytes:
        """Length (vi64) and as many octets."""
        return self.raw(self.vi())
