"""The request streams of a session, and what ends with a request."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator

from moqt.session.control import Control
from moqt.session.core import Core
from moqt.session.events import NamespaceEnded, RequestCancelled, RequestFailed
from moqt.session.exchange import RequestStream
from moqt.session.prefixes import Prefixes
from moqt.session.receiving import Receiver
from moqt.session.requests import Request, RequestKind, RequestState
from moqt.session.scheduler import Scheduler
from moqt.wire.codec import MessageReader
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, RequestRefused, StreamError
from moqt.wire.messages import PublishDone
from moqt.wire.names import (
    SESSION_NAMESPACE_FIELD,
    FullTrackName,
    TrackNamespace,
)

DISCOVERY = frozenset({RequestKind.SUBSCRIBE_NAMESPACE, RequestKind.SUBSCRIBE_TRACKS})
"""Kinds of which no two on one side may have prefixes on one path (R194, R195)."""


class Registry:
    """All request streams; ours wait here while the peer grants none."""

    def __init__(
        self, core: Core, control: Control, receiver: Receiver, scheduler: Scheduler
    ) -> None:
        self.core = core
        self.control = control
        self.receiver = receiver
        self.scheduler = scheduler
        self.by_stream: dict[int, RequestStream] = {}
        self._of: dict[Request, RequestStream] = {}
        self._open_of_peer: set[Request] = set()
        self._prefixes: defaultdict[tuple[bool, RequestKind], Prefixes] = defaultdict(Prefixes)
        self._unopened: deque[RequestStream] = deque()
        self._aliases: dict[int, tuple[FullTrackName, int]] = {}
        self._next_alias = 0

    # Streams.

    def new(self, *, ours: bool, stream_id: int | None = None) -> RequestStream:
        """A request stream, not known to the registry yet."""
        return RequestStream(self.core, ours, MessageReader(self.core.draft), stream_id)

    def accept(self, stream_id: int) -> RequestStream:
        """A request stream that the peer opened."""
        stream = self.by_stream[stream_id] = self.new(ours=False, stream_id=stream_id)
        self.core.note("moqt:stream_accepted", stream=stream_id, kind="request", header=None)
        return stream

    def add(self, stream: RequestStream, request: Request) -> None:
        """`request` runs on `stream`."""
        stream.request = request
        request.stream_id = stream.stream_id
        self._of[request] = stream
        if not stream.ours:
            self._open_of_peer.add(request)
        if request.kind in DISCOVERY and request.namespace is not None:
            self.set_prefix(request, request.namespace)

    def launch(self, stream: RequestStream) -> None:
        """Open a stream of ours as soon as may be."""
        self._unopened.append(stream)
        self.open_waiting()

    def open_waiting(self) -> None:
        """Open what waits, in order; SETUP goes before."""
        while self._unopened and self.control.started:
            stream = self._unopened[0]
            if not stream.aborted:
                stream_id = self.core.transport.open_stream(unidirectional=False)
                if stream_id is None:
                    return
                self.by_stream[stream_id] = stream
                stream.opened(stream_id)
            self._unopened.popleft()

    def of(self, request: Request) -> RequestStream:
        """The stream of a request that still has one."""
        stream = self._of.get(request)
        if stream is None:
            raise LocalProtocolError(f"request {request.id} is over")
        return stream

    def find(self, request: Request) -> RequestStream | None:
        """The stream of a request, unless that is forgotten."""
        return self._of.get(request)

    def set_paused(self, request: Request, paused: bool) -> None:
        """Whether the application holds the request's data back: no time runs against it then."""
        stream = self._of.get(request)
        if stream is not None and stream.subscription is not None:
            stream.subscription.paused = paused

    def live(self) -> Iterator[RequestStream]:
        """Streams with a request that did not end."""
        return (stream for stream in tuple(self._of.values()) if stream.live)

    def receiving(self, track: FullTrackName) -> list[RequestStream]:
        """Requests through which Objects of this Track come to us."""
        return [
            stream
            for stream in self._of.values()
            if stream.request is not None
            and stream.request.track == track
            and (
                self.delivers(stream)
                or (stream.ours and stream.live and stream.request.kind is RequestKind.FETCH)
            )
        ]

    @property
    def open_of_peer(self) -> int:
        """How many requests of the peer's did not end."""
        return len(self._open_of_peer)

    def end(self, request: Request) -> None:
        """The request is terminated; every end of one comes by here."""
        request.state = RequestState.TERMINATED
        self._open_of_peer.discard(request)
        self._prefixes[request.ours, request.kind].discard(request)

    def settle(self, stream: RequestStream) -> None:
        """Forget the stream once both directions ended, its request once that ended, too."""
        if not stream.over:
            return
        stream.be_patient(False)
        if stream.stream_id is not None:
            self.by_stream.pop(stream.stream_id, None)
        if stream.request is not None and not stream.live and not self.delivers(stream):
            self._of.pop(stream.request, None)

    @staticmethod
    def delivers(stream: RequestStream) -> bool:
        """Whether a subscription may still bring Objects to us."""
        return stream.subscription is not None and not stream.subscription.ended

    # Ends.

    def terminate(self, stream: RequestStream, code: int) -> None:
        """The request is over: its data streams, aliases and expectations end with it.

        A subscription whose PUBLISH_DONE came ends by itself.
        """
        request = stream.request
        assert request is not None
        self.end(request)
        if request.sender is not None:
            request.sender.cancelled(code)
        if stream.fetch is not None:
            stream.fetch.drop(code)
        self.release_alias(stream)
        self.leave(stream, code)

    def leave(self, stream: RequestStream, code: int) -> None:
        """Nothing is received for the request any more."""
        request = stream.request
        assert request is not None
        if stream.subscription is not None:
            stream.subscription.ended = True
            stream.subscription.stop_waiting()
            self.receiver.aliases.release(stream.subscription)
        self.receiver.drop(request, code)

    def failed(self, stream: RequestStream, code: int | None) -> None:
        """The peer ended the stream too early, by FIN (`code` None) or by cancelling."""
        request = stream.request
        if request is None or not stream.live:
            stream.abort(StreamError.CANCELLED if code is None else code)
            return
        pending = request.state is RequestState.PENDING
        self.withdraw_namespaces(stream)
        shown = StreamError.CANCELLED if code is None else code
        if request.ours and (pending or code is None):
            self.core.emit(RequestFailed(request, None, code))
        else:
            self.core.emit(RequestCancelled(request, shown))
        self.terminate(stream, shown)
        stream.abort(shown)

    def withdraw_namespaces(self, stream: RequestStream) -> None:
        """The response stream ended: every namespace that it announced is gone (§4.2.1)."""
        assert stream.request is not None
        if stream.ours and stream.request.kind is RequestKind.SUBSCRIBE_NAMESPACE:
            for namespace in sorted(stream.announced):
                self.core.emit(NamespaceEnded(stream.request, namespace))
        stream.announced.clear()

    def publish_done(self, request: Request, code: int, reason: str, streams: int) -> None:
        """All data streams of a subscription of the peer's are closed: say so, then FIN."""
        stream = self.of(request)
        stream.send(PublishDone(code, streams, reason), fin=True)
        self.end(request)
        self.release_alias(stream)
        self.settle(stream)

    # Track Aliases that we choose.

    def choose_alias(self, track: FullTrackName, wanted: int | None) -> int:
        """An alias for a subscription to `track`; LocalProtocolError if another track has it."""
        if wanted is None:
            while self._next_alias in self._aliases:
                self._next_alias += 1
            # Never reused: data under an old alias may be in flight (MOQT-22 §3.1.3).
            alias, self._next_alias = self._next_alias, self._next_alias + 1
            return alias
        if wanted in self._aliases and self._aliases[wanted][0] != track:
            raise LocalProtocolError(f"Track Alias {wanted} belongs to another live Track")
        return wanted

    def use_alias(self, stream: RequestStream, alias: int, track: FullTrackName) -> None:
        """The alias was sent."""
        stream.alias = alias
        self._aliases[alias] = (track, self._aliases.get(alias, (track, 0))[1] + 1)

    def release_alias(self, stream: RequestStream) -> None:
        """The subscription is over."""
        alias, stream.alias = stream.alias, None
        if alias is not None:
            track, users = self._aliases.pop(alias)
            if users > 1:
                self._aliases[alias] = (track, users - 1)

    # Rules on names.

    def set_prefix(self, request: Request, prefix: TrackNamespace) -> None:
        """The prefix of a discovery request, from now on."""
        request.namespace = prefix
        self._prefixes[request.ours, request.kind].set(request, prefix)

    def overlaps(self, request: Request, prefix: TrackNamespace) -> bool:
        """Whether another live request of its kind and side has a prefix on the same path."""
        return self._prefixes[request.ours, request.kind].overlaps(request, prefix)


def reserved_name(request: Request) -> str | None:
    """Why nobody can serve or ask for this name (MOQT-22 §2.4.3, §6.5), or None."""
    namespace = request.namespace if request.track is None else request.track.namespace
    if namespace and namespace[0] == b".":
        return "no name starts with the field '.'"
    if namespace and namespace[0] == SESSION_NAMESPACE_FIELD:
        return "there is no such session-level name"
    return None


def check_reserved(request: Request) -> None:
    """Raise RequestRefused DOES_NOT_EXIST for names that belong to the session itself."""
    if why := reserved_name(request):
        raise RequestRefused(why, RequestErrorCode.DOES_NOT_EXIST)
