"""Ranges that a relay reads out for its peers: FETCHes and fills (MOQT-22 §3.2, §3.4, §7.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moqt.relay.gapfetch import GapFetch
from moqt.relay.status import StatusWaiter, await_status
from moqt.session import FetchSender, Request, Session
from moqt.session.events import (
    Event,
    RequestCancelled,
    StreamStopped,
    UpdateReceived,
)
from moqt.session.timers import Timer
from moqt.tracks import Known
from moqt.tracks.answering import accept_update, alive, answerable, refuse
from moqt.tracks.intervals import LAST_ID, LAST_KEY, key_of, location_of
from moqt.tracks.serving import DESCENDING, fetch_source
from moqt.tracks.source import StoreSource
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.filters import LocationFilterType, fetch_range, resolve
from moqt.wire.messages import FetchOk, RequestError, RequestOk
from moqt.wire.names import Location

if TYPE_CHECKING:
    from moqt.relay.track import RelayTrack

_RELATIVE = (LocationFilterType.RELATIVE_START, LocationFilterType.NEXT_OBJECT)


class Reader:
    """A fetch or fill stream that reads from the Track's store.

    `fill_timeout` is FILL_TIMEOUT in milliseconds: the whole wait for publishers, 0 for none,
    None for as long as they go on sending (MOQT-22 §9.20).
    """

    def __init__(self, track: RelayTrack, fill_timeout: int | None) -> None:
        self.track = track
        self.source: StoreSource | None = None
        self.sender: FetchSender | None = None
        self._deadline: Timer | None = None
        if fill_timeout:
            context = track.context
            self._deadline = context.timers.at(
                context.now() + fill_timeout / 1000, self.time_is_over
            )
        self.may_wait = fill_timeout != 0

    @property
    def open(self) -> bool:
        """Whether it still reads."""
        return self.source in self.track.readers

    def read(self, source: StoreSource) -> None:
        """Read from `source`, whose stream the caller opens next."""
        self.source = source
        gaps = self.track.gaps
        self.track.readers[source] = self
        source.on_read = lambda item: gaps.was_read(source, item)
        source.on_wait = lambda: gaps.waits(source)
        source.on_close = self.closed
        if not self.may_wait:
            source.expire()

    def send(self, sender: FetchSender) -> None:
        """The stream is there."""
        self.sender = sender
        if self.source is not None:
            self.source.wake = sender.wake

    def time_is_over(self) -> None:
        """FILL_TIMEOUT passed: what is not here is marked as timed out."""
        self.may_wait = False
        if self.source is not None:
            self.source.expire()

    def answered(self, gap: GapFetch) -> None:
        """A publisher's FETCH_OK came for a hole that is waited for."""

    def settled(self) -> None:
        """A hole that was waited for is filled, or never will be."""

    def fail(self, code: int, reason: str) -> None:
        """Reset the stream."""
        if self.sender is not None:
            self.sender.cancel(code)
        if self.source is not None:
            self.source.close()

    def closed(self) -> None:
        """Reading is over, one way or the other."""
        if self._deadline is not None:
            self._deadline.cancel()
        if self.source is not None and self.track.readers.pop(self.source, None) is not None:
            self.track.gaps.left(self.source)
            self.track.release()


class DownstreamFetch(Reader):
    """Context of a peer's FETCH: finds its range, then reads; FETCH_OK once its end is known."""

    def __init__(self, track: RelayTrack, request: Request) -> None:
        super().__init__(track, request.parameters.fill_timeout)
        self.request = request
        request.context = self
        self._answered = False
        self._over = False
        self._start = self._end = Location(0, 0)
        self._head: GapFetch | None = None
        self._status: StatusWaiter | None = None
        track.fetches[self] = None

    @property
    def _descending(self) -> bool:
        return self.request.parameters.group_order == DESCENDING

    # Finding the range

    def begin(self) -> None:
        """Serve, or wait for a publisher. Raises RequestRefused."""
        try:
            self._begin()
        except RequestRefused:
            self._close()
            raise

    def _begin(self) -> None:
        track = self.track
        location_filter = self.request.parameters.location_filter
        if track.established:
            self._open(*fetch_range(location_filter, track.store.largest))
        elif location_filter is not None and location_filter.type in _RELATIVE:
            self._ask_status()
        else:
            self._begin_unbounded()

    def _begin_unbounded(self) -> None:
        """No publisher told Largest yet: what is cached may do, or a FETCH upstream tells."""
        store, location_filter = self.track.store, self.request.parameters.location_filter
        start, wanted = resolve(location_filter, None, bounded=False)
        end = Location(LAST_ID, LAST_ID) if wanted is None else wanted
        if end < start:
            raise RequestRefused(
                f"the range ends at {tuple(end)}, before its start {tuple(start)}",
                RequestErrorCode.INVALID_RANGE,
            )
        bounds = [at for at in (store.top, self.track.gaps.bound) if at is not None]
        bound = max(bounds, default=None)
        unknown = store.first_unknown(start, end)
        # A range whose end is settled needs nobody's FETCH_OK: only its holes are asked for.
        settled = store.known(end) in (Known.PRESENT, Known.ABSENT)
        if unknown is None or settled or (bound is not None and end <= bound):
            self._open(*fetch_range(location_filter, bound))
            return
        self._start, self._end = start, end
        if not self._ask_head(key_of(unknown)):
            self._open_cached()

    def _ask_head(self, first: int, tried: frozenset[Session] = frozenset()) -> bool:
        if self.may_wait:
            last = key_of(_one_further(self._end))
            self._head = self.track.gaps.open_head(first, last, tried, self)
        return self._head is not None

    def head_started(self) -> None:
        """Objects come before FETCH_OK: send them on, if they come in our order."""
        if self.source is None and not self._over and not self._descending:
            self._open(self._start, self._end, answer=False)

    def head_answered(self, gap: GapFetch) -> None:
        """The publisher's FETCH_OK says where the range ends."""
        if self._over or gap.answer is None:
            return
        end = max(self._start, min(self._end, gap.answer.end))
        if self.source is None:
            self._open(self._start, end)
        else:
            self._end = end
            self.source.shorten(end)
            self._try_answer()

    def head_failed(self, gap: GapFetch, error: RequestError) -> None:
        """The publisher refused; the next one may know, or the cache holds the beginning."""
        if self._over:
            return
        self._head = None
        if self.source is not None:
            if not self._ask_head(gap.at, gap.tried):
                self.fail(error.code, error.reason)
            return
        cached = self.track.store.last_object(location_of(gap.start))
        if error.code == RequestErrorCode.INVALID_RANGE and cached and cached >= self._start:
            self._open(self._start, cached)
        elif not self._ask_head(max(gap.start, key_of(self._start)), gap.tried):
            self._refuse(error.code, error.reason, error.retry_interval)

    def _open_cached(self) -> None:
        """No publisher can be asked: serve what is here, the rest is unknown."""
        top = self.track.store.top
        if top is None or top < self._start or self.track.properties is None:
            raise RequestRefused("no publisher of this track", RequestErrorCode.DOES_NOT_EXIST)
        self._open(self._start, min(self._end, top))

    def _ask_status(self) -> None:
        """A relative start needs Largest: ask for it."""
        if not self.may_wait:
            raise RequestRefused("no publisher told Largest yet", RequestErrorCode.TIMEOUT, 1)
        self._status = await_status(
            self.track, self.request.session, self._status_answered, self._status_failed
        )

    def _status_answered(self, session: Session, answer: RequestOk) -> None:
        largest = answer.parameters.largest_object
        self.track.learn_properties(answer.track_properties)
        if largest is not None:
            self.track.gaps.know_end(session, largest)
        try:
            self._open(*fetch_range(self.request.parameters.location_filter, largest))
        except RequestRefused as refusal:
            self._refuse(refusal.code, refusal.reason)

    def _status_failed(self, error: RequestError) -> None:
        self._refuse(error.code, error.reason, error.retry_interval)

    # Reading

    def _open(self, start: Location, end: Location, *, answer: bool = True) -> None:
        track, request = self.track, self.request
        if not alive(request):
            return
        self._start, self._end = start, end
        source = fetch_source(
            track.store,
            request.parameters,
            track.properties or b"",
            start,
            end,
            track.gaps.resolve,
        )
        self.read(source)
        if self._head is not None:
            self._head.join(source, read=0)
        if answer:
            self._try_answer()
        self.send(request.session.open_fetch(request, source))

    def answered(self, gap: GapFetch) -> None:
        """A hole reaches to our end: its FETCH_OK tells ours."""
        if gap.answer is None or gap.end < key_of(self._end) or self in gap.heads:
            return
        if gap.answer.end <= self._end:
            self._answer(max(self._start, gap.answer.end))

    def settled(self) -> None:
        """A hole is filled, or never will be."""
        if self._head is None or self._head.answer is not None:
            self._try_answer()

    def _try_answer(self, *, final: bool = False) -> None:
        """FETCH_OK, if the End Location is known; `final`: as well as it will ever be (R140)."""
        track, end = self.track, self._end
        if end.object == LAST_ID and end != track.store.largest:
            known, run_start = track.store.run_to(key_of(end))
            if known not in (Known.ABSENT, Known.PRESENT) and not final:
                return
            if known is Known.ABSENT:
                end = max(self._start, location_of(max(0, run_start - 1)))
        self._answer(end)

    def _answer(self, end: Location) -> None:
        if self._answered or self._over or not answerable(self.request):
            return
        self._answered = True
        after = key_of(end) + 1
        store = self.track.store
        self.request.session.accept_fetch(
            self.request,
            FetchOk(
                after <= LAST_KEY and store.run_from(after) == (Known.ABSENT, LAST_KEY),
                end,
                track_properties=self.track.properties or b"",
            ),
        )

    def time_is_over(self) -> None:
        """FILL_TIMEOUT passed; without a range there is nothing to serve."""
        super().time_is_over()
        if self.source is None and not self._over:
            top = self.track.store.top
            if self._head is not None and top is not None and top >= self._start:
                self._leave_head()
                self._open(self._start, min(self._end, top))
            else:
                self._refuse(RequestErrorCode.TIMEOUT, "no publisher answered in FILL_TIMEOUT", 1)

    # Ending

    def handle(self, event: Event) -> None:
        """One event of the FETCH."""
        match event:
            case RequestCancelled() | StreamStopped():
                self._close()
            case UpdateReceived(request, update):
                accept_update(request, update)
            case _:
                pass

    def session_closed(self) -> None:
        """The peer is gone."""
        self._close()

    def fail(self, code: int, reason: str) -> None:
        """Refuse, or reset the stream."""
        if self._answered:
            super().fail(code, reason)
        else:
            self._refuse(code, reason)

    def closed(self) -> None:
        """Everything was read, or nobody wants it."""
        if not self._over:
            self._try_answer(final=True)
        self._over = True
        self.track.fetches.pop(self, None)
        super().closed()
        self._leave_head()

    def _close(self) -> None:
        self._over = True
        self._leave_head()
        if self._status is not None:
            self._status.stop()
        if self.source is not None:
            self.source.close()
        else:
            self.closed()
            self.track.release()

    def _refuse(self, code: int, reason: str, retry_interval: int = 0) -> None:
        self._over = True
        refuse(self.request, code, reason, retry_interval)
        self._close()

    def _leave_head(self) -> None:
        head, self._head = self._head, None
        if head is not None:
            head.leave_head(self)


def _one_further(end: Location) -> Location:
    """For a range that ends with a whole Group, the first Location behind it.

    A publisher that has something there thereby tells where the Group ends: FETCH_OK alone does
    not say whether its End Location is the Group's last Object or only the last one so far.
    """
    if end.object < LAST_ID or end.group == LAST_ID:
        return end
    return Location(end.group + 1, 0)
