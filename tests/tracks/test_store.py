"""What a store knows of a Track, and which Objects make the Track malformed."""

import pytest
from moqt.tracks import CacheBudget, Known, MalformedTrack, TrackStore
from moqt.tracks.store import GROUP_OVERHEAD, TRACK_OVERHEAD
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import encode_properties

LAST = 2**64 - 1
EMPTY = TRACK_OVERHEAD + GROUP_OVERHEAD


class Clock:
    """Virtual seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(
    group: int,
    number: int,
    payload: bytes = b"x",
    *,
    subgroup: int | None = 0,
    priority: int = 128,
    properties: bytes = b"",
    status: ObjectStatus = ObjectStatus.NORMAL,
) -> Object:
    return Object(Location(group, number), subgroup, priority, payload, status, properties)


def test_unknown_until_it_arrives() -> None:
    """A Location is unknown, then arriving, then present; giving up makes it unknown again."""
    store = TrackStore()
    location = Location(1, 2)
    assert store.known(location) is Known.UNKNOWN
    store.started(location)
    assert store.known(location) is Known.ARRIVING
    store.abandoned(location)
    assert store.known(location) is Known.UNKNOWN
    store.started(location)
    assert store.add(make(1, 2))
    assert store.known(location) is Known.PRESENT


def test_every_field_is_kept() -> None:
    """R205: a held Object is the very Object that came, every field included."""
    store = TrackStore()
    item = make(1, 2, b"payload", subgroup=3, priority=7, properties=encode_properties([(0x78, 5)]))
    store.add(item)
    assert store.get(Location(1, 2)) is item


def test_end_of_group_status_makes_the_rest_absent() -> None:
    """No Object exists from an End of Group status on, in that Group only."""
    store = TrackStore()
    store.add(make(0, 0))
    store.add(make(0, 1, b"", status=ObjectStatus.END_OF_GROUP))
    assert store.run_from(1) == (Known.ABSENT, LAST)
    assert store.known(Location(1, 0)) is Known.UNKNOWN


def test_end_of_track_status_makes_all_the_rest_absent() -> None:
    """No Object exists at or after an End of Track status."""
    store = TrackStore()
    store.add(make(0, 0))
    store.add(make(2, 0, b"", status=ObjectStatus.END_OF_TRACK))
    assert store.known(Location(1, 0)) is Known.UNKNOWN
    assert store.known(Location(2, 0)) is Known.ABSENT
    assert store.known(Location(LAST, LAST)) is Known.ABSENT
    assert store.end == Location(2, 0)


def test_subgroup_that_ends_its_group() -> None:
    """END_OF_GROUP in a subgroup header counts once its final Object is known."""
    store = TrackStore()
    store.add(make(0, 0))
    store.add(make(0, 1))
    store.end_subgroup(0, 0, 1, end_of_group=True)
    assert store.run_from(2) == (Known.ABSENT, LAST)


def test_gap_properties_announce_absence() -> None:
    """PRIOR_OBJECT_ID_GAP and PRIOR_GROUP_ID_GAP say what never exists."""
    store = TrackStore()
    store.add(make(5, 3, properties=encode_properties([(0x3C, 2), (0x3E, 2)])))
    assert store.known(Location(5, 0)) is Known.UNKNOWN
    assert store.known(Location(5, 1)) is Known.ABSENT
    assert store.known(Location(5, 2)) is Known.ABSENT
    assert store.known(Location(3, 0)) is Known.ABSENT
    assert store.known(Location(4, LAST)) is Known.ABSENT
    assert store.known(Location(2, LAST)) is Known.UNKNOWN


def test_late_object_in_a_fetched_gap_is_left_out() -> None:
    """R204: an Object that a publisher said does not exist is not kept, and that is no error."""
    store = TrackStore()
    store.add(make(0, 0))
    store.absent(Location(0, 0), Location(0, 9))
    assert not store.add(make(0, 4))
    assert store.known(Location(0, 4)) is Known.ABSENT
    assert store.known(Location(0, 0)) is Known.PRESENT


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (make(1, 0, b"one"), make(1, 0, b"two")),
        (make(1, 0), make(1, 0, subgroup=1)),
        (make(1, 0), make(1, 0, subgroup=None)),
        (make(1, 0), make(1, 0, priority=1)),
        (make(1, 0), make(1, 1, priority=1)),
        (
            make(1, 0, properties=encode_properties([(0x0B, encode_properties([(0x78, 1)]))])),
            make(1, 0, properties=encode_properties([(0x0B, encode_properties([(0x78, 2)]))])),
        ),
        (make(0, 1, b"", status=ObjectStatus.END_OF_GROUP), make(0, 1)),
        (make(0, 4), make(0, 4, b"", status=ObjectStatus.END_OF_GROUP)),
        (make(0, 4, b"", status=ObjectStatus.END_OF_TRACK), make(1, 0)),
        (make(3, 0), make(2, 0, b"", status=ObjectStatus.END_OF_TRACK)),
        (make(1, 4, properties=encode_properties([(0x3E, 2)])), make(1, 3)),
        (make(1, 3), make(1, 4, properties=encode_properties([(0x3E, 2)]))),
        (make(1, 3), make(2, 0, properties=encode_properties([(0x3C, 1)]))),
        (
            make(9, 0, properties=encode_properties([(0x3C, 1)])),
            make(9, 1, properties=encode_properties([(0x3C, 2)])),
        ),
    ],
)
def test_contradictions_make_the_track_malformed(first: Object, second: Object) -> None:
    """R203, R182, R176, R177: the second Object breaks a rule of MOQT-22 §12.1; it is not kept."""
    store = TrackStore()
    store.add(first)
    with pytest.raises(MalformedTrack):
        store.add(second)
    kept = [first] if first.status is ObjectStatus.NORMAL else []
    assert kept == list(store)


@pytest.mark.parametrize(
    "properties",
    [[(0x3E, 3)], [(0x3C, 2)], [(0x3E, 1), (0x3E, 1)], [(0x4000, 1)], [(0x0B, b"\x01")]],
)
def test_properties_that_make_the_track_malformed(
    properties: list[tuple[int, int | bytes]],
) -> None:
    """R175, R176, R177: a gap larger than its ID, repeated, a mandatory or broken property."""
    store = TrackStore()
    with pytest.raises(MalformedTrack):
        store.add(make(1, 2, properties=encode_properties(properties)))
    assert [] == list(store)


def test_same_object_twice_is_fine() -> None:
    """R207: an equal duplicate, of another publisher say, changes nothing; payload views count."""
    store = TrackStore()
    store.add(make(0, 0, b"same"))
    assert store.add(Object(Location(0, 0), 0, 128, memoryview(b"same")))
    assert len(list(store)) == 1


def test_object_after_the_final_one_of_its_subgroup() -> None:
    """An Object after the subgroup's FIN, or another final Object, makes the Track malformed."""
    store = TrackStore()
    store.add(make(0, 0))
    store.add(make(0, 1))
    store.end_subgroup(0, 0, 1)
    store.end_subgroup(0, 0, 1)
    with pytest.raises(MalformedTrack):
        store.add(make(0, 2))
    with pytest.raises(MalformedTrack):
        store.end_subgroup(0, 0, 0)
    assert store.add(make(0, 2, subgroup=2))


def test_expired_is_unknown() -> None:
    """R170: MAX_CACHE_DURATION counts from when the Object began to arrive; then it is unknown."""
    clock = Clock()
    store = TrackStore(budget=CacheBudget(10**6), clock=clock)
    store.max_cache_duration = 5000
    store.started(Location(0, 0))
    clock.now = 3.0
    store.add(make(0, 0))
    clock.now = 5.0
    assert store.known(Location(0, 0)) is Known.PRESENT
    clock.now = 5.001
    assert store.known(Location(0, 0)) is Known.UNKNOWN
    assert store.get(Location(0, 0)) is None


def test_least_recently_used_goes_first() -> None:
    """Over the budget the Object that was unused longest is evicted: unknown, not absent."""
    budget = CacheBudget(2 * EMPTY + 3 * (256 + 1000))
    one, two = TrackStore(budget=budget), TrackStore(budget=budget)
    one.add(make(0, 0, bytes(1000)))
    two.add(make(0, 0, bytes(1000)))
    one.add(make(0, 1, bytes(1000)))
    assert one.get(Location(0, 0)) is not None
    two.add(make(0, 1, bytes(1000)))
    assert two.known(Location(0, 0)) is Known.UNKNOWN
    assert one.known(Location(0, 0)) is Known.PRESENT
    assert budget.used == 2 * EMPTY + 3 * 1256
    two.clear()
    assert (2, EMPTY + 2 * 1256) == (len(budget), budget.used)


def test_pinned_objects_stay() -> None:
    """An Object that a reader holds is not evicted; once released it may go."""
    budget = CacheBudget(EMPTY + 1256)
    store = TrackStore(budget=budget)
    store.add(make(0, 0, bytes(1000)))
    entry = store.entry(0)
    assert entry is not None
    store.pin(entry)
    store.add(make(0, 1, bytes(1000)))
    assert store.known(Location(0, 0)) is Known.PRESENT
    assert store.known(Location(0, 1)) is Known.UNKNOWN
    store.unpin(entry)
    assert store.known(Location(0, 0)) is Known.PRESENT


def test_complete_store_knows_everything() -> None:
    """In an original publisher's store what is not held does not exist."""
    store = TrackStore(complete=True)
    store.add(make(0, 0))
    store.add(make(2, 5))
    assert store.known(Location(1, 3)) is Known.ABSENT
    assert store.first_unknown(Location(0, 0), Location(LAST, LAST)) is None
    assert store.last_object(Location(2, 4)) == Location(0, 0)
    assert store.last_object(Location(9, 9)) == Location(2, 5)
