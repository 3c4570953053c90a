"""What the peer sends on request streams, message by message (MOQT-22 §9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from moqt.session.control import check_goaway
from moqt.session.events import (
    GoawayReceived,
    NamespaceEnded,
    NamespaceReceived,
    PublishDoneReceived,
    RequestCancelled,
    RequestReceived,
    StateNotified,
    TrackSkipped,
)
from moqt.session.exchange import ReceivedUpdate, RequestStream
from moqt.session.parameters import updated
from moqt.session.registry import DISCOVERY, Registry, check_reserved
from moqt.session.requests import Request, RequestKind, RequestState
from moqt.session.responses import Responses
from moqt.session.states import EXCHANGES, Role, classify, owes
from moqt.session.subscription import Subscription
from moqt.wire.errors import (
    RemoteProtocolError,
    RequestErrorCode,
    RequestRefused,
    SessionError,
    StreamError,
)
from moqt.wire.filters import check_range_filters
from moqt.wire.messages import (
    Goaway,
    Message,
    Namespace,
    NamespaceDone,
    Parameters,
    Publish,
    PublishDone,
    PublishSkipped,
    PublishStateNotify,
    RequestMessage,
    RequestUpdate,
)
from moqt.wire.names import TrackNamespace, name_defect
from moqt.wire.parameters import check_parameters
from moqt.wire.properties import mandatory_properties, track_defect

_OPENERS = tuple(kind.value for kind in RequestKind)
LOAD_RETRY = 1001
"""Retry Interval of EXCESSIVE_LOAD: one second, plus one (MOQT-22 §9.4)."""

Refuse: TypeAlias = Callable[[RequestStream, RequestRefused], None]


class Incoming:
    """Reads request streams.

    `refuse` answers a request that the application need not see; `advance_updates` looks at what
    can be done about the updates of a stream.
    """

    def __init__(
        self,
        registry: Registry,
        responses: Responses,
        refuse: Refuse,
        advance_updates: Callable[[RequestStream], None],
    ) -> None:
        self._registry = registry
        self._responses = responses
        self._core = registry.core
        self._refuse = refuse
        self._advance_updates = advance_updates
        self._before_setup: dict[RequestStream, None] = {}
        self._held = 0

    def data(self, stream_id: int, data: bytes | memoryview, fin: bool) -> None:
        """Octets of a bidirectional stream."""
        stream = self._registry.by_stream.get(stream_id)
        if stream is None:
            if (stream_id & 1 == 0) == self._core.is_client:
                return
            stream = self._registry.accept(stream_id)
        if fin:
            self._core.note("moqt:fin_received", stream=stream_id)
        if self._core.peer_setup is None and not stream.aborted:
            self._hold(stream, data, fin)
        else:
            self._read(stream, data, fin)

    def _hold(self, stream: RequestStream, data: bytes | memoryview, fin: bool) -> None:
        """SETUP decides how a request is read: keep what comes before it (MOQT-22 §6.3)."""
        self._before_setup[stream] = None
        stream.held += data
        stream.held_fin = fin
        self._held += len(data)
        if self._held > self._core.config.early_data_budget:
            self._let_go(stream)
            stream.abort(StreamError.EXCESSIVE_LOAD)

    def _let_go(self, stream: RequestStream) -> None:
        """Keep nothing of a stream for later."""
        self._before_setup.pop(stream, None)
        self._held -= len(stream.held)
        stream.held.clear()

    def setup_received(self) -> None:
        """The peer's SETUP came."""
        streams, self._before_setup = self._before_setup, {}
        for stream in streams:
            if not self._core.closed:
                held, stream.held = bytes(stream.held), bytearray()
                self._read(stream, held, stream.held_fin)

    def _read(self, stream: RequestStream, data: bytes | memoryview, fin: bool) -> None:
        if not stream.aborted:
            stream.reader.feed(data)
            while not stream.aborted and (found := stream.reader.next()) is not None:
                stream.be_patient(False)
                message, raw = found
                self._core.note(
                    "moqt:message_received", stream=stream.stream_id, message=message, raw=raw
                )
                self._message(stream, message)
                if self._core.closed:
                    return
        if not stream.aborted:
            if fin and stream.reader.pending:
                raise RemoteProtocolError("a request stream ends inside a message")
            stream.be_patient(stream.reader.pending)
        if fin:
            stream.fin_received = True
            if not stream.aborted:
                self._fin(stream)
            self._registry.settle(stream)

    def reset(self, stream_id: int, code: int) -> None:
        """The peer reset its direction: it cancels."""
        stream = self._registry.by_stream.get(stream_id)
        if stream is not None:
            stream.reset_received = True
            self._cancelled(stream, code)
        elif (stream_id & 1 == 0) != self._core.is_client:
            # Nothing of it came before: left open, our direction would use up a stream for ever.
            self._core.reset(stream_id, code)

    def stopped(self, stream_id: int, code: int) -> None:
        """STOP_SENDING: the peer cancels; our direction is reset."""
        stream = self._registry.by_stream.get(stream_id)
        if stream is not None:
            self._cancelled(stream, code)

    def _cancelled(self, stream: RequestStream, code: int) -> None:
        self._let_go(stream)
        self._registry.failed(stream, code)
        self._registry.settle(stream)

    # Messages.

    def _message(self, stream: RequestStream, message: Message) -> None:
        request = stream.request
        if request is None:
            self._opener(stream, message)
            return
        name = type(message).__name__
        if stream.said_last:
            raise RemoteProtocolError(f"{name} follows the last message of its side")
        if not stream.live:
            # It crossed our last message.
            return
        side = stream.our_side.other
        role = classify(
            request.kind, request.state, side, message, open_updates=len(stream.sent_updates)
        )
        match role, message:
            case Role.ANSWER, _:
                self._responses.answer(stream, request, message)
            case Role.UPDATE_ANSWER, _:
                self._responses.update_answer(stream, request, message)
            case Role.UPDATE, RequestUpdate():
                self._update(stream, request, message)
            case Role.GOAWAY, Goaway():
                self._goaway(stream, request, message)
            case Role.EXTRA, _:
                self._extra(stream, request, message)
            case _:
                raise RemoteProtocolError(
                    f"{name} from the {side.value} of {request.kind.name} is not legal here"
                )

    def _opener(self, stream: RequestStream, message: Message) -> None:
        if not isinstance(message, _OPENERS):
            raise RemoteProtocolError(f"{type(message).__name__} cannot open a request stream")
        assert isinstance(message, RequestMessage)
        core = self._core
        core.ids.use_of_peer(message.request_id)
        request = Request.of(core.session, message, ours=False)
        open_requests = self._registry.open_of_peer
        self._registry.add(stream, request)
        try:
            request.tokens = self._registry.control.received_tokens.resolve(
                message.parameters.authorization_tokens
            )
            if isinstance(message, Publish):
                self._publish(stream, request, message)
            self._admit(request, open_requests)
        except RequestRefused as refusal:
            self._refuse(stream, refusal)
            if isinstance(message, Publish):
                self._registry.receiver.unwanted(message.track_alias)
            return
        core.emit(RequestReceived(request))
        if stream.subscription is not None and stream.subscription.binding is not None:
            self._registry.receiver.bound(stream.subscription.binding)

    def _publish(self, stream: RequestStream, request: Request, message: Publish) -> None:
        core = self._core
        self._registry.receiver.aliases.check(message.track_alias, message.track)
        unknown = set(mandatory_properties(message.track_properties))
        if missing := unknown - core.config.understood_properties:
            raise RequestRefused(
                f"Mandatory Track Property 0x{min(missing):x} is not understood",
                RequestErrorCode.UNSUPPORTED_EXTENSION,
            )
        if defect := track_defect(message.track_properties):
            raise RequestRefused(defect, RequestErrorCode.MALFORMED_TRACK)
        stream.subscription = Subscription(core, request)
        stream.subscription.refilter(message.parameters.largest_object)
        self._registry.receiver.aliases.bind(
            message.track_alias, stream.subscription, message.track_properties
        )

    def _admit(self, request: Request, open_requests: int) -> None:
        """Refuse what no application needs to see; raises RequestRefused."""
        if self._registry.control.goaway_sent or self._registry.control.goaway_received:
            raise RequestRefused("the session is going away", RequestErrorCode.GOING_AWAY)
        if open_requests >= self._core.config.max_open_requests:
            raise RequestRefused(
                f"{open_requests} requests are open", RequestErrorCode.EXCESSIVE_LOAD, LOAD_RETRY
            )
        check_reserved(request)
        self._check_filters(request.parameters)
        if request.kind in DISCOVERY:
            assert request.namespace is not None
            self._check_overlap(request, request.namespace)

    def _check_overlap(self, request: Request, prefix: TrackNamespace) -> None:
        if self._registry.overlaps(request, prefix):
            raise RequestRefused(
                f"the prefix overlaps another {request.kind.name}",
                RequestErrorCode.PREFIX_OVERLAP,
            )

    def _check_filters(self, parameters: Parameters) -> None:
        limit = self._core.config.setup.max_filter_ranges
        check_range_filters(parameters.range_filters, limit)
        if parameters.fill is not None:
            check_range_filters(parameters.fill.range_filters, limit)

    def _update(self, stream: RequestStream, request: Request, message: RequestUpdate) -> None:
        core = self._core
        core.ids.use_of_peer(message.request_id)
        context = EXCHANGES[request.kind].update_context
        assert context is not None
        check_parameters(message.parameters, core.draft, context)
        limit = core.config.setup.max_request_updates
        if limit and len(stream.received_updates) >= limit:
            raise RemoteProtocolError(
                f"more than {limit} updates have no answer yet",
                SessionError.TOO_MANY_REQUEST_UPDATES,
            )
        most = core.config.max_open_requests
        if len(stream.received_updates) >= most:
            # Nobody announced a limit; still one request must not cost without end.
            self._registry.failed(stream, StreamError.EXCESSIVE_LOAD)
            return
        parameters = message.parameters
        entry = ReceivedUpdate(message)
        stream.received_updates.append(entry)
        try:
            if parameters.fill is not None and core.open_fills >= most:
                raise RequestRefused(
                    f"{most} fills are open", RequestErrorCode.EXCESSIVE_LOAD, LOAD_RETRY
                )
            tokens = self._registry.control.received_tokens.resolve(parameters.authorization_tokens)
            if tokens != parameters.authorization_tokens:
                parameters = replace(parameters, authorization_tokens=tokens)
                entry.message = replace(message, parameters=parameters)
            self._check_filters(parameters)
            if parameters.track_namespace_prefix is not None:
                self._check_overlap(request, parameters.track_namespace_prefix)
        except RequestRefused as refusal:
            entry.refusal = refusal
        self._advance_updates(stream)

    def _goaway(self, stream: RequestStream, request: Request, message: Goaway) -> None:
        if stream.goaway_received:
            raise RemoteProtocolError("a second GOAWAY came on a request stream")
        check_goaway(self._core, message)
        stream.goaway_received = True
        self._core.emit(GoawayReceived(request, message))

    def _extra(self, stream: RequestStream, request: Request, message: Message) -> None:
        core = self._core
        match message:
            case PublishStateNotify(parameters=parameters):
                request.parameters = updated(request.parameters, parameters)
                if stream.subscription is not None and parameters.location_filter is not None:
                    stream.subscription.refilter(parameters.largest_object)
                core.emit(StateNotified(request, message))
            case PublishDone():
                self._publish_done(stream, request, message)
            case Namespace(suffix=suffix):
                namespace = self._whole(request, suffix)
                if namespace in stream.announced:
                    return
                if len(stream.announced) >= core.config.max_announced:
                    self._registry.failed(stream, StreamError.EXCESSIVE_LOAD)
                    return
                stream.announced.add(namespace)
                core.emit(NamespaceReceived(request, namespace))
            case NamespaceDone(suffix=suffix):
                namespace = self._whole(request, suffix)
                if namespace not in stream.announced:
                    raise RemoteProtocolError("NAMESPACE_DONE came before its NAMESPACE")
                stream.announced.remove(namespace)
                core.emit(NamespaceEnded(request, namespace))
            case PublishSkipped(suffix=suffix, name=name):
                self._whole(request, suffix, name)
                core.emit(TrackSkipped(request, message))

    @staticmethod
    def _whole(request: Request, suffix: TrackNamespace, name: bytes = b"") -> TrackNamespace:
        assert request.namespace is not None
        namespace = request.namespace + suffix
        if defect := name_defect(namespace, name):
            raise RemoteProtocolError(defect)
        return namespace

    def _publish_done(self, stream: RequestStream, request: Request, message: PublishDone) -> None:
        stream.said_last = True
        self._core.emit(PublishDoneReceived(request, message))
        self._responses.answer_merged_failures(stream, request)
        if request.state is RequestState.ESTABLISHED:
            self._registry.end(request)
            if not stream.ours:
                stream.finish()
        if stream.subscription is not None:
            stream.subscription.publisher_done(message)

    # FIN.

    def _fin(self, stream: RequestStream) -> None:
        request = stream.request
        if request is None:
            # Nothing was asked.
            stream.finish()
            return
        if stream.update_error is not None:
            self._responses.answer_merged_failures(stream, request)
        side = stream.our_side.other
        if owes(
            request.kind,
            request.state,
            side,
            open_updates=len(stream.sent_updates),
            said_last=stream.said_last,
        ):
            self._registry.failed(stream, None)
        elif stream.ours and stream.live and EXCHANGES[request.kind].fin_withdraws:
            self._registry.withdraw_namespaces(stream)
            self._core.emit(RequestCancelled(request, StreamError.CANCELLED))
            self._registry.terminate(stream, StreamError.CANCELLED)
            stream.finish()
        elif stream.ours and (not stream.live or request.kind is RequestKind.FETCH):
            stream.finish()
