"""Interval sets behave as the sets of integers that they stand for."""

from hypothesis import given
from hypothesis import strategies as st
from moqt.tracks.intervals import IntervalSet, key_of, location_of
from moqt.wire.names import Location

PAIRS = st.tuples(st.integers(0, 40), st.integers(0, 6)).map(lambda pair: (pair[0], sum(pair)))


@given(st.lists(PAIRS, max_size=20))
def test_holds_exactly_what_was_added(pairs: list[tuple[int, int]]) -> None:
    """Membership, neighbours and overlaps agree with a plain set; neighbours are merged."""
    intervals, plain = IntervalSet(), set()
    for start, end in pairs:
        intervals.add(start, end)
        plain |= set(range(start, end + 1))
    assert plain == {key for key in range(50) if key in intervals}
    runs = [key for key in sorted(plain) if key - 1 not in plain]
    assert len(runs) == len(intervals)
    for key in range(50):
        after = [start for start in runs if start > key]
        assert (after[0] if after else None) == intervals.next_start(key)
        before = [end for end in sorted(plain) if end + 1 not in plain and end < key]
        assert (before[-1] if before else None) == intervals.previous_end(key)
        assert intervals.overlaps(key, key + 2) == bool(plain & {key, key + 1, key + 2})


def test_finds_the_interval_of_a_key() -> None:
    """The whole merged interval, or None."""
    intervals = IntervalSet()
    intervals.add(3, 5)
    intervals.add(6, 9)
    assert intervals.find(4) == (3, 9)
    assert intervals.find(10) is None


def test_locations_and_integers_correspond() -> None:
    """The integer form keeps Group and Object ID apart up to 2^64-1."""
    location = Location(7, 2**64 - 1)
    assert location_of(key_of(location)) == location
    assert key_of(location) + 1 == key_of(Location(8, 0))
