"""A node of the simulated network: an Endpoint, its sessions, and its timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moqt.drivers.memory.clock import SimulationError, Timer
from moqt.drivers.memory.connection import End

if TYPE_CHECKING:
    from moqt.drivers.memory.network import Network
    from moqt.endpoint import Endpoint
    from moqt.session import Session, SessionConfig

ROUNDS = 10_000
"""Rounds of events at one instant after which a node counts as looping."""


class Node:
    """The Host of one Endpoint (see `moqt.endpoint`)."""

    def __init__(self, network: Network, name: str, endpoint: Endpoint) -> None:
        self.name = name
        self.endpoint = endpoint
        self.ends: list[End] = []
        self.accepts: dict[str, SessionConfig] = {}
        self.alive = True
        self._network = network
        self._timer: Timer | None = None
        endpoint.attach(self)

    def connect(self, url: str, config: SessionConfig) -> Session:
        """See `Host.connect`: `moqt://NAME/path`, NAME being that of a listening node."""
        return self._network.connect(self, url, config)

    def now(self) -> float:
        """Seconds of virtual time."""
        return self._network.now

    def advance(self, now: float) -> None:
        """Tell every session the time, so that the application may act on any of them."""
        for end in self.ends:
            end.session.advance(now)

    def settle(self, now: float) -> None:
        """Hand over events and flush sessions until nothing more happens; set the timer."""
        for _ in range(ROUNDS):
            if not self._handle_events(now):
                for end in self.ends:
                    if end.established and not end.ended:
                        end.session.writable(now)
                if not self._handle_events(now):
                    break
        else:
            raise SimulationError(f"node {self.name!r} produces events without end at {now:g} s")
        self._set_timer()

    def _handle_events(self, now: float) -> bool:
        happened = False
        for end in tuple(self.ends):
            while (event := end.session.next_event()) is not None:
                happened = True
                self.endpoint.handle_event(end.session, event, now)
        self.ends = [end for end in self.ends if not end.ended]
        return happened

    def _set_timer(self) -> None:
        times = [end.session.next_timer() for end in self.ends if end.established]
        times.append(self.endpoint.next_timer())
        due = min((time for time in times if time is not None), default=None)
        if self._timer is not None:
            if self._timer.at == due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = self._network.call_later(due, self._timer_fired, self)

    def _timer_fired(self) -> None:
        self._timer = None
        now = self._network.now
        for end in tuple(self.ends):
            _fire(end.session.next_timer(), now, end.session.handle_timer)
        _fire(self.endpoint.next_timer(), now, self.endpoint.handle_timer)


def _fire(due: float | None, now: float, handle_timer: Callable[[float], None]) -> None:
    if due is not None and due <= now:
        handle_timer(now)
