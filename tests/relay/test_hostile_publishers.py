"""What a hostile publisher does to a relay stays with itself (MOQT-22 §7.4, §7.8)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from moqt.drivers.memory import Link
from moqt.relay import RelayConfig
from moqt.relay.suspects import MAX_SUSPECTS, SUSPICION, Suspects
from moqt.session import Request, RequestKind
from moqt.session.events import ObjectStarted, RequestCancelled, StreamInfo, Via
from moqt.session.fetching import FetchItem, FetchState
from moqt.tracks import Known
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.messages import FetchOk
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus, RangeKind, RangeMarker

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


def breaking(world: World, name: str) -> Peer:
    """A publisher that breaks a rule on its own: two priorities in one subgroup."""
    peer = world.peer(name)
    sender = peer.session.publish(TRACK)
    world.settle()
    sender.offer(make(9, 0), first=True)
    sender.offer(make(9, 2))
    sender.offer(replace(make(9, 4), priority=3))
    world.settle()
    return peer


def test_a_publisher_that_breaks_a_rule_alone_is_left_alone() -> None:
    """R180, R181: requests at the others stay; who subscribes again has their Objects."""
    world = World()
    honest = world.peer("honest")
    sender = honest.session.publish(TRACK)
    world.settle()
    reader = world.peer("reader")
    before = world.subscribe(reader)
    hostile = breaking(world, "hostile")
    assert [PublishDoneCode.MALFORMED_TRACK] == reader.done(before)
    assert 1 == len(hostile.of(RequestCancelled))
    assert [] == honest.of(RequestCancelled)
    after = world.subscribe(reader)
    sender.offer(make(1, 0), first=True)
    world.settle()
    assert {(1, 0): b"1/0"} == reader.payloads(after)


def test_what_a_hostile_publisher_said_does_not_exist_may_exist() -> None:
    """R182: its end of the Track goes with it; another's Objects do not contradict that."""
    world = World()
    hostile = world.peer("hostile").session.publish(TRACK)
    world.settle()
    reader = world.peer("reader")
    world.subscribe(reader)
    hostile.offer(Object(Location(0, 0), 0, 128, b"", ObjectStatus.END_OF_TRACK), first=True)
    hostile.offer(make(3, 0), first=True)
    world.settle()
    honest = world.peer("honest").session.publish(TRACK)
    world.settle()
    after = world.subscribe(reader)
    honest.offer(make(1, 0), first=True)
    world.settle()
    assert {(1, 0): b"1/0"} == reader.payloads(after)


def test_suspects_are_asked_again_after_a_while() -> None:
    """R181: a session that serves many publishers must not lose a Track for good."""
    world = World()
    broken = [True]

    def answer(request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE:
            sender = request.session.accept_subscribe(request, largest=None)
            sender.offer(make(0, 0), first=True)
            sender.offer(replace(make(0, 2), priority=3 if broken[0] else 128))

    world.peer("publisher", answer).session.publish_namespace(SPACE)
    world.settle()
    reader = world.peer("reader")
    world.subscribe(reader)
    error = reader.error(world.subscribe(reader))
    assert error is not None
    assert RequestErrorCode.MALFORMED_TRACK == error.code
    world.settle(SUSPICION)
    broken[0] = False
    assert (0, 2) in reader.objects(world.subscribe(reader))


def test_malformed_tracks_cost_no_memory() -> None:
    """A publisher that breaks ever new Tracks leaves none of them behind."""
    world = World()
    peer = world.peer("publisher")
    for number in range(20):
        sender = peer.session.publish(FullTrackName(SPACE, b"%d" % number))
        world.settle(0.05)
        sender.offer(make(0, 0), first=True)
        sender.offer(replace(make(0, 2), priority=3))
        world.settle(0.05)
    assert 20 == len(peer.of(RequestCancelled))
    assert {} == world.relay.tracks


def test_suspects_are_bounded() -> None:
    """The oldest suspicion goes first."""
    suspects, session = Suspects(lambda: 0.0), World().peer("peer").session
    names = [FullTrackName(SPACE, b"%d" % number) for number in range(MAX_SUSPECTS + 1)]
    for name in names:
        suspects.add(name, [session])
    assert MAX_SUSPECTS == len(suspects)
    assert not suspects.holds(names[0], session)
    assert suspects.holds(names[-1], session)


def test_a_fetch_that_waits_for_its_end_learns_that_the_track_is_malformed() -> None:
    """R181: also before anything was sent for it; the Track is forgotten, and costs nothing."""
    world = World(RelayConfig(cache_budget=0))
    world.peer("idle").session.publish_namespace(SPACE)
    world.settle()
    reader = world.peer("reader")
    request = world.fetch(reader)
    breaking(world, "hostile")
    error = reader.error(request)
    assert error is not None
    assert RequestErrorCode.MALFORMED_TRACK == error.code
    assert {} == world.relay.tracks
    assert 0 == world.relay.budget.used
