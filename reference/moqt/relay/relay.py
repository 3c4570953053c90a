"""The relay's role: requests in, routing, and what belongs to no single Track (MOQT-22 §7)."""

from __future__ import annotations

from contextlib import suppress

from moqt.endpoint import Host
from moqt.relay.config import RelayConfig
from moqt.relay.context import RelayContext
from moqt.relay.limits import SessionLimits
from moqt.relay.readers import DownstreamFetch
from moqt.relay.routes import Routes
from moqt.relay.status import forward_status
from moqt.relay.suspects import Suspects
from moqt.relay.track import RelayTrack
from moqt.relay.uplinks import Uplinks
from moqt.session import Request, RequestKind, Session
from moqt.session.events import (
    Event,
    GoawayReceived,
    RequestCancelled,
    RequestReceived,
    SessionClosed,
    SetupReceived,
    UpdateReceived,
)
from moqt.session.timers import Timers
from moqt.tracks import CacheBudget
from moqt.tracks.answering import (
    accept_update,
    answerable,
    as_updated,
    refuse_update,
    refuse_with,
)
from moqt.tracks.discovery import Discovery
from moqt.wire.errors import LocalProtocolError, RequestRefused
from moqt.wire.messages import Parameters, Publish
from moqt.wire.names import FullTrackName, TrackNamespace, is_prefix
from moqt.wire.tokens import Token


class Relay:
    """Aggregates subscriptions, caches Objects, and understands none of them.

    `track_class` and `fetch_class` are what it makes of each Track and of each FETCH of a peer.
    """

    track_class = RelayTrack
    fetch_class = DownstreamFetch

    def __init__(self, config: RelayConfig | None = None) -> None:
        self.config = config or RelayConfig()
        self.budget = CacheBudget(self.config.cache_budget, self.config.high_water)
        self.tracks: dict[FullTrackName, RelayTrack] = {}
        self.sessions: dict[Session, SessionLimits] = {}
        self._timers = Timers()
        self._suspects = Suspects(self.now)
        self._discovery = Discovery(self.config.max_listed_namespaces)
        self._routes = Routes()
        self._uplinks = Uplinks(self.config, self._discovery, self._timers, self.now)
        self._host: Host | None = None
        self._context = RelayContext(
            self.config,
            self.budget,
            self._suspects,
            self._timers,
            self.now,
            self._publishers,
            self._tokens,
            self._established,
            self._idle,
        )

    # What the driver calls

    def attach(self, host: Host) -> None:
        """Called once, before anything else."""
        self._host = host
        self._uplinks.start(host)

    def now(self) -> float:
        """The driver's time in seconds."""
        assert self._host is not None, "the role is not attached to a driver yet"
        return self._host.now()

    def session_opened(self, session: Session, now: float) -> None:
        """A peer connected."""
        self.sessions[session] = SessionLimits(self.config, now)

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called, or None."""
        return self._timers.next()

    def handle_timer(self, now: float) -> None:
        """The time that `next_timer` named has come."""
        self._timers.fire(now)

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """One event of one session."""
        match event:
            case RequestReceived(request):
                self._serve(request, now)
            case UpdateReceived(request):
                if self._authorised_update(event):
                    request.context.handle(event)
            case SetupReceived() if session in self._uplinks:
                self._uplinks.ready(session)
                self._look_again(())
                self._leave_sessions()
            case GoawayReceived(request=None, message=message) if session in self._uplinks:
                self._uplinks.going_away(session, message.uri)
            case SessionClosed():
                self._closed(session)
            case SetupReceived() | GoawayReceived():
                pass
            case _:
                if isinstance(event, RequestCancelled) and not event.request.ours:
                    self._limits(session).ended(event.request)
                if event.request.context is not None:
                    event.request.context.handle(event)

    def drain(self, uri: bytes = b"", timeout: int = 0) -> None:
        """GOAWAY to every peer; `timeout` in milliseconds (MOQT-22 §9.2)."""
        for session in self.sessions:
            with suppress(LocalProtocolError):
                session.goaway(uri, timeout)

    # Requests

    def authorise(self, request: Request) -> None:
        """Raises RequestRefused; asked for every request before anything else is (R208)."""
        self.config.authorise(request)

    def _serve(self, request: Request, now: float) -> None:
        limits = self._limits(request.session)
        try:
            limits.admit(request, now)
            self.authorise(request)
            self._dispatch(request)
        except RequestRefused as refusal:
            limits.ended(request)
            refuse_with(request, refusal)
            if request.track in self.tracks:
                self._idle(self.tracks[request.track])

    def _dispatch(self, request: Request) -> None:
        match request.kind:
            case RequestKind.SUBSCRIBE:
                self._track(request).subscribe(request)
            case RequestKind.FETCH:
                track = self._track(request)
                track.check_wellformed()
                self.fetch_class(track, request).begin()
            case RequestKind.TRACK_STATUS:
                self._track_status(request)
            case RequestKind.PUBLISH:
                self._publish(request)
            case RequestKind.PUBLISH_NAMESPACE:
                self._publish_namespace(request)
            case RequestKind.SUBSCRIBE_NAMESPACE | RequestKind.SUBSCRIBE_TRACKS:
                self._subscribe_prefix(request)

    def _authorised_update(self, event: UpdateReceived) -> bool:
        """Ask the policy, unless the update is about a PUBLISH of ours."""
        request, update = event.request, event.update
        if request.ours:
            return True
        try:
            self.authorise(as_updated(request, update))
        except RequestRefused as refusal:
            refuse_update(request, update, refusal)
            request.context.handle(RequestCancelled(request, refusal.code))
            return False
        return True

    def _track_status(self, request: Request) -> None:
        track = self._track(request)
        track.check_wellformed()
        if track.established:
            largest = Parameters(largest_object=track.store.largest)
            if answerable(request):
                request.session.accept(request, largest, track.properties or b"")
        else:
            forward_status(track, request)

    def _publish(self, request: Request) -> None:
        message = request.message
        assert isinstance(message, Publish)
        self._track(request).published(request, message.track_properties)

    def _publish_namespace(self, request: Request) -> None:
        if not answerable(request):
            return
        namespace = request.namespace or ()
        request.context = Announcement(self, request)
        self._routes.add(namespace, request)
        request.session.accept(request)
        self._discovery.add(namespace)
        self._look_again(namespace)

    def _subscribe_prefix(self, request: Request) -> None:
        request.context = PrefixInterest(self, request)
        self._discovery.subscribe(request)
        self._uplinks.update()
        if request.kind is RequestKind.SUBSCRIBE_TRACKS:
            for track in tuple(self.tracks.values()):
                if track.established:
                    self._offer_track(track, [request])

    # Routing

    def _publishers(self, namespace: TrackNamespace, asking: Session | None) -> list[Session]:
        """Who announced the namespace or a prefix of it; else the relays above us."""
        found = self._routes.publishers(namespace)
        return found or [one for one in self._uplinks.usable if one is not asking]

    def _tokens(self, session: Session) -> tuple[Token, ...]:
        return self.config.upstream_tokens if session in self._uplinks else ()

    def _look_again(self, namespace: TrackNamespace) -> None:
        """There is a new publisher for the namespace: subscribe what is wanted (R224)."""
        for track in tuple(self.tracks.values()):
            if track.wanted() and is_prefix(namespace, track.name.namespace):
                track.find_publishers(forward=track.wants_forward())

    def _established(self, track: RelayTrack, first: bool) -> None:
        """A Track has a publisher: tell who asked for Tracks, and leave sessions that end."""
        if first:
            wanted = self._discovery.wants_track(track.name, track.properties or b"")
            self._offer_track(track, wanted)
        for session in self._uplinks.leaving:
            track.leave(session)
        self._leave_sessions()

    def _leave_sessions(self) -> None:
        """Close sessions whose relay goes away once no Track depends on them."""
        for session in tuple(self._uplinks.leaving):
            self._uplinks.close_if_idle(
                session, in_use=any(session in one.upstreams for one in self.tracks.values())
            )

    def _offer_track(self, track: RelayTrack, requests: list[Request]) -> None:
        wanted = self._discovery.wants_track(track.name, track.properties or b"")
        for request in requests:
            if request in wanted:
                track.subscribers.publish_to(request)
        if requests:
            track.adjust_forward()

    def _track(self, request: Request) -> RelayTrack:
        assert request.track is not None
        track = self.tracks.get(request.track)
        if track is None:
            track = self.tracks[request.track] = self.track_class(request.track, self._context)
        return track

    def _idle(self, track: RelayTrack) -> None:
        if track.forgettable and self.tracks.get(track.name) is track:
            del self.tracks[track.name]
            track.store.give_up()

    def _limits(self, session: Session) -> SessionLimits:
        limits = self.sessions.get(session)
        if limits is None:
            limits = self.sessions[session] = SessionLimits(self.config, self.now())
        return limits

    # Endings

    def withdraw(self, request: Request) -> None:
        """A PUBLISH_NAMESPACE is taken back."""
        if self._routes.remove(request):
            self._discovery.remove(request.namespace or ())

    def interest_ended(self, request: Request) -> None:
        """A discovery request is over."""
        self._discovery.ended(request)
        self._uplinks.update()

    def prefix_update(self, event: UpdateReceived) -> None:
        """A REQUEST_UPDATE of a discovery request that is authorised."""
        request, update = event.request, event.update
        prefix = update.parameters.track_namespace_prefix
        try:
            self._discovery.check(request, prefix)
        except RequestRefused as refusal:
            refuse_update(request, update, refusal)
            self.interest_ended(request)
            return
        accept_update(request, update)
        self._discovery.updated(request, prefix)
        self._uplinks.update()

    def _closed(self, session: Session) -> None:
        self.sessions.pop(session, None)
        for request in self._routes.of_session(session):
            self.withdraw(request)
        self._discovery.session_closed(session)
        self._uplinks.closed(session)
        self._suspects.session_closed(session)
        for track in tuple(self.tracks.values()):
            track.session_closed(session)
        self._uplinks.update()


class Announcement:
    """Context of a peer's PUBLISH_NAMESPACE."""

    def __init__(self, relay: Relay, request: Request) -> None:
        self._relay = relay
        self._request = request

    def handle(self, event: Event) -> None:
        """One event of the request."""
        match event:
            case RequestCancelled():
                self._relay.withdraw(self._request)
            case UpdateReceived(request, update):
                accept_update(request, update)
            case _:
                pass


class PrefixInterest:
    """Context of a peer's SUBSCRIBE_NAMESPACE or SUBSCRIBE_TRACKS."""

    def __init__(self, relay: Relay, request: Request) -> None:
        self._relay = relay
        self._request = request

    def handle(self, event: Event) -> None:
        """One event of the request."""
        match event:
            case RequestCancelled():
                self._relay.interest_ended(self._request)
            case UpdateReceived():
                self._relay.prefix_update(event)
            case _:
                pass
