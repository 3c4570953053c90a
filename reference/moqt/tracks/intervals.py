"""Sets of Locations as intervals of integers.

A Location is handled as the integer `group * 2^64 + object`: the order is the same, and "the rest
of the Group", "these Groups" and "all that follows" are each one interval.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from moqt.session.intervals import Intervals
from moqt.wire.names import Location

LAST_ID = (1 << 64) - 1
LAST_KEY = (1 << 128) - 1

MAX_INTERVALS = 1 << 14
"""Intervals that a relay remembers where forgetting the lowest does no harm."""


def key_of(location: Location) -> int:
    """The integer of a Location."""
    return location[0] << 64 | location[1]


def location_of(key: int) -> Location:
    """The Location of an integer, 0 .. 2^128-1."""
    return Location(key >> 64, key & LAST_ID)


def group_start(group: int) -> int:
    """The integer of the Group's first Location."""
    return group << 64


def group_end(group: int) -> int:
    """The integer of the Group's last Location."""
    return group << 64 | LAST_ID


class IntervalSet(Intervals):
    """The integers of Locations; above a `limit` the lower half of the intervals is forgotten."""

    __slots__ = ()

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The intervals in order."""
        return iter(list(zip(self._starts, self._ends, strict=True)))

    def _shorten(self) -> None:
        half = len(self._starts) // 2
        del self._starts[:half], self._ends[:half]

    def clear(self) -> None:
        """Forget all of them."""
        self._starts.clear()
        self._ends.clear()

    def keep_near(self, spans: Iterable[tuple[int, int]], count: int) -> None:
        """Forget all but those in the spans, and the first `count` from the start of each."""
        kept: set[int] = set()
        for start, end in spans:
            first = bisect_left(self._ends, start)
            last = max(bisect_right(self._starts, end), min(first + count, len(self._ends)))
            kept.update(range(first, last))
        indices = sorted(kept)
        self._starts = [self._starts[index] for index in indices]
        self._ends = [self._ends[index] for index in indices]

    def find(self, key: int) -> tuple[int, int] | None:
        """The interval that holds `key`, or None."""
        index = bisect_right(self._starts, key) - 1
        if index >= 0 and self._ends[index] >= key:
            return self._starts[index], self._ends[index]
        return None

    def next_start(self, key: int) -> int | None:
        """Where the first interval after `key` starts."""
        index = bisect_right(self._starts, key)
        return self._starts[index] if index < len(self._starts) else None

    def previous_end(self, key: int) -> int | None:
        """Where the last interval before `key` ends."""
        index = bisect_left(self._ends, key) - 1
        return self._ends[index] if index >= 0 else None
