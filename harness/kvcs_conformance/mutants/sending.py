"""Publishers that send what they must not, or in a wrong order, when requests compete or stop."""

from __future__ import annotations

from dataclasses import replace

from kvcs.publisher import Publisher
from moqt.origin import LocalTrack
from moqt.session import Request, Session, SessionConfig
from moqt.session.fetching import FetchSender, FetchSource
from moqt.session.transport import Transport
from moqt.tracks.serving import fetch_source
from moqt.wire.errors import RequestErrorCode, RequestRefused, StreamError
from moqt.wire.messages import RequestError
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, RangeKind, RangeMarker
from moqt.wire.stream_encoder import FetchObjectEncoder

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


@mutant(
    "publisher/ignores-subscriber-priority",
    requires=("MOQT-R190",),
    reasons=(Reason.ORDER_URGENCY,),
)
class IgnoresSubscriberPriority(Publisher):
    """All FETCHes are equally urgent."""

    def _fetch(self, request: Request) -> None:
        request.parameters = replace(request.parameters, subscriber_priority=None)
        super()._fetch(request)


class _Reopening(LocalTrack):
    """A track that forgets which Subgroups a subscriber stopped."""

    def publish(self, item: Object, *, end_of_group: bool = False) -> None:
        for sender in self.senders.values():
            sender._shut.clear()
        super().publish(item, end_of_group=end_of_group)


@mutant(
    "publisher/reopens-stopped-subgroup", requires=("MOQT-R169",), reasons=(Reason.STREAM_SECOND,)
)
class ReopensStoppedSubgroup(Publisher):
    """After STOP_SENDING the rest of the Subgroup goes out on another stream."""

    def add_track(
        self, track: FullTrackName, *, properties: bytes = b"", default_priority: int | None = None
    ) -> LocalTrack:
        local = self.tracks[track] = _Reopening(track, properties, default_priority)
        return local


@mutant(
    "publisher/serves-refused-fetch", requires=("MOQT-R118",), reasons=(Reason.OBJECT_UNEXPECTED,)
)
class ServesRefusedFetch(Publisher):
    """A FETCH that is refused for its range gets all that there is, behind the error."""

    def _fetch(self, request: Request) -> None:
        try:
            super()._fetch(request)
        except RequestRefused as refusal:
            track = self.tracks.get(request.track) if request.track else None
            stream = request.session._registry.find(request)
            if track is None or track.largest is None or stream is None:
                raise
            stream.send(RequestError(RequestErrorCode.INVALID_RANGE, 0, str(refusal)))
            request.parameters = replace(request.parameters, range_filters=())
            source = fetch_source(
                track.store, request.parameters, b"", Location(0, 0), track.largest
            )
            request.session.open_fetch(request, source)


@mutant("publisher/takes-fin-for-cancel", requires=("MOQT-R061",), reasons=(Reason.OBJECT_MISSING,))
class TakesFinForCancel(Session):
    """A subscriber that ends its half of the request stream is taken to have cancelled."""

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        asked = stream_id & 0x2 == 0 and (stream_id & 0x1 == 1) == self.is_client
        super().stream_data(stream_id, data, fin and not asked, now)
        if fin and asked:
            self.stream_reset(stream_id, StreamError.CANCELLED, now)


@mutant(
    "publisher/takes-any-ranges",
    requires=("MOQT-R037",),
    reasons=(Reason.REQUEST_CODE, Reason.OBJECT_UNEXPECTED),
)
class TakesAnyRanges(Session):
    """Range Filters are taken, however few Ranges were announced."""

    def __init__(self, is_client: bool, transport: Transport, config: SessionConfig) -> None:
        super().__init__(is_client, transport, config)
        self._incoming._check_filters = lambda parameters: None  # type: ignore[method-assign]


class _Relative(FetchObjectEncoder):
    """An encoder whose first Object follows one that was never sent."""

    def encode(self, item: Object) -> bytes:
        if self._last is None:
            self._last = Location(item.location.group, item.location.object - 1)
        return super().encode(item)


@mutant(
    "publisher/begins-fetch-relative", requires=("MOQT-R149",), reasons=(Reason.CLOSE_UNEXPECTED,)
)
class BeginsFetchRelative(Session):
    """The first Object of a FETCH stream is encoded as if another came before it."""

    def open_fetch(self, request: Request, source: FetchSource) -> FetchSender:
        sender = super().open_fetch(request, source)
        sender._encoder = _Relative(ascending=True)
        return sender


class _Doubting:
    """A source that calls what does not exist behind each Group unknown."""

    def __init__(self, source: FetchSource) -> None:
        self._source = source
        self._next: object = None
        self._last: Location | None = None

    def next_item(self) -> object:
        """The next item of the source, or a marker before it."""
        if self._next is not None:
            item, self._next = self._next, None
            return item
        item = self._source.next_item()
        last = self._last
        if isinstance(item, Object):
            self._last = item.location
            if last is not None and item.location.group > last.group:
                self._next = item
                return RangeMarker(RangeKind.UNKNOWN, Location(last.group, last.object + 100))
        return item


@mutant("publisher/calls-gaps-unknown", requires=("MOQT-R144",), reasons=(Reason.RANGE_UNMARKED,))
class CallsGapsUnknown(Session):
    """What lies between the Groups of a FETCH is marked as unknown, though nothing exists there."""

    def open_fetch(self, request: Request, source: FetchSource) -> FetchSender:
        return super().open_fetch(request, _Doubting(source))  # type: ignore[arg-type]
