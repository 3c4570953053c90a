"""Sets of Locations as intervals of integers.

A Location is handled as the integer `group * 2^64 + object`: the order is the same, and "the rest
of the Group", "these Groups" and "all that follows" are each one interval.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

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


class IntervalSet:
    """Disjoint intervals, both ends inclusive; neighbours are merged.

    With a `limit`, the lower half of them is forgotten whenever there are more.
    """

    __slots__ = ("_ends", "_limit", "_starts")

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The intervals in order."""
        return iter(list(zip(self._starts, self._ends, strict=True)))

    def __len__(self) -> int:
        """How many intervals there are."""
        return len(self._starts)

    def __contains__(self, key: int) -> bool:
        index = bisect_right(self._starts, key) - 1
        return index >= 0 and self._ends[index] >= key

    def add(self, start: int, end: int) -> None:
        """Include everything from `start` to `end`."""
        starts, ends = self._starts, self._ends
        if ends and ends[-1] == start - 1:
            ends[-1] = end
            return
        first = bisect_left(ends, start - 1)
        last = bisect_right(starts, end + 1)
        if first < last:
            start = min(start, starts[first])
            end = max(end, ends[last - 1])
        starts[first:last] = [start]
        ends[first:last] = [end]
        if self._limit is not None and len(starts) > self._limit:
            del starts[: len(starts) // 2]
            del ends[: len(ends) // 2]

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

    def overlaps(self, start: int, end: int) -> bool:
        """Whether any key from `start` to `end` is in the set."""
        index = bisect_right(self._starts, end) - 1
        return index >= 0 and self._ends[index] >= start

    def next_start(self, key: int) -> int | None:
        """Where the first interval after `key` starts."""
        index = bisect_right(self._starts, key)
        return self._starts[index] if index < len(self._starts) else None

    def previous_end(self, key: int) -> int | None:
        """Where the last interval before `key` ends."""
        index = bisect_left(self._ends, key) - 1
        return self._ends[index] if index >= 0 else None
