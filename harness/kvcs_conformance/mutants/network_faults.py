"""Relays that do not live with what networks do: overtaking, silence, loss, slow readers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from moqt.relay import Relay, RelayConfig
from moqt.relay.upstream import Ending, Upstream
from moqt.session import Session
from moqt.session.events import Event, ObjectReceived, SessionClosed, StreamEnded, Via
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.names import FullTrackName, Location

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.network.plan import Grant
from kvcs_conformance.verdicts import Reason

LONE = 0.2
"""Seconds behind the last Object after which a FIN comes alone."""

SILENCE = 0.3
BACKLOG = 4096

_MISSING = (Reason.OBJECT_MISSING,)


def configure(session: Session, **options: Any) -> None:
    """Give one session other limits."""
    session._core.config = replace(session._core.config, **options)


@mutant(
    "relay/ends-with-publish-done",
    requires=("KVCS-7.2-3", "MOQT-R164"),
    reasons=(Reason.OBJECT_MISSING, Reason.STREAM_END),
)
class EndsWithPublishDone(Relay):
    """PUBLISH_DONE of a publisher ends the track at once; its Stream Count is not looked at."""

    def session_opened(self, session: Session, now: float) -> None:
        configure(session, done_timeout=0.0)
        super().session_opened(session, now)


class _Newest(Relay):
    """A relay that remembers the newest Group of each track that came by subscription."""

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(config)
        self.newest: dict[FullTrackName | None, int] = {}

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived) and event.stream.via is Via.SUBSCRIPTION:
            track, group = event.request.track, event.object.location.group
            self.newest[track] = max(group, self.newest.get(track, 0))
        if not self.ignores(event, now):
            super().handle_event(session, event, now)

    def ignores(self, event: Event, now: float) -> bool:
        """Whether the event is dropped."""
        return False

    def is_old(self, event: ObjectReceived) -> bool:
        """Whether a newer Group of its track came before."""
        return (
            event.stream.via is Via.SUBSCRIPTION
            and event.object.location.group < self.newest.get(event.request.track, 0)
        )


@mutant("relay/drops-older-groups", requires=("KVCS-7.2-3", "MOQT-R212"), reasons=_MISSING)
class DropsOlderGroups(_Newest):
    """What comes of a Group when a newer one has begun is dropped."""

    def ignores(self, event: Event, now: float) -> bool:
        return isinstance(event, ObjectReceived) and self.is_old(event)


@mutant(
    "relay/loses-lone-fin",
    requires=("MOQT-R164",),
    reasons=(Reason.OBJECT_MISSING, Reason.STREAM_END),
)
class LosesLoneFin(Relay):
    """A FIN that comes alone, long after the last Object of its stream, is not passed on."""

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(config)
        self._heard: dict[tuple[Session, int | None], float] = {}

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived):
            self._heard[session, event.stream.stream_id] = now
        if (
            isinstance(event, StreamEnded)
            and event.stream.via is Via.SUBSCRIPTION
            and now - self._heard.get((session, event.stream.stream_id), now) >= LONE
        ):
            return
        super().handle_event(session, event, now)


@mutant("relay/gives-up-on-silence", requires=("KVCS-7.2-3", "MOQT-R189"), reasons=_MISSING)
class GivesUpOnSilence(Relay):
    """A track whose publisher is silent for 0.3 s is taken for ended."""

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(config)
        self._silent: dict[Upstream, Any] = {}

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        if isinstance(event, ObjectReceived) and isinstance(event.request.context, Upstream):
            upstream = event.request.context
            if timer := self._silent.pop(upstream, None):
                timer.cancel()
            self._silent[upstream] = self._timers.at(now + SILENCE, lambda: self._end(upstream))

    def _end(self, upstream: Upstream) -> None:
        upstream.gone(Ending(RequestErrorCode.DOES_NOT_EXIST, PublishDoneCode.TRACK_ENDED, ""))


@mutant(
    "relay/skips-for-the-slow",
    requires=("KVCS-7.2-3", "MOQT-R189"),
    reasons=_MISSING,
)
class SkipsForTheSlow(Relay):
    """Whoever has a few KiB of backlog is not sent the next Object of the track."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        for track in self.tracks.values():
            for sender in track.subscribers.senders.values():
                if not hasattr(sender, "skipping"):
                    skip_when_slow(sender)


def skip_when_slow(sender: Any) -> None:
    """Let a subscription go without Objects while it has a backlog."""
    offer = sender.offer
    sender.skipping = True

    def offer_if_quick(item: Any, **options: Any) -> bool:
        return sender.backlog <= BACKLOG and bool(offer(item, **options))

    sender.offer = offer_if_quick


@mutant("relay/stalls-all-for-one", requires=("KVCS-10-10",), reasons=_MISSING)
class StallsAllForOne(Relay):
    """While one subscriber of a track has a backlog, its publisher is held back."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        for track in self.tracks.values():
            backlogs = [sender.backlog for sender in track.subscribers.senders.values()]
            for upstream in track.upstreams.values():
                upstream.hold(any(backlog > BACKLOG for backlog in backlogs))


@mutant("relay/grants-few-streams", requires=("KVCS-9-2",), reasons=(Reason.STREAMS_FEW,))
class GrantsFewStreams(Relay):
    """A peer may have eight unidirectional streams open, its control stream among them."""

    grants: ClassVar[Grant] = Grant(unidirectional_streams=8)


@mutant("relay/takes-loss-for-end", requires=("MOQT-R144",), reasons=(Reason.RANGE_UNMARKED,))
class TakesLossForEnd(Relay):
    """When a publisher is lost, what did not come from it is taken not to exist."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SessionClosed):
            for track in self.tracks.values():
                largest = track.store.largest
                if session not in track.upstreams or largest is None:
                    continue
                for group in range(largest.group):
                    at = track.store.first_unknown(Location(group, 0), Location(group, 1 << 20))
                    if at is not None:
                        track.store.absent(at, Location(group, 1 << 20))
        super().handle_event(session, event, now)


@mutant(
    "relay/forgets-with-publisher",
    requires=("KVCS-8-2",),
    reasons=(Reason.OBJECT_MISSING, Reason.REQUEST_REFUSED),
)
class ForgetsWithPublisher(Relay):
    """What is cached of a track goes with the session of its publisher."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SessionClosed):
            for track in self.tracks.values():
                if session in track.upstreams:
                    track.store.clear()
        super().handle_event(session, event, now)
