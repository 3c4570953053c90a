"""What a relay holds in memory while much passes through it."""

from __future__ import annotations

import tracemalloc

import pytest
from moqt.drivers.memory.link import Link
from moqt.origin import LocalTrack
from moqt.relay import RelayConfig
from moqt.session import Session
from moqt.session.events import Event, ObjectReceived

from .world import SESSION, TRACK, Peer, World, make

MIB = 1 << 20
NARROW = Link(connection_window=100_000, buffer=50_000)


class Counting(Peer):
    """A peer that only counts the octets that come."""

    def __init__(self) -> None:
        super().__init__()
        self.octets = 0

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived):
            self.octets += len(event.object.payload)


def counting(world: World, name: str) -> Counting:
    peer = Counting()
    host = world.net.client(name, peer)
    peer.sessions.append(host.connect("moqt://relay/", SESSION))
    world.settle()
    return peer


@pytest.mark.slow
def test_fetch_of_many_times_the_budget_stays_flat() -> None:
    """256 MiB through a budget of 16 MiB: the relay, its peers and the network stay below 64."""
    world = World(RelayConfig(cache_budget=16 * MIB, high_water=2 * MIB, low_water=MIB))
    track = world.origin().add_track(TRACK)
    payload = bytes(MIB)
    for number in range(256):
        track.publish(make(0, number, payload))
    peer = counting(world, "peer")
    tracemalloc.start()
    peer.session.fetch(TRACK)
    world.net.run(lambda: peer.octets == 256 * MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert world.relay.budget.used <= 16 * MIB
    assert peak < 64 * MIB


@pytest.mark.slow
def test_payload_exists_once_for_many_subscribers() -> None:
    """Twenty stalled subscribers share the octets of one Object."""
    world = World(RelayConfig(high_water=64 * MIB))
    track = world.origin().add_track(TRACK)
    peers = [counting(world, f"peer{number}") for number in range(20)]
    for number, peer in enumerate(peers):
        peer.session.subscribe(TRACK)
        world.settle()
        world.net.partition(f"peer{number}", "relay")
    tracemalloc.start()
    for number in range(8):
        track.publish(make(0, number, bytes(MIB)))
    world.settle(1.0)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    senders = world.relay.tracks[TRACK].subscribers.senders.values()
    assert sum(sender.backlog for sender in senders) > 100 * MIB
    assert held < 40 * MIB


def test_subscription_is_held_back_while_everyone_lags() -> None:
    """With its only subscriber stalled the relay stops reading; later everything arrives."""
    world = World(RelayConfig(high_water=100_000, low_water=50_000))
    track = world.origin().add_track(TRACK)
    world.net.set_link("peer", "relay", NARROW)
    peer = counting(world, "peer")
    peer.session.subscribe(TRACK)
    world.settle()
    world.net.partition("peer", "relay")
    for group in range(40):
        for number in range(10):
            track.publish(make(group, number, bytes(10_000)))
        track.end_subgroup(group, 0)
        world.settle(0.02)
    (sender,) = world.relay.tracks[TRACK].subscribers.senders.values()
    assert 100_000 <= sender.backlog < 1_500_000
    world.net.heal("peer", "relay")
    world.settle(5.0)
    assert peer.octets == 40 * 10 * 10_000


def held_back(world: World, peer: Peer) -> LocalTrack:
    """A Track whose publisher is held back by `peer`, its only subscriber, who reads nothing."""
    track = world.origin().add_track(TRACK)
    world.subscribe(peer)
    world.net.partition("peer", "relay")
    for number in range(40):
        track.publish(make(number, 0, bytes(10_000)))
        world.settle(0.02)
    (upstream,) = world.relay.tracks[TRACK].upstreams.values()
    assert upstream.held
    return track


def test_holding_back_needs_no_timer() -> None:
    """The relay is told when a backlog falls; it does not look again and again."""
    world = World(RelayConfig(high_water=100_000, low_water=50_000))
    world.net.set_link("peer", "relay", NARROW)
    peer = world.peer("peer")
    held_back(world, peer)
    assert world.relay.next_timer() is None
    world.net.heal("peer", "relay")
    world.settle(5.0)
    (upstream,) = world.relay.tracks[TRACK].upstreams.values()
    assert not upstream.held
    assert 40 == len(peer.of(ObjectReceived))


def test_one_more_subscriber_lets_a_held_publisher_go_on() -> None:
    """It lags behind nothing yet, and the first one must not keep it from the Track."""
    world = World(RelayConfig(high_water=100_000, low_water=50_000))
    world.net.set_link("peer", "relay", NARROW)
    track = held_back(world, world.peer("peer"))
    other = world.peer("other")
    request = world.subscribe(other)
    track.publish(make(40, 0))
    world.settle()
    assert (40, 0) in other.objects(request)


def test_a_held_publisher_goes_on_without_the_subscriber_that_held_it() -> None:
    """A PUBLISH that lost its last subscriber is held back by nobody."""
    world = World(RelayConfig(high_water=100_000, low_water=50_000))
    world.net.set_link("peer", "relay", NARROW)
    publisher = world.peer("publisher").session.publish(TRACK)
    world.settle()
    peer = world.peer("peer")
    request = world.subscribe(peer)
    peer.session.pause_request(request)
    for number in range(60):
        publisher.offer(make(number, 0, bytes(10_000)))
        world.settle(0.02)
    (upstream,) = world.relay.tracks[TRACK].upstreams.values()
    assert upstream.held
    peer.session.cancel(request)
    world.settle()
    assert not upstream.held


def test_subscriber_beyond_its_budget_is_cut() -> None:
    """R188: a subscription with too much backlog ends TOO_FAR_BEHIND; the others go on."""
    world = World(RelayConfig(subscriber_budget=200_000))
    track = world.origin().add_track(TRACK)
    world.net.set_link("slow", "relay", NARROW)
    slow, fast = world.peer("slow"), world.peer("fast")
    lost, kept = world.subscribe(slow), world.subscribe(fast)
    world.net.partition("slow", "relay")
    for number in range(100):
        track.publish(make(0, number, bytes(10_000)))
        world.settle(0.01)
    assert len(fast.objects(kept)) == 100
    world.net.heal("slow", "relay")
    world.settle(1.0)
    assert slow.done(lost) == [0x5]
