"""One FETCH that fills a hole in a relay's cache (MOQT-22 §7.4, R228)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moqt.session import Request, Session
from moqt.session.events import (
    Event,
    ObjectReceived,
    ObjectStarted,
    RangeReceived,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    StreamEnded,
    TrackMalformed,
)
from moqt.session.timers import Timer
from moqt.tracks import IntervalSet, MalformedTrack
from moqt.tracks.answering import cancel
from moqt.tracks.budget import ENTRY_OVERHEAD
from moqt.tracks.intervals import key_of, location_of
from moqt.tracks.source import StoreSource
from moqt.wire.errors import RequestErrorCode, StreamError
from moqt.wire.messages import FetchOk, RequestError
from moqt.wire.names import Location
from moqt.wire.objects import Object, RangeKind

if TYPE_CHECKING:
    from moqt.relay.gaps import Gaps
    from moqt.relay.readers import DownstreamFetch

TIMED_OUT = RequestError(RequestErrorCode.TIMEOUT, 1, "the publisher did not answer in time")
GONE = RequestError(RequestErrorCode.INTERNAL_ERROR, 0, "the publisher is gone")
ASTRAY = RequestError(
    RequestErrorCode.INTERNAL_ERROR, 0, "the publisher left the range or its order"
)

SCATTERED = RequestError(
    RequestErrorCode.INTERNAL_ERROR, 0, "the publisher does not know of too many ranges"
)

MAX_UNRESOLVED = 256
"""Ranges of one FETCH that its publisher may say that it does not know."""


def _weight(item: Object) -> int:
    """Octets that an Object takes in the cache: many small ones are not little."""
    return len(item.payload) + ENTRY_OVERHEAD


class GapFetch:
    """One FETCH at one publisher, always ascending, whatever the readers want.

    Covers `start` to `end` as integer Locations; everything before `at` is settled. `readers`
    wait for it, with the octets that each had read. It is held back while even the fastest
    reader is `high_water` octets behind. `heads` are the downstream FETCHes that learn their own
    end from this one's FETCH_OK.
    """

    def __init__(
        self,
        gaps: Gaps,
        request: Request,
        start: int,
        end: int,
        tried: frozenset[Session],
        head: DownstreamFetch | None,
    ) -> None:
        self.gaps = gaps
        self.track = gaps.track
        self.start = self.at = start
        self.end = end
        self.request = request
        self.tried = tried
        self.answer: FetchOk | None = None
        self.error: RequestError | None = None
        self.readers: dict[StoreSource, int] = {}
        self.session = request.session
        self.heads = [] if head is None else [head]
        self.unresolved = IntervalSet()
        self._received = 0
        self._held = False
        self._delivered = False
        self._over = False
        self._arriving: Location | None = None
        self._timer: Timer | None = None
        self._heard = self.track.context.now()
        self._wait()

    def covers(self, key: int) -> bool:
        """Whether the Location will still be settled by this."""
        return self.at <= key <= self.end

    def join(self, source: StoreSource, read: int | None = None) -> None:
        """One more reader; it has read everything so far, or `read` octets."""
        self.readers.setdefault(source, self._received if read is None else read)
        self.balance()

    def leave(self, source: StoreSource) -> None:
        """One reader less; without any the FETCH is cancelled."""
        if self.readers.pop(source, None) is None:
            return
        self.balance()
        self._abandon_unwanted()

    def leave_head(self, head: DownstreamFetch) -> None:
        """One head less."""
        if head in self.heads:
            self.heads.remove(head)
            self._abandon_unwanted()

    def _abandon_unwanted(self) -> None:
        if not self.readers and not self.heads:
            self.abandon(StreamError.CANCELLED)

    def was_read(self, source: StoreSource, item: Object) -> None:
        """A reader took an Object."""
        if source in self.readers and self.start <= key_of(item.location) < self.at:
            self.readers[source] += _weight(item)
            self.balance()

    def handle(self, event: Event) -> None:
        """One event of the FETCH; some may still come when it is over."""
        if self._over:
            return
        self._heard = self.track.context.now()
        match event:
            case ObjectStarted(_, location, _):
                self._arriving = location
                self.track.store.started(location)
            case ObjectReceived(_, item, _):
                self._object(item)
            case RangeReceived(_, kind, start, end, _):
                self._range(kind, key_of(start), key_of(end))
            case RequestAccepted(response=FetchOk() as answer):
                self._accepted(answer)
            case RequestFailed(error=error):
                self._failed(GONE if error is None else error)
            case RequestCancelled():
                self._failed(GONE)
            case StreamEnded():
                if event.complete:
                    self._delivered = True
                    self._complete()
                else:
                    code = RequestErrorCode.INTERNAL_ERROR
                    if event.code == StreamError.MALFORMED_TRACK:
                        code = RequestErrorCode.MALFORMED_TRACK
                    self._failed(RequestError(code, 0, "the publisher reset the fetch"))
            case TrackMalformed(reason=reason):
                self._end()
                self.track.malformed([self.session], reason)
            case _:
                pass

    def session_closed(self) -> None:
        """The publisher's session is gone."""
        self._failed(GONE)

    def abandon(self, code: int) -> None:
        """Give the FETCH up, whoever waits."""
        if not self._over:
            self._end()
            cancel(self.request, code)

    def _object(self, item: Object) -> None:
        key = key_of(item.location)
        if not self.at <= key <= self.end:
            # It would make everything up to there look absent.
            cancel(self.request)
            self._failed(ASTRAY)
            return
        if self.answer is None:
            for head in tuple(self.heads):
                head.head_started()
        self._arriving = None
        self._received += _weight(item)
        try:
            self.track.store.add(item, self.readers)
        except MalformedTrack as error:
            self.abandon(StreamError.MALFORMED_TRACK)
            self.track.contradiction(self.session, error.reason)
            return
        # After the Object: what lies before one that is kept is kept with it.
        self._absent_until(key)
        self.at = key + 1
        self.balance()

    def _range(self, kind: RangeKind, start: int, end: int) -> None:
        end = min(end, self.end)
        if start > end:
            return
        if kind is RangeKind.NON_EXISTENT:
            self._absent_until(end + 1)
        else:
            self._absent_until(start)
            self.unresolved.add(start, end)
        self.at = max(self.at, end + 1)
        if len(self.unresolved) > MAX_UNRESOLVED:
            self._stop_here()

    def _stop_here(self) -> None:
        """Take no more now: who reads on asks again from here."""
        cancel(self.request)
        if self.answer is None:
            self._failed(SCATTERED)
        else:
            self.end = self.at - 1
            self._end()
            self.gaps.over(self, None)

    def _absent_until(self, key: int) -> None:
        """Nothing exists from where we are up to before `key`: a gap says so (MOQT-22 §3.2.2)."""
        if self.at < key:
            start, self.at = self.at, key
            self.track.store.absent(location_of(start), location_of(key - 1))

    def _accepted(self, answer: FetchOk) -> None:
        self.answer = answer
        if answer.track_properties or self.track.properties is None:
            self.track.learn_properties(answer.track_properties)
        self.gaps.know_end(self.session, answer.end)
        if self.heads:
            self.end = min(self.end, key_of(answer.end))
        self.gaps.answered(self)
        self._complete()

    def _complete(self) -> None:
        """Both FETCH_OK and FIN came: what was not sent does not exist."""
        if self.answer is None or not self._delivered or self._over:
            return
        known = self.gaps.known_end(self.session)
        self._absent_until(min(self.end, key_of(max(self.answer.end, known))) + 1)
        if self.answer.end_of_track and self.answer.end.object < (1 << 64) - 1:
            after = Location(self.answer.end.group, self.answer.end.object + 1)
            try:
                self.track.store.end_track(after)
            except MalformedTrack as error:
                self._end()
                self.track.contradiction(self.session, error.reason)
                return
            self.at = max(self.at, self.end + 1)
        if self.at <= self.end:
            self.unresolved.add(self.at, self.end)
        self._end()
        self.gaps.over(self, None)

    def _failed(self, error: RequestError) -> None:
        if self._over:
            return
        if self.at <= self.end:
            self.unresolved.add(self.at, self.end)
        self._end()
        self.gaps.over(self, error)

    def _end(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        self.gaps.forget(self)
        if self._arriving is not None:
            self.track.store.abandoned(self._arriving)

    def balance(self) -> None:
        """Hold the FETCH back while its fastest reader lags, and let it flow again."""
        if self._over or not self.readers:
            return
        config = self.track.context.config
        lag = self._received - max(self.readers.values())
        if any(one.waits_at is not None and self.covers(one.waits_at) for one in self.readers):
            lag = 0
        most = config.low_water if self._held else config.high_water
        # What the cache cannot keep until it is read would be fetched over and over.
        held = lag > min(most, config.cache_budget // (4 if self._held else 2))
        if held != self._held:
            self._held = held
            if held:
                self.session.pause_request(self.request)
            else:
                self.session.resume_request(self.request)
            self._wait()

    def _wait(self) -> None:
        """The publisher has `upstream_timeout` for its next octets, unless we hold it back."""
        context = self.track.context
        self._heard = context.now()
        if self._timer is None or not self._timer.live:
            due = self._heard + context.config.upstream_timeout
            self._timer = context.timers.at(due, self._check_silence)

    def _check_silence(self) -> None:
        if self._over or self._held:
            return
        context = self.track.context
        due = self._heard + context.config.upstream_timeout
        if context.now() < due:
            self._timer = context.timers.at(due, self._check_silence)
        else:
            cancel(self.request)
            self._failed(TIMED_OUT)
