"""Holes in a relay's cache, filled by FETCH at the publishers (MOQT-22 §7.4, R228)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from moqt.relay.gapfetch import GapFetch
from moqt.session import Session
from moqt.tracks.answering import ask
from moqt.tracks.intervals import LAST_KEY, key_of, location_of
from moqt.tracks.source import StoreSource
from moqt.wire.errors import RequestErrorCode, StreamError
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters, RequestError
from moqt.wire.names import Location
from moqt.wire.objects import Object

if TYPE_CHECKING:
    from moqt.relay.readers import DownstreamFetch
    from moqt.relay.track import RelayTrack


class Gaps:
    """The FETCHes under way for one Track; readers of one hole share one FETCH."""

    def __init__(self, track: RelayTrack) -> None:
        self.track = track
        self._open: list[GapFetch] = []
        self._known_ends: dict[Session, Location] = {}

    def resolve(self, source: StoreSource, start: Location, end: Location) -> None:
        """A reader came to an unknown range (StoreSource's `resolve`)."""
        first, last = key_of(start), key_of(end)
        waits_at = source.waits_at
        place = first if waits_at is None else waits_at
        for gap in self._open:
            if gap.covers(place):
                gap.join(source)
                return
        if not self._ask(first, last, frozenset(), {source}):
            source.give_up(start, end)

    def was_read(self, source: StoreSource, item: Object) -> None:
        """A reader took an Object."""
        for gap in self._open:
            gap.was_read(source, item)

    def waits(self, source: StoreSource) -> None:
        """A reader waits for an Object that is arriving."""
        for gap in self._open:
            if source in gap.readers:
                gap.balance()

    def left(self, source: StoreSource) -> None:
        """A reader is gone."""
        for gap in tuple(self._open):
            gap.leave(source)

    def malformed(self, suspects: list[Session]) -> None:
        """Ask nothing more of these publishers, and believe nothing that they said."""
        for session in suspects:
            self._known_ends.pop(session, None)
        for gap in [one for one in self._open if one.session in suspects]:
            gap.abandon(StreamError.MALFORMED_TRACK)

    def know_end(self, session: Session, end: Location) -> None:
        """The publisher has published up to `end` at least."""
        known = self._known_ends.get(session)
        if known is None or known < end:
            self._known_ends[session] = end

    def known_end(self, session: Session) -> Location:
        """Up to where the publisher surely has published."""
        upstream = self.track.upstreams.get(session)
        largest = None if upstream is None else upstream.largest
        return max(largest or Location(0, 0), self._known_ends.get(session, Location(0, 0)))

    @property
    def bound(self) -> Location | None:
        """The largest Location that any publisher's FETCH_OK named."""
        return max(self._known_ends.values(), default=None)

    def session_closed(self, session: Session) -> None:
        """The publisher is gone: its FETCHes fail, and what it had is no bound any more."""
        self._known_ends.pop(session, None)
        for gap in [one for one in self._open if one.session is session]:
            gap.session_closed()

    def forget(self, gap: GapFetch) -> None:
        """The FETCH is over."""
        if gap in self._open:
            self._open.remove(gap)

    def answered(self, gap: GapFetch) -> None:
        """FETCH_OK came: a reader's own FETCH_OK may depend on it."""
        for head in tuple(gap.heads):
            head.head_answered(gap)
        for source in tuple(gap.readers):
            reader = self.track.readers.get(source)
            if reader is not None:
                reader.answered(gap)

    def over(self, gap: GapFetch, error: RequestError | None) -> None:
        """Ask the next publisher for what is still unknown, or tell the readers that none can."""
        heads, gap.heads = gap.heads, []
        if gap.answer is None and error is not None:
            for head in heads:
                if head.source is not None:
                    gap.readers.pop(head.source, None)
            for head in heads:
                head.head_failed(gap, error)
        readers = tuple(gap.readers)
        gap.readers.clear()
        if not readers:
            return
        if error is not None and error.code == RequestErrorCode.MALFORMED_TRACK:
            for source in readers:
                source.fail(StreamError.MALFORMED_TRACK)
            return
        store = self.track.store
        holes = (
            store.first_unknown(location_of(start), location_of(end))
            for start, end in gap.unresolved
        )
        unknown = next((hole for hole in holes if hole is not None), None)
        if unknown is not None and not self._ask(key_of(unknown), gap.end, gap.tried, readers):
            for source in readers:
                for start, end in gap.unresolved:
                    source.give_up(location_of(start), location_of(end))
        for source in readers:
            source.changed()
            if source in self.track.readers:
                self.track.readers[source].settled()

    def _ask(
        self,
        start: int,
        end: int,
        tried: frozenset[Session],
        readers: Iterable[StoreSource],
    ) -> bool:
        """FETCH at the first publisher that was not tried; False if there is none (R217)."""
        gap = self.open(start, end, tried)
        if gap is None:
            return False
        for source in readers:
            gap.join(source)
        return True

    def open_head(
        self, start: int, end: int, tried: frozenset[Session], head: DownstreamFetch
    ) -> GapFetch | None:
        """FETCH on behalf of `head`, or let it wait for the same FETCH of another.

        So relays that ask each other in a circle wait for themselves, until the time is over.
        """
        for gap in self._open:
            same = gap.covers(start) and gap.end == end and gap.session not in tried
            if same and gap.heads and gap.answer is None:
                gap.heads.append(head)
                return gap
        return self.open(start, end, tried, head)

    def open(
        self,
        start: int,
        end: int,
        tried: frozenset[Session] = frozenset(),
        head: DownstreamFetch | None = None,
    ) -> GapFetch | None:
        """FETCH `start` to `end` at the first publisher that takes it, None if there is none."""
        track = self.track
        asking = None if head is None else head.request.session
        for session in self.publishers(tried, asking):
            parameters = Parameters(
                authorization_tokens=track.context.tokens(session),
                location_filter=range_filter(start, end),
            )
            request = ask(partial(session.fetch, track.name, parameters))
            if request is not None:
                gap = GapFetch(self, request, start, end, tried | {session}, head)
                request.context = gap
                self._open.append(gap)
                return gap
        return None

    def publishers(self, tried: frozenset[Session], asking: Session | None = None) -> list[Session]:
        """Publishers that were not tried; those that we are subscribed at come first.

        A relay above us that is `asking` is not asked back.
        """
        found = dict.fromkeys(
            session
            for session, one in self.track.upstreams.items()
            if one.established and session is not asking
        )
        found |= dict.fromkeys(self.track.publishers(asking))
        return [session for session in found if session not in tried]


def range_filter(start: int, end: int) -> LocationFilter:
    """The Location filter of an integer range; without an end if it has none."""
    first, last = location_of(start), location_of(end)
    if end == LAST_KEY:
        return LocationFilter(LocationFilterType.ABSOLUTE_START, *first)
    return LocationFilter(
        LocationFilterType.ABSOLUTE_RANGE, *first, last.group - first.group, last.object
    )
