"""A Track's subscriptions downstream (MOQT-22 §7.4, §7.8)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from moqt.relay.readers import Reader
from moqt.session import Request, SubscriptionSender
from moqt.session.events import (
    Event,
    RequestCancelled,
    RequestFailed,
    StreamStopped,
    SubscriptionCut,
    UpdateReceived,
)
from moqt.session.timers import Timer
from moqt.tracks.answering import accept_update, answerable
from moqt.tracks.serving import fill_source, publish_parameters, sent_properties
from moqt.wire.errors import LocalProtocolError, PublishDoneCode
from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import Object

if TYPE_CHECKING:
    from moqt.relay.track import RelayTrack

DRAINING = (PublishDoneCode.TRACK_ENDED, PublishDoneCode.GOING_AWAY, PublishDoneCode.EXPIRED)
"""PUBLISH_DONE codes under which running fills go on."""


class Subscription:
    """Context of a peer's SUBSCRIBE, or of a PUBLISH that we sent."""

    def __init__(self, subscribers: Subscribers, request: Request) -> None:
        self.subscribers = subscribers
        self.request = request
        self.fills: list[Reader] = []

    def handle(self, event: Event) -> None:
        """One event of the request."""
        match event:
            case UpdateReceived():
                self.subscribers.update(self, event)
            case RequestCancelled() | RequestFailed() | SubscriptionCut():
                self.subscribers.left(self)
            case StreamStopped(stream_id=stream_id):
                self.close_fills(stream_id)
            case _:
                pass

    def close_fills(self, stream_id: int | None = None) -> None:
        """Read no more for the fill on this stream, or for any."""
        for fill in self.fills:
            on_it = fill.sender is not None and fill.sender.stream_id == stream_id
            if fill.source is not None and (on_it or stream_id is None):
                fill.source.close()

    def session_closed(self) -> None:
        """The subscriber is gone."""
        self.subscribers.left(self)


class Subscribers:
    """Everyone who subscribed to the Track here, or was sent a PUBLISH."""

    def __init__(self, track: RelayTrack) -> None:
        self._track = track
        self.senders: dict[Request, SubscriptionSender] = {}
        self._held = False
        self._easing: Timer | None = None

    def pending(self, request: Request) -> Subscription:
        """The context of a SUBSCRIBE that waits for a publisher."""
        return Subscription(self, request)

    def accept(self, request: Request) -> None:
        """SUBSCRIBE_OK, and the fill that the SUBSCRIBE asks for."""
        track = self._track
        if not answerable(request):
            return
        largest = track.store.largest
        sender = request.session.accept_subscribe(
            request,
            largest=largest,
            track_properties=track.properties or b"",
            default_priority=track.default_priority,
        )
        subscription = self._join(request, sender)
        self._fill(subscription, request.id, request.parameters, largest)

    def publish_to(self, wanted: Request) -> None:
        """PUBLISH the Track to who sent a SUBSCRIBE_TRACKS, unless it has it already (R222)."""
        track, session = self._track, wanted.session
        requests = [*self.senders, *track.waiting]
        if session in track.upstreams or any(one.session is session for one in requests):
            return
        try:
            sender = session.publish(
                track.name,
                publish_parameters(wanted.parameters, track.store.largest),
                sent_properties(wanted.parameters, track.properties or b""),
                default_priority=track.default_priority,
            )
        except LocalProtocolError:
            # The session is closed, or its peer sent GOAWAY.
            return
        self._join(sender.request, sender)

    def update(self, subscription: Subscription, event: UpdateReceived) -> None:
        """A REQUEST_UPDATE that is authorised (R132)."""
        track, request, update = self._track, event.request, event.update
        largest = track.store.largest
        if not accept_update(request, update, Parameters(largest_object=largest)):
            return
        if request in self.senders:
            self._fill(subscription, update.request_id, update.parameters, largest)
        track.adjust_forward()
        group = update.parameters.new_group_request
        if group is not None:
            track.request_new_group(group)

    def left(self, subscription: Subscription) -> None:
        """A subscription is over."""
        request = subscription.request
        self._track.stop_waiting(request)
        self.senders.pop(request, None)
        subscription.close_fills()
        self._less()
        self._track.release()

    # Objects

    def offer(self, item: Object, *, first: bool, end_of_group: bool, adjacent: bool) -> None:
        """Hand an Object to every subscription; hold the publishers if all are behind."""
        config = self._track.context.config
        high_water, budget = config.high_water, config.subscriber_budget
        behind = bool(self.senders)
        for sender in tuple(self.senders.values()):
            # A stream whose FIN is promised takes no Object that comes late.
            with suppress(LocalProtocolError):
                sender.offer(item, first=first, end_of_group=end_of_group, adjacent=adjacent)
            if sender.backlog <= high_water:
                behind = False
            if budget is not None and sender.backlog > budget:
                sender.finish(PublishDoneCode.TOO_FAR_BEHIND, "the backlog is too large")
                self.left(sender.request.context)
        if behind and self.senders:
            self._hold(held=True)

    def end_subgroup(self, group: int, subgroup: int) -> None:
        """FIN after what is queued (R164)."""
        for sender in self.senders.values():
            sender.end_subgroup(group, subgroup)

    def reset_subgroup(self, group: int, subgroup: int, code: int) -> None:
        """The publisher's stream was reset (R165)."""
        for sender in self.senders.values():
            sender.reset_subgroup(group, subgroup, code)

    def finish(self, code: int, reason: str) -> None:
        """PUBLISH_DONE to everyone; with MALFORMED_TRACK fetch streams are reset too (R181)."""
        senders, self.senders = self.senders, {}
        self._less()
        for sender in senders.values():
            sender.finish(code, reason)
            if code not in DRAINING:
                sender.request.context.close_fills()
        if code == PublishDoneCode.MALFORMED_TRACK:
            for reader in tuple(self._track.readers.values()):
                reader.fail(code, reason)

    # Inside

    def _join(self, request: Request, sender: SubscriptionSender) -> Subscription:
        subscription = request.context
        if not isinstance(subscription, Subscription):
            subscription = request.context = Subscription(self, request)
        self.senders[request] = sender
        sender.on_less = self._less
        self._less()
        return subscription

    def _fill(
        self,
        subscription: Subscription,
        message_id: int,
        message: Parameters,
        largest: Location | None,
    ) -> None:
        track, request = self._track, subscription.request
        source = fill_source(
            track.store,
            message,
            request.parameters,
            track.properties or b"",
            largest,
            track.gaps.resolve,
        )
        if source is not None and not self.senders[request].finished:
            fill = Reader(track, message.fill.fill_timeout if message.fill else None)
            fill.read(source)
            subscription.fills = [one for one in subscription.fills if one.open] + [fill]
            fill.send(self.senders[request].open_fill(message_id, source))

    def _hold(self, *, held: bool) -> None:
        self._held = held
        for upstream in self._track.upstreams.values():
            upstream.hold(held)

    @property
    def _caught_up(self) -> bool:
        """Whether one subscription has little backlog, or none is left."""
        low_water = self._track.context.config.low_water
        return not self.senders or any(one.backlog <= low_water for one in self.senders.values())

    def _less(self) -> None:
        """A backlog fell: let the publishers go on if it fell far enough.

        Not at once: a session is writing, and another one's flow must not change under it.
        """
        waits = self._easing is not None and self._easing.live
        if self._held and not waits and self._caught_up:
            context = self._track.context
            self._easing = context.timers.at(context.now(), self._ease)

    def _ease(self) -> None:
        if self._held and self._caught_up:
            self._hold(held=False)
