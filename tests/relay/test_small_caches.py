"""A cache that is smaller than what passes through it: little is fetched twice, nothing is free."""

from __future__ import annotations

import pytest
from moqt.relay import RelayConfig
from moqt.session import Request, RequestKind
from moqt.session.fetching import FetchItem, FetchState
from moqt.tracks.budget import NOTES_STEP
from moqt.tracks.store import INTERVAL_OVERHEAD, NEAR
from moqt.wire.messages import FetchOk
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import RangeKind, RangeMarker

from tests.relay.world import SPACE, TRACK, World, make

DESCENDING = 2


@pytest.mark.parametrize("order", [1, DESCENDING])
def test_objects_that_come_faster_than_they_are_read_are_fetched_once(order: int) -> None:
    """R228: what was fetched for a reader stays until it has come to it, holes included."""
    world = World(RelayConfig(cache_budget=20_000))
    origin = world.origin()
    track = origin.add_track(TRACK)
    for group in range(2):
        for number in range(0, 500, 2):
            track.publish(make(group, number, b"x"))
    peer = world.peer("peer")
    request = world.fetch(peer, (0, 0), (1, 498), group_order=order)
    world.settle(1.0)
    assert 500 == len(peer.objects(request))
    assert [] == peer.ranges(request)
    assert [None] == peer.ends(request)
    assert 2 >= origin.kinds().count("FETCH")
    assert world.relay.budget.used <= 20_000
    assert 0 == world.relay.budget.kept


def test_what_is_kept_for_readers_is_bounded() -> None:
    """A reader that stops reading holds no more than high water beyond the budget."""
    world = World(RelayConfig(cache_budget=20_000, high_water=30_000, low_water=10_000))
    track = world.origin().add_track(TRACK)
    for number in range(300):
        track.publish(make(0, number, b"x"))
    peer = world.peer("peer")
    peer.session.pause_request(peer.session.fetch(TRACK))
    for _ in range(8):
        world.settle(0.02)
        assert world.relay.budget.kept <= 30_000
    peer.session.close()
    world.settle()
    assert 0 == world.relay.budget.kept
    assert world.relay.budget.used <= 20_000


def test_tracks_are_forgotten_with_their_objects() -> None:
    """What a Track costs is charged: a flood of Tracks with one small Object each stays small."""
    world = World(RelayConfig(cache_budget=50_000))
    peer = world.peer("publisher")
    for number in range(40):
        sender = peer.session.publish(FullTrackName(SPACE, b"%d" % number))
        sender.offer(make(0, 0), first=True)
        world.settle(0.05)
        sender.finish(2)
        world.settle(0.05)
    world.settle(1.0)
    assert 0 < len(world.relay.tracks) < 10
    assert len(world.relay.budget) == len(world.relay.tracks)
    assert world.relay.budget.used <= 50_000


@pytest.mark.parametrize("limit", [0, 3000])
def test_a_track_that_is_forgotten_costs_nothing(limit: int) -> None:
    """Also when the budget has no room for it, and takes all that it is given at once."""
    world = World(RelayConfig(cache_budget=limit))
    origin = world.origin()
    track = origin.add_track(TRACK)
    track.publish(make(0, 0))
    track.publish(make(2, 0))
    peer = world.peer("peer")
    world.subscribe(peer)
    assert [(0, 0), (2, 0)] == peer.objects(world.fetch(peer, (0, 0), (2, 0)))
    track.publish(make(3, 0))
    world.settle()
    peer.session.close()
    world.settle()
    origin.sessions.copy().pop().close()
    world.settle()
    assert {} == world.relay.tracks
    assert 0 == world.relay.budget.used


class Markers:
    """A FetchSource of ranges of five Objects: unknown, not existent, unknown, and so on."""

    def __init__(self, start: int, end: int) -> None:
        self._numbers = iter(range(start + 4, end, 5))

    def next_item(self) -> FetchItem:
        number = next(self._numbers, None)
        if number is None:
            return FetchState.END
        kind = RangeKind.NON_EXISTENT if number % 2 else RangeKind.UNKNOWN
        return RangeMarker(kind, Location(0, number))


def test_a_flood_of_markers_is_taken_in_parts() -> None:
    """R228: of what a publisher says that it does not know little is remembered at once."""
    world = World(RelayConfig(cache_budget=20_000))
    asked: list[int] = []

    def answer(request: Request) -> None:
        if request.kind is RequestKind.FETCH:
            chosen = request.parameters.location_filter
            assert chosen is not None
            asked.append(chosen.start_object)
            request.session.accept_fetch(request, FetchOk(False, Location(0, 4999)))
            request.session.open_fetch(request, Markers(chosen.start_object, 5000))

    world.peer("publisher", answer).session.publish_namespace(SPACE)
    world.settle()
    peer = world.peer("peer")
    request = world.fetch(peer, (0, 0), (0, 4999))
    world.settle(1.0)
    assert [None] == peer.ends(request)
    expected = [(Location(0, at), Location(0, at + 4)) for at in range(0, 5000, 10)]
    unknown = [one for one in peer.ranges(request) if one[0] is RangeKind.UNKNOWN]
    assert expected == [(start, end) for _, start, end in unknown]
    assert [0, 2565] == asked
    assert world.relay.budget.used <= 20_000 + NEAR * INTERVAL_OVERHEAD + NOTES_STEP
