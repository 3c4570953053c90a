"""The octets that all stores of one relay may hold together."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from moqt.tracks.store import TrackStore
    from moqt.wire.objects import Object

ENTRY_OVERHEAD = 256
"""Octets that an Object costs besides its payload and properties."""

NOTES_STEP = 16 << 10
"""Octets that notes grow by before they may be asked to shrink again."""


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

    def evict(self) -> None:
        """Leave the store."""
        self.store.evict(self)


@dataclass(slots=True, eq=False)
class Notes:
    """What a store costs besides its Objects: `size` octets, `settled` when it shrank last."""

    store: TrackStore
    size: int = 0
    settled: int = 0

    def evict(self) -> None:
        """Shrink to what cannot be forgotten now."""
        self.store.trim()
        self.settled = self.size


Charge: TypeAlias = Entry | Notes


class CacheBudget:
    """What was not used for longest goes first; an Object that is being sent stays.

    `limit` is in octets, overhead included. Beyond it, `spare` octets may be kept for readers
    that wait for them.
    """

    def __init__(self, limit: int, spare: int = 0) -> None:
        self.limit = limit
        self.spare = spare
        self.used = 0
        self.kept = 0
        self._loose: OrderedDict[Charge, None] = OrderedDict()
        self._fixed: dict[Charge, None] = {}

    def __len__(self) -> int:
        """How many Objects are held."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Entry]:
        """The entries: those that are being sent, then the least recently used first."""
        for charge in (*self._fixed, *self._loose):
            if isinstance(charge, Entry):
                yield charge

    def added(self, entry: Entry) -> None:
        """Charge a new entry, and evict others until the limit holds again."""
        (self._fixed if entry.pins else self._loose)[entry] = None
        self.used += entry.size
        self._evict()

    def touched(self, entry: Entry) -> None:
        """The entry was used just now."""
        if entry.pins == 0:
            self._loose.move_to_end(entry)

    def removed(self, entry: Entry) -> None:
        """The entry left its store."""
        if self._drop(entry):
            self.used -= entry.size

    def pin(self, entry: Entry) -> None:
        """A reader holds the entry: it stays."""
        entry.pins += 1
        if entry in self._loose:
            del self._loose[entry]
            self._fixed[entry] = None

    def unpin(self, entry: Entry) -> None:
        """A reader is done with the entry."""
        entry.pins -= 1
        if entry.pins == 0 and entry in self._fixed:
            del self._fixed[entry]
            self._loose[entry] = None
            self._evict()

    def keep(self, entry: Entry) -> bool:
        """Pin the entry for a reader that will come to it; False when there is no room for it."""
        if self.kept + entry.size > self.spare:
            return False
        self.kept += entry.size
        self.pin(entry)
        return True

    def unkeep(self, entry: Entry) -> None:
        """The reader came to it, or is gone."""
        self.kept -= entry.size
        self.unpin(entry)

    def resize(self, notes: Notes, size: int) -> None:
        """Charge what a store's notes take now; 0 for an empty one."""
        grown = size > notes.size
        self.used += size - notes.size
        notes.size = size
        if not size:
            self._drop(notes)
        elif notes in self._loose:
            if grown:
                self._loose.move_to_end(notes)
        elif notes not in self._fixed or size >= notes.settled + NOTES_STEP:
            self.loosen(notes)
        if grown:
            self._evict()

    def loosen(self, notes: Notes) -> None:
        """There may be something to forget in these notes."""
        self._fixed.pop(notes, None)
        if notes.size:
            self._loose[notes] = None

    def _drop(self, charge: Charge) -> bool:
        if charge in self._loose:
            del self._loose[charge]
        elif charge in self._fixed:
            del self._fixed[charge]
        else:
            return False
        return True

    def _evict(self) -> None:
        while self.used > self.limit and self._loose:
            charge, _ = self._loose.popitem(last=False)
            self._fixed[charge] = None
            charge.evict()
