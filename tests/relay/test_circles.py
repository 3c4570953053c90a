"""Relays that are each other's upstream, and requests that wait for the same answer."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Network
from moqt.relay import Relay, RelayConfig
from moqt.session import Request, RequestKind
from moqt.session.events import RequestCancelled
from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import FetchOk, Parameters
from moqt.wire.names import Location

from tests.relay.test_hostile_publishers import Items
from tests.relay.world import LAST, SESSION, SPACE, TRACK, Peer, World, absolute, make


class Counting(Relay):
    """A relay that counts the requests that come."""

    def __init__(self, config: RelayConfig) -> None:
        super().__init__(config)
        self.asked = 0

    def authorise(self, request: Request) -> None:
        self.asked += 1


@pytest.mark.parametrize("circle", [("one",), ("one", "two"), ("one", "two", "three")])
@pytest.mark.parametrize(
    "kind",
    [RequestKind.SUBSCRIBE, RequestKind.FETCH, RequestKind.TRACK_STATUS],
)
def test_a_request_goes_round_a_circle_once(circle: tuple[str, ...], kind: RequestKind) -> None:
    """Every relay is asked once, and once more where it began; then the time is over."""
    network = Network(seed=1)
    above = (*circle[1:], circle[0])
    relays = [
        Counting(RelayConfig(upstreams=(f"moqt://{name}/",), upstream_timeout=2.0))
        for name in above
    ]
    for name, relay in zip(circle, relays, strict=True):
        network.listen(name, relay, SESSION)
    peer = Peer()
    peer.sessions.append(network.client("peer", peer).connect("moqt://one/", SESSION))
    network.run(2.0)
    session = peer.session
    if kind is RequestKind.SUBSCRIBE:
        request = session.subscribe(TRACK)
    elif kind is RequestKind.FETCH:
        chosen = absolute((0, 0), (3, LAST))
        request = session.fetch(TRACK, Parameters(location_filter=chosen))
    else:
        request = session.track_status(TRACK)
    network.run(10.0)
    error = peer.error(request)
    assert error is not None
    assert RequestErrorCode.TIMEOUT == error.code
    assert len(circle) + 1 == sum(relay.asked for relay in relays)
    assert [{}] * len(circle) == [relay.tracks for relay in relays]


def test_the_relay_above_is_not_asked_back() -> None:
    """What comes from there is not to be found there."""
    network, above = Network(seed=1), Peer()
    network.listen("above", above, SESSION)
    network.listen("relay", Relay(RelayConfig(upstreams=("moqt://above/",))), SESSION)
    network.run(0.2)
    requests = [
        above.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0)))),
        above.session.track_status(TRACK),
        above.session.subscribe(TRACK),
    ]
    network.run(0.4)
    assert [] == above.requests()
    codes = [error.code for one in requests if (error := above.error(one)) is not None]
    assert [RequestErrorCode.DOES_NOT_EXIST] * 3 == codes


def test_many_wait_for_one_track_status() -> None:
    """A publisher is asked once, and everyone has its answer."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(SPACE)
    peers = [world.peer(name) for name in ("one", "two")]
    requests = [peer.session.track_status(TRACK) for peer in peers for _ in range(3)]
    world.settle()
    (asked,) = publisher.requests()
    publisher.session.accept(asked, Parameters(largest_object=Location(3, 1)))
    world.settle()
    assert all(peers[index // 3].ok(request) for index, request in enumerate(requests))
    assert {} == world.relay.tracks


def test_many_wait_for_one_fetch_to_tell_the_end() -> None:
    """R228: of two who want the same range one may leave; the other has it all."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(SPACE)
    peers = [world.peer(name) for name in ("one", "two", "three")]
    requests = [world.fetch(peer) for peer in peers]
    (asked,) = publisher.requests()
    peers[0].session.cancel(requests[0])
    world.settle()
    publisher.session.open_fetch(asked, Items([make(0, 0), make(1, 0)]))
    world.settle()
    publisher.session.accept_fetch(asked, FetchOk(False, Location(1, 0)))
    world.settle()
    for peer, request in zip(peers[1:], requests[1:], strict=True):
        assert [(0, 0), (1, 0)] == peer.objects(request)
        answer = peer.ok(request)
        assert isinstance(answer, FetchOk)
        assert Location(1, 0) == answer.end
        assert [None] == peer.ends(request)
    assert 1 == len(publisher.requests())


def test_a_fetch_that_nobody_waits_for_is_cancelled() -> None:
    """The last one who leaves ends it."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(SPACE)
    peers = [world.peer(name) for name in ("one", "two")]
    requests = [world.fetch(peer) for peer in peers]
    peers[0].session.cancel(requests[0])
    world.settle()
    assert [] == publisher.of(RequestCancelled)
    peers[1].session.cancel(requests[1])
    world.settle()
    assert publisher.requests() == [one.request for one in publisher.of(RequestCancelled)]
    assert {} == world.relay.tracks
