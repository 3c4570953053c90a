"""Relays that answer too early, too late or twice, or ask their publishers wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moqt.relay import Relay
from moqt.relay.track import RelayTrack
from moqt.relay.upstream import Upstream
from moqt.session import Request, RequestKind, Session, SubscriptionSender
from moqt.session.events import StreamInfo
from moqt.tracks.source import StoreSource
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.filters import LocationFilterType
from moqt.wire.messages import NO_PARAMETERS, Parameters, SubscribeOk
from moqt.wire.names import Location, TrackNamespace
from moqt.wire.objects import Object
from moqt.wire.properties import PropertyType, decode_properties, encode_properties

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_EARLY = (Reason.ANSWER_EARLY,)


class _AcceptsAtOnce(RelayTrack):
    def subscribe(self, request: Request) -> None:
        early = not self.established and request.parameters.fill is None
        if not early or not self.publishers(request.session):
            super().subscribe(request)
            return
        self.find_publishers(forward=request.parameters.forward != 0, asking=request.session)
        self.subscribers.accept(request)


@mutant(
    "relay/accepts-before-upstream",
    requires=("MOQT-R179", "MOQT-R209"),
    reasons=(*_EARLY, Reason.REQUEST_CODE),
)
class AcceptsBeforeUpstream(Relay):
    """A SUBSCRIBE is accepted when it was passed on, whatever the publisher will say."""

    track_class = _AcceptsAtOnce


@mutant("relay/accepts-twice", requires=("MOQT-R110",), reasons=(Reason.ANSWER_NUMBER,))
class AcceptsTwice(Relay):
    """A SUBSCRIBE that waited long for its publisher gets two SUBSCRIBE_OKs."""

    since: float | None = None

    def _dispatch(self, request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE:
            self.since = self.now()
        super()._dispatch(request)

    def _established(self, track: RelayTrack, first: bool) -> None:
        super()._established(track, first)
        if self.now() - (self.since or 0.0) < 0.025:
            return
        for request, sender in track.subscribers.senders.items() if first else ():
            message = SubscribeOk(sender.alias, track_properties=sender.track_properties)
            if request.stream_id is not None:
                frame = sender.core.encode(message)
                sender.core.write(request.stream_id, message, frame)


class _ForwardsAgain(RelayTrack):
    def received(
        self, upstream: Upstream, item: Object, previous: Location | None, info: StreamInfo
    ) -> None:
        self._forwarded.clear()
        super().received(upstream, item, previous, info)


@mutant("relay/forwards-duplicates", requires=("MOQT-R207",), reasons=(Reason.OBJECT_DUPLICATE,))
class ForwardsDuplicates(Relay):
    """What two publishers send is forwarded twice."""

    track_class = _ForwardsAgain


class _AsksOne(RelayTrack):
    def publishers(self, asking: Session | None = None) -> list[Session]:
        return super().publishers(asking)[:1]


_SILENT = (Reason.UPSTREAM_SILENT, Reason.OBJECT_MISSING)


@mutant(
    "relay/asks-one-publisher",
    requires=("MOQT-R207", "MOQT-R216", "MOQT-R224"),
    reasons=_SILENT,
)
class AsksOnePublisher(Relay):
    """Of several publishers of a namespace only one is subscribed to."""

    track_class = _AsksOne


@mutant(
    "relay/asks-exact-announcers-only",
    requires=("MOQT-R217", "MOQT-R224"),
    reasons=(*_SILENT, Reason.REQUEST_REFUSED),
)
class AsksExactAnnouncersOnly(Relay):
    """Who announced a prefix of the namespace is not asked."""

    def _publishers(self, namespace: TrackNamespace, asking: Session | None) -> list[Session]:
        found = super()._publishers(namespace, asking)
        return [
            session
            for session in found
            if session in self._uplinks
            or any(one.namespace == namespace for one in self._routes.of_session(session))
        ]


@mutant("relay/forgets-who-waits", requires=("MOQT-R224",), reasons=_SILENT)
class ForgetsWhoWaits(Relay):
    """A new announcement changes nothing for subscriptions that are there already."""

    def _look_again(self, namespace: TrackNamespace) -> None:
        pass


class _StaysPaused(RelayTrack):
    def adjust_forward(self) -> None:
        pass


@mutant(
    "relay/leaves-publishers-paused",
    requires=("MOQT-R206", "MOQT-R219"),
    reasons=(Reason.UPSTREAM_FORWARD, Reason.OBJECT_MISSING),
)
class LeavesPublishersPaused(Relay):
    """A publisher that was subscribed to for somebody paused stays paused."""

    track_class = _StaysPaused


class _SubscribesPaused(RelayTrack):
    def find_publishers(
        self, *, forward: bool, asking: Session | None = None, new_group: int | None = None
    ) -> None:
        super().find_publishers(forward=False, asking=asking, new_group=new_group)


@mutant(
    "relay/subscribes-paused",
    requires=("KVCS-7.2-3", "MOQT-R220"),
    reasons=(Reason.UPSTREAM_FORWARD, Reason.OBJECT_MISSING),
)
class SubscribesPaused(Relay):
    """Publishers are subscribed to with FORWARD 0 first, and resumed once they accepted."""

    track_class = _SubscribesPaused


class _KnownProperties(RelayTrack):
    def learn_properties(self, properties: bytes) -> None:
        known = frozenset(PropertyType)
        pairs = [pair for pair in decode_properties(properties) if pair[0] in known]
        super().learn_properties(encode_properties(pairs))


@mutant(
    "relay/drops-unknown-track-properties",
    requires=("MOQT-R226",),
    reasons=(Reason.PROPERTY_CHANGED,),
)
class DropsUnknownTrackProperties(Relay):
    """Track Properties that the relay does not know are left out of its answers."""

    track_class = _KnownProperties


class Rereading(Relay):
    """A relay that reads a request otherwise than it was meant."""

    def _dispatch(self, request: Request) -> None:
        parameters = request.parameters
        request.parameters = replace(parameters, **self.changes(request))
        super()._dispatch(request)

    def changes(self, request: Request) -> dict[str, Any]:
        """Parameters that are taken for others."""
        return {}


@mutant(
    "relay/ignores-filter-end",
    requires=("MOQT-R114", "MOQT-R130"),
    reasons=(Reason.OBJECT_UNEXPECTED, Reason.OBJECT_DUPLICATE),
)
class IgnoresFilterEnd(Rereading):
    """A subscription's Location filter has a start but no end."""

    def changes(self, request: Request) -> dict[str, Any]:
        own = request.parameters.location_filter
        if request.kind is not RequestKind.SUBSCRIBE or own is None:
            return {}
        if own.type is LocationFilterType.ABSOLUTE_START_GROUP_END:
            own = replace(own, type=LocationFilterType.ABSOLUTE_START)
        return {"location_filter": own}


@mutant(
    "relay/ignores-object-filters", requires=("MOQT-R131",), reasons=(Reason.OBJECT_UNEXPECTED,)
)
class IgnoresObjectFilters(Rereading):
    """Range Filters of a subscription are accepted and not applied."""

    def changes(self, request: Request) -> dict[str, Any]:
        return {"range_filters": ()} if request.kind is RequestKind.SUBSCRIBE else {}


@mutant(
    "relay/opens-no-fill",
    requires=("KVCS-7.2-3", "MOQT-R115", "MOQT-R133", "MOQT-R138"),
    reasons=(Reason.FILL_STREAMS, Reason.OBJECT_MISSING),
)
class OpensNoFill(Rereading):
    """FILL_PARAMETERS of a SUBSCRIBE are not read."""

    def changes(self, request: Request) -> dict[str, Any]:
        return {"fill": None} if request.kind is RequestKind.SUBSCRIBE else {}


@mutant(
    "relay/fills-while-paused",
    requires=("MOQT-R131", "MOQT-R134"),
    reasons=(Reason.FILL_STREAMS, Reason.OBJECT_UNEXPECTED),
)
class FillsWhilePaused(Rereading):
    """A paused subscription is served as if it were not."""

    def changes(self, request: Request) -> dict[str, Any]:
        return {"forward": None} if request.kind is RequestKind.SUBSCRIBE else {}


@mutant("relay/ends-failed-fills", requires=("MOQT-R136",), reasons=(Reason.STREAM_END,))
class EndsFailedFills(Relay):
    """A fill that cannot be served ends with FIN, as if there were nothing."""

    def _dispatch(self, request: Request) -> None:
        super()._dispatch(request)
        for track in self.tracks.values():
            for source in track.readers:
                source.fail = _closing(source)  # type: ignore[method-assign]

    def _established(self, track: RelayTrack, first: bool) -> None:
        super()._established(track, first)
        for source in track.readers:
            source.fail = _closing(source)  # type: ignore[method-assign]


def _closing(source: StoreSource) -> Any:
    def close(code: int) -> None:
        source.close()
        source.wake()

    return close


@mutant(
    "relay/waits-for-publishers",
    requires=("MOQT-R082", "MOQT-R059", "MOQT-R110"),
    reasons=(Reason.ANSWER_LATE, Reason.REQUEST_CODE),
)
class WaitsForPublishers(Rereading):
    """A SUBSCRIBE waits ten seconds for a publisher although it does not say so."""

    def changes(self, request: Request) -> dict[str, Any]:
        return {"rendezvous_timeout": request.parameters.rendezvous_timeout or 10_000}


@mutant(
    "relay/refuses-tracks-of-several",
    requires=("MOQT-R121", "MOQT-R216"),
    reasons=(Reason.REQUEST_REFUSED, Reason.UPSTREAM_SILENT),
)
class RefusesTracksOfSeveral(Relay):
    """A track with two publishers is refused to whoever subscribes."""

    def _dispatch(self, request: Request) -> None:
        track = request.track
        subscribes = track is not None and request.kind is RequestKind.SUBSCRIBE
        if subscribes and track and len(self._routes.publishers(track.namespace)) > 1:
            raise RequestRefused("more than one publisher", RequestErrorCode.EXCESSIVE_LOAD)
        super()._dispatch(request)


class _LargestOfFirst(Upstream):
    def learn_largest(self, location: Location | None) -> None:
        if next(iter(self.track.upstreams.values()), None) is self:
            super().learn_largest(location)


class _FirstTrack(RelayTrack):
    upstream_class = _LargestOfFirst


@mutant(
    "relay/believes-first-publisher",
    requires=("MOQT-R091", "MOQT-R211", "MOQT-R115"),
    reasons=(Reason.LARGEST, Reason.OBJECT_MISSING),
)
class BelievesFirstPublisher(Relay):
    """LARGEST_OBJECT is what the first publisher reported, whatever the others did."""

    track_class = _FirstTrack


@mutant("relay/status-without-largest", requires=("MOQT-R090",), reasons=(Reason.LARGEST,))
class StatusWithoutLargest(Session):
    """The answer to TRACK_STATUS has no LARGEST_OBJECT."""

    def accept(
        self,
        request: Request,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
    ) -> None:
        super().accept(request, replace(parameters, largest_object=None), track_properties)


@mutant(
    "relay/tells-largest-before-last",
    requires=("MOQT-R090", "MOQT-R091", "MOQT-R211"),
    reasons=(Reason.LARGEST,),
)
class TellsLargestBeforeLast(Session):
    """LARGEST_OBJECT of SUBSCRIBE_OK is the Object before the last, if its Group has one."""

    def accept_subscribe(
        self, request: Request, *, largest: Location | None, **values: Any
    ) -> SubscriptionSender:
        if largest is not None and largest.object > 0:
            largest = Location(largest.group, largest.object - 1)
        return super().accept_subscribe(request, largest=largest, **values)
