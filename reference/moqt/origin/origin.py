"""A publisher of its own Tracks, on sessions that it opens or accepts."""

from __future__ import annotations

from moqt.endpoint import Host
from moqt.origin.track import LocalTrack
from moqt.session import Request, RequestKind, Session, SessionConfig
from moqt.session.events import (
    Event,
    GoawayReceived,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    SessionClosed,
    SetupReceived,
    StreamStopped,
    SubscriptionCut,
    UpdateReceived,
)
from moqt.session.timers import Timers
from moqt.tracks.answering import (
    accept_update,
    answerable,
    as_updated,
    ask,
    cancel,
    refuse_update,
    refuse_with,
)
from moqt.tracks.discovery import Discovery
from moqt.tracks.intervals import LAST_ID
from moqt.tracks.moving import Line
from moqt.tracks.serving import fetch_source
from moqt.wire.errors import RequestErrorCode, RequestRefused, SessionError
from moqt.wire.filters import fetch_range
from moqt.wire.messages import FetchOk, Parameters, RequestError
from moqt.wire.names import FullTrackName, TrackNamespace
from moqt.wire.tokens import Token


class Origin:
    """Serves its Tracks to whoever is authorised; announces its namespaces on every session.

    Subclasses override the hooks `authorise`, `on_announced`, `on_announce_failed`,
    `on_session_closed` and `answer_fetch`. `retry_interval` (milliseconds plus one) goes into
    EXCESSIVE_LOAD.
    """

    def __init__(
        self, *, max_fetches_per_session: int | None = None, retry_interval: int = 1001
    ) -> None:
        self.max_fetches_per_session = max_fetches_per_session
        self.retry_interval = retry_interval
        self.tracks: dict[FullTrackName, LocalTrack] = {}
        self.sessions: set[Session] = set()
        self._host: Host | None = None
        self._discovery = Discovery()
        self._namespaces: dict[TrackNamespace, tuple[Token, ...]] = {}
        self._announcements: dict[Request, TrackNamespace] = {}
        self._fetches: dict[Session, set[Request]] = {}
        self._leaving: set[Session] = set()
        self._lines: dict[Session, Line] = {}
        self._timers = Timers()

    # What the application does

    def connect(self, url: str, config: SessionConfig) -> Session:
        """Open a session to `url`; every namespace is announced there."""

        def connect(url: str, line: Line) -> Session:
            session = self.host.connect(url, config)
            self.sessions.add(session)
            self._lines[session] = line
            return session

        return connect(url, Line(connect, self._timers, self.host.now))

    def add_track(
        self, track: FullTrackName, *, properties: bytes = b"", default_priority: int | None = None
    ) -> LocalTrack:
        """A new Track; `properties` are the octets of its Track Properties.

        `default_priority` is taken from them when it is not given. A SUBSCRIBE_TRACKS that
        matches gets a PUBLISH. Raises ValueError for a name that exists.
        """
        if track in self.tracks:
            raise ValueError(f"the Track {track} exists")
        local = self.tracks[track] = LocalTrack(track, properties, default_priority)
        for request in self._discovery.wants_track(track, properties):
            local.publish_to(request)
        return local

    def remove_track(self, track: FullTrackName) -> None:
        """Forget a Track; its subscriptions must be finished before."""
        self.tracks.pop(track, None)

    def announce(self, namespace: TrackNamespace, tokens: tuple[Token, ...] = ()) -> None:
        """PUBLISH_NAMESPACE on every session, now and later (MOQT-22 §9.14)."""
        if namespace in self._namespaces:
            return
        self._namespaces[namespace] = tokens
        self._discovery.add(namespace)
        for session in self.sessions:
            if session.peer_setup is not None and session not in self._leaving:
                self._announce(session, namespace)

    def withdraw(self, namespace: TrackNamespace) -> None:
        """Take the announcement back everywhere."""
        if self._namespaces.pop(namespace, None) is None:
            return
        self._discovery.remove(namespace)
        for request in [one for one, what in self._announcements.items() if what == namespace]:
            del self._announcements[request]
            cancel(request)

    # Hooks

    def authorise(self, request: Request) -> None:
        """Raise RequestRefused to refuse a request; asked before anything else."""

    def on_announced(self, session: Session, namespace: TrackNamespace) -> None:
        """The peer accepted the announcement."""

    def on_announce_failed(
        self, session: Session, namespace: TrackNamespace, error: RequestError | None
    ) -> None:
        """The peer refused the announcement, or gave it up later (`error` None)."""

    def on_session_closed(self, session: Session, event: SessionClosed) -> None:
        """A session ended."""

    def answer_fetch(self, request: Request, message: FetchOk) -> None:
        """FETCH_OK; the stream opens next, whenever this is sent."""
        request.session.accept_fetch(request, message)

    # What the driver calls

    @property
    def host(self) -> Host:
        """The driver that we run on; RuntimeError before `attach`."""
        if self._host is None:
            raise RuntimeError("the role is not attached to a driver yet")
        return self._host

    def attach(self, host: Host) -> None:
        """Called once, before anything else."""
        self._host = host

    def session_opened(self, session: Session, now: float) -> None:
        """A peer connected to us."""
        self.sessions.add(session)

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called, or None."""
        return self._timers.next()

    def handle_timer(self, now: float) -> None:
        """The time that `next_timer` named has come."""
        self._timers.fire(now)

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """One event of one session."""
        match event:
            case SetupReceived():
                for namespace in self._namespaces:
                    self._announce(session, namespace)
            case RequestReceived(request):
                self._serve(request)
            case UpdateReceived(request):
                self._update(event)
            case RequestAccepted(request):
                announced = self._announcements.get(request)
                if announced is not None:
                    self.on_announced(session, announced)
            case RequestFailed(request):
                self._ended(request, event.error)
            case RequestCancelled(request):
                self._ended(request, None)
            case SubscriptionCut(request):
                self._ended(request, None)
            case StreamStopped(request) if request.kind is RequestKind.FETCH:
                self._ended(request, None)
            case GoawayReceived(request=None):
                self._move(session, event.message.uri)
            case SessionClosed():
                self._closed(session, event)
            case _:
                pass

    # Serving

    def _serve(self, request: Request) -> None:
        try:
            self.authorise(request)
            match request.kind:
                case RequestKind.SUBSCRIBE:
                    self._track(request).subscribe(request)
                case RequestKind.FETCH:
                    self._fetch(request)
                case RequestKind.TRACK_STATUS:
                    track = self._track(request)
                    if answerable(request):
                        largest = Parameters(largest_object=track.largest)
                        request.session.accept(request, largest, track.properties)
                case RequestKind.SUBSCRIBE_NAMESPACE:
                    self._discovery.subscribe(request)
                case RequestKind.SUBSCRIBE_TRACKS:
                    self._discovery.subscribe(request)
                    for track in self.tracks.values():
                        if request in self._discovery.wants_track(track.name, track.properties):
                            track.publish_to(request)
                case _:
                    raise RequestRefused(
                        "this publisher subscribes to nothing", RequestErrorCode.UNINTERESTED
                    )
        except RequestRefused as refusal:
            refuse_with(request, refusal)

    def _track(self, request: Request) -> LocalTrack:
        track = None if request.track is None else self.tracks.get(request.track)
        if track is None:
            raise RequestRefused("there is no such track", RequestErrorCode.DOES_NOT_EXIST)
        return track

    def _fetch(self, request: Request) -> None:
        running = self._fetches.setdefault(request.session, set())
        limit = self.max_fetches_per_session
        if limit is not None and len(running) >= limit:
            raise RequestRefused(
                f"{limit} fetches run on this session already",
                RequestErrorCode.EXCESSIVE_LOAD,
                self.retry_interval,
            )
        track = self._track(request)
        parameters = request.parameters
        start, end = fetch_range(parameters.location_filter, track.largest)
        if not answerable(request):
            return
        running.add(request)
        source = fetch_source(track.store, parameters, track.properties, start, end)
        source.on_close = lambda: running.discard(request)
        if end.object == LAST_ID:
            end = max(start, track.store.last_object(end) or start)
        self.answer_fetch(
            request,
            FetchOk(
                track.ended and end == track.store.top,
                end,
                track_properties=track.properties,
            ),
        )
        source.wake = request.session.open_fetch(request, source).wake

    def _update(self, event: UpdateReceived) -> None:
        request, update = event.request, event.update
        prefix = update.parameters.track_namespace_prefix
        try:
            if not request.ours:
                self.authorise(as_updated(request, update))
            self._discovery.check(request, prefix)
        except RequestRefused as refusal:
            refuse_update(request, update, refusal)
            self._ended(request, None)
            return
        track = request.context
        if isinstance(track, LocalTrack):
            if accept_update(request, update, Parameters(largest_object=track.largest)):
                track.fill(request, update.request_id, update.parameters)
        else:
            accept_update(request, update)
            self._discovery.updated(request, prefix)

    # Endings

    def _announce(self, session: Session, namespace: TrackNamespace) -> None:
        parameters = Parameters(authorization_tokens=self._namespaces[namespace])
        request = ask(lambda: session.publish_namespace(namespace, parameters))
        if request is not None:
            self._announcements[request] = namespace

    def _ended(self, request: Request, error: RequestError | None) -> None:
        namespace = self._announcements.pop(request, None)
        if namespace is not None:
            self.on_announce_failed(request.session, namespace, error)
        self._fetches.get(request.session, set()).discard(request)
        self._discovery.ended(request)
        if isinstance(request.context, LocalTrack):
            request.context.left(request)
            if request.session in self._leaving:
                self._close_if_idle(request.session)

    def _move(self, session: Session, uri: bytes) -> None:
        """GOAWAY: announce on a new session, keep sending on the old one (MOQT-22 §9.2)."""
        self._leaving.add(session)
        if session in self._lines and session.url is not None:
            self._lines[session].leave(session, uri, session.url)
        self._close_if_idle(session)

    def _close_if_idle(self, session: Session) -> None:
        for track in self.tracks.values():
            if any(request.session is session for request in track.senders):
                return
        if session.is_client:
            session.close(SessionError.NO_ERROR, "moved")

    def _closed(self, session: Session, event: SessionClosed) -> None:
        self.sessions.discard(session)
        self._leaving.discard(session)
        self._lines.pop(session, None)
        self._fetches.pop(session, None)
        self._discovery.session_closed(session)
        for request in [one for one in self._announcements if one.session is session]:
            del self._announcements[request]
        for track in self.tracks.values():
            for request in [one for one in track.senders if one.session is session]:
                track.left(request)
        self.on_session_closed(session, event)
