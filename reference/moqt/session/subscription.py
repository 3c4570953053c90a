"""The subscriber's side of one subscription, and the Track Aliases that lead to it (§3.1.3)."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from moqt.session.core import Core
from moqt.session.events import SubscriptionEnded
from moqt.session.intervals import Intervals
from moqt.session.requests import Request
from moqt.session.timers import Timer
from moqt.session.trackrules import MAX_PARTS, TrackRules
from moqt.wire.errors import RemoteProtocolError, SessionError
from moqt.wire.filters import passes, resolve
from moqt.wire.messages import PublishDone
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object
from moqt.wire.properties import PropertyType, integer_property

MAX_RETIRED = 1024
"""Aliases that are remembered after their last subscription, to discard late data cheaply."""

_ORIGIN = Location(0, 0)


class Delivered:
    """Which Objects came already; of very many, those of the first subgroups are forgotten."""

    def __init__(self) -> None:
        self._ids: OrderedDict[tuple[int, int | None], Intervals] = OrderedDict()
        self._parts = 0

    def is_new(self, item: Object) -> bool:
        """Whether this Object did not come before; from now on it did."""
        ids = self._ids.setdefault((item.location.group, item.subgroup), Intervals())
        if item.location.object in ids:
            return False
        before = len(ids)
        ids.add(item.location.object, item.location.object)
        self._parts += len(ids) - before
        while self._parts > MAX_PARTS:
            self._parts -= len(self._ids.popitem(last=False)[1])
        return True


@dataclass(eq=False, slots=True)
class Subscription:
    """One subscription that delivers to us: our SUBSCRIBE, or the peer's PUBLISH.

    `streams` are the open data streams that count for it, fills included; `streams_seen` all
    that ever came. `delivered` is only kept once its alias served several subscriptions: then a
    stream does not tell for which of them it is.
    """

    core: Core
    request: Request
    binding: Binding | None = None
    track_properties: bytes = b""
    start: Location = _ORIGIN
    end: Location | None = None
    lenient: int = 0
    """Updates of the filters that wait for their answer: until then everything passes."""
    streams: set[int] = field(default_factory=set)
    streams_seen: int = 0
    done: PublishDone | None = None
    ended: bool = False
    paused: bool = False
    delivered: Delivered | None = None
    _wait: Timer | None = None
    _active: float = 0.0

    def refilter(self, largest: Location | None) -> None:
        """Evaluate the Location filter against the Largest Object that the publisher reported."""
        self.start, self.end = resolve(
            self.request.parameters.location_filter, largest, bounded=False
        )

    def wants(self, item: Object) -> bool:
        """Whether the filters pass this Object, and it did not come on another stream."""
        if not self.lenient:
            location = item.location
            if location < self.start or (self.end is not None and location > self.end):
                return False
            filters = self.request.parameters.range_filters
            if filters and not passes(filters, item, self.track_properties):
                return False
        return self.delivered is None or self.delivered.is_new(item)

    @property
    def filtered(self) -> bool:
        """Whether a stream's last Object need not be the last one of its subgroup."""
        return bool(self.lenient or self.end or self.request.parameters.range_filters)

    @property
    def ascending(self) -> bool:
        """The Group Order in force; the Track's own one where the request names none."""
        order = self.request.parameters.group_order or integer_property(
            self.track_properties, PropertyType.DEFAULT_PUBLISHER_GROUP_ORDER, 1
        )
        return order == 1

    # Streams and the end.

    def stream_opened(self, stream_id: int) -> None:
        """A data stream of this subscription began.

        Raises RemoteProtocolError when PUBLISH_DONE counted fewer (MOQT-22 §9.9).
        """
        self.streams.add(stream_id)
        self.streams_seen += 1
        self.active()
        count = self.done.stream_count if self.done is not None else None
        if count is not None and self.streams_seen > count and self.delivered is None:
            raise RemoteProtocolError(f"more data streams than the {count} of PUBLISH_DONE")

    def stream_ended(self, stream_id: int) -> None:
        """One of them ended."""
        self.streams.discard(stream_id)
        self.active()
        self.check_end()

    def active(self) -> None:
        """Something arrived: the wait for the end starts anew."""
        self._active = self.core.now

    def publisher_done(self, message: PublishDone) -> None:
        """PUBLISH_DONE came; it may have overtaken streams."""
        self.done = message
        count = message.stream_count
        if count is not None and self.streams_seen > count and self.delivered is None:
            raise RemoteProtocolError(
                f"{self.streams_seen} data streams, PUBLISH_DONE says {count}"
            )
        self.active()
        self._wait = self.core.timers.at(self.core.later(self._patience()), self._give_up)
        self.check_end()

    def _patience(self) -> float:
        """At least the larger delivery timeout (MOQT-22 §9.9), in seconds."""
        parameters = self.request.parameters
        timeouts = [
            parameters.object_delivery_timeout or 0,
            parameters.subgroup_delivery_timeout or 0,
        ]
        if self.track_properties:
            timeouts += [
                integer_property(self.track_properties, kind, 0)
                for kind in (
                    PropertyType.OBJECT_DELIVERY_TIMEOUT,
                    PropertyType.SUBGROUP_DELIVERY_TIMEOUT,
                )
            ]
        # A publisher may ask for a century: the wait stays within a minute of ours.
        return min(
            max(self.core.config.done_timeout, max(timeouts) / 1000),
            self.core.config.done_timeout + 60.0,
        )

    def check_end(self) -> None:
        """End the subscription once all counted streams were seen to their end."""
        if self.done is None or self.done.stream_count is None or self.ended:
            return
        if self.streams_seen >= self.done.stream_count and not self.streams:
            self._end(complete=True)

    def _give_up(self) -> None:
        due = self._active + self._patience()
        if self.paused:
            due = max(due, self.core.later(self._patience()))
        if self.core.now < due:
            self._wait = self.core.timers.at(due, self._give_up)
        else:
            self._end(complete=False)

    def _end(self, *, complete: bool) -> None:
        assert self.done is not None
        self.stop_waiting()
        if not self.ended:
            self.ended = True
            self.core.emit(SubscriptionEnded(self.request, self.done, complete))
            self.core.session.subscription_over(self)

    def stop_waiting(self) -> None:
        """No SubscriptionEnded any more."""
        if self._wait is not None:
            self._wait.cancel()


@dataclass(eq=False, slots=True)
class Binding:
    """What a Track Alias of the peer's means: a Track, and who subscribed to it."""

    alias: int
    track: FullTrackName
    default_priority: int
    subscriptions: list[Subscription] = field(default_factory=list)
    rules: TrackRules = field(default_factory=TrackRules)


class Aliases:
    """The Track Aliases that the peer chose."""

    def __init__(self) -> None:
        self._bound: dict[int, Binding] = {}
        self._retired: OrderedDict[int, None] = OrderedDict()

    def check(self, alias: int, track: FullTrackName) -> None:
        """Raise RemoteProtocolError DUPLICATE_TRACK_ALIAS when another live Track has it."""
        bound = self._bound.get(alias)
        if bound is not None and bound.track != track:
            raise RemoteProtocolError(
                f"Track Alias {alias} belongs to another Track", SessionError.DUPLICATE_TRACK_ALIAS
            )

    def bind(self, alias: int, subscription: Subscription, track_properties: bytes) -> Binding:
        """Make the alias lead to the subscription, too."""
        track = subscription.request.track
        assert track is not None
        self.check(alias, track)
        self._retired.pop(alias, None)
        subscription.track_properties = track_properties
        binding = self._bound.get(alias)
        if binding is None:
            priority = integer_property(
                track_properties, PropertyType.DEFAULT_PUBLISHER_PRIORITY, 128
            )
            binding = self._bound[alias] = Binding(alias, track, priority)
        binding.subscriptions.append(subscription)
        subscription.binding = binding
        if len(binding.subscriptions) > 1:
            for one in binding.subscriptions:
                one.delivered = one.delivered or Delivered()
        return binding

    def release(self, subscription: Subscription) -> None:
        """The subscription is over; the alias retires with its last one."""
        binding, subscription.binding = subscription.binding, None
        if binding is None:
            return
        binding.subscriptions.remove(subscription)
        if not binding.subscriptions:
            del self._bound[binding.alias]
            self.retire(binding.alias)

    def retire(self, alias: int) -> None:
        """Data with this alias is late from now on."""
        self._retired[alias] = None
        if len(self._retired) > MAX_RETIRED:
            self._retired.popitem(last=False)

    def find(self, alias: int) -> Binding | None:
        """What the alias means now."""
        return self._bound.get(alias)

    def retired(self, alias: int) -> bool:
        """Whether data with this alias is late."""
        return alias in self._retired
