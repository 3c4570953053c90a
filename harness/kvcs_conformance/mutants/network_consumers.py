"""Consumers that do not live with what networks do: overtaking, resets, silence, loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from kvcs.consumer import Consumer
from kvcs.consumer.carriers import LiveCarrier
from kvcs.consumer.routes import PublicationView
from kvcs.consumer.supply import Supply
from moqt.session import Session
from moqt.session.events import (
    Event,
    ObjectReceived,
    SessionClosed,
    StreamEnded,
    SubscriptionEnded,
    Via,
)
from moqt.wire.errors import PublishDoneCode

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.network.plan import Grant
from kvcs_conformance.verdicts import Reason

SILENCE = 0.3
SOON = 0.1
TRACK_ENDED = int(PublishDoneCode.TRACK_ENDED)

_DROPPED = (Reason.DROPPED_GOOD_OBJECT,)
_EARLY = (Reason.USED_BAD_OBJECT,)
_SUPPLY = (Reason.NOT_RECOVERED, Reason.DROPPED_GOOD_OBJECT)


class _Hasty(Consumer):
    """A consumer that calls layers usable of which it has not everything, but nothing bad."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._bad: set[int] = set()

    def emit(self, event: str, **details: Any) -> None:
        if event == "object-discarded":
            self._bad.add(details["layer"])
        super().emit(event, **details)

    def call_usable(self, layers: Iterable[int]) -> None:
        """Report layers as usable, whatever there is of them."""
        restore = self._restore
        if restore is None or self.done:
            return
        for segment, part in restore.assembly.segments.items():
            for layer in layers:
                if (segment, layer) not in restore._announced and layer not in self._bad:
                    restore._announced.add((segment, layer))
                    restore._emit("layer-usable", segment=segment, layer=layer, blocks=part.blocks)


@mutant("consumer/takes-done-for-complete", requires=("KVCS-7.2-7", "KVCS-7.4-2"), reasons=_EARLY)
class TakesDoneForComplete(_Hasty):
    """Soon after PUBLISH_DONE of one track, with however many streams, every layer is taken to be
    there."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SubscriptionEnded) and event.message.status_code == TRACK_ENDED:
            layers = self.request.wanted_layers
            self.timers.set("soon", now + SOON, lambda: self.call_usable(layers))
        super().handle_event(session, event, now)


@mutant("consumer/takes-newer-group-for-end", requires=("KVCS-7.2-7", "KVCS-7.4-2"), reasons=_EARLY)
class TakesNewerGroupForEnd(_Hasty):
    """Where nothing has to be filled in: when a layer has begun, those before the last one are
    taken to be there."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        carrier = event.request.context if isinstance(event, ObjectReceived) else None
        if isinstance(carrier, LiveCarrier) and carrier.largest is None:
            assert isinstance(event, ObjectReceived)
            self.now = now
            self.call_usable(range(min(event.object.location.group - 1, self.request.layer_count)))
        super().handle_event(session, event, now)


@mutant("consumer/takes-reset-for-end", requires=("KVCS-7.4-2",), reasons=_EARLY)
class TakesResetForEnd(_Hasty):
    """A layer whose stream was reset is taken to be there."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, StreamEnded) and event.code is not None:
            self.now = now
            if event.stream.group is not None:
                self.call_usable([event.stream.group])
        super().handle_event(session, event, now)


@mutant("consumer/lets-reset-layers-go", requires=("KVCS-7.4-4",), reasons=_SUPPLY)
class LetsResetLayersGo(Consumer):
    """What a stream that was reset did not bring is not asked for again."""

    def check(self) -> None:
        if self._restore is not None:
            self._restore.supply.__class__ = _NoResets
        super().check()


class _NoResets(Supply):
    """A supply that forgets losses by reset."""

    def lost(self, carrier: Any, locations: Any, reason: str) -> None:
        gone = list(locations)
        if reason == "stream.reset":
            self._given_up[carrier.track].update(gone)
        super().lost(carrier, gone, reason)


@mutant("consumer/ends-with-publish-done", requires=("KVCS-7.2-3", "KVCS-7.4-4"), reasons=_SUPPLY)
class EndsWithPublishDone(Consumer):
    """With a PUBLISH_DONE that counts more streams than came the restore ends."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        for source in self._sources.ready:
            config = source.session._core.config
            object.__setattr__(config, "done_timeout", 0.0)
        super().handle_event(session, event, now)
        if isinstance(event, SubscriptionEnded) and not event.complete and not self.done:
            self._finish("the track has ended")


@mutant("consumer/demands-order", requires=("KVCS-7.2-3",), reasons=_DROPPED)
class DemandsOrder(Consumer):
    """A layer that comes on a subscription after a later one discards the publication."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._newest: dict[LiveCarrier, int] = {}

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived) and event.stream.via is Via.SUBSCRIPTION:
            carrier, group = event.request.context, event.object.location.group
            if isinstance(carrier, LiveCarrier):
                if group < self._newest.get(carrier, 0):
                    self.now = now
                    self.discard(carrier.route.publication, "order", "an older layer came")
                    return
                self._newest[carrier] = group
        super().handle_event(session, event, now)


@mutant("consumer/gives-up-on-silence", requires=("KVCS-7.2-3", "KVCS-7.4-4"), reasons=_SUPPLY)
class GivesUpOnSilence(Consumer):
    """When no subscription brought anything for 0.3 s the restore ends."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        live = isinstance(event, ObjectReceived) and isinstance(event.request.context, LiveCarrier)
        if live and not self.done:
            self.timers.set("silence", now + SILENCE, lambda: self._finish("nothing comes"))


@mutant("consumer/ends-with-its-relay", requires=("KVCS-7.4-4",), reasons=_SUPPLY)
class EndsWithItsRelay(Consumer):
    """When one of its relays is lost the restore ends."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SessionClosed) and not self.done:
            self.now = now
            self._finish("a relay was lost")
        super().handle_event(session, event, now)


@mutant("consumer/asks-one-publication-only", requires=("KVCS-7.4-4",), reasons=_SUPPLY)
class AsksOnePublicationOnly(Consumer):
    """When it lacks something of the publication that it has begun it looks at no other."""

    def _begin(self, view: PublicationView) -> bool:
        if self._restore is not None and self._restore.supply.recovering:
            view.tried = True
            return False
        return super()._begin(view)


@mutant(
    "consumer/waits-for-its-relay",
    requires=("KVCS-7.4-5",),
    reasons=(Reason.WAITED,),
)
class WaitsForItsRelay(Consumer):
    """The loss of a relay is not noticed, and nothing bounds the wait for what it was to bring."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SessionClosed) and not self.done:
            self.timers.clear()
            return
        super().handle_event(session, event, now)

    def next_timer(self) -> float | None:
        due = super().next_timer()
        return None if any(session_gone(self)) else due


def session_gone(consumer: Consumer) -> list[bool]:
    """Which of its sources have a session that ended."""
    return [source.session.closed for source in consumer._sources._all]


@mutant("consumer/reports-all-as-reused", requires=("KVCS-7.4-4",), reasons=(Reason.WRONG_REUSE,))
class ReportsAllAsReused(Consumer):
    """When it lost its relay it does not say what is to be computed again."""

    def emit(self, event: str, **details: Any) -> None:
        if event == "recompute" and any(session_gone(self)):
            details["first_token"] = details["end_token"]
        super().emit(event, **details)


@mutant("consumer/grants-few-streams", requires=("KVCS-9-2",), reasons=(Reason.STREAMS_FEW,))
class GrantsFewStreams(Consumer):
    """A relay may have eight unidirectional streams open, its control stream among them."""

    grants: ClassVar[Grant] = Grant(unidirectional_streams=8)
