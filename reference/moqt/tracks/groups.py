"""The Groups of a stored Track, and the rules that their Objects keep (MOQT-22 §12.1)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass

from moqt.tracks.budget import Entry
from moqt.tracks.intervals import LAST_ID, group_start
from moqt.wire.objects import Object
from moqt.wire.properties import PropertyType, find_property


class MalformedTrack(Exception):
    """The Objects of the Track contradict each other; `reason` says which rule they broke."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True)
class SubgroupRecord:
    """Publisher Priority of a subgroup, its largest Object seen, its final one once known."""

    priority: int
    top: int
    final: int | None = None


class GroupRecord:
    """The Objects of one Group by Object ID, and what outlives their eviction.

    `top` is the largest Object ID ever seen (-1: none), `end` the first that does not exist.
    """

    __slots__ = ("end", "entries", "group", "group_gap", "ids", "subgroups", "top")

    def __init__(self, group: int) -> None:
        self.group = group
        self.ids: list[int] = []
        self.entries: dict[int, Entry] = {}
        self.subgroups: dict[int, SubgroupRecord] = {}
        self.top = -1
        self.end: int | None = None
        self.group_gap: int | None = None

    def check(self, item: Object) -> None:
        """Raises MalformedTrack if the Object breaks a rule of its subgroup."""
        if item.subgroup is None:
            return
        record = self.subgroups.get(item.subgroup)
        if record is None:
            return
        if record.priority != item.priority:
            raise MalformedTrack(
                f"Publisher Priority {item.priority} at {item.location}, "
                f"{record.priority} before in Subgroup {item.subgroup}"
            )
        if record.final is not None and item.location.object > record.final:
            raise MalformedTrack(
                f"an Object at {item.location}, after the final Object {record.final} "
                f"of Subgroup {item.subgroup}"
            )

    def insert(self, number: int, item: Object, entry: Entry) -> None:
        """Keep an Object that `check` let pass and that is not held."""
        if item.subgroup is not None:
            record = self.subgroups.get(item.subgroup)
            if record is None:
                self.subgroups[item.subgroup] = SubgroupRecord(item.priority, number)
            elif number > record.top:
                record.top = number
        self.entries[number] = entry
        if not self.ids or number > self.ids[-1]:
            self.ids.append(number)
        else:
            insort(self.ids, number)
        self.top = max(self.top, number)

    def remove(self, number: int) -> None:
        """Forget an Object; nothing happens if it is not held."""
        if self.entries.pop(number, None) is not None:
            del self.ids[bisect_left(self.ids, number)]

    def end_subgroup(self, subgroup: int, last: int) -> None:
        """The subgroup's final Object is `last`. Raises MalformedTrack."""
        record = self.subgroups.get(subgroup)
        if record is None:
            return
        if record.top > last or record.final not in (None, last):
            raise MalformedTrack(
                f"Subgroup {subgroup} of Group {self.group} ends at Object {last}, "
                f"and goes on to {record.final if record.top <= last else record.top}"
            )
        record.final = last

    def run_end(self, number: int) -> int:
        """The last Object ID up to which every one is held, from one that is."""
        first = low = bisect_left(self.ids, number)
        high = len(self.ids) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.ids[middle] - number == middle - first:
                low = middle
            else:
                high = middle - 1
        return self.ids[low]


class Groups:
    """The records by Group ID; Locations are integers here."""

    def __init__(self) -> None:
        self._records: dict[int, GroupRecord] = {}
        self._order: list[int] = []

    def __len__(self) -> int:
        """How many Groups are remembered."""
        return len(self._records)

    def __iter__(self) -> Iterator[GroupRecord]:
        """The records in order."""
        return (self._records[group] for group in self._order)

    def __getitem__(self, group: int) -> GroupRecord:
        return self._records[group]

    def get(self, group: int) -> GroupRecord | None:
        """The record, if the Group is remembered."""
        return self._records.get(group)

    def make(self, group: int) -> GroupRecord:
        """A new record."""
        record = self._records[group] = GroupRecord(group)
        insort(self._order, group)
        return record

    def clear(self) -> None:
        """Forget all of them."""
        self._records.clear()
        self._order.clear()

    def sweep(self) -> None:
        """Forget those of which nothing is held."""
        self._order = [group for group in self._order if self._records[group].ids]
        self._records = {group: self._records[group] for group in self._order}

    def entry(self, key: int) -> Entry | None:
        """The entry of the Object that is held there."""
        record = self._records.get(key >> 64)
        return None if record is None else record.entries.get(key & LAST_ID)

    def next(self, key: int) -> int | None:
        """The first held Location after `key`."""
        group, number = key >> 64, key & LAST_ID
        for index in range(bisect_left(self._order, group), len(self._order)):
            at = self._order[index]
            ids = self._records[at].ids
            position = bisect_right(ids, number) if at == group else 0
            if position < len(ids):
                return group_start(at) + ids[position]
        return None

    def previous(self, key: int) -> int | None:
        """The last held Location before `key`."""
        group, number = key >> 64, key & LAST_ID
        for index in range(bisect_right(self._order, group) - 1, -1, -1):
            at = self._order[index]
            ids = self._records[at].ids
            position = (bisect_left(ids, number) if at == group else len(ids)) - 1
            if position >= 0:
                return group_start(at) + ids[position]
        return None


def check_same(held: Object, item: Object) -> None:
    """Raises MalformedTrack unless both are the same Object (MOQT-22 §7.1)."""
    for name, one, other in (
        ("Delivery Mode", held.subgroup is None, item.subgroup is None),
        ("Subgroup ID", held.subgroup, item.subgroup),
        ("Publisher Priority", held.priority, item.priority),
        ("payload", held.payload, item.payload),
    ):
        if one != other:
            raise MalformedTrack(f"two Objects at {item.location} that differ in {name}")
    immutable = PropertyType.IMMUTABLE_PROPERTIES
    if held.properties != item.properties and (
        find_property(held.properties, immutable) != find_property(item.properties, immutable)
    ):
        raise MalformedTrack(f"two Objects at {item.location} that differ in Immutable Properties")
