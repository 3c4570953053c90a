"""What is known of one Track: Objects, what is on its way, and what does not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from moqt.tracks.budget import CacheBudget, Entry, Notes
from moqt.tracks.groups import GroupRecord, Groups, MalformedTrack, check_same
from moqt.tracks.intervals import (
    LAST_ID,
    LAST_KEY,
    MAX_INTERVALS,
    IntervalSet,
    group_end,
    group_start,
    key_of,
    location_of,
)
from moqt.tracks.known import Known, Reader
from moqt.wire.errors import RemoteProtocolError
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, find_property, object_defect

MAX_EMPTY_GROUPS = 4096
"""Groups of a cached Track that are remembered although nothing of them is held."""

TRACK_OVERHEAD = 4096
GROUP_OVERHEAD = 1024
INTERVAL_OVERHEAD = 128
"""Octets that a Track, a Group and a range that does not exist cost in a cache."""

MAX_RUNS = 1024
"""Steps of one look for what is unknown: asking a publisher costs less than more of them."""

NEAR = 256
"""Ranges ahead of a reader that it may still need."""


class TrackStore:
    """The Objects of one Track and the state of every other Location of it.

    Without a budget nothing is evicted and nothing expires: that is an original publisher's
    store, and with `complete` whatever it does not hold does not exist. With one, it is a cache:
    `clock` gives the time in seconds, and Objects expire `max_cache_duration` milliseconds after
    they began to arrive (MOQT-22 §10.3); an expired Object is unknown. `standing` tells of
    each reader where it is and up to where all is kept for it; `on_empty` is called when the
    budget took all.
    """

    def __init__(
        self,
        *,
        budget: CacheBudget | None = None,
        clock: Callable[[], float] = float,
        complete: bool = False,
    ) -> None:
        self.max_cache_duration: int | None = None
        self.largest: Location | None = None
        self.top: Location | None = None
        self.end: Location | None = None
        self.readers: set[Reader] = set()
        self.standing: Callable[[], Iterable[tuple[int, int]]] = tuple
        self.on_empty: Callable[[], None] = _nothing
        self._budget = budget
        self._clock = clock
        self._complete = complete
        self._groups = Groups()
        self._absent = IntervalSet()
        self._forbidden = IntervalSet(None if budget is None else MAX_INTERVALS)
        self._sweep_at = MAX_EMPTY_GROUPS
        self._arriving: dict[int, float] = {}
        self._notes = Notes(self)

    # Learning

    def started(self, location: Location) -> None:
        """The Object's first octets arrived (MOQT-22 §3.1.4)."""
        self._arriving.setdefault(key_of(location), self._clock())

    def abandoned(self, location: Location) -> None:
        """The rest of an Object that had started will not come this way."""
        key = key_of(location)
        if self._arriving.pop(key, None) is not None:
            self._changed(key, key)

    def published(self, location: Location) -> None:
        """Let Largest Object grow to `location` if it is larger."""
        if self.largest is None or location > self.largest:
            self.largest = location

    def add(self, item: Object, readers: Iterable[Reader] = ()) -> bool:
        """Keep an Object, or what its status says; `readers` come to it soon.

        False: the Object is known not to exist, and is neither kept nor to be forwarded. Raises
        MalformedTrack; the Object is not kept then (MOQT-22 §12.1).
        """
        key = key_of(item.location)
        began = self._arriving.pop(key, None)
        try:
            return self._add(key, item, self._clock() if began is None else began, readers)
        except MalformedTrack:
            self._changed(key, key)
            raise
        finally:
            self._account()

    def end_subgroup(
        self, group: int, subgroup: int, last: int, *, end_of_group: bool = False
    ) -> None:
        """The subgroup's final Object is `last`; with `end_of_group` it is the Group's too.

        Raises MalformedTrack.
        """
        record = self._group(group)
        record.end_subgroup(subgroup, last)
        if end_of_group:
            self._end_group(record, last + 1)
        self._account()

    def end_track(self, location: Location) -> None:
        """No Object exists at or after `location`. Raises MalformedTrack."""
        if self.top is not None and self.top >= location:
            raise MalformedTrack(f"{self.top} exists, beyond the End of Track at {location}")
        if self.end is None or location < self.end:
            self.end = location
            self._forbid(key_of(location), LAST_KEY)

    def absent(self, start: Location, end: Location) -> None:
        """A publisher says that nothing more exists from `start` to `end`, both inclusive.

        Objects that are held or arriving stay.
        """
        at, last = key_of(start), key_of(end)
        while at <= last:
            known, run_end = self.run_from(at)
            if known is Known.UNKNOWN:
                self._absent.add(at, min(run_end, last))
            at = run_end + 1
        self._changed(key_of(start), last)
        self._account()

    # Asking

    def get(self, location: Location) -> Object | None:
        """The Object, if it is held and not expired."""
        entry = self.entry(key_of(location))
        return None if entry is None else entry.object

    def entry(self, key: int) -> Entry | None:
        """The entry at an integer Location; using it keeps it longer."""
        entry = self._groups.entry(key)
        if entry is None or self._budget is None:
            return entry
        if self._drop_expired(entry):
            return None
        self._budget.touched(entry)
        return entry

    def _present(self, key: int | None) -> bool:
        """Whether an Object is held there; looking does not keep it longer."""
        entry = None if key is None else self._groups.entry(key)
        return entry is not None and not self._drop_expired(entry)

    def known(self, location: Location) -> Known:
        """What is known of a Location."""
        return self.run_from(key_of(location))[0]

    def run_from(self, key: int) -> tuple[Known, int]:
        """The state at `key`, and the last integer Location up to which it is surely the same."""
        if key in self._arriving:
            return Known.ARRIVING, key
        if self._present(key):
            group, number = key >> 64, key & LAST_ID
            return Known.PRESENT, group_start(group) + self._groups[group].run_end(number)
        absent = self._absent.find(key)
        if absent is not None:
            return Known.ABSENT, absent[1]
        bounds = [LAST_KEY + 1, *(at for at in self._arriving if at > key)]
        held = self._groups.next(key)
        while held is not None and not self._present(held):
            held = self._groups.next(key)
        bounds += [at for at in (self._absent.next_start(key), held) if at is not None]
        return (Known.ABSENT if self._complete else Known.UNKNOWN), min(bounds) - 1

    def run_to(self, key: int) -> tuple[Known, int]:
        """The state at `key`, and the first integer Location from which it is the same."""
        if key in self._arriving:
            return Known.ARRIVING, key
        if self._present(key):
            return Known.PRESENT, key
        absent = self._absent.find(key)
        if absent is not None:
            return Known.ABSENT, absent[0]
        bounds = [-1, *(at for at in self._arriving if at < key)]
        held = self._groups.previous(key)
        while held is not None and not self._present(held):
            held = self._groups.previous(key)
        bounds += [at for at in (self._absent.previous_end(key), held) if at is not None]
        return (Known.ABSENT if self._complete else Known.UNKNOWN), max(bounds) + 1

    def first_unknown(self, start: Location, end: Location) -> Location | None:
        """The first Location from `start` to `end` whose state is not surely known."""
        at, last = key_of(start), key_of(end)
        for _ in range(MAX_RUNS):
            known, run_end = self.run_from(at)
            if known is Known.UNKNOWN:
                return location_of(at)
            if run_end >= last:
                return None
            at = run_end + 1
        return location_of(at)

    def last_object(self, end: Location) -> Location | None:
        """The last Location up to `end` where an Object is held."""
        at = self._groups.previous(key_of(end) + 1)
        return None if at is None else location_of(at)

    def __iter__(self) -> Iterator[Object]:
        """All Objects held, in order."""
        for record in self._groups:
            yield from (record.entries[number].object for number in record.ids)

    # The budget's side

    def evict(self, entry: Entry) -> None:
        """Forget an Object; its Location is unknown from now on."""
        location = entry.object.location
        record = self._groups[location.group]
        record.remove(location.object)
        if self._budget is not None:
            self._budget.removed(entry)
            if not record.ids:
                self._budget.loosen(self._notes)

    def trim(self) -> None:
        """Forget what was said besides Objects, as far as no reader needs it."""
        self._groups.sweep()
        self._forbidden.clear()
        self._absent.keep_near(self.standing(), NEAR)
        self._account()
        if not self._groups and not self._absent:
            self.on_empty()

    def give_up(self) -> None:
        """The store is not used any more."""
        self.clear()

    def clear(self) -> None:
        """Forget all Objects, and all that they or a publisher said."""
        for record in self._groups:
            for entry in tuple(record.entries.values()):
                self.evict(entry)
        self._groups.clear()
        self._absent.clear()
        self._forbidden.clear()
        self._arriving.clear()
        self.top = self.end = None
        self._changed(0, LAST_KEY)
        self._account()

    def pin(self, entry: Entry) -> None:
        """A reader holds the entry."""
        if self._budget is not None:
            self._budget.pin(entry)

    def unpin(self, entry: Entry) -> None:
        """A reader is done with the entry."""
        if self._budget is not None:
            self._budget.unpin(entry)

    def keep(self, entry: Entry) -> bool:
        """Hold the entry for a reader that comes to it soon, if there is room."""
        return self._budget is not None and self._budget.keep(entry)

    def unkeep(self, entry: Entry) -> None:
        """The reader came to it, or is gone."""
        if self._budget is not None:
            self._budget.unkeep(entry)

    # Inside

    def _add(self, key: int, item: Object, began: float, readers: Iterable[Reader]) -> bool:
        group, number = item.location
        record = self._group(group)
        if item.status is not ObjectStatus.NORMAL:
            return self._add_status(record, item)
        if key in self._forbidden:
            raise MalformedTrack(f"an Object at {item.location}, where a publisher said none is")
        record.check(item)
        held = record.entries.get(number)
        if held is not None:
            check_same(held.object, item)
            return True
        if key in self._absent:
            return False
        if item.properties:
            self._learn_properties(record, item)
        record.insert(number, item, entry := Entry(self, item, began))
        if self.top is None or item.location > self.top:
            self.top = item.location
        for reader in [reader for reader in self.readers if reader.waits_at == key]:
            reader.arrived(entry)
        for reader in readers:
            reader.comes(entry)
        if self._budget is not None:
            self._budget.added(entry)
        return True

    def _add_status(self, record: GroupRecord, item: Object) -> bool:
        if item.status is ObjectStatus.END_OF_TRACK:
            self.end_track(item.location)
        else:
            self._end_group(record, item.location.object)
        return True

    def _end_group(self, record: GroupRecord, end: int) -> None:
        if record.top >= end:
            raise MalformedTrack(
                f"Object {record.top} of Group {record.group} exists, beyond its end at {end}"
            )
        if end <= LAST_ID and (record.end is None or end < record.end):
            record.end = end
            self._forbid(group_start(record.group) + end, group_end(record.group))

    def _learn_properties(self, record: GroupRecord, item: Object) -> None:
        try:
            defect = object_defect(item.location, item.properties)
        except RemoteProtocolError as error:
            defect = error.reason
        if defect is not None:
            raise MalformedTrack(f"{defect} (Object at {item.location})")
        group_gap = find_property(item.properties, PropertyType.PRIOR_GROUP_ID_GAP)
        object_gap = find_property(item.properties, PropertyType.PRIOR_OBJECT_ID_GAP)
        start = group_start(record.group)
        if isinstance(group_gap, int):
            if record.group_gap not in (None, group_gap):
                raise MalformedTrack(
                    f"gaps of {record.group_gap} and {group_gap} Groups before Group {record.group}"
                )
            record.group_gap = group_gap
            if group_gap:
                self._announce_gap(group_start(record.group - group_gap), start - 1)
        if isinstance(object_gap, int) and object_gap:
            here = start + item.location.object
            self._announce_gap(here - object_gap, here - 1)

    def _announce_gap(self, start: int, end: int) -> None:
        held = self._groups.next(start - 1)
        if held is not None and held <= end:
            raise MalformedTrack(f"a gap over the Object at {location_of(held)}")
        self._forbid(start, end)

    def _forbid(self, start: int, end: int) -> None:
        self._forbidden.add(start, end)
        self._absent.add(start, end)
        self._changed(start, end)

    def _changed(self, start: int, end: int) -> None:
        for reader in [
            reader
            for reader in self.readers
            if reader.waits_at is not None and start <= reader.waits_at <= end
        ]:
            reader.changed()

    def _group(self, group: int) -> GroupRecord:
        record = self._groups.get(group)
        if record is None:
            if self._budget is not None and len(self._groups) >= self._sweep_at:
                self._groups.sweep()
                self._sweep_at = max(MAX_EMPTY_GROUPS, 2 * len(self._groups))
            record = self._groups.make(group)
        return record

    def _account(self) -> None:
        """Charge what the store takes besides its Objects."""
        if self._budget is not None:
            intervals = len(self._absent) + len(self._forbidden)
            size = GROUP_OVERHEAD * len(self._groups) + INTERVAL_OVERHEAD * intervals
            size += TRACK_OVERHEAD if size else 0
            if size != self._notes.size:
                self._budget.resize(self._notes, size)

    def _drop_expired(self, entry: Entry) -> bool:
        """Forget the Object if it is expired."""
        expired = self._budget is not None and self._expired(entry)
        if expired:
            self.evict(entry)
        return expired

    def _expired(self, entry: Entry) -> bool:
        duration = self.max_cache_duration
        return duration is not None and (self._clock() - entry.began) * 1000 > duration


def _nothing() -> None:
    """The default `on_empty`."""
