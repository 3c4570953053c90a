"""The octets that all stores of one relay may hold together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moqt.tracks.store import TrackStore
    from moqt.wire.objects import Object

ENTRY_OVERHEAD = 256
"""Octets that an Object costs besides its payload and properties."""


@dataclass(slots=True, eq=False)
class Entry:
    """One stored Object; `began` is when it began to arrive, in seconds.

    `pins` counts the readers that it was handed to and that are not done with it.
    """

    store: TrackStore
    object: Object
    began: float
    pins: int = 0

    @property
    def size(self) -> int:
        """Octets charged to the budget."""
        return len(self.object.payload) + len(self.object.properties) + ENTRY_OVERHEAD


class CacheBudget:
    """Least recently used Objects go first; an Object that is being sent stays.

    `limit` is in octets, overhead included.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._entries: OrderedDict[Entry, None] = OrderedDict()

    def __len__(self) -> int:
        """How many Objects are held."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """The entries, the least recently used first."""
        return iter(self._entries)

    def added(self, entry: Entry) -> None:
        """Charge a new entry, and evict others until the limit holds again."""
        self._entries[entry] = None
        self.used += entry.size
        if self.used > self.limit:
            self._evict()

    def touched(self, entry: Entry) -> None:
        """The entry was used just now."""
        self._entries.move_to_end(entry)

    def removed(self, entry: Entry) -> None:
        """The entry left its store."""
        if entry in self._entries:
            del self._entries[entry]
            self.used -= entry.size

    def released(self, entry: Entry) -> None:
        """A reader is done with the entry."""
        if entry.pins == 0 and self.used > self.limit:
            self._evict()

    def _evict(self) -> None:
        victims: list[Entry] = []
        excess = self.used - self.limit
        for entry in self._entries:
            if excess <= 0:
                break
            if entry.pins == 0:
                victims.append(entry)
                excess -= entry.size
        for entry in victims:
            entry.store.evict(entry)
