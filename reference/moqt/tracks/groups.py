"""One Group of a stored Track, and the rules that its Objects keep (MOQT-22 §12.1)."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

from moqt.tracks.budget import Entry
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
