"""Missing Locations as FETCH ranges, and named deadlines."""

from __future__ import annotations

import pytest
from kvcs.consumer.ranges import LocationRange, ranges
from kvcs.consumer.timers import Timers
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.names import Location


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ([], []),
        ([(1, 2)], [((1, 2), (1, 2))]),
        ([(0, 1), (0, 0), (0, 2)], [((0, 0), (0, 2))]),
        ([(0, 0), (0, 2)], [((0, 0), (0, 0)), ((0, 2), (0, 2))]),
        ([(0, 2), (1, 0), (1, 1)], [((0, 2), (1, 1))]),
        ([(0, 1), (1, 0)], [((0, 1), (0, 1)), ((1, 0), (1, 0))]),
        ([(0, 2), (2, 0)], [((0, 2), (0, 2)), ((2, 0), (2, 0))]),
    ],
)
def test_neighbours_share_a_range(
    missing: list[tuple[int, int]],
    expected: list[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    """The last of 3 wanted blocks joins the next layer's first; nothing else is bridged."""
    found = ranges([Location(*at) for at in missing], blocks=3)
    assert expected == [(tuple(span.start), tuple(span.end)) for span in found]


def test_a_range_is_an_absolute_range_filter() -> None:
    """MOQT-22 §9: type 0x04, both ends inclusive, the end Group as a difference."""
    span = LocationRange(Location(2, 1), Location(5, 0))
    expected = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 2, 1, 3, 0)
    assert expected == span.filter
    assert Location(3, 9) in span
    assert Location(5, 1) not in span


def test_deadlines_fire_once_in_order_of_time() -> None:
    """A deadline that is set again moves; one set by an action waits for the next call."""
    timers, fired = Timers(), list[str]()
    timers.set("late", 2.0, lambda: fired.append("late"))
    timers.set("moved", 1.0, lambda: fired.append("moved"))
    timers.set("moved", 3.0, lambda: fired.append("moved"))
    timers.set("early", 1.0, lambda: timers.set("again", 1.0, lambda: fired.append("again")))
    timers.set("gone", 1.0, lambda: fired.append("gone"))
    timers.cancel("gone")
    assert 1.0 == timers.next()
    timers.fire(2.0)
    assert ["late"] == fired
    timers.fire(2.0)
    assert ["late", "again"] == fired
    assert 3.0 == timers.next()
