"""Octets of LOCATION_FILTER and of the Range Filters (MOQT-22 §8.6, §9.20.9 to §9.20.14)."""

from __future__ import annotations

from moqt.wire.drafts import Draft
from moqt.wire.errors import LocalProtocolError, NeedMore, RemoteProtocolError
from moqt.wire.filters import (
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.varint import U64, Cursor, encode_vi64

_ON_PROPERTY = frozenset({RangeFilterType.OBJECT_PROPERTY, RangeFilterType.TRACK_PROPERTY})
_WITH_GROUP_END = frozenset(
    {LocationFilterType.ABSOLUTE_START_GROUP_END, LocationFilterType.ABSOLUTE_RANGE}
)
_MAX_PRIORITY = 255


def encode_location_filter(value: LocationFilter, draft: Draft) -> bytes:
    """Location Filter Type (vi64) and the fields of that type (vi64 each), without a length.

    Raises LocalProtocolError for a last group above 2^64-1.
    """
    if value.type in _WITH_GROUP_END and value.start_group + value.end_group_delta > U64:
        raise LocalProtocolError("StartGroup + EndGroupDelta exceeds 2^64-1")
    fields = draft.location_filter_fields[value.type]
    return encode_vi64(value.type) + b"".join(encode_vi64(getattr(value, name)) for name in fields)


def decode_location_filter(cursor: Cursor, draft: Draft) -> LocationFilter:
    """One LOCATION_FILTER.

    Raises RemoteProtocolError for an unknown type and for a last group above 2^64-1.
    """
    number = cursor.vi()
    if number not in draft.location_filter_fields:
        raise RemoteProtocolError(f"Location Filter Type 0x{number:x} is not known")
    kind = LocationFilterType(number)
    names = draft.location_filter_fields[kind]
    value = LocationFilter(kind, **{name: cursor.vi() for name in names})
    if kind in _WITH_GROUP_END and value.start_group + value.end_group_delta > U64:
        raise RemoteProtocolError("StartGroup + EndGroupDelta exceeds 2^64-1")
    return value


def encode_range_filter(value: RangeFilter) -> bytes:
    """[SetID (8), [Property Type (vi64)], Ranges]; nothing for the removing form; no length.

    Each Range is Start as delta from the End before it and, unless open, End as delta from its
    own Start (vi64 each). Raises LocalProtocolError for a filter that a receiver would refuse.
    """
    if value.invalid is not None:
        raise LocalProtocolError(value.invalid)
    if value.set_id is None:
        if value.ranges or value.property_type is not None:
            raise LocalProtocolError("a Range Filter without SetID removes: it has no Ranges")
        return b""
    if not 0 <= value.set_id <= 0xFF:
        raise LocalProtocolError(f"a SetID is 0 .. 255, not {value.set_id}")
    if (value.type in _ON_PROPERTY) != (value.property_type is not None):
        raise LocalProtocolError(f"a Property Type does not fit a {value.type.name} filter")
    octets = bytes((value.set_id,))
    if value.property_type is not None:
        octets += encode_vi64(value.property_type)
    last = len(value.ranges) - 1
    previous = 0
    for position, (start, end) in enumerate(value.ranges):
        if start < previous or (end is not None and end < start):
            raise LocalProtocolError("the Ranges of a filter ascend and do not overlap")
        octets += encode_vi64(start - previous)
        if end is not None:
            octets += encode_vi64(end - start)
            previous = end
        elif position != last:
            raise LocalProtocolError("only the last Range may be open")
    if defect := _range_defect(value.type, value.property_type, value.ranges):
        raise LocalProtocolError(defect)
    return octets


def decode_range_filter(kind: RangeFilterType, octets: bytes) -> RangeFilter:
    """One Range Filter that fills `octets`; `invalid` is set when its values break a rule.

    Raises RemoteProtocolError when the octets do not parse.
    """
    if not octets:
        return RangeFilter(kind)
    cursor = Cursor(octets)
    numbers = []
    try:
        set_id = cursor.u8()
        property_type = cursor.vi() if kind in _ON_PROPERTY else None
        while cursor.left:
            numbers.append(cursor.vi())
    except NeedMore:
        raise RemoteProtocolError(f"a {kind.name} filter ends inside a field") from None
    ranges: list[tuple[int, int | None]] = []
    previous = 0
    for position in range(0, len(numbers), 2):
        start = previous + numbers[position]
        end = start + numbers[position + 1] if position + 1 < len(numbers) else None
        ranges.append((start, end))
        previous = start if end is None else end
    if defect := _range_defect(kind, property_type, tuple(ranges)):
        return RangeFilter(kind, set_id, property_type, invalid=defect)
    return RangeFilter(kind, set_id, property_type, tuple(ranges))


def _range_defect(
    kind: RangeFilterType, property_type: int | None, ranges: tuple[tuple[int, int | None], ...]
) -> str | None:
    if property_type is not None and property_type % 2:
        return f"a {kind.name} filter needs an even Property Type, not 0x{property_type:x}"
    limit = _MAX_PRIORITY if kind is RangeFilterType.PRIORITY else U64
    for start, end in ranges:
        if max(start, end or 0) > limit:
            return f"a Range of the {kind.name} filter exceeds {limit}"
    return None
