"""FETCHes of a Track that ended, through a relay that joined it half-way."""

from __future__ import annotations

from moqt.origin import LocalTrack
from moqt.session.events import RangeReceived
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus

from .world import LAST, TRACK, World, absolute, make


def mark(track: LocalTrack, group: int, number: int, status: ObjectStatus) -> None:
    """Publish End of Group or End of Track, and end its subgroup."""
    track.publish(Object(Location(group, number), 0, 128, b"", status))
    track.end_subgroup(group, 0)


def test_only_the_hole_is_asked_for_and_nothing_is_left_unknown() -> None:
    """R228, R211: Group 0 came by fill, without its End of Group; Group 1 by subscription."""
    world = World()
    origin = world.origin()
    track = origin.add_track(TRACK)
    for number in range(3):
        track.publish(make(0, number))
    mark(track, 0, 3, ObjectStatus.END_OF_GROUP)
    early = world.peer("early")
    world.subscribe(early, fill=Parameters(location_filter=absolute((0, 0))))
    for number in range(3):
        track.publish(make(1, number))
    mark(track, 1, 3, ObjectStatus.END_OF_GROUP)
    mark(track, 2, 0, ObjectStatus.END_OF_TRACK)
    track.finish()
    world.settle()
    origin.asked.clear()
    late = world.peer("late")
    request = world.fetch(late, (0, 0), (1, LAST))
    assert late.objects(request) == [(g, o) for g in range(2) for o in range(3)]
    assert late.of(RangeReceived, request) == []
    hole = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 0, 4, 0, LAST)
    assert [one.parameters.location_filter for one in origin.asked] == [hole]
    again = world.fetch(late, (0, 0), (1, LAST))
    assert late.objects(again) == late.objects(request)
    assert len(origin.asked) == 1
