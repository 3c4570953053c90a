"""Following a peer's GOAWAYs from session to session (MOQT-22 §9.2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moqt.session import Session
from moqt.session.timers import Timers
from moqt.wire.errors import SessionError

MOVE_INTERVAL = 1.0
"""Seconds between two moves: a peer that sends every session away is not followed faster."""


class Line:
    """The sessions to one peer, each opened where the GOAWAY of the one before it led.

    `connect` opens the next one; it raises ValueError for what is no moqt URI. The first move is
    made at once. Two sessions are open at most: the one that is left, and the one after it.
    """

    def __init__(
        self,
        connect: Callable[[str, Line], Session],
        timers: Timers,
        now: Callable[[], float],
        interval: float = MOVE_INTERVAL,
    ) -> None:
        self._connect = connect
        self._timers = timers
        self._now = now
        self._interval = interval
        self._not_before = 0.0
        self._left: Session | None = None

    def leave(self, session: Session, uri: bytes, otherwise: str) -> None:
        """Open the next session at `uri`, or at the URL `otherwise` if that is no moqt URI."""
        left, self._left = self._left, session
        if left is not None:
            left.close(SessionError.NO_ERROR, "moved")
        move = partial(self._move, uri, otherwise)
        now = self._now()
        due = max(now, self._not_before)
        self._not_before = due + self._interval
        if due > now:
            self._timers.at(due, move)
        else:
            move()

    def _move(self, uri: bytes, otherwise: str) -> None:
        try:
            self._connect(uri.decode() or otherwise, self)
        except ValueError:
            # The peer is still where it was.
            self._connect(otherwise, self)
