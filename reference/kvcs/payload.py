"""The KVCS Object payload: a header of 68 octets, then Data (KVCS 4).

All integers are big-endian: the text does not say so, its example does (reading A5). Data is
never copied while a payload is read; it is hashed once, in `check_object`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, TypeAlias

from kvcs.errors import Defect, PayloadError, refuse
from kvcs.names import Component

Octets: TypeAlias = bytes | bytearray | memoryview

MAGIC = b"KVO1"
VERSION = 1
HEADER_OCTETS = 68
MAX_DATA_OCTETS = 2**32 - 1

_LAYOUT = struct.Struct(">4sBBHIIQIHHI32s")


class Header(NamedTuple):
    """The header's fields as they stand on the wire, whatever their values (KVCS 4).

    `component` and `codec` are the plain numbers: they may be ones that nobody registered.
    """

    magic: bytes
    version: int
    component: int
    flags: int
    layer: int
    block: int
    token_start: int
    token_count: int
    codec: int
    reserved: int
    data_length: int
    digest: bytes


class Field(NamedTuple):
    """Where a field of the header stands."""

    name: str
    offset: int
    octets: int

    @property
    def where(self) -> str:
        """The field's octets in the words of a Defect."""
        end = self.offset + self.octets - 1
        return f"octet {end}" if self.octets == 1 else f"octets {self.offset}..{end}"


FIELDS: tuple[Field, ...] = (
    Field("Magic", 0, 4),
    Field("Version", 4, 1),
    Field("Component", 5, 1),
    Field("Flags", 6, 2),
    Field("Layer", 8, 4),
    Field("Block Index", 12, 4),
    Field("Token Start", 16, 8),
    Field("Token Count", 24, 4),
    Field("Codec", 28, 2),
    Field("Reserved", 30, 2),
    Field("Data Length", 32, 4),
    Field("Data Digest", 36, 32),
)
"""The fields in order, one per member of `Header`."""

_WHERE = dict(zip(Header._fields, (field.where for field in FIELDS), strict=True))


def encode_header(header: Header) -> bytes:
    """The 68 octets of a header, as given; PayloadError when a value does not fit its field."""
    if len(header.magic) != 4 or len(header.digest) != 32:
        raise PayloadError("Magic has 4 octets and the Data Digest 32")
    try:
        return _LAYOUT.pack(*header)
    except struct.error as error:
        raise PayloadError(f"a header value does not fit its field: {error}") from None


def decode_header(payload: Octets) -> Header:
    """The header at the start of a payload; no value is judged here.

    Raises PayloadError for fewer than 68 octets (KVCS-4-21).
    """
    if len(payload) < HEADER_OCTETS:
        what = f"the header has 68 octets, the whole payload has {len(payload)}"
        where = f"octet {len(payload)}"
        raise refuse(
            PayloadError,
            "not a KVCS payload",
            [Defect("header-truncated", "KVCS-4-21", what, where)],
        )
    return Header._make(_LAYOUT.unpack_from(payload))


def data_of(payload: Octets) -> memoryview:
    """Everything after the header, as a view; only worth reading when `check_object` is content."""
    return memoryview(payload)[HEADER_OCTETS:]


def build_payload(
    component: Component,
    layer: int,
    block: int,
    token_start: int,
    token_count: int,
    codec: int,
    data: Octets,
) -> bytes:
    """One whole payload; `data` is hashed once and copied once.

    Raises PayloadError when a value does not fit its field or Data is over 2^32-1 octets.
    """
    octets = memoryview(data).nbytes
    if octets > MAX_DATA_OCTETS:
        raise PayloadError(f"Data has at most 2^32-1 octets, not {octets}")
    header = Header(
        MAGIC,
        VERSION,
        component,
        0,
        layer,
        block,
        token_start,
        token_count,
        codec,
        0,
        octets,
        sha256(data).digest(),
    )
    return b"".join((encode_header(header), data))


@dataclass(frozen=True, slots=True)
class Expected:
    """What the receiver knows of an Object beforehand; None where it does not know.

    None of it is among the mandatory checks (reading A6): a right digest under a wrong Token Start
    is accepted by the letter of KVCS 4, and corrupts the cache.
    """

    component: Component | None = None
    codec: int | None = None
    token_start: int | None = None
    token_count: int | None = None
    raw_octets: int | None = None
    """Exact Data Length, given for codec raw only (KVCS-9-1)."""


NOTHING_EXPECTED = Expected()


def check_object(
    header: Header,
    payload: Octets,
    location: tuple[int, int],
    expected: Expected = NOTHING_EXPECTED,
) -> list[Defect]:
    """Everything that is wrong with one Object at `location` (Group ID, Object ID).

    Defects with `mandatory` come from the checks that KVCS 4 demands: such an Object is discarded
    and treated as missing (KVCS-4-23). The others are the robustness checks of reading A6. Flags
    and Reserved are ignored (KVCS-4-7). The digest is computed only when the lengths agree.
    """
    group, object_id = location
    defects = []

    def compare(member: str, name: str, clause: str, found: object, right: object) -> bool:
        if found == right:
            return True
        label = FIELDS[Header._fields.index(member)].name
        what = f"{label} is {_show(found)}, should be {_show(right)}"
        defects.append(Defect(name, clause, what, _WHERE[member]))
        return False

    compare("magic", "magic", "KVCS-4-18", header.magic, MAGIC)
    compare("version", "version", "KVCS-4-18", header.version, VERSION)
    compare("layer", "layer-mismatch", "KVCS-4-19", header.layer, group)
    compare("block", "block-index-mismatch", "KVCS-4-20", header.block, object_id)
    length = len(payload) - HEADER_OCTETS
    if compare("data_length", "length-mismatch", "KVCS-4-21", header.data_length, length):
        digest = sha256(data_of(payload)).digest()
        compare("digest", "digest-mismatch", "KVCS-4-22", header.digest, digest)
    _check_robustness(header, expected, defects.append)
    return defects


def _check_robustness(header: Header, expected: Expected, report: Callable[[Defect], None]) -> None:
    checks = (
        ("component", "component-mismatch", "KVCS-4-5", expected.component),
        ("token_start", "token-start-mismatch", "KVCS-4-10", expected.token_start),
        ("token_count", "token-count-mismatch", "KVCS-4-11", expected.token_count),
        ("codec", "codec-mismatch", "KVCS-4-12", expected.codec),
        ("data_length", "raw-length-mismatch", "KVCS-9-1", expected.raw_octets),
    )
    for member, name, clause, right in checks:
        found = getattr(header, member)
        if right is not None and found != right:
            label = FIELDS[Header._fields.index(member)].name
            what = f"{label} is {found}, should be {int(right)}"
            report(Defect(name, clause, what, _WHERE[member], mandatory=False))
    if expected.component is None and header.component not in Component._value2member_map_:
        what = f"Component {header.component} is none of 1 (k), 2 (v), 3 (kv)"
        report(Defect("component-unknown", "KVCS-4-4", what, _WHERE["component"], mandatory=False))


def _show(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
