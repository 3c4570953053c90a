"""Timers of one session: what is to happen when, without a clock."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Timer:
    """One planned action; `cancel` may be called at any time."""

    __slots__ = ("_action", "when")

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self._action: Callable[[], None] | None = action

    @property
    def live(self) -> bool:
        """Neither fired nor cancelled."""
        return self._action is not None

    def cancel(self) -> None:
        """Forget the action."""
        self._action = None

    def fire(self) -> None:
        """Do the action, once."""
        action, self._action = self._action, None
        if action is not None:
            action()


class Timers:
    """Timers by time, then by the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()

    def at(self, when: float, action: Callable[[], None]) -> Timer:
        """Plan `action` for `when`, in seconds of the driver's clock."""
        timer = Timer(when, action)
        heappush(self._heap, (when, next(self._numbers), timer))
        return timer

    def next(self) -> float | None:
        """When the earliest live timer is due."""
        while self._heap and not self._heap[0][2].live:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def fire(self, now: float) -> None:
        """Do what is due at `now`; actions planned meanwhile for `now` or earlier included."""
        while (when := self.next()) is not None and when <= now:
            heappop(self._heap)[2].fire()

    def clear(self) -> None:
        """Forget everything."""
        self._heap.clear()
