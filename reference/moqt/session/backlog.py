"""Watches what waits for one subscriber, and says when that is too much (MOQT-22 §5.2)."""

from __future__ import annotations

from collections.abc import Callable

from moqt.session.core import Core
from moqt.session.timers import Timer


class BacklogWatch:
    """Calls `cut` with a reason once the backlog exceeds its budget or does not move in time."""

    def __init__(self, core: Core, cut: Callable[[str], None]) -> None:
        self._core = core
        self._cut = cut
        self._budget = core.config.subscriber_budget
        self._patience = core.config.stall_timeout
        self._backlog = 0
        self._moved = 0.0
        self._timer: Timer | None = None

    def grown(self, backlog: int) -> None:
        """More octets wait."""
        if self._budget is not None and backlog > self._budget:
            self._cut(f"{backlog} octets wait, more than {self._budget}")
            return
        if self._patience is not None:
            if not self._backlog:
                self._moved = self._core.now
            if self._timer is None or not self._timer.live:
                self._timer = self._core.timers.at(self._moved + self._patience, self._check)
        self._backlog = backlog

    def shrunk(self, backlog: int) -> None:
        """Octets went out."""
        if backlog < self._backlog:
            self._moved = self._core.now
        self._backlog = backlog

    def stop(self) -> None:
        """The subscription ended."""
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        if self._patience is None or not self._backlog:
            return
        if self._core.now >= self._moved + self._patience:
            self._cut(f"nothing moved for {self._patience:g} s")
        else:
            self._timer = self._core.timers.at(self._moved + self._patience, self._check)
