"""Relays that do not stop, or stop too much, when a peer ends a request or a stream."""

from __future__ import annotations

from moqt.relay import Relay
from moqt.session import Session
from moqt.session.events import Event, RequestReceived, StreamStopped

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


@mutant(
    "relay/reopens-stopped-subgroups",
    requires=("MOQT-R169",),
    reasons=(Reason.STREAM_SECOND, Reason.OBJECT_UNEXPECTED),
)
class ReopensStoppedSubgroups(Relay):
    """A subgroup whose stream the subscriber stopped goes on in a new one."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        if isinstance(event, StreamStopped) and event.request.sender is not None:
            parameters = event.request.parameters
            event.request.sender.apply(parameters, None, refilter=False, resumed=True)


@mutant(
    "relay/ends-subscription-with-its-fill",
    requires=("MOQT-R137", "MOQT-R189"),
    reasons=(Reason.OBJECT_MISSING,),
)
class EndsSubscriptionWithItsFill(Relay):
    """Who stops a fill loses the subscription."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        sender = event.request.sender if isinstance(event, StreamStopped) else None
        if sender is not None and sender.request.parameters.fill:
            sender.finish(0x2, "the fill was stopped")


class _Deaf(Session):
    """A session that does not hear when the peer ends some of its requests."""

    def next_event(self) -> Event | None:
        event = super().next_event()
        if isinstance(event, RequestReceived) and self.ignores(event):
            self.deaf = {*getattr(self, "deaf", ()), event.request.stream_id}
        return event

    def stop_sending_received(self, stream_id: int, code: int, now: float) -> None:
        if stream_id not in getattr(self, "deaf", ()):
            super().stop_sending_received(stream_id, code, now)

    def stream_reset(self, stream_id: int, code: int, now: float) -> None:
        if stream_id not in getattr(self, "deaf", ()):
            super().stream_reset(stream_id, code, now)

    def ignores(self, event: RequestReceived) -> bool:
        """Whether stopping this request does nothing."""
        return False


_KEPT = (Reason.STREAM_END, Reason.STREAM_SECOND)


@mutant("relay/keeps-streams-of-stopped-subscriptions", requires=("MOQT-R116",), reasons=_KEPT)
class KeepsStreamsOfStoppedSubscriptions(_Deaf):
    """STOP_SENDING for a SUBSCRIBE changes nothing."""

    def ignores(self, event: RequestReceived) -> bool:
        parameters = event.request.parameters
        return event.request.kind.name == "SUBSCRIBE" and parameters.fill is None


@mutant("relay/keeps-fills-of-stopped-subscriptions", requires=("MOQT-R135",), reasons=_KEPT)
class KeepsFillsOfStoppedSubscriptions(_Deaf):
    """STOP_SENDING for a SUBSCRIBE with a fill changes nothing."""

    def ignores(self, event: RequestReceived) -> bool:
        parameters = event.request.parameters
        return event.request.kind.name == "SUBSCRIBE" and parameters.fill is not None


@mutant("relay/keeps-streams-of-stopped-fetches", requires=("MOQT-R147",), reasons=_KEPT)
class KeepsStreamsOfStoppedFetches(_Deaf):
    """STOP_SENDING for a FETCH changes nothing."""

    def ignores(self, event: RequestReceived) -> bool:
        return event.request.kind.name == "FETCH"
