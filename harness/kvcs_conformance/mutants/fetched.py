"""Relays that serve FETCH wrongly: too early, past holes, in another order, or not at all."""

from __future__ import annotations

from typing import Any

from moqt.relay import Relay
from moqt.relay.readers import DownstreamFetch
from moqt.session import FetchSender, FetchState, Request, RequestKind, Session
from moqt.session.events import Event, ObjectReceived
from moqt.tracks.answering import answerable, refuse
from moqt.tracks.source import StoreSource
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.filters import LocationFilterType
from moqt.wire.messages import FetchOk
from moqt.wire.names import Location
from moqt.wire.objects import Object
from moqt.wire.stream_encoder import FetchObjectEncoder
from moqt.wire.varint import encode_vi64

from kvcs_conformance.mutants.asking import Rereading
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_EARLY = (Reason.ANSWER_EARLY,)
_LATE = 0.02


class _OkAtOnce(DownstreamFetch):
    def begin(self) -> None:
        wanted = self.request.parameters.location_filter
        publishers = self.track.publishers(self.request.session)
        if wanted is not None and publishers and answerable(self.request):
            end = Location(wanted.start_group + wanted.end_group_delta, wanted.end_object)
            self.request.session.accept_fetch(self.request, FetchOk(False, end))
        super().begin()


@mutant("relay/sends-fetch-ok-at-once", requires=("MOQT-R140", "MOQT-R210"), reasons=_EARLY)
class SendsFetchOkAtOnce(Relay):
    """FETCH_OK goes out at once, with the end that was asked for."""

    fetch_class = _OkAtOnce

    def _dispatch(self, request: Request) -> None:
        wanted = request.parameters.location_filter
        whole = wanted and wanted.type is LocationFilterType.ABSOLUTE_START_GROUP_END
        if request.kind is RequestKind.FETCH and not whole:
            track = self._track(request)
            track.check_wellformed()
            DownstreamFetch(track, request).begin()
        else:
            super()._dispatch(request)


class _NoOk(DownstreamFetch):
    def _answer(self, end: Location) -> None:
        pass


@mutant(
    "relay/never-sends-fetch-ok",
    requires=("KVCS-8-2", "MOQT-R139", "MOQT-R181"),
    reasons=(Reason.ANSWER_NUMBER, Reason.STREAM_CODE),
)
class NeverSendsFetchOk(Relay):
    """Objects and FIN come for a FETCH, but no FETCH_OK."""

    fetch_class = _NoOk


class _PastHoles(DownstreamFetch):
    def read(self, source: StoreSource) -> None:
        super().read(source)
        store = self.track.store
        if store.get(self._start) is not None and store.get(self._end) is not None:
            source.expire()


@mutant(
    "relay/reads-past-holes",
    requires=("KVCS-8-2", "MOQT-R144", "MOQT-R147", "MOQT-R204", "MOQT-R228"),
    reasons=(
        *_EARLY,
        Reason.OBJECT_MISSING,
        Reason.OBJECT_UNEXPECTED,
        Reason.RANGE_UNMARKED,
        Reason.STREAM_END,
    ),
)
class ReadsPastHoles(Relay):
    """A FETCH whose first and last Object are cached is served from there, holes and all."""

    fetch_class = _PastHoles


class _Empty:
    """A range without Objects."""

    def next_item(self) -> FetchState:
        return FetchState.END


@mutant(
    "relay/accepts-empty-ranges",
    requires=("MOQT-R141", "MOQT-R142"),
    reasons=(Reason.REQUEST_CODE,),
)
class AcceptsEmptyRanges(Relay):
    """A FETCH of a range in which nothing was published is accepted, and brings nothing."""

    def _dispatch(self, request: Request) -> None:
        try:
            super()._dispatch(request)
        except RequestRefused as refusal:
            if refusal.code is not RequestErrorCode.INVALID_RANGE or not answerable(request):
                raise
            request.session.accept_fetch(request, FetchOk(False, Location(1 << 20, 0)))
            request.session.open_fetch(request, _Empty())


@mutant(
    "relay/refuses-empty-ranges-as-unknown",
    requires=("MOQT-R141", "MOQT-R142"),
    reasons=(Reason.REQUEST_CODE,),
)
class RefusesEmptyRangesAsUnknown(Relay):
    """A FETCH of a range in which nothing was published is refused as if there were no track."""

    def _dispatch(self, request: Request) -> None:
        try:
            super()._dispatch(request)
        except RequestRefused as refusal:
            if refusal.code is RequestErrorCode.INVALID_RANGE:
                refusal.code = RequestErrorCode.DOES_NOT_EXIST
            raise


@mutant("relay/serves-what-it-refused", requires=("MOQT-R118",), reasons=(Reason.STREAM_SECOND,))
class ServesWhatItRefused(Relay):
    """A FETCH that was refused is served when its Objects come."""

    refused: tuple[Request, ...] = ()

    def _dispatch(self, request: Request) -> None:
        try:
            super()._dispatch(request)
        except RequestRefused:
            if request.kind is RequestKind.FETCH:
                self.refused = (*self.refused, request)
            raise

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        if isinstance(event, ObjectReceived):
            refused, self.refused = self.refused, ()
            for request in refused:
                core = request.session._core
                stream = core.transport.open_stream(unidirectional=True)
                if stream is not None and not core.closed:
                    core.transport.send(stream, b"\x05" + encode_vi64(request.id), True)


_GARBLED = (
    Reason.ORDER_LAYERS,
    Reason.OBJECT_UNEXPECTED,
    Reason.OBJECT_MISSING,
    Reason.CLOSE_UNEXPECTED,
)


@mutant("relay/fetches-ascending-only", requires=("MOQT-R143",), reasons=_GARBLED)
class FetchesAscendingOnly(Rereading):
    """Groups of a FETCH come ascending, whatever was asked for."""

    def changes(self, request: Request) -> dict[str, Any]:
        return {"group_order": 1} if request.kind is RequestKind.FETCH else {}


@mutant("relay/fetches-newest-first", requires=("KVCS-7.3-3", "MOQT-R143"), reasons=_GARBLED)
class FetchesNewestFirst(Rereading):
    """A FETCH that does not begin with Group 0 brings its last Group first."""

    def changes(self, request: Request) -> dict[str, Any]:
        wanted = request.parameters.location_filter
        late = wanted is not None and wanted.start_group > 0 and wanted.end_group_delta > 0
        return {"group_order": 2} if late and request.kind is RequestKind.FETCH else {}


class _RefersBack(FetchObjectEncoder):
    begun = False

    def encode(self, item: Object) -> bytes:
        octets = super().encode(item)
        if self.begun:
            return octets
        self.begun = True
        return bytes([0x10, item.priority]) + encode_vi64(len(item.payload))


class _Relative(DownstreamFetch):
    def send(self, sender: FetchSender) -> None:
        super().send(sender)
        sender._encoder = _RefersBack(not self._descending)


@mutant("relay/begins-fetch-relative", requires=("MOQT-R149",), reasons=(Reason.CLOSE_UNEXPECTED,))
class BeginsFetchRelative(Relay):
    """The first Object of a descending fetch leaves its Group and Object ID out."""

    def _dispatch(self, request: Request) -> None:
        descending = request.parameters.group_order == 2
        self.fetch_class = _Relative if descending else DownstreamFetch
        super()._dispatch(request)


@mutant("relay/waits-despite-fill-timeout", requires=("MOQT-R081",), reasons=(Reason.ANSWER_LATE,))
class WaitsDespiteFillTimeout(Rereading):
    """FILL_TIMEOUT 0 is taken as no limit."""

    def changes(self, request: Request) -> dict[str, Any]:
        return {"fill_timeout": request.parameters.fill_timeout or None}


@mutant("relay/routes-fetch-late", requires=("KVCS-8-2",), reasons=(Reason.REQUEST_REFUSED,))
class RoutesFetchLate(Relay):
    """FETCH learns of a session's further announcements 20 ms after they were accepted."""

    def _publish_namespace(self, request: Request) -> None:
        super()._publish_namespace(request)
        if len(self._routes.of_session(request.session)) > 1:
            self.learned = {**getattr(self, "learned", {}), request.namespace: self.now()}

    def _dispatch(self, request: Request) -> None:
        if request.kind is RequestKind.FETCH and request.track is not None:
            at = getattr(self, "learned", {}).get(request.track.namespace)
            if at is not None and self.now() - at < _LATE:
                refuse(request, RequestErrorCode.DOES_NOT_EXIST, "no publisher of this track")
                return
        super()._dispatch(request)
