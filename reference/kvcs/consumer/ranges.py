"""Missing Locations as the fewest ranges that a FETCH can name (KVCS 7.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.names import Location


class LocationRange(NamedTuple):
    """From `start` to `end`, both inclusive."""

    start: Location
    end: Location

    @property
    def filter(self) -> LocationFilter:
        """The LOCATION_FILTER of a FETCH for exactly this range (0x04)."""
        return LocationFilter(
            LocationFilterType.ABSOLUTE_RANGE,
            self.start.group,
            self.start.object,
            self.end.group - self.start.group,
            self.end.object,
        )

    def __contains__(self, location: object) -> bool:
        return isinstance(location, Location) and self.start <= location <= self.end


def ranges(locations: Iterable[Location], blocks: int) -> list[LocationRange]:
    """`locations` as ranges, ascending; the last of `blocks` Objects joins the next Group's first.

    What such a joint passes over, Objects behind the first `blocks`, is excess when it arrives.
    """
    found: list[LocationRange] = []
    for location in sorted(locations):
        if found and _follows(found[-1].end, location, blocks):
            found[-1] = LocationRange(found[-1].start, location)
        else:
            found.append(LocationRange(location, location))
    return found


def _follows(end: Location, location: Location, blocks: int) -> bool:
    if end.group == location.group:
        return location.object == end.object + 1
    return location.group == end.group + 1 and end.object == blocks - 1 and location.object == 0
