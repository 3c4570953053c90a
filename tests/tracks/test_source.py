"""Reading a range: order, gaps, markers, waiting."""

import pytest
from moqt.session import FetchFailed, FetchItem, FetchState
from moqt.tracks import CacheBudget, TrackStore
from moqt.tracks.source import StoreSource
from moqt.wire.names import Location
from moqt.wire.objects import Object, RangeKind, RangeMarker

LAST = 2**64 - 1


def store_of(*locations: tuple[int, int], complete: bool = False) -> TrackStore:
    store = TrackStore(complete=complete)
    for group, number in locations:
        store.add(Object(Location(group, number), 0, 128, b"%d/%d" % (group, number)))
    return store


def drain(source: StoreSource) -> list[tuple[int, int] | RangeMarker | FetchState | FetchFailed]:
    """Items up to and including the first state; Objects as (group, object)."""
    items: list[tuple[int, int] | RangeMarker | FetchState | FetchFailed] = []
    while True:
        item: FetchItem = source.next_item()
        items.append((*item.location,) if isinstance(item, Object) else item)
        if isinstance(item, FetchState | FetchFailed):
            return items


def test_ascending_over_absent_groups() -> None:
    """R143: Groups and Objects ascend; what does not exist leaves no trace."""
    store = store_of((0, 0), (0, 1), (3, 0), (3, 2), complete=True)
    source = StoreSource(store, Location(0, 1), Location(3, 2))
    assert drain(source) == [(0, 1), (3, 0), (3, 2), FetchState.END]


def test_descending_groups_ascending_objects() -> None:
    """R143: Groups descend, the Objects of each ascend; the range cuts both ends."""
    store = store_of((0, 0), (0, 1), (1, 0), (5, 0), (5, 1), (5, 2), complete=True)
    source = StoreSource(store, Location(0, 1), Location(5, 1), descending=True)
    assert drain(source) == [(5, 0), (5, 1), (1, 0), (0, 1), FetchState.END]


def test_descending_skips_absent_groups_at_once() -> None:
    """2^60 Groups that do not exist cost one step, whichever way it is read."""
    store = store_of((2, 0), (2**60, 0), complete=True)
    source = StoreSource(store, Location(0, 0), Location(2**60, LAST), descending=True)
    assert drain(source) == [(2**60, 0), (2, 0), FetchState.END]


def test_unknown_is_never_presented_as_absent() -> None:
    """R144: without anyone to ask, unknown ranges are marked 0x10C."""
    store = store_of((0, 0), (0, 2))
    source = StoreSource(store, Location(0, 0), Location(0, 4))
    assert drain(source) == [
        (0, 0),
        RangeMarker(RangeKind.UNKNOWN, Location(0, 1)),
        (0, 2),
        RangeMarker(RangeKind.UNKNOWN, Location(0, 4)),
        FetchState.END,
    ]


def test_absent_before_unknown_gets_its_own_marker() -> None:
    """R145: 0x8C stands only before another marker, so that this does not cover the absent part."""
    store = store_of((0, 0), (0, 6))
    store.absent(Location(0, 1), Location(0, 2))
    source = StoreSource(store, Location(0, 0), Location(0, 6))
    assert drain(source) == [
        (0, 0),
        RangeMarker(RangeKind.NON_EXISTENT, Location(0, 2)),
        RangeMarker(RangeKind.UNKNOWN, Location(0, 5)),
        (0, 6),
        FetchState.END,
    ]


def test_descending_marks_whole_unknown_groups_at_once() -> None:
    """One marker covers all the unknown Groups down to the next known one."""
    store = store_of((2, 0), (2**60, 0))
    store.end_subgroup(2**60, 0, 0, end_of_group=True)
    source = StoreSource(store, Location(2, 0), Location(2**60, 0), descending=True)
    assert drain(source) == [
        (2**60, 0),
        RangeMarker(RangeKind.UNKNOWN, Location(3, LAST)),
        (2, 0),
        RangeMarker(RangeKind.UNKNOWN, Location(2, LAST)),
        FetchState.END,
    ]


def test_stops_at_the_first_unknown_object() -> None:
    """R228: nothing past a hole is read until the hole is resolved."""
    store = store_of((0, 0), (0, 3))
    asked: list[tuple[Location, Location]] = []
    source = StoreSource(
        store,
        Location(0, 0),
        Location(0, 3),
        resolve=lambda _, start, end: asked.append((start, end)),
    )
    woken: list[int] = []
    source.wake = lambda: woken.append(len(asked))
    assert drain(source) == [(0, 0), FetchState.WAIT]
    assert asked == [(Location(0, 1), Location(0, 2))]
    store.add(Object(Location(0, 1), 0, 128, b"new"))
    store.absent(Location(0, 2), Location(0, 2))
    assert woken == [1]
    assert drain(source) == [(0, 1), (0, 3), FetchState.END]


def test_waits_for_an_object_that_is_arriving() -> None:
    """An Object whose first octets came is waited for; if it fails, its state is unknown again."""
    store = store_of((0, 0))
    store.started(Location(0, 1))
    source = StoreSource(store, Location(0, 0), Location(0, 1))
    assert drain(source) == [(0, 0), FetchState.WAIT]
    store.abandoned(Location(0, 1))
    assert drain(source) == [RangeMarker(RangeKind.UNKNOWN, Location(0, 1)), FetchState.END]


@pytest.mark.parametrize("descending", [False, True])
def test_given_up_and_timed_out_ranges(descending: bool) -> None:
    """FILL_TIMEOUT ends all waiting with 0x20C; what nobody could tell before that is 0x10C."""
    store = store_of((0, 0), (0, 2), (0, 4))
    source = StoreSource(
        store,
        Location(0, 0),
        Location(0, 4),
        descending=descending,
        resolve=lambda one, start, end: one.give_up(start, end) if start.object < 3 else None,
    )
    assert drain(source) == [
        (0, 0),
        RangeMarker(RangeKind.UNKNOWN, Location(0, 1)),
        (0, 2),
        FetchState.WAIT,
    ]
    source.expire()
    assert drain(source) == [
        RangeMarker(RangeKind.TIMED_OUT, Location(0, 3)),
        (0, 4),
        FetchState.END,
    ]


def test_filters_leave_objects_out_without_markers() -> None:
    """With Range Filters a gap says nothing: no marker for what does not exist."""
    store = store_of((0, 0), (0, 1), (0, 2))
    store.absent(Location(0, 3), Location(0, 3))
    source = StoreSource(
        store, Location(0, 0), Location(0, 5), passes=lambda item: item.location.object != 1
    )
    assert drain(source) == [
        (0, 0),
        (0, 2),
        RangeMarker(RangeKind.UNKNOWN, Location(0, 5)),
        FetchState.END,
    ]


def test_failure_ends_reading() -> None:
    """`fail` ends the stream with its code, and closes once."""
    source = StoreSource(store_of((0, 0)), Location(0, 0), Location(0, 0))
    closed: list[bool] = []
    source.on_close = lambda: closed.append(True)
    source.fail(0x12)
    assert drain(source) == [FetchFailed(0x12)]
    source.close()
    assert closed == [True]


def test_an_object_larger_than_the_budget_still_gets_through() -> None:
    """What a reader waits for reaches it, although the cache cannot keep it."""
    budget = CacheBudget(100)
    store = TrackStore(budget=budget)
    source = StoreSource(
        store, Location(0, 0), Location(0, 1), resolve=lambda one, start, end: None
    )
    assert drain(source) == [FetchState.WAIT]
    store.add(Object(Location(0, 0), 0, 128, bytes(1000)))
    assert drain(source) == [(0, 0), FetchState.WAIT]
    store.add(Object(Location(0, 1), 0, 128, bytes(1000)))
    assert drain(source) == [(0, 1), FetchState.END]
    assert [] == list(budget)
