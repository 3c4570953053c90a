"""The session: what a driver and an application call (MOQT-22 §3 to §9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moqt.session.answers import Answers
from moqt.session.config import SessionConfig
from moqt.session.control import Control
from moqt.session.core import Core
from moqt.session.events import Event, TrackMalformed
from moqt.session.fetching import FetchSender, FetchSource
from moqt.session.incoming import Incoming
from moqt.session.outgoing import Outgoing, known_range
from moqt.session.publication import SubscriptionSender
from moqt.session.receiving import Receiver
from moqt.session.registry import Registry
from moqt.session.requests import Request, RequestState
from moqt.session.responses import Responses
from moqt.session.scheduler import Scheduler
from moqt.session.streams import FetchTarget
from moqt.session.subscription import Subscription
from moqt.session.transport import Transport
from moqt.wire.errors import RemoteProtocolError, SessionError, StreamError
from moqt.wire.messages import (
    NO_PARAMETERS,
    Fetch,
    FetchOk,
    Goaway,
    Parameters,
    PublishNamespace,
    Redirect,
    RequestUpdate,
    SetupOptions,
    Subscribe,
    SubscribeNamespace,
    SubscribeTracks,
    TrackStatus,
)
from moqt.wire.names import FullTrackName, Location, TrackNamespace
from moqt.wire.tokens import Token


class Session:
    """One MOQT session over one transport connection, as a state machine.

    The driver hands in what arrives and the time, and takes events out; whatever is sent goes to
    the transport within the call. Nothing that a peer sends raises: a broken rule closes the
    session with the code that the rule names, and SessionClosed is the last event. Calls of the
    application raise LocalProtocolError where they would break a rule; nothing is sent then.
    """

    def __init__(self, is_client: bool, transport: Transport, config: SessionConfig) -> None:
        self.is_client = is_client
        self.config = config
        self.context: Any = None
        self.url: str | None = None
        self.alpn = config.draft.alpn
        self._core = core = Core(self, is_client, transport, config)
        self._control = Control(core, self._setup_received)
        self._receiver = Receiver(core, self._control.data, self._malformed)
        self._scheduler = Scheduler()
        self._registry = Registry(core, self._control, self._receiver, self._scheduler)
        self._outgoing = Outgoing(self._registry)
        self._answers = Answers(self._registry)
        self._incoming = Incoming(
            self._registry,
            Responses(self._registry),
            self._answers.refuse_at_once,
            self._answers.advance_updates,
        )

    @property
    def now(self) -> float:
        """The latest time that was handed in, in seconds."""
        return self._core.now

    @property
    def closed(self) -> bool:
        """Whether the session ended."""
        return self._core.closed

    @property
    def takes_requests(self) -> bool:
        """Whether we may still ask: the session is open, and the peer sent no GOAWAY for it."""
        return not self.closed and not self._control.goaway_received

    @property
    def peer_setup(self) -> SetupOptions | None:
        """The peer's Setup Options, once they came."""
        return self._core.peer_setup

    @property
    def peer_tokens(self) -> tuple[Token, ...]:
        """The tokens in the peer's SETUP, all in USE_VALUE form."""
        return self._control.peer_tokens

    # The driver's side.

    def start(self, now: float) -> None:
        """The connection is up: send SETUP."""
        self._guard(now, self._control.start)

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        """Octets of a stream that the peer writes, in order; `fin`: the last ones."""
        receive = self._receiver.data if stream_id & 2 else self._incoming.data
        self._guard(now, lambda: receive(stream_id, data, fin))

    def stream_reset(self, stream_id: int, code: int, now: float) -> None:
        """RESET_STREAM of the peer."""
        self._core.note("moqt:reset_received", stream=stream_id, code=code)
        receive = self._receiver.reset if stream_id & 2 else self._incoming.reset
        self._guard(now, lambda: receive(stream_id, code))

    def stop_sending_received(self, stream_id: int, code: int, now: float) -> None:
        """STOP_SENDING of the peer."""
        self._core.note("moqt:stop_received", stream=stream_id, code=code)
        outlet = self._core.outlets.get(stream_id)
        if outlet is not None:
            self._guard(now, lambda: outlet.stopped(code))
        elif not stream_id & 2:
            self._guard(now, lambda: self._incoming.stopped(stream_id, code))
        elif stream_id == self._control.stream_id:
            self._guard(now, self._control.stopped)

    def datagram(self, data: bytes, now: float) -> None:
        """A datagram of the peer."""
        self._guard(now, lambda: self._receiver.datagram(data))

    def writable(self, now: float) -> None:
        """Room or stream credit may have grown; also to be called after each batch of calls."""
        self._guard(now, self._flush)

    def _flush(self) -> None:
        self._control.flush()
        self._registry.open_waiting()
        self._scheduler.pump()

    def connection_closed(self, code: int | None, reason: str, by_peer: bool, now: float) -> None:
        """The connection is gone."""
        self.advance(now)
        self._core.ended(code, reason, by_peer=by_peer)

    def advance(self, now: float) -> None:
        """Tell the time, without anything that happened."""
        self._core.now = max(self._core.now, now)

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called."""
        return None if self.closed else self._core.timers.next()

    def handle_timer(self, now: float) -> None:
        """The time that `next_timer` named has come."""
        self._guard(now, lambda: self._core.timers.fire(now))

    def next_event(self) -> Event | None:
        """The next thing that the application should know."""
        return self._core.events.popleft() if self._core.events else None

    def _guard(self, now: float, action: Callable[[], None]) -> None:
        """Do `action` unless the session ended; the peer's errors close it, and only it."""
        self.advance(now)
        if self.closed:
            return
        try:
            action()
        except RemoteProtocolError as error:
            self.fail(error)

    def fail(self, error: RemoteProtocolError) -> None:
        """The peer broke a rule: close with the code that this takes."""
        self._core.close(error.code, error.reason)

    # The application's side: requests.

    def subscribe(self, track: FullTrackName, parameters: Parameters = NO_PARAMETERS) -> Request:
        """SUBSCRIBE."""
        return self._outgoing.open(Subscribe(self._core.ids.next, track, parameters))

    def fetch(self, track: FullTrackName, parameters: Parameters = NO_PARAMETERS) -> Request:
        """FETCH; the range is the LOCATION_FILTER."""
        return self._outgoing.open(Fetch(self._core.ids.next, track, parameters))

    def track_status(self, track: FullTrackName, parameters: Parameters = NO_PARAMETERS) -> Request:
        """TRACK_STATUS."""
        return self._outgoing.open(TrackStatus(self._core.ids.next, track, parameters))

    def publish_namespace(
        self, namespace: TrackNamespace, parameters: Parameters = NO_PARAMETERS
    ) -> Request:
        """PUBLISH_NAMESPACE; cancelling it withdraws the namespace."""
        return self._outgoing.open(PublishNamespace(self._core.ids.next, namespace, parameters))

    def subscribe_namespace(
        self, prefix: TrackNamespace, parameters: Parameters = NO_PARAMETERS
    ) -> Request:
        """SUBSCRIBE_NAMESPACE."""
        return self._outgoing.open(SubscribeNamespace(self._core.ids.next, prefix, parameters))

    def subscribe_tracks(
        self, prefix: TrackNamespace, parameters: Parameters = NO_PARAMETERS
    ) -> Request:
        """SUBSCRIBE_TRACKS."""
        return self._outgoing.open(SubscribeTracks(self._core.ids.next, prefix, parameters))

    def publish(
        self,
        track: FullTrackName,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
        *,
        default_priority: int = 128,
    ) -> SubscriptionSender:
        """PUBLISH; `default_priority` ranks streams of which no Object is known yet."""
        return self._outgoing.publish(track, parameters, track_properties, default_priority)

    def update(self, request: Request, parameters: Parameters) -> int:
        """REQUEST_UPDATE; returns its Request ID."""
        return self._outgoing.update(request, parameters)

    def cancel(self, request: Request, code: int = StreamError.CANCELLED) -> None:
        """Cancel a request of either side with a stream code; no event follows."""
        self._outgoing.cancel(request, code)

    def close(self, code: int = SessionError.NO_ERROR, reason: str = "") -> None:
        """Close the session."""
        self._core.close(code, reason)

    def goaway(self, uri: bytes = b"", timeout: int = 0, request: Request | None = None) -> None:
        """GOAWAY for the session or one request; `timeout` in milliseconds, 0 for none.

        When the time is over, the session closes (GOAWAY_TIMEOUT if requests are open), or the
        request is reset.
        """
        self._core.require_open()
        if request is None:
            self._control.goaway(Goaway(uri, timeout), self._goaway_timeout)
        else:
            self._outgoing.goaway(request, Goaway(uri, timeout))

    def _goaway_timeout(self) -> None:
        if next(self._registry.live(), None) is None:
            self.close(SessionError.NO_ERROR, "gone away")
        else:
            self.close(SessionError.GOAWAY_TIMEOUT, "requests were open when time was over")

    # The application's side: answers.

    def accept(
        self,
        request: Request,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
    ) -> None:
        """REQUEST_OK for PUBLISH, TRACK_STATUS and the namespace kinds."""
        self._answers.accept(request, parameters, track_properties)

    def accept_subscribe(
        self,
        request: Request,
        *,
        largest: Location | None,
        track_properties: bytes = b"",
        parameters: Parameters = NO_PARAMETERS,
        alias: int | None = None,
        default_priority: int = 128,
    ) -> SubscriptionSender:
        """SUBSCRIBE_OK; the filter is evaluated against `largest`, the Largest Object now."""
        return self._answers.accept_subscribe(
            request, largest, track_properties, parameters, alias, default_priority
        )

    def accept_fetch(self, request: Request, message: FetchOk) -> None:
        """FETCH_OK."""
        self._answers.accept_fetch(request, message)

    def open_fetch(self, request: Request, source: FetchSource) -> FetchSender:
        """Open the fetch stream of a FETCH; may come before `accept_fetch`."""
        return self._answers.open_fetch(request, source)

    def refuse(
        self,
        request: Request,
        code: int,
        reason: str = "",
        *,
        retry_interval: int = 0,
        redirect: Redirect | None = None,
    ) -> None:
        """REQUEST_ERROR; `retry_interval` in milliseconds plus one, 0 for "not again"."""
        self._answers.refuse(request, code, reason, retry_interval, redirect)

    def accept_update(
        self,
        request: Request,
        update: RequestUpdate,
        parameters: Parameters = NO_PARAMETERS,
    ) -> None:
        """REQUEST_OK for the oldest update of the request; LARGEST_OBJECT is added if known."""
        self._answers.accept_update(request, update, parameters)

    def refuse_update(
        self, request: Request, update: RequestUpdate, code: int, reason: str = ""
    ) -> None:
        """REQUEST_ERROR for the oldest update; ends what it must end (MOQT-22 §9.5.1)."""
        self._answers.refuse_update(request, update, code, reason)

    def namespace(self, request: Request, namespace: TrackNamespace) -> None:
        """NAMESPACE for a SUBSCRIBE_NAMESPACE of the peer's."""
        self._answers.namespace(request, namespace)

    def namespace_done(self, request: Request, namespace: TrackNamespace) -> None:
        """NAMESPACE_DONE for a namespace that `namespace` announced."""
        self._answers.namespace_done(request, namespace)

    def publish_skipped(self, request: Request, track: FullTrackName) -> None:
        """PUBLISH_SKIPPED for a SUBSCRIBE_TRACKS of the peer's."""
        self._answers.publish_skipped(request, track)

    def state_notify(self, request: Request, parameters: Parameters = NO_PARAMETERS) -> None:
        """PUBLISH_STATE_NOTIFY; LARGEST_OBJECT is added if known."""
        self._answers.state_notify(request, parameters)

    def pause_request(self, request: Request) -> None:
        """Hold back the data streams of a request, later ones included."""
        self._registry.set_paused(request, True)
        self._receiver.pause(request)

    def resume_request(self, request: Request) -> None:
        """Undo `pause_request`."""
        self._registry.set_paused(request, False)
        self._receiver.resume(request)

    # What the parts tell each other.

    def _setup_received(self) -> None:
        self._incoming.setup_received()
        self._receiver.setup_received()

    def _malformed(self, track: FullTrackName, reason: str) -> None:
        """Cancel everything of a malformed Track on this session (MOQT-22 §12.1)."""
        for stream in self._registry.receiving(track):
            assert stream.request is not None
            self._core.emit(TrackMalformed(stream.request, reason))
            self.cancel(stream.request, StreamError.MALFORMED_TRACK)

    def subscription_over(self, subscription: Subscription) -> None:
        """A subscription saw its end, or waited long enough."""
        stream = self._registry.of(subscription.request)
        self._registry.leave(stream, StreamError.CANCELLED)
        self._registry.settle(stream)

    def fetch_stream_over(self, request_id: int, target: FetchTarget) -> None:
        """A fetch or fill stream ended."""
        self._receiver.targets.pop(request_id, None)
        request = target.request
        if target.subscription is None and request.state is RequestState.ESTABLISHED:
            self._registry.end(request)
            self._registry.settle(self._registry.of(request))

    def known_start(self, request: Request) -> Location | None:
        """Where the range of our FETCH starts, if that does not depend on the publisher."""
        return known_range(request.parameters)[0]
