"""Location and Range Filters as values (MOQT-22 §3.3, §8.6, §9.20.9 to §9.20.14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import Location
from moqt.wire.objects import Object
from moqt.wire.properties import find_property
from moqt.wire.varint import U64


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


def resolve(
    location_filter: LocationFilter | None, largest: Location | None, bounded: bool
) -> tuple[Location, Location | None]:
    """First and last Location that a filter selects; both inclusive (MOQT-22 §9.20.9).

    `largest` is the Largest Object when the message is processed, None when nothing was
    published. `bounded` is the reading of FETCH and fill, which never pass Largest; otherwise an
    end of None is open. A start behind the end selects nothing. Never raises: relative starts
    are clamped to 0 .. 2^64-1.
    """
    start = Location(0, 0)
    end: Location | None = None
    match location_filter:
        case None | LocationFilter(type=LocationFilterType.NONE):
            pass
        case LocationFilter(type=LocationFilterType.RELATIVE_START):
            next_group = 0 if largest is None else largest.group + 1
            start = Location(min(U64, max(0, next_group - location_filter.start_group)), 0)
        case LocationFilter(type=LocationFilterType.NEXT_OBJECT):
            if largest is not None:
                start = Location(largest.group, largest.object + 1)
        case _:
            start = Location(location_filter.start_group, location_filter.start_object)
            last_group = start.group + location_filter.end_group_delta
            if location_filter.type is LocationFilterType.ABSOLUTE_START_GROUP_END:
                end = Location(last_group, U64)
            elif location_filter.type is LocationFilterType.ABSOLUTE_RANGE:
                end = Location(last_group, location_filter.end_object)
    if bounded and largest is not None:
        end = largest if end is None else min(end, largest)
    return start, end


def fetch_range(
    location_filter: LocationFilter | None, largest: Location | None
) -> tuple[Location, Location]:
    """First and last Location of a FETCH (MOQT-22 §9.11).

    Raises RequestRefused INVALID_RANGE when nothing was published, the start is behind Largest,
    or the end is before the start.
    """
    start, end = resolve(location_filter, largest, bounded=True)
    if largest is None or end is None:
        raise RequestRefused("nothing was published yet", RequestErrorCode.INVALID_RANGE)
    if start > largest:
        raise RequestRefused(
            f"the range starts at {tuple(start)}, behind the Largest Object {tuple(largest)}",
            RequestErrorCode.INVALID_RANGE,
        )
    if end < start:
        raise RequestRefused(
            f"the range ends at {tuple(end)}, before its start {tuple(start)}",
            RequestErrorCode.INVALID_RANGE,
        )
    return start, end


def fill_range(
    fill_filter: LocationFilter | None,
    subscription_filter: LocationFilter | None,
    largest: Location | None,
) -> tuple[Location, Location] | None:
    """First and last Location of a fill, None when no stream opens (MOQT-22 §3.4.1).

    `fill_filter` is the LOCATION_FILTER inside FILL_PARAMETERS; without one the subscription's
    own filter is evaluated anew.
    """
    chosen = subscription_filter if fill_filter is None else fill_filter
    start, end = resolve(chosen, largest, bounded=True)
    return None if largest is None or end is None or start > end else (start, end)


def check_range_filters(filters: Sequence[RangeFilter], max_ranges: int) -> None:
    """Refuse Range Filters that no request may carry (MOQT-22 §3.3.2, §9.1.6).

    Raises RequestRefused INVALID_FILTER for a filter whose values broke a rule, a repeated
    (type, SetID, Property Type), or more Ranges in sum than `max_ranges`.
    """
    seen = set()
    for one in filters:
        if one.invalid is not None:
            raise RequestRefused(one.invalid, RequestErrorCode.INVALID_FILTER)
        key = (one.type, one.set_id, one.property_type)
        if key in seen:
            raise RequestRefused(
                f"{one.type.name} filter is repeated for SetID {one.set_id}",
                RequestErrorCode.INVALID_FILTER,
            )
        seen.add(key)
    count = sum(len(one.ranges) for one in filters)
    if count > max_ranges:
        raise RequestRefused(
            f"{count} Ranges are more than the {max_ranges} of MAX_FILTER_RANGES",
            RequestErrorCode.INVALID_FILTER,
        )


def updated_range_filters(
    current: Sequence[RangeFilter], update: Sequence[RangeFilter]
) -> tuple[RangeFilter, ...]:
    """The filters after a REQUEST_UPDATE, or inside a fill (MOQT-22 §9.20.10).

    A type that the update names replaces all filters of that type; a zero-length one removes
    them; other types stay.
    """
    named = {one.type for one in update}
    kept = [one for one in current if one.type not in named]
    return tuple(kept + [one for one in update if one.set_id is not None])


def passes(filters: Sequence[RangeFilter], item: Object, track_properties: bytes = b"") -> bool:
    """Whether an Object passes the Range Filters (MOQT-22 §3.3.2).

    Filters of one SetID must all match, one SetID is enough, the Ranges of one filter are
    alternatives. An Object without the Property, or a datagram under a SUBGROUP filter, does not
    match: the draft is silent there.
    """
    return _one_set_matches(filters, item, track_properties)


def track_passes(filters: Sequence[RangeFilter], track_properties: bytes) -> bool:
    """Whether SUBSCRIBE_TRACKS with these filters wants a Track (MOQT-22 §9.20.14).

    Filters on Objects do not matter here: they are decided Object by Object.
    """
    return _one_set_matches(filters, None, track_properties)


def _one_set_matches(
    filters: Sequence[RangeFilter], item: Object | None, track_properties: bytes
) -> bool:
    sets: dict[int, bool] = {}
    for one in filters:
        if one.set_id is not None and sets.get(one.set_id, True):
            sets[one.set_id] = _matches(one, item, track_properties)
    return not sets or True in sets.values()


def _matches(one: RangeFilter, item: Object | None, track_properties: bytes) -> bool:
    subject: int | bytes | None
    if one.type is RangeFilterType.TRACK_PROPERTY:
        subject = find_property(track_properties, one.property_type or 0)
    elif item is None:
        return True
    elif one.type is RangeFilterType.SUBGROUP:
        subject = item.subgroup
    elif one.type is RangeFilterType.OBJECT_ID:
        subject = item.location.object
    elif one.type is RangeFilterType.PRIORITY:
        subject = item.priority
    else:
        subject = find_property(item.properties, one.property_type or 0)
    return isinstance(subject, int) and any(
        start <= subject and (end is None or subject <= end) for start, end in one.ranges
    )
