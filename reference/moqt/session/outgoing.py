"""Our own requests and updates: checked first, so that a wrong one leaves nothing sent."""

from __future__ import annotations

from moqt.session.events import Via
from moqt.session.exchange import RequestStream, SentUpdate
from moqt.session.parameters import updated
from moqt.session.publication import DESCENDING, SubscriptionSender
from moqt.session.registry import DISCOVERY, Registry, reserved_name
from moqt.session.requests import Request, RequestKind, RequestState
from moqt.session.states import EXCHANGES
from moqt.session.streams import FetchTarget
from moqt.session.subscription import Subscription
from moqt.wire.errors import LocalProtocolError, RemoteProtocolError, StreamError
from moqt.wire.filters import LocationFilterType, resolve
from moqt.wire.messages import (
    Goaway,
    Parameters,
    Publish,
    RequestMessage,
    RequestUpdate,
)
from moqt.wire.names import FullTrackName, Location
from moqt.wire.parameters import check_parameters
from moqt.wire.properties import PropertyType, integer_property

_ABSOLUTE = frozenset(
    {
        LocationFilterType.ABSOLUTE_START,
        LocationFilterType.ABSOLUTE_START_GROUP_END,
        LocationFilterType.ABSOLUTE_RANGE,
    }
)


class Outgoing:
    """Opens requests, updates and cancels them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._core = registry.core

    def open(self, message: RequestMessage) -> Request:
        """Send a request whose ID is `core.ids.next`."""
        stream, request, frame = self._prepare(message)
        parameters = request.parameters
        if request.kind is RequestKind.SUBSCRIBE:
            stream.subscription = Subscription(self._core, request)
            self._expect_fill(stream, request, request.id, parameters)
        elif request.kind is RequestKind.FETCH:
            self._registry.receiver.targets[request.id] = FetchTarget(
                request,
                Via.FETCH,
                parameters.group_order != DESCENDING,
                *known_range(parameters),
            )
        self._launch(stream, request, frame)
        return request

    def publish(
        self,
        track: FullTrackName,
        parameters: Parameters,
        track_properties: bytes,
        default_priority: int,
    ) -> SubscriptionSender:
        """Send PUBLISH; the sender may be used at once."""
        core = self._core
        alias = self._registry.choose_alias(track, None)
        message = Publish(core.ids.next, track, alias, parameters, track_properties)
        stream, request, frame = self._prepare(message)
        request.sender = SubscriptionSender(
            core,
            self._registry.scheduler,
            request,
            alias,
            track_properties=track_properties,
            told=track_properties,
            largest=parameters.largest_object,
            default_priority=default_priority,
            on_done=self._registry.publish_done,
        )
        self._registry.use_alias(stream, alias, track)
        self._launch(stream, request, frame)
        return request.sender

    def _prepare(self, message: RequestMessage) -> tuple[RequestStream, Request, bytes]:
        core = self._core
        registry = self._registry
        core.require_open()
        if registry.control.goaway_received:
            raise LocalProtocolError("the peer sent GOAWAY: ask on another session")
        request = Request.of(core.session, message, ours=True)
        if why := reserved_name(request):
            raise LocalProtocolError(why)
        stream = registry.new(ours=True)
        if request.kind in DISCOVERY:
            assert request.namespace is not None
            if registry.overlaps(request, request.namespace):
                raise LocalProtocolError(f"the prefix overlaps our own {request.kind.name}")
        self._check_parameters(message.parameters, stream)
        return stream, request, core.encode(message)

    def _launch(self, stream: RequestStream, request: Request, frame: bytes) -> None:
        registry = self._registry
        self._core.ids.take()
        stream.tokens = registry.control.sent_tokens.sent(
            request.parameters.authorization_tokens, stream
        )
        registry.add(stream, request)
        stream.put(request.message, frame)
        registry.launch(stream)

    def _check_parameters(self, parameters: Parameters, stream: RequestStream) -> None:
        self._registry.control.sent_tokens.check(parameters.authorization_tokens, stream)
        filters = parameters.range_filters
        if parameters.fill is not None:
            filters += parameters.fill.range_filters
        ranges = sum(len(one.ranges) for one in filters)
        setup = self._core.peer_setup
        limit = 0 if setup is None else setup.max_filter_ranges
        if ranges > limit:
            raise LocalProtocolError(f"{ranges} filter Ranges: the peer accepts {limit}")

    def _expect_fill(
        self, stream: RequestStream, request: Request, request_id: int, parameters: Parameters
    ) -> None:
        fill = parameters.fill
        if fill is None:
            return
        current = updated(request.parameters, parameters)
        order = fill.group_order or current.group_order
        self._registry.receiver.targets[request_id] = FetchTarget(
            request,
            Via.FILL,
            None if order is None else order != DESCENDING,
            *known_range(fill if fill.location_filter is not None else current),
            stream.subscription,
        )

    # Updates.

    def update(self, request: Request, parameters: Parameters) -> int:
        """Send REQUEST_UPDATE; its Request ID."""
        core = self._core
        core.require_open()
        registry = self._registry
        stream = registry.of(request)
        row = EXCHANGES[request.kind]
        early = not request.ours and request.state is RequestState.PENDING
        if stream.our_side not in row.updaters or row.update_context is None or early:
            raise LocalProtocolError(f"we may not update this {request.kind.name}")
        if not stream.live or stream.fin_sent:
            raise LocalProtocolError(f"request {request.id} is over")
        limit = 0 if core.peer_setup is None else core.peer_setup.max_request_updates
        if limit and len(stream.sent_updates) >= limit:
            raise LocalProtocolError(f"{limit} updates have no answer yet, the peer's limit")
        try:
            check_parameters(parameters, core.draft, row.update_context)
        except RemoteProtocolError as error:
            raise LocalProtocolError(error.reason) from None
        self._check_update(stream, request, parameters)
        message = RequestUpdate(core.ids.next, parameters)
        frame = core.encode(message)
        core.ids.take()
        use = registry.control.sent_tokens.sent(parameters.authorization_tokens, stream)
        loosens = parameters.location_filter is not None or bool(parameters.range_filters)
        stream.sent_updates.append(SentUpdate(message, use, loosens))
        if loosens and stream.subscription is not None:
            stream.subscription.lenient += 1
        if request.sender is None:
            self._expect_fill(stream, request, message.request_id, parameters)
        stream.put(message, frame)
        return message.request_id

    def _check_update(
        self, stream: RequestStream, request: Request, parameters: Parameters
    ) -> None:
        self._check_parameters(parameters, stream)
        prefix = parameters.track_namespace_prefix
        if prefix is not None and self._registry.overlaps(request, prefix):
            raise LocalProtocolError(f"the prefix overlaps our own {request.kind.name}")
        if parameters.new_group_request is not None:
            subscription = stream.subscription
            properties = b"" if subscription is None else subscription.track_properties
            if not integer_property(properties, PropertyType.DYNAMIC_GROUPS, 0):
                raise LocalProtocolError("the Track has no DYNAMIC_GROUPS: no NEW_GROUP_REQUEST")

    # The end.

    def cancel(self, request: Request, code: int) -> None:
        """Cancel a request of either side; nothing more of it is sent or received."""
        stream = self._registry.find(request)
        if stream is None or not (stream.live or self._registry.delivers(stream)):
            return
        self._registry.terminate(stream, code)
        stream.abort(code)
        self._registry.settle(stream)

    def goaway(self, request: Request, message: Goaway) -> None:
        """Ask the peer to move one request elsewhere; cancel it when the time is over."""
        core = self._core
        stream = self._registry.of(request)
        if stream.goaway_sent:
            raise LocalProtocolError("GOAWAY was sent on this request already")
        if core.is_client and message.uri:
            raise LocalProtocolError("the GOAWAY of a client has no URI")
        stream.send(message)
        stream.goaway_sent = True
        if message.timeout:

            def on_time() -> None:
                if stream.live:
                    self.cancel(request, StreamError.GOING_AWAY)

            core.timers.at(core.later(message.timeout / 1000), on_time)


def known_range(parameters: Parameters) -> tuple[Location | None, Location | None]:
    """First and last Location of a range as far as they do not depend on the Largest Object."""
    chosen = parameters.location_filter
    if chosen is None or chosen.type is LocationFilterType.NONE or chosen.type in _ABSOLUTE:
        return resolve(chosen, None, bounded=False)
    return None, None
