"""Sets of integers that mostly come in order, small as long as they do."""

from __future__ import annotations

from bisect import bisect_right

MAX_INTERVALS = 4096
"""Separate intervals that a set keeps."""


class Intervals:
    """A set of integers as disjoint intervals, both ends inclusive; neighbours are merged.

    Above `limit` intervals the lowest is forgotten, or with `closing` the lowest gap between two,
    as if its integers had been added.
    """

    __slots__ = ("_closing", "_ends", "_limit", "_starts")

    def __init__(self, limit: int | None = MAX_INTERVALS, *, closing: bool = False) -> None:
        self._limit = limit
        self._closing = closing
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        """How many intervals there are."""
        return len(self._starts)

    @property
    def largest(self) -> int:
        """The largest member, -1 when empty."""
        return self._ends[-1] if self._ends else -1

    def __contains__(self, value: int) -> bool:
        index = bisect_right(self._starts, value) - 1
        return index >= 0 and value <= self._ends[index]

    def overlaps(self, first: int, last: int) -> bool:
        """Whether a member lies in `first` .. `last`."""
        index = bisect_right(self._starts, last) - 1
        return index >= 0 and self._ends[index] >= first

    def add(self, first: int, last: int) -> None:
        """Add `first` .. `last`."""
        starts, ends = self._starts, self._ends
        if ends and first == ends[-1] + 1:
            ends[-1] = last
            return
        if not ends or first > ends[-1]:
            starts.append(first)
            ends.append(last)
        else:
            low = bisect_right(ends, first - 2)
            high = bisect_right(starts, last + 1)
            if low < high:
                first, last = min(first, starts[low]), max(last, ends[high - 1])
            starts[low:high] = [first]
            ends[low:high] = [last]
        if self._limit is not None and len(starts) > self._limit:
            self._shorten()

    def _shorten(self) -> None:
        del self._starts[1 if self._closing else 0], self._ends[0]
