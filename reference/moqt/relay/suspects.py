"""Whose Objects of which Track broke its rules (MOQT-22 §12.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moqt.session import Session
from moqt.wire.names import FullTrackName

SUSPICION = 60.0
"""Seconds for which a publisher is not asked again for a Track that it broke."""

MAX_SUSPECTS = 1024
"""Publishers and Tracks that are remembered; the ones that came first are forgotten first."""


class Suspects:
    """Publishers by Track, each for a while: one that relays for many gets another chance."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._until: dict[tuple[FullTrackName, Session], float] = {}

    def __len__(self) -> int:
        """How many are remembered."""
        return len(self._until)

    def add(self, track: FullTrackName, sessions: Iterable[Session]) -> None:
        """These sessions sent what breaks the rules of the Track."""
        for session in sessions:
            self._until.pop((track, session), None)
            self._until[track, session] = self._now() + SUSPICION
        while len(self._until) > MAX_SUSPECTS:
            del self._until[next(iter(self._until))]

    def holds(self, track: FullTrackName, session: Session) -> bool:
        """Whether the session is not to be asked for the Track now."""
        until = self._until.get((track, session))
        return until is not None and self._now() < until

    def any_of(self, track: FullTrackName) -> bool:
        """Whether anybody is suspected of having broken the Track."""
        return any(one == track and self.holds(track, session) for one, session in self._until)

    def session_closed(self, session: Session) -> None:
        """Forget the session."""
        for track, one in [key for key in self._until if key[1] is session]:
            del self._until[track, one]
