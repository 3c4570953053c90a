"""Relays whose sessions forgive what a publisher must not send them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moqt.relay import Relay, RelayConfig
from moqt.session import Request, RequestKind, Session, SessionConfig, Transport
from moqt.session.events import (
    Event,
    ObjectReceived,
    SessionClosed,
    StreamInfo,
    Via,
)
from moqt.tracks import TrackStore
from moqt.tracks.serving import fetch_source
from moqt.wire.errors import SessionError
from moqt.wire.filters import fetch_range
from moqt.wire.messages import FetchOk
from moqt.wire.names import FullTrackName
from moqt.wire.objects import Object

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.mutants.sessions import OPEN, Forgiving
from kvcs_conformance.verdicts import Reason

CLOSED = (Reason.CLOSE_UNEXPECTED,)
END = (Reason.END_WRONG,)
REFUSED = (Reason.REQUEST_CODE,)


@mutant("relay/takes-long-reasons", requires=("MOQT-R050",), reasons=OPEN)
class TakesLongReasons(Forgiving):
    """A Reason Phrase of more than 1024 octets is no reason to close."""

    forgives = "a Reason Phrase has at most"


@mutant("relay/takes-second-answers", requires=("MOQT-R112",), reasons=OPEN)
class TakesSecondAnswers(Forgiving):
    """A publisher may answer a request twice."""

    forgives = "from the responder"


@mutant("relay/takes-early-fetch-end", requires=("MOQT-R148",), reasons=OPEN)
class TakesEarlyFetchEnd(Forgiving):
    """FETCH_OK may end before what was asked for starts."""

    forgives = "FETCH_OK ends at"


@mutant("relay/takes-relative-first-object", requires=("MOQT-R150",), reasons=OPEN)
class TakesRelativeFirstObject(Forgiving):
    """The first Object of a fetch may leave its Group or Object ID to one before it."""

    forgives = "the first Object of a fetch"


@mutant("relay/lets-group-ids-leave-their-range", requires=("MOQT-R151",), reasons=OPEN)
class LetsGroupIdsLeaveTheirRange(Forgiving):
    """A Group ID of a fetch may leave 0 to 2^64-1."""

    forgives = "a Group ID leaves"


@mutant("relay/lets-fetch-object-ids-overflow", requires=("MOQT-R152",), reasons=OPEN)
class LetsFetchObjectIdsOverflow(Forgiving):
    """An Object ID of a fetch may exceed 2^64-1."""

    forgives = "Object ID of a fetch"


@mutant("relay/takes-unknown-fetch-flags", requires=("MOQT-R155",), reasons=OPEN)
class TakesUnknownFetchFlags(Forgiving):
    """Unknown Serialization Flags are no reason to close."""

    forgives = "Serialization Flags"


@mutant("relay/takes-undefined-status", requires=("MOQT-R157",), reasons=OPEN)
class TakesUndefinedStatus(Forgiving):
    """An undefined Object Status is no reason to close."""

    forgives = "Object Status 0x"


@mutant("relay/takes-properties-of-ends", requires=("MOQT-R159", "MOQT-R160"), reasons=OPEN)
class TakesPropertiesOfEnds(Forgiving):
    """An End of Group may have Properties, on a stream and in a datagram."""

    forgives = "has Properties"


@mutant("relay/takes-malformed-datagrams", requires=("MOQT-R160",), reasons=OPEN)
class TakesMalformedDatagrams(Forgiving):
    """A malformed Object datagram is dropped."""

    forgives = "datagram type 0x[123]. |of length 0"


@mutant("relay/takes-streams-that-stop-short", requires=("MOQT-R161",), reasons=OPEN)
class TakesStreamsThatStopShort(Forgiving):
    """A data stream may end inside an Object."""

    forgives = "data stream ends inside"


@mutant("relay/takes-subgroup-mode-3", requires=("MOQT-R162",), reasons=OPEN)
class TakesSubgroupMode3(Forgiving):
    """A subgroup header of the invalid mode is no reason to close."""

    forgives = "stream type 0x[1357][67ef] "


@mutant("relay/lets-object-ids-overflow", requires=("MOQT-R163",), reasons=OPEN)
class LetsObjectIdsOverflow(Forgiving):
    """An Object ID of a subgroup may exceed 2^64-1."""

    forgives = "an Object ID exceeds"


@mutant("relay/takes-any-default-order", requires=("MOQT-R171",), reasons=OPEN)
class TakesAnyDefaultOrder(Forgiving):
    """DEFAULT_PUBLISHER_GROUP_ORDER may be anything."""

    forgives = "DEFAULT_PUBLISHER_GROUP_ORDER must"


@mutant("relay/takes-any-dynamic-groups", requires=("MOQT-R172",), reasons=OPEN)
class TakesAnyDynamicGroups(Forgiving):
    """DYNAMIC_GROUPS may be more than 1."""

    forgives = "DYNAMIC_GROUPS must"


@mutant("relay/forgets-aliases-of-other-tracks", requires=("MOQT-R120",), reasons=OPEN)
class ForgetsAliasesOfOtherTracks(Forgiving):
    """One Track Alias may stand for two Tracks."""

    forgives = "Track Alias"


@mutant("relay/reads-subgroups-of-datagrams", requires=("MOQT-R154",), reasons=CLOSED)
class ReadsSubgroupsOfDatagrams(Session):
    """The low bits of a fetch Object that was a datagram are not ignored: 0x5f closes."""

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        if stream_id & 2 and bytes(data[:1]) == b"\x05" and bytes(data[2:3]) == b"\x5f":
            self.close(SessionError.PROTOCOL_VIOLATION, "a datagram has no Subgroup")
        super().stream_data(stream_id, data, fin, now)


@mutant("relay/takes-mandatory-properties", requires=("MOQT-R179",), reasons=REFUSED)
class TakesMandatoryProperties(Session):
    """A Mandatory Track Property that the relay does not understand is passed over."""

    def __init__(self, is_client: bool, transport: Transport, config: SessionConfig) -> None:
        known = frozenset({0x4000})
        super().__init__(is_client, transport, replace(config, understood_properties=known))


@mutant("relay/reads-what-it-refused", requires=("MOQT-R122",), reasons=END)
class ReadsWhatItRefused(Session):
    """Data streams of a PUBLISH that was refused are read on."""

    def __init__(self, is_client: bool, transport: Transport, config: SessionConfig) -> None:
        super().__init__(is_client, transport, config)
        self._receiver.unwanted = lambda alias: None  # type: ignore[method-assign]


@mutant("relay/closes-who-asked-too", requires=("MOQT-R225",), reasons=CLOSED)
class ClosesWhoAskedToo(Relay):
    """When a publisher's session is closed for a breach, so are those that asked for its Tracks."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SessionClosed) and event.code and not event.by_peer:
            for track in tuple(self.tracks.values()):
                if session in track.upstreams or track.fetches:
                    asking = [*track.waiting, *track.subscribers.senders]
                    asking += [fetch.request for fetch in track.fetches]
                    for request in asking:
                        request.session.close(SessionError.PROTOCOL_VIOLATION, event.reason)
        super().handle_event(session, event, now)


@mutant(
    "relay/goes-on-with-malformed-tracks",
    requires=("MOQT-R175", "MOQT-R180", "MOQT-R181"),
    reasons=(*END, Reason.DONE_CODE),
)
class GoesOnWithMalformedTracks(Session):
    """A Track that contradicts itself is read on, without what is wrong."""

    def _malformed(self, track: FullTrackName, reason: str) -> None:
        return


class _TellsAll(Session):
    """A session whose application gets offending Objects, too."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        bind = self._receiver.aliases.bind

        def bound(alias: int, subscription: Any, properties: bytes) -> Any:
            binding: Any = bind(alias, subscription, properties)
            received = binding.rules.received

            def check(item: Object) -> Any:
                breach = received(item)
                if breach:
                    info = StreamInfo(Via.SUBSCRIPTION, None, subscription.request.id)
                    self._core.emit(ObjectReceived(subscription.request, item, info))
                return breach

            binding.rules.received = check
            return binding

        self._receiver.aliases.bind = bound  # type: ignore[method-assign, assignment]


@mutant(
    "relay/keeps-malformed-objects",
    requires=("MOQT-R182",),
    reasons=(Reason.OBJECT_UNEXPECTED, Reason.OBJECT_EXPIRED),
)
class KeepsMalformedObjects(Relay):
    """The Object that makes a Track malformed is kept and served."""

    session_class = _TellsAll

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(config)
        self._kept: dict[FullTrackName, Object] = {}

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived) and event.request.track is not None:
            self._kept[event.request.track] = event.object
        super().handle_event(session, event, now)

    def _dispatch(self, request: Request) -> None:
        kept = self._kept.get(request.track) if request.track else None
        broken = request.track is not None and self._suspects.any_of(request.track)
        if request.kind is not RequestKind.FETCH or kept is None or not broken:
            super()._dispatch(request)
            return
        store = TrackStore()
        store.add(kept)
        start, end = fetch_range(request.parameters.location_filter, kept.location)
        request.session.accept_fetch(request, FetchOk(False, end))
        source = fetch_source(store, request.parameters, b"", start, end)
        request.session.open_fetch(request, source)
