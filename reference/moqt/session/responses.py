"""The peer's answers to our requests and updates (MOQT-22 §9.3, §9.4, §9.7, §9.12)."""

from __future__ import annotations

from moqt.session.events import (
    NamespaceEnded,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    TrackMalformed,
    UpdateAnswered,
)
from moqt.session.exchange import RequestStream
from moqt.session.parameters import updated
from moqt.session.registry import Registry
from moqt.session.requests import Request, RequestKind, RequestState
from moqt.session.states import EXCHANGES
from moqt.wire.drafts import ParameterContext
from moqt.wire.errors import RemoteProtocolError, RequestErrorCode, StreamError
from moqt.wire.messages import (
    FetchOk,
    Message,
    RequestError,
    RequestOk,
    SubscribeOk,
)
from moqt.wire.parameters import check_parameters
from moqt.wire.properties import mandatory_properties, track_defect

_ENDED_BY_FAILED_UPDATE = frozenset(
    {
        RequestKind.PUBLISH_NAMESPACE,
        RequestKind.SUBSCRIBE_NAMESPACE,
        RequestKind.SUBSCRIBE_TRACKS,
    }
)


class Responses:
    """Takes answers; legality by kind and state was checked before."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._core = registry.core

    def answer(self, stream: RequestStream, request: Request, message: Message) -> None:
        """The answer to the request."""
        stream.tokens.answered()
        match message:
            case RequestError():
                self._refused(stream, request, message)
            case SubscribeOk():
                self._subscribed(stream, request, message)
            case FetchOk():
                self._fetched(stream, request, message)
            case RequestOk():
                self._accepted(stream, request, message)

    def _refused(self, stream: RequestStream, request: Request, message: RequestError) -> None:
        redirect = message.redirect
        if redirect is not None:
            if redirect.uri and not self._core.is_client:
                raise RemoteProtocolError("a server was redirected to another URI")
            if request.track is None and redirect.track.name:
                raise RemoteProtocolError("the Redirect of a namespace request has a Track Name")
        request.response = message
        stream.said_last = True
        self._core.emit(RequestFailed(request, message))
        self._registry.terminate(stream, StreamError.CANCELLED)

    def _accepted(self, stream: RequestStream, request: Request, message: RequestOk) -> None:
        row = EXCHANGES[request.kind]
        check_parameters(message.parameters, self._core.draft, row.ok_context)
        if message.track_properties and request.kind is not RequestKind.TRACK_STATUS:
            raise RemoteProtocolError(f"the REQUEST_OK of {request.kind.name} has Track Properties")
        self._establish(request, message)
        if row.ends_with_answer:
            stream.said_last = True
            self._registry.end(request)

    def _establish(self, request: Request, message: SubscribeOk | RequestOk | FetchOk) -> None:
        request.response = message
        request.state = RequestState.ESTABLISHED
        self._core.emit(RequestAccepted(request, message))

    def _subscribed(self, stream: RequestStream, request: Request, message: SubscribeOk) -> None:
        receiver = self._registry.receiver
        assert request.track is not None
        assert stream.subscription is not None
        receiver.aliases.check(message.track_alias, request.track)
        if self._unacceptable(stream, request, message.track_properties):
            return
        stream.subscription.refilter(message.parameters.largest_object)
        self._establish(request, message)
        binding = receiver.aliases.bind(
            message.track_alias, stream.subscription, message.track_properties
        )
        receiver.bound(binding)

    def _fetched(self, stream: RequestStream, request: Request, message: FetchOk) -> None:
        if self._unacceptable(stream, request, message.track_properties):
            return
        target = self._registry.receiver.targets.get(request.id)
        start = self._core.session.known_start(request)
        if start is not None and message.end < start:
            raise RemoteProtocolError(
                f"FETCH_OK ends at {tuple(message.end)}, before the start {tuple(start)}"
            )
        self._establish(request, message)
        if target is None:
            # The fetch stream ended before.
            self._registry.end(request)

    def _unacceptable(self, stream: RequestStream, request: Request, properties: bytes) -> bool:
        """Cancel when the Track Properties rule the track out for us (MOQT-22 §3.7, §12.1)."""
        unknown = set(mandatory_properties(properties)) - self._core.config.understood_properties
        if unknown:
            error = RequestError(
                RequestErrorCode.UNSUPPORTED_EXTENSION,
                reason=f"Mandatory Track Property 0x{min(unknown):x} is not understood",
            )
            self._core.emit(RequestFailed(request, error))
            code = StreamError.CANCELLED
        elif defect := track_defect(properties):
            self._core.emit(TrackMalformed(request, defect))
            code = StreamError.MALFORMED_TRACK
        else:
            return False
        self._registry.terminate(stream, code)
        stream.abort(code)
        return True

    # Updates.

    def update_answer(self, stream: RequestStream, request: Request, message: Message) -> None:
        """The answer to our oldest update without one."""
        entry = stream.sent_updates.popleft()
        entry.tokens.answered()
        if entry.loosens and stream.subscription is not None:
            stream.subscription.lenient -= 1
        match message:
            case RequestOk(parameters=parameters):
                check_parameters(parameters, self._core.draft, ParameterContext.REQUEST_UPDATE_OK)
                if message.track_properties:
                    raise RemoteProtocolError("the REQUEST_OK of an update has Track Properties")
                changes = entry.message.parameters
                request.parameters = updated(request.parameters, changes)
                if changes.track_namespace_prefix is not None:
                    self._registry.set_prefix(request, changes.track_namespace_prefix)
                if stream.subscription is not None and changes.location_filter is not None:
                    stream.subscription.refilter(parameters.largest_object)
                if request.sender is not None:
                    request.sender.apply(request.parameters, None, refilter=False)
                self._core.emit(UpdateAnswered(request, entry.message.request_id, message))
            case RequestError():
                stream.update_error = message
                self._core.emit(UpdateAnswered(request, entry.message.request_id, message))
                if request.kind in _ENDED_BY_FAILED_UPDATE:
                    self._end_discovery(stream, request)

    def _end_discovery(self, stream: RequestStream, request: Request) -> None:
        self.answer_merged_failures(stream, request)
        for namespace in sorted(stream.announced):
            self._core.emit(NamespaceEnded(request, namespace))
        stream.announced.clear()
        self._core.emit(RequestCancelled(request, StreamError.CANCELLED))
        self._registry.terminate(stream, StreamError.CANCELLED)
        stream.finish()

    def answer_merged_failures(self, stream: RequestStream, request: Request) -> None:
        """One REQUEST_ERROR may stand for several failed updates (MOQT-22 §9.5.1)."""
        if stream.update_error is None:
            return
        while stream.sent_updates:
            entry = stream.sent_updates.popleft()
            entry.tokens.answered()
            self._core.emit(UpdateAnswered(request, entry.message.request_id, stream.update_error))
