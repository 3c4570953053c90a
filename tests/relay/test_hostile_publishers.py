"""What a hostile publisher does to a relay stays with itself (MOQT-22 §7.4, §7.8)."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Link
from moqt.relay import RelayConfig
from moqt.session import Request, RequestKind
from moqt.session.events import ObjectStarted, StreamInfo, Via
from moqt.session.fetching import FetchItem, FetchState
from moqt.tracks import Known
from moqt.wire.errors import PublishDoneCode
from moqt.wire.messages import FetchOk
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import RangeKind, RangeMarker

from tests.relay.world import SPACE, TRACK, Peer, World, make


class Items:
    """A FetchSource over a list."""

    def __init__(self, items: list[FetchItem]) -> None:
        self._items = iter(items)

    def next_item(self) -> FetchItem:
        return next(self._items, FetchState.END)


def publisher(world: World, name: str, items: list[FetchItem], end: Location) -> Peer:
    """A peer that answers every FETCH with these items, and FETCH_OK with this end."""

    def answer(request: Request) -> None:
        if request.kind is RequestKind.FETCH:
            request.session.accept_fetch(request, FetchOk(False, end))
            request.session.open_fetch(request, Items(items))

    peer = world.peer(name, answer)
    peer.session.publish_namespace(SPACE)
    world.settle()
    return peer


@pytest.mark.parametrize(
    "items",
    [
        [make(0, 0), make(7, 0)],
        [make(0, 0), make(0, 9)],
        [make(0, 0), RangeMarker(RangeKind.NON_EXISTENT, Location(7, 0))],
    ],
)
def test_a_fetch_that_leaves_its_range_says_nothing_beyond(items: list[FetchItem]) -> None:
    """R228: an Object or marker behind the end of the FETCH makes nothing absent there."""
    world = World()
    publisher(world, "publisher", items, Location(0, 5))
    reader = world.peer("reader")
    world.fetch(reader, (0, 0), (0, 5))
    world.settle(1.0)
    store = world.relay.tracks[TRACK].store
    assert Known.UNKNOWN is store.known(Location(0, 7))
    assert Known.UNKNOWN is store.known(Location(3, 0))
    assert Known.UNKNOWN is store.known(Location(7, 0))


def test_an_object_out_of_place_leaves_its_range_unknown() -> None:
    """R228: what such a publisher did not send may exist: the reader is told "unknown"."""
    world = World()
    publisher(world, "publisher", [make(0, 0), make(7, 0)], Location(0, 5))
    reader = world.peer("reader")
    request = world.fetch(reader, (0, 0), (0, 5))
    world.settle(1.0)
    assert [(0, 0)] == reader.objects(request)
    assert [(RangeKind.UNKNOWN, Location(0, 1), Location(0, 5))] == reader.ranges(request)


def test_a_publish_that_is_taken_back_at_once_leaves_nothing() -> None:
    """A flood of them costs the relay no memory."""
    world = World()
    peer = world.peer("publisher")
    for number in range(50):
        sender = peer.session.publish(FullTrackName(SPACE, b"%d" % number))
        peer.session.cancel(sender.request)
    world.settle()
    assert {} == world.relay.tracks


def test_a_publish_that_is_taken_back_at_once_replaces_nothing() -> None:
    """The subscription before it goes on, and so do its subscribers."""
    world = World()
    peer = world.peer("publisher")
    first = peer.session.publish(TRACK)
    world.settle()
    reader = world.peer("reader")
    request = world.subscribe(reader)
    peer.session.cancel(peer.session.publish(TRACK).request)
    world.settle()
    first.offer(make(0, 0), first=True)
    world.settle()
    assert [(0, 0)] == reader.objects(request)


def started(request: Request, location: Location) -> ObjectStarted:
    """The first octets of an Object on some stream."""
    return ObjectStarted(request, location, StreamInfo(Via.FETCH, 6, request.id))


def test_an_object_that_starts_after_the_fetch_was_given_up_is_not_waited_for() -> None:
    """R228: its rest never comes: readers would wait for ever."""
    world = World()
    world.peer("publisher").session.publish_namespace(SPACE)
    reader = world.peer("reader")
    request = world.fetch(reader, (0, 0), (0, 5))
    (gap,) = world.relay.tracks[TRACK].gaps._open
    reader.session.cancel(request)
    world.settle()
    gap.handle(started(gap.request, Location(0, 3)))
    assert Known.UNKNOWN is gap.track.store.known(Location(0, 3))


def test_an_object_that_starts_after_the_subscription_was_given_up_is_not_waited_for() -> None:
    """R228: nor what a publisher still began when its Track was found malformed."""
    world = World()
    sender = world.peer("publisher").session.publish(TRACK)
    world.settle()
    track = world.relay.tracks[TRACK]
    (upstream,) = track.upstreams.values()
    sender.finish(PublishDoneCode.TRACK_ENDED)
    world.settle()
    assert {} == track.upstreams
    upstream.handle(started(upstream.request, Location(0, 3)))
    assert Known.UNKNOWN is track.store.known(Location(0, 3))


@pytest.mark.slow
def test_many_small_objects_hold_the_upstream_fetch_too() -> None:
    """What a reader lags behind is counted as the cache counts it, not by payloads alone."""
    world = World(RelayConfig(high_water=20_000, low_water=10_000))
    world.net.set_link("peer", "relay", Link(stream_window=2048))
    world.net.set_link("origin", "relay", Link(stream_window=2048))
    track = world.origin().add_track(TRACK)
    for number in range(4000):
        track.publish(make(0, number, b"x"))
    peer = world.peer("peer")
    request = peer.session.fetch(TRACK)
    world.settle(0.02)
    peer.session.pause_request(request)
    world.settle(1.0)
    assert world.relay.budget.used < 600_000
    peer.session.resume_request(request)
    world.settle(5.0)
    assert 4000 == len(peer.objects(request))
