"""Relays that end subscriptions wrongly, and those that live with Tracks that break the rules."""

from __future__ import annotations

from dataclasses import replace

from moqt.relay import Relay
from moqt.relay.subscribers import Subscribers
from moqt.relay.track import RelayTrack
from moqt.relay.upstream import Upstream
from moqt.session import Request, Session
from moqt.session.events import Event, RequestReceived, StreamInfo
from moqt.wire.errors import PublishDoneCode, StreamError
from moqt.wire.messages import Message, PublishDone, SubscribeOk
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus

from kvcs_conformance.mutants.forwarded import with_subscribers
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


class _CountsFillsNot(Subscribers):
    def finish(self, code: int, reason: str) -> None:
        for request, sender in self.senders.items():
            sender.streams_opened -= len(request.context.fills)
        super().finish(code, reason)


@mutant("relay/leaves-fills-out-of-count", requires=("MOQT-R125",), reasons=(Reason.DONE_COUNT,))
class LeavesFillsOutOfCount(Relay):
    """Stream Count of PUBLISH_DONE counts subgroup streams alone."""

    track_class = with_subscribers(_CountsFillsNot)


class _NeverZero(Subscribers):
    def finish(self, code: int, reason: str) -> None:
        for request, sender in self.senders.items():
            if not sender.streams_opened and not request.context.fills and not sender.backlog:
                sender.streams_opened = 1
        super().finish(code, reason)


@mutant("relay/never-counts-zero", requires=("MOQT-R124",), reasons=(Reason.DONE_COUNT,))
class NeverCountsZero(Relay):
    """Stream Count is at least 1."""

    track_class = with_subscribers(_NeverZero)


class _DoneAtOnce(Subscribers):
    def finish(self, code: int, reason: str) -> None:
        for request, sender in self.senders.items():
            if request.stream_id is not None and sender.backlog > 1000:
                message = PublishDone(code, (1 << 64) - 1, reason)
                frame = sender.core.encode(message)
                sender.core.write(request.stream_id, message, frame, fin=True)
                sender._on_done = lambda *told: None
        super().finish(code, reason)


@mutant(
    "relay/done-before-streams",
    requires=("KVCS-7.2-3", "MOQT-R117"),
    reasons=(Reason.DONE_EARLY, Reason.OBJECT_MISSING),
)
class DoneBeforeStreams(Relay):
    """PUBLISH_DONE goes out when the Track ends, however much is still to be sent."""

    track_class = with_subscribers(_DoneAtOnce)


class _FinAlone(Subscribers):
    def finish(self, code: int, reason: str) -> None:
        if code == PublishDoneCode.TRACK_ENDED:
            for request, sender in self.senders.items():
                if request.stream_id is not None:
                    sender.core.fin(request.stream_id)
        else:
            super().finish(code, reason)


@mutant("relay/ends-without-publish-done", requires=("MOQT-R060",), reasons=(Reason.DONE_ABSENT,))
class EndsWithoutPublishDone(Relay):
    """A subscription whose Track ended gets FIN alone."""

    track_class = with_subscribers(_FinAlone)


class _ForgivesContradictions(RelayTrack):
    def contradiction(self, session: Session, reason: str) -> None:
        pass


@mutant(
    "relay/overlooks-contradictions",
    requires=("MOQT-R180", "MOQT-R181", "MOQT-R182", "MOQT-R203"),
    reasons=(Reason.DONE_CODE, Reason.MALFORMED_KEPT, Reason.OBJECT_EXPIRED),
)
class OverlooksContradictions(Relay):
    """Of two Objects at one Location the first is kept, and nothing else is done."""

    track_class = _ForgivesContradictions


class _PrefersSecond(RelayTrack):
    def received(
        self, upstream: Upstream, item: Object, previous: Location | None, info: StreamInfo
    ) -> None:
        held = self.store.get(item.location)
        if held is not None and held.payload != item.payload:
            self.store.clear()
            self._forwarded.clear()
        super().received(upstream, item, previous, info)


@mutant(
    "relay/prefers-the-second-payload",
    requires=("MOQT-R180", "MOQT-R181", "MOQT-R182", "MOQT-R203"),
    reasons=(
        *(Reason.OBJECT_CHANGED, Reason.DONE_CODE),
        *(Reason.MALFORMED_KEPT, Reason.OBJECT_EXPIRED),
    ),
)
class PrefersTheSecondPayload(Relay):
    """An Object that comes again with another payload replaces the first one."""

    track_class = _PrefersSecond


class _EndsAsUsual(Subscribers):
    def finish(self, code: int, reason: str) -> None:
        malformed = code == PublishDoneCode.MALFORMED_TRACK
        super().finish(PublishDoneCode.TRACK_ENDED if malformed else code, reason)


@mutant(
    "relay/ends-malformed-as-usual",
    requires=("MOQT-R181", "MOQT-R203"),
    reasons=(Reason.DONE_CODE,),
)
class EndsMalformedAsUsual(Relay):
    """Subscribers of a malformed Track are told that it ended."""

    track_class = with_subscribers(_EndsAsUsual)


class _KeepsMalformedPublishers(RelayTrack):
    def malformed(self, suspects: list[Session], reason: str) -> None:
        self.subscribers.finish(PublishDoneCode.MALFORMED_TRACK, reason)
        for fetch in tuple(self.fetches):
            fetch.fail(StreamError.MALFORMED_TRACK, reason)
        self.store.clear()
        self.broken = True

    def release(self) -> None:
        if not getattr(self, "broken", False):
            super().release()


@mutant(
    "relay/keeps-publishers-of-malformed-tracks",
    requires=("MOQT-R180",),
    reasons=(Reason.MALFORMED_KEPT,),
)
class KeepsPublishersOfMalformedTracks(Relay):
    """The subscriptions to publishers whose Objects broke a rule go on."""

    track_class = _KeepsMalformedPublishers


class _KeepsMalformed(RelayTrack):
    def malformed(self, suspects: list[Session], reason: str) -> None:
        self.kept = list(self.store)
        super().malformed(suspects, reason)
        for session in suspects:
            self.context.suspects.session_closed(session)
        for item in self.kept:
            self.store.add(item)

    @property
    def forgettable(self) -> bool:
        return super().forgettable and not getattr(self, "kept", [])


@mutant("relay/caches-malformed", requires=("MOQT-R182",), reasons=(Reason.OBJECT_EXPIRED,))
class CachesMalformed(Relay):
    """What came of a Track before it broke a rule stays in the cache, and is served."""

    track_class = _KeepsMalformed


@mutant(
    "relay/overlooks-immutable-properties",
    requires=("MOQT-R175", "MOQT-R180", "MOQT-R181"),
    reasons=(Reason.DONE_CODE, Reason.MALFORMED_KEPT, Reason.END_WRONG),
)
class OverlooksImmutableProperties(Session):
    """Immutable Properties may come twice or inside of each other."""

    def _malformed(self, track: FullTrackName, reason: str) -> None:
        if "IMMUTABLE" not in reason.upper():
            super()._malformed(track, reason)


class _EndsFetches(RelayTrack):
    def malformed(self, suspects: list[Session], reason: str) -> None:
        for fetch in tuple(self.fetches):
            fetch.fail(StreamError.INTERNAL_ERROR, reason)
        super().malformed(suspects, reason)


@mutant(
    "relay/resets-malformed-without-code", requires=("MOQT-R181",), reasons=(Reason.STREAM_CODE,)
)
class ResetsMalformedWithoutCode(Relay):
    """Fetches of a malformed Track are reset with INTERNAL_ERROR."""

    track_class = _EndsFetches


@mutant(
    "relay/shares-aliases",
    requires=("MOQT-R114", "MOQT-R119", "MOQT-R180"),
    reasons=(Reason.ALIAS_SHARED, Reason.OBJECT_MISSING, Reason.END_WRONG),
)
class SharesAliases(Session):
    """Every SUBSCRIBE_OK of a session names Track Alias 0."""

    def start(self, now: float) -> None:
        super().start(now)
        encode = self._core.encode

        def encode_alike(message: Message) -> bytes:
            if isinstance(message, SubscribeOk):
                message = replace(message, track_alias=0)
            return encode(message)

        self._core.encode = encode_alike  # type: ignore[method-assign]


@mutant("relay/takes-fin-for-cancel", requires=("MOQT-R061",), reasons=(Reason.OBJECT_MISSING,))
class TakesFinForCancel(Session):
    """FIN of a subscriber on its request's stream ends the subscription."""

    def next_event(self) -> Event | None:
        event = super().next_event()
        if isinstance(event, RequestReceived):
            self.asked = {**getattr(self, "asked", {}), event.request.stream_id: event.request}
        return event

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        super().stream_data(stream_id, data, fin, now)
        request = getattr(self, "asked", {}).get(stream_id)
        if fin and request is not None and request.sender is not None:
            request.sender.finish(PublishDoneCode.TRACK_ENDED, "the subscriber left")


@mutant("relay/ignores-priorities", requires=("MOQT-R190",), reasons=(Reason.PRIORITY_ORDER,))
class IgnoresPriorities(Relay):
    """SUBSCRIBER_PRIORITY of a request is not read."""

    def _dispatch(self, request: Request) -> None:
        request.parameters = replace(request.parameters, subscriber_priority=None)
        super()._dispatch(request)


class _DropsMarks(RelayTrack):
    def received(
        self, upstream: Upstream, item: Object, previous: Location | None, info: StreamInfo
    ) -> None:
        if item.status is ObjectStatus.NORMAL:
            super().received(upstream, item, previous, info)


@mutant(
    "relay/drops-end-marks",
    requires=("MOQT-R227",),
    reasons=(Reason.MARK_GROUP, Reason.MARK_TRACK),
)
class DropsEndMarks(Relay):
    """End of Group and End of Track are not forwarded."""

    track_class = _DropsMarks
