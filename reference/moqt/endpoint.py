"""The meeting point of roles and drivers: an Endpoint decides, a Host carries.

A role (relay, origin, publisher, consumer) is an Endpoint: a state machine that never blocks and
sees time only as the `now` that it is handed (seconds, monotonic). A driver is a Host: it owns
sockets or a simulated network, runs the sessions, and calls the Endpoint.

Order of calls for one session: `session_opened` (only for a session that the peer opened; one
that `Host.connect` returned is known already), then `handle_event` for each of its events, the
last one being SessionClosed. After every batch of calls the driver flushes all sessions and asks
`next_timer` again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from moqt.session import Session, SessionConfig
    from moqt.session.events import Event


class Host(Protocol):
    """What a driver offers to the role that runs on it."""

    def connect(self, url: str, config: SessionConfig) -> Session:
        """Start a session to `moqt://host:port/path`; failure comes as SessionClosed.

        Raises ValueError for a URL that is not a moqt URI (MOQT-22 §6.1).
        """

    def now(self) -> float:
        """Seconds on the driver's monotonic clock; virtual under `memory`."""


class Endpoint(Protocol):
    """A role."""

    def attach(self, host: Host) -> None:
        """Called once, before anything else."""

    def session_opened(self, session: Session, now: float) -> None:
        """A peer connected to us; the session's own SETUP is already on its way."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """One event of one session."""

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called, or None."""

    def handle_timer(self, now: float) -> None:
        """The time that `next_timer` named has come."""
