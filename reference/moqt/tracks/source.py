"""A range of a Track read from its store, item by item, for a fetch or fill stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from moqt.session import FetchFailed, FetchItem, FetchState
from moqt.tracks.budget import Entry
from moqt.tracks.intervals import IntervalSet, group_end, group_start, key_of, location_of
from moqt.tracks.known import Known
from moqt.tracks.store import TrackStore
from moqt.wire.names import Location
from moqt.wire.objects import Object, RangeKind, RangeMarker

Resolver: TypeAlias = "Callable[[StoreSource, Location, Location], None]"


class StoreSource:
    """Reads `start` to `end`, both inclusive, Groups ascending or descending (MOQT-22 §3.2).

    Stops at a Location that is arriving, and at one of unknown state. For the latter it calls
    `resolve(source, start, end)` with the unknown range once it gets there; whoever resolves adds
    to the store, or calls `give_up` for what nobody can tell, `expire` when the time is over, or
    `fail`. `wake` is called when reading can go on. `passes` is the Range Filters' verdict on an
    Object. `on_read` sees each Object that is read; `on_wait` is called before WAIT, `on_close`
    at the end, whichever way it came; `close` releases what is held.
    """

    def __init__(
        self,
        store: TrackStore,
        start: Location,
        end: Location,
        *,
        descending: bool = False,
        passes: Callable[[Object], bool] | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        self.waits_at: int | None = None
        self.wake: Callable[[], None] = _nothing
        self.on_read: Callable[[Object], None] = _ignore
        self.on_wait: Callable[[], None] = _nothing
        self.on_close: Callable[[], None] = _nothing
        self._store = store
        self._start = key_of(start)
        self._end = key_of(end)
        self._descending = descending
        self._passes = passes
        self._resolve = resolve
        self._given_up = IntervalSet()
        self._timed_out = False
        self._reading = False
        self._failed: FetchFailed | None = None
        self._sent: Entry | None = None
        self._arrived: Entry | None = None
        self._kept: dict[int, Entry] = {}
        self._kept_to = 0
        # Whether something that does not exist lies between the last item and here.
        self._skipped = False
        self._marker: RangeMarker | None = None
        self._group = (self._end if descending else self._start) >> 64
        self._at = max(self._start, group_start(self._group)) if descending else self._start
        self._done = self._start > self._end
        self._closed = False

    @property
    def position(self) -> Location:
        """The Location that is read next."""
        return location_of(self._at)

    @property
    def span(self) -> tuple[int, int]:
        """The integer Locations that is read next, and up to which Objects are kept for us."""
        return self._at, max(self._at, self._kept_to if self._kept else 0)

    def next_item(self) -> FetchItem:
        """The next Object or marker; WAIT until `wake`; END; or why reading failed."""
        self._release()
        self._reading = True
        try:
            while True:
                if self._failed is not None:
                    self.close()
                    return self._failed
                if self._marker is not None:
                    marker, self._marker = self._marker, None
                    return marker
                if self._done:
                    self.close()
                    return FetchState.END
                item = self._step()
                if item is not None:
                    return item
        finally:
            self._reading = False

    def shorten(self, end: Location) -> None:
        """The range ends at `end` already."""
        self._end = min(self._end, key_of(end))
        if self._at > self._end:
            self._done = True
            self.changed()

    def give_up(self, start: Location, end: Location) -> None:
        """Nobody can tell what is in this range: where it is unknown, it is marked so."""
        self._given_up.add(key_of(start), key_of(end))
        self.changed()

    def expire(self) -> None:
        """Wait for nothing from now on: what is not here is marked as timed out."""
        self._timed_out = True
        self.changed()

    def fail(self, code: int) -> None:
        """End with a reset."""
        self._failed = FetchFailed(code)
        self.changed()

    def close(self) -> None:
        """The reader is gone."""
        self._done = True
        if self._closed:
            return
        self._closed = True
        self._wait_at(None)
        self.on_close()
        self._release()
        if self._arrived is not None:
            self._store.unpin(self._arrived)
            self._arrived = None
        while self._kept:
            self._store.unkeep(self._kept.popitem()[1])

    def arrived(self, entry: Entry) -> None:
        """The Object that is waited for; kept until it is handed out, whatever the budget."""
        self._arrived = entry
        self._store.pin(entry)
        self.changed()

    def comes(self, entry: Entry) -> None:
        """An Object that was asked for on our behalf: it stays until we have come to it.

        Else a cache that is smaller than what comes at once would have it fetched again.
        """
        key = key_of(entry.object.location)
        ahead = self._at <= key <= self._limit and not self._done
        if ahead and key not in self._kept and self._store.keep(entry):
            self._kept[key] = entry
            self._kept_to = max(self._kept_to, key)

    def changed(self) -> None:
        """Go on reading."""
        self._wait_at(None)
        if not self._reading:
            self.wake()

    def _step(self) -> FetchItem | None:
        """Look at the run that starts here: an item, or None after passing over it."""
        entry = self._take_arrived() or self._store.entry(self._at)
        kept = self._kept.pop(self._at, None)
        if entry is not None:
            self._advance(self._at)
            item = self._hand_out(entry)
        if kept is not None:
            self._store.unkeep(kept)
        if entry is not None:
            return item
        known, run_end = self._store.run_from(self._at)
        run_end = min(run_end, self._limit)
        if known is Known.ABSENT:
            self._pass_over(run_end)
            return None
        if self._timed_out:
            return self._mark(RangeKind.TIMED_OUT, run_end)
        if known is Known.UNKNOWN:
            given_up = self._given_up.find(self._at)
            if given_up is not None:
                return self._mark(RangeKind.UNKNOWN, min(run_end, given_up[1]))
            if self._resolve is None:
                return self._mark(RangeKind.UNKNOWN, run_end)
        self._wait_at(self._at)
        if known is Known.UNKNOWN and self._resolve is not None:
            start = self._at if not self._descending else self._unknown_start()
            self._resolve(self, location_of(start), location_of(run_end))
            if self.waits_at is None:
                return None
        self.on_wait()
        return FetchState.WAIT

    def _wait_at(self, key: int | None) -> None:
        """Be told of news at `key`, or of none."""
        self.waits_at = key
        if key is None:
            self._store.readers.discard(self)
        else:
            self._store.readers.add(self)

    def _hand_out(self, entry: Entry) -> Object | None:
        item = entry.object
        self.on_read(item)
        if self._passes is not None and not self._passes(item):
            return None
        self._sent = entry
        self._store.pin(entry)
        self._skipped = False
        return item

    def _mark(self, kind: RangeKind, run_end: int) -> RangeMarker:
        """Mark the run; before it, what does not exist, so that the marker does not cover it."""
        before = self._at - 1
        if self._descending and self._at == group_start(self._group) and run_end == self._limit:
            run_end = self._extend_down()
        marker = RangeMarker(kind, location_of(run_end))
        self._advance(run_end)
        if self._skipped and self._passes is None and not self._descending:
            self._marker = marker
            marker = RangeMarker(RangeKind.NON_EXISTENT, location_of(before))
        self._skipped = False
        return marker

    def _pass_over(self, run_end: int) -> None:
        self._skipped = True
        self._advance(run_end)

    @property
    def _limit(self) -> int:
        """The last integer Location of the range, or of this Group when descending."""
        return min(self._end, group_end(self._group)) if self._descending else self._end

    def _advance(self, passed: int) -> None:
        """Everything of this Group (descending) or of the range up to `passed` is done."""
        if passed < self._limit:
            self._at = passed + 1
        elif not self._descending or group_start(self._group) <= self._start:
            self._done = True
        else:
            self._next_group_down()

    def _next_group_down(self) -> None:
        """Go to the next lower Group, past Groups of which nothing exists."""
        before = group_start(self._group) - 1
        known, start = self._store.run_to(before)
        self._group -= 1
        if known is Known.ABSENT:
            whole = -(-start >> 64)
            if start <= self._start:
                self._done = True
                return
            if whole <= self._group:
                self._skipped = True
                self._group = whole - 1
        self._at = max(self._start, group_start(self._group))

    def _extend_down(self) -> int:
        """Let one marker cover all the whole Groups below in the same state; its new end."""
        lowest = self._unknown_start()
        if not self._timed_out and self._resolve is not None:
            given_up = self._given_up.find(self._at)
            lowest = max(lowest, self._at if given_up is None else given_up[0])
        self._group = min(self._group, -(-lowest >> 64))
        self._at = group_start(self._group)
        return self._limit

    def _unknown_start(self) -> int:
        """Where the unknown run starts that reaches down from here; asked for in one piece."""
        known, start = self._store.run_to(self._at)
        return max(self._start, start) if known is Known.UNKNOWN else self._at

    def _take_arrived(self) -> Entry | None:
        entry, self._arrived = self._arrived, None
        if entry is None:
            return None
        self._store.unpin(entry)
        return entry if key_of(entry.object.location) == self._at else None

    def _release(self) -> None:
        if self._sent is not None:
            self._store.unpin(self._sent)
            self._sent = None


def _nothing() -> None:
    """The default `wake`."""


def _ignore(item: Object) -> None:
    """The default `on_read`."""
