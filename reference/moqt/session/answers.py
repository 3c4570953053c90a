"""Our answers to the peer's requests and updates (MOQT-22 §9.3 to §9.19)."""

from __future__ import annotations

from dataclasses import replace

from moqt.session.events import UpdateReceived, Via
from moqt.session.exchange import RequestStream
from moqt.session.fetching import FetchSender, FetchSource
from moqt.session.parameters import updated
from moqt.session.publication import DEFAULT_PRIORITY, DESCENDING, SubscriptionSender
from moqt.session.registry import Registry
from moqt.session.requests import Request, RequestKind, RequestState
from moqt.session.scheduler import Lane
from moqt.session.states import EXCHANGES
from moqt.wire.drafts import ParameterContext
from moqt.wire.errors import (
    LocalProtocolError,
    PublishDoneCode,
    RemoteProtocolError,
    RequestRefused,
    StreamError,
)
from moqt.wire.messages import (
    FetchOk,
    Namespace,
    NamespaceDone,
    Parameters,
    PublishSkipped,
    PublishStateNotify,
    Redirect,
    RequestError,
    RequestOk,
    RequestUpdate,
    SubscribeOk,
)
from moqt.wire.names import FullTrackName, Location, TrackNamespace, is_prefix
from moqt.wire.parameters import check_parameters

MAX_REASON = 1024


class Answers:
    """Each request and each update gets exactly one answer; a second one raises.

    An answer to a request that ended while the application thought about it does nothing: the
    event that says so is on its way.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._core = registry.core

    def _unanswered(self, request: Request, *kinds: RequestKind) -> RequestStream | None:
        """The stream of a request that may be answered; None when it ended meanwhile."""
        if request.ours or (kinds and request.kind not in kinds):
            raise LocalProtocolError(f"this {request.kind.name} cannot be answered like that")
        if request.response is not None:
            raise LocalProtocolError(f"request {request.id} was answered already")
        if self._core.closed or request.state is RequestState.TERMINATED:
            return None
        return self._registry.of(request)

    def _check(self, parameters: Parameters, context: ParameterContext) -> None:
        try:
            check_parameters(parameters, self._core.draft, context)
        except RemoteProtocolError as error:
            raise LocalProtocolError(error.reason) from None

    # Requests.

    def accept(self, request: Request, parameters: Parameters, track_properties: bytes) -> None:
        """REQUEST_OK."""
        stream = self._unanswered(request)
        row = EXCHANGES[request.kind]
        if row.ok is not RequestOk:
            raise LocalProtocolError(f"{request.kind.name} is not answered with REQUEST_OK")
        self._check(parameters, row.ok_context)
        if track_properties and request.kind is not RequestKind.TRACK_STATUS:
            raise LocalProtocolError("only TRACK_STATUS is answered with Track Properties")
        if stream is None:
            return
        message = RequestOk(parameters, _included(request, track_properties))
        done = row.ends_with_answer or stream.said_last
        stream.send(message, fin=done)
        request.response = message
        request.state = RequestState.ESTABLISHED
        if done:
            self._registry.end(request)
        self.advance_updates(stream)
        self._registry.settle(stream)

    def accept_subscribe(
        self,
        request: Request,
        largest: Location | None,
        track_properties: bytes,
        parameters: Parameters,
        alias: int | None,
        default_priority: int,
    ) -> SubscriptionSender:
        """SUBSCRIBE_OK."""
        stream = self._unanswered(request, RequestKind.SUBSCRIBE)
        assert request.track is not None
        chosen = self._registry.choose_alias(request.track, alias)
        if parameters.largest_object is None and largest is not None:
            parameters = replace(parameters, largest_object=largest)
        properties = _included(request, track_properties)
        message = SubscribeOk(chosen, parameters, properties)
        frame = self._core.encode(message)
        request.sender = sender = SubscriptionSender(
            self._core,
            self._registry.scheduler,
            request,
            chosen,
            track_properties=track_properties,
            told=properties,
            largest=largest,
            default_priority=default_priority,
            on_done=self._registry.publish_done,
        )
        if stream is None:
            return sender
        if request.parameters.fill is not None:
            sender.fills_asked[request.id] = request.parameters.fill
        stream.put(message, frame)
        request.response = message
        request.state = RequestState.ESTABLISHED
        self._registry.use_alias(stream, chosen, request.track)
        self.advance_updates(stream)
        return sender

    def accept_fetch(self, request: Request, message: FetchOk) -> None:
        """FETCH_OK; FIN follows when the fetch stream is done."""
        stream = self._unanswered(request, RequestKind.FETCH)
        if stream is None:
            return
        message = replace(message, track_properties=_included(request, message.track_properties))
        stream.send(message)
        request.response = message
        request.state = RequestState.ESTABLISHED
        self.advance_updates(stream)
        if stream.fetch is not None and stream.fetch.gone:
            self._fetch_closed(stream.fetch)

    def open_fetch(self, request: Request, source: FetchSource) -> FetchSender:
        """Start the fetch stream, before or after FETCH_OK."""
        core = self._core
        if request.ours or request.kind is not RequestKind.FETCH:
            raise LocalProtocolError(f"request {request.id} is no FETCH that we serve")
        stream = self._registry.find(request)
        if stream is not None and stream.fetch is not None:
            raise LocalProtocolError(f"the fetch stream of request {request.id} was opened")
        parameters = request.parameters
        priority = parameters.subscriber_priority
        fetch = FetchSender(
            core,
            self._registry.scheduler,
            Lane(DEFAULT_PRIORITY if priority is None else priority),
            request,
            request.id,
            source,
            self._fetch_closed,
            via=Via.FETCH,
            ascending=parameters.group_order != DESCENDING,
            fill_rank=0,
            default_priority=DEFAULT_PRIORITY,
        )
        if stream is None or not stream.live or core.closed:
            fetch.drop(StreamError.CANCELLED)
        else:
            stream.fetch = fetch
        return fetch

    def _fetch_closed(self, fetch: FetchSender) -> None:
        request = fetch.request
        if request.state is RequestState.ESTABLISHED:
            stream = self._registry.of(request)
            self._registry.end(request)
            stream.finish()
            self._registry.settle(stream)

    def refuse(
        self,
        request: Request,
        code: int,
        reason: str,
        retry_interval: int,
        redirect: Redirect | None,
    ) -> None:
        """REQUEST_ERROR, then FIN."""
        stream = self._unanswered(request)
        if stream is None:
            return
        if redirect is not None:
            if redirect.uri and self._core.is_client:
                raise LocalProtocolError("a client redirects to no other URI")
            if request.track is None and redirect.track.name:
                raise LocalProtocolError("a namespace is redirected without a Track Name")
        message = RequestError(code, retry_interval, _short(reason), redirect)
        stream.send(message, fin=True)
        request.response = message
        self._registry.terminate(stream, StreamError.CANCELLED)
        self._registry.settle(stream)

    def refuse_at_once(self, stream: RequestStream, refusal: RequestRefused) -> None:
        """Refuse a request that the application does not see."""
        assert stream.request is not None
        self.refuse(stream.request, refusal.code, refusal.reason, refusal.retry_interval, None)

    # Updates.

    def _due(self, request: Request, update: RequestUpdate) -> RequestStream | None:
        """The stream of a request whose oldest update this is; None when it ended meanwhile."""
        if self._core.closed or request.state is RequestState.TERMINATED:
            return None
        stream = self._registry.of(request)
        waiting = stream.received_updates
        if not waiting or waiting[0].message.request_id != update.request_id:
            raise LocalProtocolError(
                f"update {update.request_id} is not the oldest one without an answer"
            )
        return stream

    def accept_update(
        self, request: Request, update: RequestUpdate, parameters: Parameters
    ) -> None:
        """REQUEST_OK for the oldest update; its parameters are in force from now on."""
        self._check(parameters, ParameterContext.REQUEST_UPDATE_OK)
        stream = self._due(request, update)
        if stream is None:
            return
        sender = request.sender
        if sender is not None and parameters.largest_object is None:
            parameters = replace(parameters, largest_object=sender.reported)
        stream.send(RequestOk(parameters))
        stream.received_updates.popleft()
        changes = update.parameters
        request.parameters = updated(request.parameters, changes)
        if changes.authorization_tokens:
            request.tokens = changes.authorization_tokens
        if changes.track_namespace_prefix is not None:
            prefix = changes.track_namespace_prefix
            self._registry.set_prefix(request, prefix)
            # Of the others the new prefix cannot speak; they may be announced anew later.
            stream.announced = {one for one in stream.announced if is_prefix(prefix, one)}
        if sender is not None:
            if changes.fill is not None:
                sender.fills_asked[update.request_id] = changes.fill
            sender.apply(
                request.parameters,
                parameters.largest_object,
                refilter=changes.location_filter is not None,
                resumed=changes.forward == 1,
            )
        if stream.subscription is not None and changes.location_filter is not None:
            stream.subscription.refilter(parameters.largest_object)
        priority = changes.subscriber_priority
        if stream.fetch is not None and priority is not None:
            self._registry.scheduler.reprioritise(stream.fetch.lane, priority)
        self.advance_updates(stream)

    def refuse_update(
        self, request: Request, update: RequestUpdate, code: int, reason: str
    ) -> None:
        """REQUEST_ERROR for the oldest update, and what must follow it (MOQT-22 §9.5.1)."""
        stream = self._due(request, update)
        if stream is None:
            return
        stream.send(RequestError(code, reason=_short(reason)))
        stream.received_updates.popleft()
        if request.sender is not None:
            request.sender.finish(PublishDoneCode.UPDATE_FAILED, _short(reason))
        elif request.kind is RequestKind.FETCH:
            if stream.fetch is not None:
                stream.fetch.cancel(StreamError.CANCELLED)
        elif not request.ours and EXCHANGES[request.kind].publisher is None:
            self._registry.terminate(stream, StreamError.CANCELLED)
            stream.finish()
            self._registry.settle(stream)
        self.advance_updates(stream)

    def advance_updates(self, stream: RequestStream) -> None:
        """Hand updates to the application, and answer those that the session itself refuses.

        Both wait until the request is answered; refusals also for the updates before them.
        """
        request = stream.request
        if request is None or not (stream.live and _takes_updates(request)):
            return
        for entry in stream.received_updates:
            if entry.refusal is None and not entry.shown:
                entry.shown = True
                self._core.emit(UpdateReceived(request, entry.message))
        if stream.received_updates:
            update, refusal = stream.received_updates[0].message, stream.received_updates[0].refusal
            if refusal is not None:
                self.refuse_update(request, update, refusal.code, refusal.reason)

    # What else a responder or publisher says.

    def _responding(self, request: Request, kind: RequestKind) -> RequestStream | None:
        """The stream of a request that we accepted; None when it ended meanwhile."""
        if request.ours or request.kind is not kind or request.state is RequestState.PENDING:
            raise LocalProtocolError(f"request {request.id} is no {kind.name} that we accepted")
        if self._core.closed or request.state is RequestState.TERMINATED:
            return None
        return self._registry.of(request)

    def namespace(self, request: Request, namespace: TrackNamespace) -> None:
        """NAMESPACE."""
        stream = self._responding(request, RequestKind.SUBSCRIBE_NAMESPACE)
        if stream is None:
            return
        if namespace in stream.announced:
            raise LocalProtocolError("this namespace was announced already")
        stream.send(Namespace(_suffix(request, namespace)))
        stream.announced.add(namespace)

    def namespace_done(self, request: Request, namespace: TrackNamespace) -> None:
        """NAMESPACE_DONE."""
        stream = self._responding(request, RequestKind.SUBSCRIBE_NAMESPACE)
        if stream is None:
            return
        if namespace not in stream.announced:
            raise LocalProtocolError("this namespace was not announced")
        stream.send(NamespaceDone(_suffix(request, namespace)))
        stream.announced.remove(namespace)

    def publish_skipped(self, request: Request, track: FullTrackName) -> None:
        """PUBLISH_SKIPPED."""
        stream = self._responding(request, RequestKind.SUBSCRIBE_TRACKS)
        if stream is not None:
            stream.send(PublishSkipped(_suffix(request, track.namespace), track.name))

    def state_notify(self, request: Request, parameters: Parameters) -> None:
        """PUBLISH_STATE_NOTIFY, with LARGEST_OBJECT if anything was published."""
        sender = request.sender
        if sender is None:
            raise LocalProtocolError(f"we do not publish for request {request.id}")
        if self._core.closed or request.state is RequestState.TERMINATED:
            return
        stream = self._registry.of(request)
        if parameters.largest_object is None:
            parameters = replace(parameters, largest_object=sender.reported)
        stream.send(PublishStateNotify(parameters))
        request.parameters = updated(request.parameters, parameters)
        sender.apply(
            request.parameters,
            parameters.largest_object,
            refilter=parameters.location_filter is not None,
        )


def _takes_updates(request: Request) -> bool:
    return request.ours or request.state is not RequestState.PENDING


def _included(request: Request, track_properties: bytes) -> bytes:
    """INCLUDE_PROPERTIES 0 asks for none (MOQT-22 §9.20.21)."""
    return b"" if request.parameters.include_properties == 0 else track_properties


def _short(reason: str) -> str:
    return reason.encode("utf-8", "replace")[:MAX_REASON].decode("utf-8", "ignore")


def _suffix(request: Request, namespace: TrackNamespace) -> TrackNamespace:
    assert request.namespace is not None
    if not is_prefix(request.namespace, namespace):
        raise LocalProtocolError("the namespace does not start with the prefix asked for")
    return namespace[len(request.namespace) :]
