"""What makes a Track malformed, as far as one subscriber can see it (MOQT-22 §12.1).

Not here: the same Object twice with other octets. Only who stores Objects can compare them.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from moqt.session.intervals import Intervals
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, integer_property, object_defect

MAX_GROUPS = 4096
"""Groups that are remembered; the ones that came first are forgotten first."""

MAX_SUBGROUPS = 4096
"""Subgroups of one Group that are remembered."""

MAX_PARTS = 16384
"""Subgroups and intervals of all Groups together; beyond them, too, the first Groups go."""


@dataclass(slots=True)
class _Subgroup:
    priority: int
    final: int | None = None


@dataclass(slots=True)
class _Group:
    subgroups: dict[int, _Subgroup] = field(default_factory=dict)
    seen: Intervals = field(default_factory=Intervals)
    absent: Intervals = field(default_factory=Intervals)
    end: int | None = None
    """No Object with this ID or a larger one exists."""
    gap: int | None = None

    @property
    def parts(self) -> int:
        """What it remembers, as a number of records of much the same size."""
        return len(self.subgroups) + len(self.seen) + len(self.absent)


class TrackRules:
    """The rules of one Track over the Objects of one publisher; each method returns the breach."""

    def __init__(self) -> None:
        self._groups: OrderedDict[int, _Group] = OrderedDict()
        self._parts = 0
        self._absent_groups = Intervals()
        self._came = Intervals()
        """Groups of which an Object came."""
        self._end: Location | None = None
        self._largest: Location | None = None

    def received(self, item: Object) -> str | None:
        """A subscription-delivered Object arrived whole."""
        group_id, object_id = item.location
        if item.properties and (defect := object_defect(item.location, item.properties)):
            return defect
        if self._end is not None and item.location >= self._end:
            if item.status is ObjectStatus.END_OF_TRACK and item.location == self._end:
                return None
            return f"{tuple(item.location)} lies beyond the end of the Track {tuple(self._end)}"
        group = self._group(group_id)
        before = group.parts
        if item.subgroup is not None and (breach := _check_subgroup(group, item, item.subgroup)):
            return breach
        if group.end is not None and object_id >= group.end:
            same = item.status is ObjectStatus.END_OF_GROUP and object_id == group.end
            if not same:
                return f"Object {object_id} lies beyond the end {group.end} of Group {group_id}"
        if group_id in self._absent_groups:
            return f"Group {group_id} lies in a gap that was announced"
        if object_id in group.absent:
            return f"{tuple(item.location)} lies in a gap that was announced"
        if item.properties and (breach := self._check_gaps(group, item)):
            return breach
        breach = self._note(group, item)
        self._count(group.parts - before)
        return breach

    def _note(self, group: _Group, item: Object) -> str | None:
        group_id, object_id = item.location
        match item.status:
            case ObjectStatus.NORMAL:
                if not group.seen:
                    self._came.add(group_id, group_id)
                group.seen.add(object_id, object_id)
                if self._largest is None or item.location > self._largest:
                    self._largest = item.location
            case ObjectStatus.END_OF_GROUP:
                return self.group_ends(group_id, object_id)
            case ObjectStatus.END_OF_TRACK:
                if self._largest is not None and self._largest >= item.location:
                    return f"the Track ends at {tuple(item.location)}, before Objects that came"
                self._end = item.location
        return None

    def group_ends(self, group_id: int, end: int) -> str | None:
        """No Object with ID `end` or larger exists in the Group."""
        group = self._group(group_id)
        if group.seen.largest >= end:
            return f"Group {group_id} ends before Object {end}, but {group.seen.largest} came"
        if group.end is not None and group.end != end:
            return f"Group {group_id} ends both before Object {group.end} and {end}"
        group.end = end
        return None

    def subgroup_ends(self, group_id: int, subgroup_id: int, last: int) -> str | None:
        """FIN: `last` is the final Object of the subgroup."""
        subgroup = self._group(group_id).subgroups.get(subgroup_id)
        if subgroup is None:
            return None
        if subgroup.final is not None and subgroup.final != last:
            return (
                f"subgroup {subgroup_id} of Group {group_id} ends with Object "
                f"{subgroup.final} and with {last}"
            )
        subgroup.final = last
        return None

    def _check_gaps(self, group: _Group, item: Object) -> str | None:
        group_id, object_id = item.location
        gap = integer_property(item.properties, PropertyType.PRIOR_OBJECT_ID_GAP, 0)
        if gap:
            if group.seen.overlaps(object_id - gap, object_id - 1):
                return f"a gap before {tuple(item.location)} covers an Object that came"
            group.absent.add(object_id - gap, object_id - 1)
        gap = integer_property(item.properties, PropertyType.PRIOR_GROUP_ID_GAP, 0)
        if gap:
            if group.gap is not None and group.gap != gap:
                return f"Group {group_id} names two gaps before it: {group.gap} and {gap}"
            group.gap = gap
            if self._came.overlaps(group_id - gap, group_id - 1):
                return f"a gap before Group {group_id} covers a Group that came"
            self._absent_groups.add(group_id - gap, group_id - 1)
        return None

    def _group(self, group_id: int) -> _Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = _Group()
            if len(self._groups) > MAX_GROUPS:
                self._forget_first()
        return group

    def _count(self, grown: int) -> None:
        """A Group remembers more than before, or less."""
        self._parts += grown
        while self._parts > MAX_PARTS:
            self._forget_first()

    def _forget_first(self) -> None:
        _, group = self._groups.popitem(last=False)
        self._parts -= group.parts


def _check_subgroup(group: _Group, item: Object, subgroup_id: int) -> str | None:
    subgroup = group.subgroups.get(subgroup_id)
    if subgroup is None:
        if len(group.subgroups) >= MAX_SUBGROUPS:
            del group.subgroups[next(iter(group.subgroups))]
        group.subgroups[subgroup_id] = _Subgroup(item.priority)
    elif subgroup.priority != item.priority:
        return (
            f"subgroup {subgroup_id} of Group {item.location.group} has priorities "
            f"{subgroup.priority} and {item.priority}"
        )
    elif subgroup.final is not None and item.location.object > subgroup.final:
        return (
            f"Object {tuple(item.location)} follows the final Object {subgroup.final} "
            f"of subgroup {subgroup_id}"
        )
    return None
