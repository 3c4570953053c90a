"""What a cache remembers besides its Objects is bounded, whatever a publisher sends."""

from __future__ import annotations

from moqt.tracks import CacheBudget, IntervalSet, Known, TrackStore
from moqt.tracks.store import MAX_EMPTY_GROUPS
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus


def item(group: int, status: ObjectStatus = ObjectStatus.NORMAL) -> Object:
    """Object 0 of a Group."""
    payload = b"x" if status is ObjectStatus.NORMAL else b""
    return Object(Location(group, 0), 0, 128, payload, status)


def test_a_limited_set_forgets_what_lies_lowest() -> None:
    """The upper half stays, whole and in order."""
    some = IntervalSet(4)
    for start in (0, 10, 20, 30, 40):
        some.add(start, start + 1)
    assert [(20, 21), (30, 31), (40, 41)] == list(some)


def test_neighbours_count_once() -> None:
    """A set that grows in order never comes to its limit."""
    some = IntervalSet(1)
    for key in range(100):
        some.add(key, key)
    assert [(0, 99)] == list(some)


def test_groups_without_objects_are_forgotten_in_time() -> None:
    """A cache of one Object keeps no record per Group for ever."""
    store = TrackStore(budget=CacheBudget(300))
    for group in range(2 * MAX_EMPTY_GROUPS + 1):
        store.add(item(group))
    assert len(store._groups) <= MAX_EMPTY_GROUPS
    last = Location(2 * MAX_EMPTY_GROUPS, 0)
    assert Known.PRESENT is store.known(last)
    assert [last] == [one.location for one in store]


def test_what_does_not_exist_outlives_its_group() -> None:
    """The end of a Group stays known when its record goes."""
    store = TrackStore(budget=CacheBudget(300))
    for group in range(MAX_EMPTY_GROUPS + 1):
        store.add(item(group, ObjectStatus.END_OF_GROUP))
    assert 1 == len(store._groups)
    assert Known.ABSENT is store.known(Location(0, 0))


def test_a_publisher_forgets_nothing_of_its_own() -> None:
    """Without a budget the store is the Track."""
    store = TrackStore(complete=True)
    for group in range(MAX_EMPTY_GROUPS + 2):
        store.add(item(group))
    assert MAX_EMPTY_GROUPS + 2 == len(list(store))
