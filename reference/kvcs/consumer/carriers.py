"""Requests that bring Objects of one data track, and what their end says (KVCS 7.2, 7.3).

A carrier knows which wanted Locations it is to bring. When it learns that some of them will not
come (a range of unknown state, a reset, its end) it hands them back as lost; what is done about
that is decided elsewhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

from moqt.session import Request
from moqt.session.events import (
    Event,
    ObjectReceived,
    RangeReceived,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    StreamEnded,
    SubscriptionEnded,
    TrackMalformed,
    Via,
)
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.messages import Parameters, RequestError, SubscribeOk
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus

from kvcs.consumer.assembly import SegmentAssembly
from kvcs.consumer.ranges import LocationRange
from kvcs.consumer.routes import Route
from kvcs.names import DataTrack

START = Location(0, 0)


class Receiver(Protocol):
    """Who assembles what carriers bring."""

    @property
    def now(self) -> float:
        """The time."""

    def receive(self, carrier: Carrier, item: Object, via: Via) -> None:
        """One Normal Object."""

    def marked(self, carrier: Carrier, item: Object) -> None:
        """End of Group or End of Track."""

    def lost(self, carrier: Carrier, locations: Iterable[Location], reason: str) -> None:
        """These will not come from this carrier."""

    def carrier_progress(self, carrier: Carrier) -> None:
        """The carrier learned something that may complete its track."""

    def carrier_over(self, carrier: Carrier, reason: str, error: RequestError | None) -> None:
        """Nothing more comes; what it did not bring it has handed back."""

    def malformed(self, carrier: Carrier, reason: str) -> None:
        """Two different Objects claim one Location, or a mark contradicts an Object."""


LATER = "request.not-yet"
"""The source may have it later: it is behind production, or asks to come again."""


def _refusal(error: RequestError | None) -> str:
    if error is None:
        return "request.failed"
    if error.code == RequestErrorCode.INVALID_RANGE or error.retry_interval:
        return LATER
    return "request.refused"


class Carrier(ABC):
    """What the two kinds have in common; the context of its request."""

    live = False

    def __init__(
        self,
        receiver: Receiver,
        route: Route,
        part: SegmentAssembly,
        track: DataTrack,
        parameters: Parameters,
        span: LocationRange,
    ) -> None:
        self.receiver = receiver
        self.route = route
        self.part = part
        self.track = track
        self.parameters = parameters
        self.span = span
        self.delivered: set[Location] = set()
        self._progress = receiver.now
        self.over = False
        self.request: Request | None = None

    def start(self) -> None:
        """Send the request."""
        self.request = self._send()
        self.request.context = self

    @abstractmethod
    def _send(self) -> Request:
        """Send the request of this kind."""

    @property
    def last_progress(self) -> float:
        """When it last brought an Object, or a part of one: large ones take their time."""
        return self._progress if self.request is None else max(self._progress, self.request.heard)

    def outstanding(self, within: LocationRange | None = None) -> list[Location]:
        """Wanted Locations of its range, and of `within`, that have not arrived."""
        start, end = self.span if within is None else within
        start, end = max(start, self.span.start), min(end, self.span.end)
        wanted = self.part.layers
        groups = range(max(start.group, wanted.start), min(end.group + 1, wanted.stop))
        return [at for at in self.part.missing(self.track, groups) if start <= at <= end]

    def cancel(self) -> None:
        """Nothing of it is wanted any more."""
        if not self.over:
            self.route.source.cancel(self.request)
        self.over = True

    def end(self, reason: str, error: RequestError | None = None) -> None:
        """It is over: hand back what did not come."""
        if self.over:
            return
        self.over = True
        self.receiver.lost(self, self.outstanding(), reason)
        self.receiver.carrier_over(self, reason, error)

    def on_event(self, event: Event) -> None:
        """What the route brings."""
        if self.over:
            return
        match event:
            case ObjectReceived(object=item) if item.status is ObjectStatus.NORMAL:
                self._progress = self.receiver.now
                self.receiver.receive(self, item, event.stream.via)
            case ObjectReceived(object=item):
                self.receiver.marked(self, item)
            case RangeReceived(kind=kind, start=start, end=end):
                missing = self.outstanding(LocationRange(start, end))
                self.receiver.lost(self, missing, f"range.{kind.name.lower().replace('_', '-')}")
            case RequestFailed(error=error):
                if error is not None and error.code == RequestErrorCode.MALFORMED_TRACK:
                    self.receiver.malformed(self, "the source found the track malformed")
                self.end(_refusal(error), error)
            case RequestCancelled():
                self.end("request.cancelled")
            case TrackMalformed(reason=reason):
                self.receiver.malformed(self, reason)
                self.end("track.malformed")
            case _:
                self._other(event)

    @abstractmethod
    def _other(self, event: Event) -> None:
        """Events that only one kind knows."""


class LiveCarrier(Carrier):
    """SUBSCRIBE with Next Object, and a fill of everything before (KVCS-7.2-1, KVCS-7.2-2).

    `largest` is the boundary between fill and subscription, None while nothing was published.
    `filled` becomes true with the fill's FIN, or at once where there is nothing to fill.
    `ended` tells which of the track's ends were seen: "end-of-track", "publish-done".
    """

    live = True

    def __init__(
        self,
        receiver: Receiver,
        route: Route,
        part: SegmentAssembly,
        track: DataTrack,
        parameters: Parameters,
        first: Location = START,
    ) -> None:
        span = LocationRange(first, Location(part.layers.stop, 0))
        super().__init__(receiver, route, part, track, parameters, span)
        self.largest: Location | None = None
        self.filled = False
        self.ended: set[str] = set()
        self._fill_over = False

    def _send(self) -> Request:
        session = self.route.source.session
        return session.subscribe(self.route.track_name(self.track), self.parameters)

    def _other(self, event: Event) -> None:
        match event:
            case RequestAccepted(response=SubscribeOk() as response):
                self.largest = response.parameters.largest_object
                if self.largest is None or self.largest < self.span.start:
                    self.filled = True
                self.receiver.carrier_progress(self)
                self._close_fill()
            case StreamEnded(stream=stream, code=code) if stream.via is Via.FILL:
                self.filled = code is None
                self._fill_over = True
                self._close_fill()
                self.receiver.carrier_progress(self)
            case StreamEnded(stream=stream, code=code) if code is not None:
                if stream.group is not None:
                    group = LocationRange(
                        Location(stream.group, 0), Location(stream.group, self.part.blocks)
                    )
                    self.receiver.lost(self, self.outstanding(group), "stream.reset")
            case SubscriptionEnded(message=message):
                ended = message.status_code == PublishDoneCode.TRACK_ENDED
                if ended:
                    self.ended.add("publish-done")
                self.receiver.carrier_progress(self)
                if message.status_code == PublishDoneCode.MALFORMED_TRACK:
                    self.receiver.malformed(self, "the source found the track malformed")
                self.end("track.ended" if ended else "subscription.ended")

    def _close_fill(self) -> None:
        """The fill and its upper end are both known: what it did not bring is lost."""
        if self._fill_over and self.largest is not None:
            before = self.outstanding(LocationRange(START, self.largest))
            self.receiver.lost(self, before, "fill.gap" if self.filled else "fill.reset")


class FetchCarrier(Carrier):
    """FETCH of one range (KVCS-7.3-1), whole layers or what was missing."""

    def _send(self) -> Request:
        session = self.route.source.session
        return session.fetch(self.route.track_name(self.track), self.parameters)

    def _other(self, event: Event) -> None:
        match event:
            case StreamEnded(code=None):
                self.end("fetch.gap" if self.outstanding() else "fetch.complete")
            case StreamEnded():
                self.end("fetch.reset")
