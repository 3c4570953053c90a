"""Virtual time: what is to happen, in the order of (time, order of scheduling)."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

STEPS_AT_ONE_INSTANT = 10_000


class SimulationError(Exception):
    """The simulation cannot go on: what is waited for never happens, or it loops."""


class Timer:
    """Something scheduled for `at` (seconds of virtual time)."""

    __slots__ = ("action", "at", "cancelled")

    def __init__(self, at: float, action: Callable[[], None]) -> None:
        self.at = at
        self.action = action
        self.cancelled = False

    def cancel(self) -> None:
        """It will not happen, and time will not stop for it."""
        self.cancelled = True


class Clock:
    """A heap of timers; `now` moves only from one timer to the next."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._steps = 0

    def schedule(self, at: float, action: Callable[[], None]) -> Timer:
        """Run `action` at `at`, or now when that has passed."""
        timer = Timer(at, action)
        heappush(self._heap, (max(at, self.now), next(self._order), timer))
        return timer

    def next_time(self) -> float | None:
        """When the next timer is due, or None when nothing is scheduled."""
        while self._heap and self._heap[0][2].cancelled:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def run_next(self) -> None:
        """Move to the next time and run everything that is scheduled for it by now.

        Raises SimulationError when time does not move although steps go on.
        """
        at = self.next_time()
        if at is None:
            return
        self._steps = self._steps + 1 if at == self.now else 0
        if self._steps > STEPS_AT_ONE_INSTANT:
            raise SimulationError(f"the simulation loops at {self.now:g} s: time does not move")
        self.now = at
        due: list[Timer] = []
        while self.next_time() == at:
            due.append(heappop(self._heap)[2])
        for timer in due:
            if not timer.cancelled:
                timer.action()
