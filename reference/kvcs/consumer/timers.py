"""Named deadlines of a state machine without a clock."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]


class Timers:
    """At most one deadline per name; setting it again moves it."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, tuple[float, Action]] = {}

    def set(self, name: Hashable, at: float, action: Action) -> None:
        """Call `action` once when the time `at` has come."""
        self._entries[name] = (at, action)

    def cancel(self, name: Hashable) -> None:
        """Forget the deadline, if there is one."""
        self._entries.pop(name, None)

    def __contains__(self, name: Hashable) -> bool:
        return name in self._entries

    def when(self, name: Hashable) -> float | None:
        """When a deadline comes, or None."""
        entry = self._entries.get(name)
        return None if entry is None else entry[0]

    def clear(self) -> None:
        """Forget all of them."""
        self._entries.clear()

    def next(self) -> float | None:
        """The earliest deadline."""
        return min((at for at, _ in self._entries.values()), default=None)

    def fire(self, now: float) -> None:
        """Call what is due, in order of time; what an action sets anew is called next time."""
        due = sorted(
            (at, index, name)
            for index, (name, (at, _)) in enumerate(self._entries.items())
            if at <= now
        )
        for at, _, name in due:
            entry = self._entries.get(name)
            if entry is not None and entry[0] == at:
                del self._entries[name]
                entry[1]()
