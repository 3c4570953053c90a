"""The KVCS payload header read by the judge itself, from the octets of the evidence.

The layout stands in KVCS 4; this reader shares nothing with the reference, so that an error there
cannot hide itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kvcs_conformance.evidence.read import HEADER_OCTETS, Seen

MAGIC = 0x4B564F31
VERSION = 1
LAYOUT_CLAUSE = "KVCS-4-1"
COMPONENT_CLAUSE = "KVCS-4-4"
ONE_PAYLOAD_CLAUSE = "KVCS-3.4-3"
ABSOLUTE_CLAUSE = "KVCS-3.4-2"
CLAUSES = {
    "magic": "KVCS-4-2",
    "version": "KVCS-4-3",
    "component": "KVCS-4-5",
    "flags": "KVCS-4-6",
    "layer": "KVCS-4-8",
    "block": "KVCS-4-9",
    "token_start": "KVCS-4-10",
    "token_count": "KVCS-4-11",
    "codec": "KVCS-4-12",
    "data_length": "KVCS-4-13",
    "digest": "KVCS-4-14",
}
"""The requirement that each field is about; the layout as a whole has its own."""
COMPONENTS = {"k": 1, "v": 2, "kv": 3}
CODECS = {"raw": 1, "zstd": 2, "deflate": 3}
"""The codecs that the profile kvsp-p0 names, with their values."""


class Field(NamedTuple):
    """One field of the header: octet offset and length, unsigned, big-endian (A5)."""

    offset: int
    length: int

    def of(self, octets: bytes) -> bytes:
        """The field's octets in a payload."""
        return octets[self.offset : self.offset + self.length]

    def read(self, octets: bytes) -> int:
        """The field's value in a payload."""
        return int.from_bytes(self.of(octets), "big")


FIELDS: dict[str, Field] = {
    "magic": Field(0, 4),
    "version": Field(4, 1),
    "component": Field(5, 1),
    "flags": Field(6, 2),
    "layer": Field(8, 4),
    "block": Field(12, 4),
    "token_start": Field(16, 8),
    "token_count": Field(24, 4),
    "codec": Field(28, 2),
    "reserved": Field(30, 2),
    "data_length": Field(32, 4),
    "digest": Field(36, 32),
}
_UP_TO_DIGEST = {name: field for name, field in FIELDS.items() if name != "digest"}


def is_whole(head: bytes) -> bool:
    """Whether the octets reach as far as the header does."""
    return len(head) >= HEADER_OCTETS


def other_layout(head: bytes, right: Mapping[str, int]) -> bool:
    """Whether a header that is not the right one has its octets at other places: fields in another
    order or byte order, or of another width. The digest is left out: it shows by its value."""
    expected = b"".join(right[name].to_bytes(f.length, "big") for name, f in _UP_TO_DIGEST.items())
    found = head[: len(expected)]
    if found == expected:
        return False
    if sorted(found) == sorted(expected):
        return True
    wrong = [name for name, field in _UP_TO_DIGEST.items() if field.read(head) != right[name]]
    shown, told = (octets.replace(b"\0", b"") for octets in (found, expected))
    shifted = shown.startswith(told) or told.startswith(shown)
    return shifted and len(wrong) > 1


def field_clauses(seen: Seen, name: str, right: Mapping[str, int], tokens: int) -> tuple[str, ...]:
    """The requirements that a wrong value of a header field breaks; `tokens` are those of a block.

    Token Start counted from the segment's own first block denies the absolute index. Octets behind
    Data Length that the digest does not cover, either, are no part of one payload.
    """
    found = FIELDS[name].read(seen.head)
    if name == "component" and found not in COMPONENTS.values():
        return (COMPONENT_CLAUSE,)
    if name == "token_start" and found == seen.object * tokens:
        return (CLAUSES[name], ABSOLUTE_CLAUSE)
    covered = FIELDS["digest"].read(seen.head) == right["digest"]
    if name == "data_length" and found < right[name] and not covered:
        return (CLAUSES[name], ONE_PAYLOAD_CLAUSE)
    return (CLAUSES[name],)


class Flaw(NamedTuple):
    """The field by which an Object fails a check, with the value that it has and the right one."""

    field: str
    has: int
    right: int

    def __str__(self) -> str:
        digits = 2 * FIELDS[self.field].length + 2
        name = {"data_length": "Data Length", "digest": "Data Digest"}.get(self.field, self.field)
        return f"{name} is {self.has:#0{digits}x}, not {self.right:#0{digits}x}"


def flaw(seen: Seen) -> Flaw | None:
    """The first check that KVCS 4 demands of a receiver and that this Object fails, if the header
    shows one."""
    if not is_whole(seen.head):
        return None
    right = {
        "magic": MAGIC,
        "version": VERSION,
        "layer": seen.group,
        "block": seen.object,
        "data_length": seen.payload["length"] - HEADER_OCTETS,
        "digest": int(seen.payload["data_sha256"], 16),
    }
    values = ((name, FIELDS[name].read(seen.head), value) for name, value in right.items())
    return next((Flaw(*one) for one in values if one[1] != one[2]), None)
