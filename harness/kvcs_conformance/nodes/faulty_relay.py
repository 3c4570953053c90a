"""A relay that misbehaves towards those who subscribe and fetch; it is right towards publishers.

The faults stand between the relay and its sessions, so that the relay itself believes that it did
everything right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from moqt.relay import Relay, RelayConfig
from moqt.session import (
    FetchFailed,
    FetchItem,
    FetchSender,
    FetchSource,
    FetchState,
    Request,
    Session,
    SessionConfig,
    SubscriptionSender,
    Transport,
)
from moqt.wire.messages import FetchOk
from moqt.wire.names import TrackNamespace
from moqt.wire.objects import Object

from kvcs_conformance.nodes.held_transport import HeldTransport
from kvcs_conformance.nodes.relay_faults import Fault


class FaultySession(Session):
    """A session of the relay; the faults see what the relay hands to it, and change it."""

    faults: tuple[Fault, ...] = ()

    def __init__(self, is_client: bool, transport: Transport, config: SessionConfig) -> None:
        self.below = HeldTransport(transport)
        super().__init__(is_client, self.below, config)

    def accept_subscribe(self, request: Request, **options: Any) -> SubscriptionSender:
        octets = options.pop("track_properties", b"")
        for fault in self.faults:
            octets = fault.properties(request, octets)
        sender = super().accept_subscribe(request, track_properties=octets, **options)
        _set_before(sender, request, self.faults)
        return sender

    def accept_fetch(self, request: Request, message: FetchOk) -> None:
        answer: FetchOk | None = message
        for fault in self.faults:
            answer = answer and fault.fetch_ok(request, answer)
            if answer is not None:
                octets = fault.properties(request, answer.track_properties)
                answer = replace(answer, track_properties=octets)
        if answer is not None:
            super().accept_fetch(request, answer)

    def open_fetch(self, request: Request, source: FetchSource) -> FetchSender:
        altered = AlteredSource(source, request, "fetch", self.faults)
        sender = super().open_fetch(request, altered)
        for fault in self.faults:
            fault.opened(request, sender)
        return sender

    def namespace(self, request: Request, namespace: TrackNamespace) -> None:
        super().namespace(request, namespace)
        for fault in self.faults:
            fault.shows(request, namespace)


class FaultyRelay(Relay):
    """A relay with these faults, on sessions that have them too."""

    def __init__(self, config: RelayConfig | None, faults: Iterable[Fault]) -> None:
        super().__init__(config)
        self.faults = tuple(faults)

    def session_opened(self, session: Session, now: float) -> None:
        assert isinstance(session, FaultySession), "streams of a faulty relay cannot be held back"
        session.faults = self.faults
        super().session_opened(session, now)

    def _dispatch(self, request: Request) -> None:
        answered = [fault.requested(self, request) for fault in self.faults]
        if not any(answered):
            super()._dispatch(request)

    def below(self, session: Session) -> HeldTransport:
        """What is below one of our sessions."""
        assert isinstance(session, FaultySession)
        return session.below

    def later(self, delay: float, action: Callable[[], None]) -> None:
        """Do something after a while."""
        self._timers.at(self.now() + delay, action)


def _set_before(sender: SubscriptionSender, request: Request, faults: tuple[Fault, ...]) -> None:
    """Let the faults see what the relay hands to a subscription, and change it."""
    offer, finish, open_fill = sender.offer, sender.finish, sender.open_fill

    def offered(item: Object, **options: bool) -> bool:
        altered = alter(faults, request, item, "subscription")
        return isinstance(altered, Object) and offer(altered, **options)

    def finished(code: int, reason: str = "") -> None:
        answer: tuple[int, str] | None = (code, reason)
        for fault in faults:
            answer = answer and fault.finish(request, *answer)
        if answer is not None:
            finish(*answer)

    def filled(request_id: int, source: FetchSource) -> FetchSender:
        return open_fill(request_id, AlteredSource(source, request, "fill", faults))

    for name, function in (("offer", offered), ("finish", finished), ("open_fill", filled)):
        setattr(sender, name, function)


class AlteredSource:
    """What a fetch or fill stream reads, as the faults alter it."""

    def __init__(
        self, source: FetchSource, request: Request, via: str, faults: tuple[Fault, ...]
    ) -> None:
        self._source = source
        self._request = request
        self._via = via
        self._faults = faults
        self._over: FetchItem | None = None

    def next_item(self) -> FetchItem:
        """The next item that the faults leave."""
        while self._over is None:
            item = self._source.next_item()
            if not isinstance(item, Object):
                return item
            altered = alter(self._faults, self._request, item, self._via)
            if isinstance(altered, FetchState | FetchFailed):
                self._over = altered
            elif altered is not None:
                return altered
        return self._over


def alter(faults: Iterable[Fault], request: Request, item: Object, via: str) -> FetchItem | None:
    """What goes out instead of an Object."""
    altered: FetchItem | None = item
    for fault in faults:
        if isinstance(altered, Object):
            altered = fault.item(request, altered, via)
    return altered
