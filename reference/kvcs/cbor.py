"""A strict reader of CBOR (RFC 8949), for structures that carry a signature.

General readers keep the last of two equal map keys, take 1 and true for the same key, accept
indefinite lengths, and some stop at the end of the first item. Under a signature each of these lets
two readers see two documents. This one builds a tree that still knows its octets, or says which
octet breaks the rule; it builds no Python objects that could merge two keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kvcs.errors import Defect, SignatureError

MAX_DEPTH = 16


class Major(IntEnum):
    """Major types (RFC 8949 §3.1)."""

    UNSIGNED = 0
    NEGATIVE = 1
    OCTETS = 2
    TEXT = 3
    ARRAY = 4
    MAP = 5
    TAG = 6
    SIMPLE = 7


@dataclass(frozen=True, slots=True)
class Item:
    """One data item: octets `start` to `end` (exclusive), the head ending at `body`.

    `value` is an int for UNSIGNED and NEGATIVE, bytes, str, the tag number for TAG, and the raw
    argument for SIMPLE (20 false, 21 true, 22 null). `items` holds what an ARRAY or TAG contains,
    and keys and values in turn for a MAP.
    """

    major: Major
    value: int | bytes | str
    start: int
    body: int
    end: int
    items: tuple[Item, ...] = ()

    @property
    def pairs(self) -> list[tuple[Item, Item]]:
        """Keys and values of a MAP."""
        return list(zip(self.items[::2], self.items[1::2], strict=True))

    @property
    def octets(self) -> bytes:
        """The content of an OCTETS item; empty for any other."""
        return self.value if isinstance(self.value, bytes) else b""

    @property
    def number(self) -> int:
        """The integer, tag number or simple value; 0 for any other."""
        return self.value if isinstance(self.value, int) else 0

    @property
    def is_null(self) -> bool:
        """Whether this is null."""
        return self.major is Major.SIMPLE and self.value == 22 and self.end - self.start == 1


def read_cbor(octets: bytes, start: int = 0, end: int | None = None) -> Item:
    """The one data item that `octets[start:end]` are.

    Raises SignatureError that names the octet, counted from the start of `octets`.
    """
    stop = len(octets) if end is None else end
    item = _Reader(octets, stop).item(start, 0)
    if item.end != stop:
        raise _bad("cbor-trailing", f"{stop - item.end} octets follow the CBOR item", item.end)
    return item


def _bad(name: str, what: str, offset: int) -> SignatureError:
    defect = Defect(name, "KVCS-5-4", what, f"octet {offset}")
    return SignatureError(f"not strict CBOR: {defect}", [defect])


class _Reader:
    def __init__(self, octets: bytes, stop: int) -> None:
        self._octets = octets
        self._stop = stop

    def item(self, start: int, depth: int) -> Item:
        if depth > MAX_DEPTH:
            raise _bad("cbor-depth", f"nested deeper than {MAX_DEPTH} levels", start)
        major, argument, body = self._head(start)
        match major:
            case Major.UNSIGNED:
                return Item(major, argument, start, body, body)
            case Major.NEGATIVE:
                return Item(major, -1 - argument, start, body, body)
            case Major.OCTETS:
                end = self._span(start, body, argument)
                return Item(major, self._octets[body:end], start, body, end)
            case Major.TEXT:
                end = self._span(start, body, argument)
                try:
                    text = self._octets[body:end].decode()
                except UnicodeDecodeError as error:
                    at = body + error.start
                    raise _bad("cbor-text", "text that is not UTF-8", at) from None
                return Item(major, text, start, body, end)
            case Major.SIMPLE:
                if body - start == 2 and argument < 32:
                    raise _bad("cbor-simple", "a simple value below 32 in two octets", start)
                return Item(major, argument, start, body, body)
        count = {Major.ARRAY: argument, Major.MAP: 2 * argument}.get(major, 1)
        # Each item has at least one octet, so a count that cannot be met is known at once.
        self._span(start, body, count)
        items = []
        end = body
        for _ in range(count):
            inner = self.item(end, depth + 1)
            items.append(inner)
            end = inner.end
        item = Item(major, argument, start, body, end, tuple(items))
        if major is Major.MAP:
            self._refuse_twins(item)
        return item

    def _head(self, start: int) -> tuple[Major, int, int]:
        if start >= self._stop:
            raise _bad("cbor-truncated", "the CBOR ends inside an item", start)
        major, info = Major(self._octets[start] >> 5), self._octets[start] & 0x1F
        if info < 24:
            return major, info, start + 1
        if info == 31:
            raise _bad("cbor-indefinite", "an item of indefinite length", start)
        if info > 27:
            raise _bad("cbor-head", f"the reserved head {self._octets[start]:#04x}", start)
        body = self._span(start, start + 1, 1 << (info - 24))
        return major, int.from_bytes(self._octets[start + 1 : body]), body

    def _span(self, start: int, body: int, octets: int) -> int:
        if octets > self._stop - body:
            what = f"the item needs {octets} more octets, {max(0, self._stop - body)} are left"
            raise _bad("cbor-truncated", what, start)
        return body + octets

    def _refuse_twins(self, item: Item) -> None:
        seen: set[tuple[Major, int | bytes | str]] = set()
        for key, _ in item.pairs:
            if key.major not in (Major.UNSIGNED, Major.NEGATIVE, Major.TEXT):
                what = f"a label is an integer or text, not {key.major.name}"
                raise _bad("cbor-label", what, key.start)
            if (key.major, key.value) in seen:
                raise _bad("cbor-label-twice", f"label {key.value!a} stands twice", key.start)
            seen.add((key.major, key.value))
