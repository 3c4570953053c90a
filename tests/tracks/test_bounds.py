"""What a cache remembers besides its Objects is bounded, whatever a publisher sends."""

from __future__ import annotations

from functools import partial

import pytest
from moqt.tracks import CacheBudget, IntervalSet, Known, TrackStore
from moqt.tracks.intervals import key_of
from moqt.tracks.store import GROUP_OVERHEAD, MAX_EMPTY_GROUPS, MAX_RUNS, TRACK_OVERHEAD
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus

from tests.relay.world import make


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
    """Records of Groups are charged, so that small Objects take no more than the budget."""
    budget = CacheBudget(64 << 10)
    store = TrackStore(budget=budget)
    for group in range(1000):
        store.add(item(group))
        assert budget.used <= 64 << 10
    assert len(store._groups) <= 64
    last = Location(999, 0)
    assert Known.PRESENT is store.known(last)
    assert last in [one.location for one in store]


def test_a_store_that_lost_everything_says_so() -> None:
    """The budget takes what is left of a Track too; its owner is told, and gives it up."""
    budget = CacheBudget(TRACK_OVERHEAD + GROUP_OVERHEAD + 300)
    empty: list[TrackStore] = []
    for _ in range(3):
        store = TrackStore(budget=budget)
        store.on_empty = partial(empty.append, store)
        store.add(item(0))
        while empty:
            empty.pop().give_up()
    assert TRACK_OVERHEAD + GROUP_OVERHEAD + 257 == budget.used
    assert 1 == len(budget)


def test_ranges_that_do_not_exist_are_charged() -> None:
    """A flood of them takes the budget's octets, and goes when they are needed."""
    budget = CacheBudget(64 << 10)
    store = TrackStore(budget=budget)
    for number in range(0, 4000, 2):
        store.absent(Location(0, number), Location(0, number))
        assert budget.used <= 64 << 10
    assert Known.UNKNOWN is store.known(Location(0, 0))


def test_ranges_ahead_of_a_reader_stay() -> None:
    """It would ask for them again, and again, if they went before it came to them."""
    store = TrackStore(budget=CacheBudget(0))
    store.standing = lambda: [(key_of(Location(0, 100)), key_of(Location(0, 400)))]
    for number in range(0, 4000, 2):
        store.absent(Location(0, number), Location(0, number))
    assert Known.UNKNOWN is store.known(Location(0, 98))
    assert Known.ABSENT is store.known(Location(0, 100))
    assert Known.ABSENT is store.known(Location(0, 400))
    assert len(store._absent) < 600


def test_looking_for_what_is_unknown_uses_nothing() -> None:
    """A FETCH that is cancelled at once does not change which Objects go first."""
    budget = CacheBudget(TRACK_OVERHEAD + GROUP_OVERHEAD + 2 * 257)
    store = TrackStore(budget=budget)
    store.add(make(0, 0, b"x"))
    store.add(make(0, 1, b"x"))
    assert Location(0, 2) == store.first_unknown(Location(0, 0), Location(9, 0))
    store.add(make(0, 2, b"x"))
    assert [1, 2] == [one.location.object for one in store]


def test_looking_for_what_is_unknown_passes_over_whole_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten thousand Objects in a row are one step."""
    store = TrackStore(budget=CacheBudget(1 << 30))
    for number in range(10_000):
        store.add(make(0, number, b"x"))
    steps: list[int] = []
    look = store.run_from

    def counted(key: int) -> tuple[Known, int]:
        steps.append(key)
        return look(key)

    monkeypatch.setattr(store, "run_from", counted)
    assert Location(0, 10_000) == store.first_unknown(Location(0, 0), Location(9, 0))
    assert [0, 10_000] == steps


def test_looking_for_what_is_unknown_gives_up_in_time() -> None:
    """Where too much lies scattered, a place is named that a publisher may be asked for."""
    store = TrackStore(budget=CacheBudget(1 << 30))
    for number in range(MAX_RUNS):
        store.add(make(0, 2 * number, b"x"))
        store.absent(Location(0, 2 * number + 1), Location(0, 2 * number + 1))
    assert Location(0, MAX_RUNS) == store.first_unknown(Location(0, 0), Location(9, 0))


def test_what_does_not_exist_outlives_its_group() -> None:
    """The end of a Group stays known when its record goes."""
    store = TrackStore(budget=CacheBudget(1 << 30))
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
