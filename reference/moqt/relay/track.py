"""One Track in a relay: its publishers, its cache, its subscribers (MOQT-22 §7)."""

from __future__ import annotations

from functools import partial

from moqt.relay.context import RelayContext
from moqt.relay.gaps import Gaps
from moqt.relay.readers import DownstreamFetch, Reader
from moqt.relay.status import StatusRequest
from moqt.relay.subscribers import Subscribers
from moqt.relay.upstream import Ending, Upstream
from moqt.session import Request, Session
from moqt.session.events import StreamInfo
from moqt.session.timers import Timer
from moqt.tracks import IntervalSet, MalformedTrack, TrackStore
from moqt.tracks.answering import answerable, ask, cancel, refuse
from moqt.tracks.intervals import MAX_INTERVALS, key_of
from moqt.tracks.source import StoreSource
from moqt.wire.errors import (
    PublishDoneCode,
    RequestErrorCode,
    RequestRefused,
    StreamError,
)
from moqt.wire.filters import NEXT_OBJECT
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object
from moqt.wire.properties import PropertyType, find_property, integer_property

NO_PUBLISHER = Ending(
    RequestErrorCode.DOES_NOT_EXIST, PublishDoneCode.INTERNAL_ERROR, "no publisher of this track"
)


BROKEN = "the Objects of this track broke its rules"


class RelayTrack:
    """Everything that the relay knows and does for one Full Track Name.

    `properties` are the octets of the Track Properties as a publisher sent them, None until then.
    Publishers whose Objects broke a rule are not asked again while the context suspects them;
    without another one the Track is refused as malformed. `store_class`, `upstream_class` and
    `subscribers_class` are what its parts are made of.
    """

    store_class = TrackStore
    upstream_class = Upstream
    subscribers_class = Subscribers

    def __init__(self, name: FullTrackName, context: RelayContext) -> None:
        self.name = name
        self.context = context
        self.store = self.store_class(budget=context.budget, clock=context.now)
        self.store.standing = lambda: [source.span for source in self.readers]
        self.store.on_empty = lambda: context.idle(self)
        self.properties: bytes | None = None
        self.upstreams: dict[Session, Upstream] = {}
        self.waiting: dict[Request, Timer] = {}
        self.gaps = Gaps(self)
        self.subscribers = self.subscribers_class(self)
        self.readers: dict[StoreSource, Reader] = {}
        self.fetches: dict[DownstreamFetch, None] = {}
        self.status: StatusRequest | None = None
        self._forwarded = IntervalSet(MAX_INTERVALS)
        self._last_forwarded: dict[tuple[int, int], Location] = {}
        self._new_group: int | None = None
        self._new_group_at: Location | None = None

    # Subscribing

    @property
    def established(self) -> bool:
        """Whether a publisher accepted our subscription."""
        return any(upstream.established for upstream in self.upstreams.values())

    @property
    def default_priority(self) -> int:
        """Publisher Priority of Objects that do not name one."""
        return integer_property(
            self.properties or b"", PropertyType.DEFAULT_PUBLISHER_PRIORITY, 128
        )

    def publishers(self, asking: Session | None = None) -> list[Session]:
        """The sessions to ask for the Track on behalf of `asking`, without suspects."""
        found = self.context.publishers(self.name.namespace, asking)
        return [one for one in found if not self.context.suspects.holds(self.name, one)]

    def check_wellformed(self) -> None:
        """Raises RequestRefused MALFORMED_TRACK if only publishers that broke it are left."""
        if not self.upstreams and self.context.suspects.any_of(self.name) and not self.publishers():
            raise RequestRefused(BROKEN, RequestErrorCode.MALFORMED_TRACK)

    def subscribe(self, request: Request) -> None:
        """Answer a SUBSCRIBE now, or once a publisher answered (R209, R218)."""
        self.check_wellformed()
        forward = request.parameters.forward != 0
        group = request.parameters.new_group_request
        if self.established:
            self.subscribers.accept(request)
            if group is not None:
                self.request_new_group(group)
            self.find_publishers(forward=forward)
            self.adjust_forward()
            return
        wait = (request.parameters.rendezvous_timeout or 0) / 1000
        self.find_publishers(forward=forward, asking=request.session, new_group=group)
        if not self.upstreams and not wait:
            raise RequestRefused(NO_PUBLISHER.reason, RequestErrorCode.DOES_NOT_EXIST)
        context = self.context
        limit = wait or context.config.upstream_timeout
        request.context = self.subscribers.pending(request)
        self.waiting[request] = context.timers.at(
            context.now() + limit, lambda: self._waited(request)
        )

    def find_publishers(
        self, *, forward: bool, asking: Session | None = None, new_group: int | None = None
    ) -> None:
        """SUBSCRIBE at every publisher that is not asked yet (R216, R220, R224)."""
        for session in self.publishers(asking):
            if session not in self.upstreams:
                parameters = Parameters(
                    authorization_tokens=self.context.tokens(session),
                    location_filter=NEXT_OBJECT,
                    forward=None if forward else 0,
                    new_group_request=new_group,
                )
                request = ask(partial(session.subscribe, self.name, parameters))
                if request is None:
                    continue
                upstream = self.upstream_class(self, request, paused=not forward)
                request.context = self.upstreams[session] = upstream

    def wanted(self) -> bool:
        """Whether a subscriber is here or waits."""
        return bool(self.waiting or self.subscribers.senders)

    def wants_forward(self) -> bool:
        """Whether a subscriber here or waiting is not paused."""
        requests = [*self.waiting, *self.subscribers.senders]
        return any(request.parameters.forward != 0 for request in requests)

    def adjust_forward(self) -> None:
        """Resume every publisher while a subscriber is not paused (R206, R219, R223)."""
        if self.wants_forward():
            for upstream in self.upstreams.values():
                if upstream.established:
                    upstream.resume()

    def stop_waiting(self, request: Request) -> None:
        """The request was answered or cancelled."""
        timer = self.waiting.pop(request, None)
        if timer is not None:
            timer.cancel()

    def release(self) -> None:
        """A subscriber or reader left: unsubscribe what nobody wants, forget what is idle."""
        if not self.wanted():
            for session, upstream in list(self.upstreams.items()):
                if upstream.request.ours:
                    del self.upstreams[session]
                    upstream.abandon_streams()
                    cancel(upstream.request)
        if not self.upstreams:
            self.store.largest = None
        self.context.idle(self)

    # Publishers

    def published(self, request: Request, properties: bytes) -> None:
        """A session sent PUBLISH for this Track, and is authorised to (R207, R223)."""
        if self.context.suspects.holds(self.name, request.session):
            raise RequestRefused(BROKEN, RequestErrorCode.MALFORMED_TRACK)
        if not answerable(request):
            # Taken back already: the subscription that it would have replaced stays.
            self.release()
            return
        session = request.session
        paused = request.parameters.forward == 0
        upstream = self.upstream_class(self, request, paused=paused)
        previous = self.upstreams.get(session)
        if previous is not None:
            previous.abandon_streams()
            cancel(previous.request)
        request.context = self.upstreams[session] = upstream
        session.accept(request)
        upstream.learn_largest(request.parameters.largest_object)
        self.upstream_established(upstream, properties)

    def upstream_established(self, upstream: Upstream, properties: bytes) -> None:
        """A publisher accepted: who waited is served."""
        first = not self.established
        upstream.established = True
        self.learn_properties(properties)
        for request in list(self.waiting):
            self.stop_waiting(request)
            self.subscribers.accept(request)
        self.adjust_forward()
        self.context.established(self, first)

    def learn_properties(self, properties: bytes) -> None:
        """The newest set of Track Properties, kept as its exact octets (R178, R226)."""
        self.properties = properties
        duration = find_property(properties, PropertyType.MAX_CACHE_DURATION)
        self.store.max_cache_duration = duration if isinstance(duration, int) else None

    def upstream_gone(self, upstream: Upstream, ending: Ending) -> None:
        """A publisher refused or ended; when it was the last one its subscribers end too."""
        if self.upstreams.get(upstream.session) is not upstream:
            return
        del self.upstreams[upstream.session]
        if upstream.largest is not None and not upstream.session.closed:
            self.gaps.know_end(upstream.session, upstream.largest)
        if self.upstreams:
            return
        for request in list(self.waiting):
            rendezvous = request.parameters.rendezvous_timeout
            if not (rendezvous and ending.request_code == RequestErrorCode.DOES_NOT_EXIST):
                self.stop_waiting(request)
                refuse(request, ending.request_code, ending.reason, ending.retry_interval)
        self.subscribers.finish(ending.done_code, ending.reason)
        self.release()

    def contradiction(self, session: Session, reason: str) -> None:
        """An Object of this publisher contradicts what is stored: nobody knows who is right."""
        others = [
            one
            for one, upstream in self.upstreams.items()
            if upstream.established and one is not session
        ]
        self.malformed([session, *others], reason)

    def malformed(self, suspects: list[Session], reason: str) -> None:
        """Cancel at these publishers, tell the subscribers, keep nothing (R180, R181, R182)."""
        self.context.suspects.add(self.name, suspects)
        for session in suspects:
            upstream = self.upstreams.pop(session, None)
            if upstream is not None:
                upstream.abandon_streams()
                cancel(upstream.request, StreamError.MALFORMED_TRACK)
        if not self.upstreams:
            for request in list(self.waiting):
                self.stop_waiting(request)
                refuse(request, RequestErrorCode.MALFORMED_TRACK, reason)
        self.gaps.malformed(suspects)
        self.subscribers.finish(PublishDoneCode.MALFORMED_TRACK, reason)
        for fetch in tuple(self.fetches):
            fetch.fail(StreamError.MALFORMED_TRACK, reason)
        self.store.clear()
        self._forwarded = IntervalSet(MAX_INTERVALS)
        self._last_forwarded.clear()
        known = [one.largest for one in self.upstreams.values() if one.largest is not None]
        self.store.largest = max(known, default=None)
        self.release()

    def request_new_group(self, group: int) -> None:
        """Pass NEW_GROUP_REQUEST on, unless it is pending or moot (MOQT-22 §9.20)."""
        largest = self.store.largest
        if not integer_property(self.properties or b"", PropertyType.DYNAMIC_GROUPS, 0):
            return
        if largest is not None and 0 < group <= largest.group:
            return
        pending = self._new_group
        if pending is not None and pending >= group and not _grown(self._new_group_at, largest):
            return
        self._new_group, self._new_group_at = group, largest
        for upstream in self.upstreams.values():
            if upstream.established:
                upstream.update(Parameters(new_group_request=group))

    @property
    def forgettable(self) -> bool:
        """Whether nothing is known here that anybody may still want."""
        busy = self.upstreams or self.wanted() or self.fetches or self.readers or self.status
        return not busy and next(iter(self.store), None) is None

    def leave(self, session: Session) -> None:
        """Another publisher is established in place of this one (MOQT-22 §7)."""
        upstream = self.upstreams.get(session)
        others = [one for at, one in self.upstreams.items() if at is not session]
        if upstream is not None and any(one.established for one in others):
            del self.upstreams[session]
            upstream.abandon_streams()
            cancel(upstream.request)

    def session_closed(self, session: Session) -> None:
        """A session is gone, and with it what it did for this Track, and to it."""
        self.gaps.session_closed(session)
        for fetch in [one for one in self.fetches if one.request.session is session]:
            fetch.session_closed()
        for request in [*self.waiting, *self.subscribers.senders]:
            if request.session is session:
                request.context.session_closed()
        for source, reader in list(self.readers.items()):
            if reader.sender is not None and reader.sender.request.session is session:
                source.close()
        if self.status is not None and self.status.session is session:
            self.status.session_closed()
        if session in self.upstreams:
            self.upstreams[session].session_closed()
        self.release()

    # Objects

    def received(
        self, upstream: Upstream, item: Object, previous: Location | None, info: StreamInfo
    ) -> None:
        """An Object came on a subscription; `previous` came before it on the same stream."""
        try:
            if not self.store.add(item):
                return
        except MalformedTrack as error:
            self.contradiction(upstream.session, error.reason)
            return
        key = key_of(item.location)
        if key in self._forwarded:
            return
        self._forwarded.add(key, key)
        first = info.first_object and previous is None
        adjacent = False
        if item.subgroup is not None:
            place = item.location.group, item.subgroup
            adjacent = previous is not None and self._last_forwarded.get(place) == previous
            self._last_forwarded[place] = item.location
        self.subscribers.offer(item, first=first, end_of_group=info.end_of_group, adjacent=adjacent)

    def subgroup_complete(
        self, upstream: Upstream, last: Location, subgroup: int, *, end_of_group: bool
    ) -> None:
        """A publisher ended a subgroup with FIN; `last` was its final Object."""
        try:
            self.store.end_subgroup(last.group, subgroup, last.object, end_of_group=end_of_group)
        except MalformedTrack as error:
            self.contradiction(upstream.session, error.reason)
            return
        if self._last_forwarded.get((last.group, subgroup)) == last:
            del self._last_forwarded[last.group, subgroup]
            self.subscribers.end_subgroup(last.group, subgroup)

    def subgroup_broken(self, group: int, subgroup: int, code: int | None) -> None:
        """A publisher gave a subgroup up; no other one carries it: so do we (MOQT-22 §7.8)."""
        if (group, subgroup) not in self._last_forwarded or any(
            upstream.carries(group, subgroup) for upstream in self.upstreams.values()
        ):
            return
        del self._last_forwarded[group, subgroup]
        chosen = StreamError.INTERNAL_ERROR if code is None else code
        self.subscribers.reset_subgroup(group, subgroup, chosen)

    def _waited(self, request: Request) -> None:
        self.stop_waiting(request)
        refuse(request, RequestErrorCode.TIMEOUT, "no publisher answered in time", 1)
        self.release()


def _grown(before: Location | None, now: Location | None) -> bool:
    """Whether a new Group began."""
    return now is not None and (before is None or now.group > before.group)
