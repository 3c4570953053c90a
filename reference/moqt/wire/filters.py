"""Location and Range Filters as values (MOQT-22 §3.3, §8.6, §9.20.9 to §9.20.14)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class LocationFilterType(IntEnum):
    """LOCATION_FILTER types of draft-22 (MOQT-22 §9.20.9)."""

    NONE = 0x00
    RELATIVE_START = 0x01
    ABSOLUTE_START = 0x02
    ABSOLUTE_START_GROUP_END = 0x03
    ABSOLUTE_RANGE = 0x04
    NEXT_OBJECT = 0x05


@dataclass(frozen=True, slots=True)
class LocationFilter:
    """A LOCATION_FILTER; fields that its type does not carry are 0. Both ends are inclusive."""

    type: LocationFilterType
    start_group: int = 0
    start_object: int = 0
    end_group_delta: int = 0
    end_object: int = 0


NEXT_OBJECT = LocationFilter(LocationFilterType.NEXT_OBJECT)
FROM_START = LocationFilter(LocationFilterType.ABSOLUTE_START, 0, 0)


class RangeFilterType(IntEnum):
    """Parameter types of the Range Filters (MOQT-22 §9.20.10 to §9.20.14)."""

    SUBGROUP = 0x25
    OBJECT_ID = 0x26
    PRIORITY = 0x27
    OBJECT_PROPERTY = 0x28
    TRACK_PROPERTY = 0x29


@dataclass(frozen=True, slots=True)
class RangeFilter:
    """One Range Filter parameter.

    `ranges` are absolute and inclusive (start, end), end None is "no upper bound". No ranges at
    all (`set_id` None) is the zero-length form that removes this type. `invalid` is the reason
    for REQUEST_ERROR INVALID_FILTER when the octets parse but the values break a rule.
    """

    type: RangeFilterType
    set_id: int | None = None
    property_type: int | None = None
    ranges: tuple[tuple[int, int | None], ...] = ()
    invalid: str | None = None
