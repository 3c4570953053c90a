"""GOAWAY from a hostile peer: a URI that is none moves nobody, and nothing breaks."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Network
from moqt.relay import Relay, RelayConfig

from tests.relay.world import SESSION, SPACE, TRACK, OpenOrigin, Peer, World

WRONG = pytest.mark.parametrize(
    "uri", [b"\xff\xfe", b"https://relay/", b"moqt:///", b"moqt://a b/", b"x" * 8192]
)


@WRONG
def test_an_origin_comes_back_where_it_was(uri: bytes) -> None:
    """The origin opens its next session to the URL that it has."""
    network, relay, origin = Network(seed=1), Peer(), OpenOrigin()
    network.listen("relay", relay, SESSION)
    network.client("origin", origin)
    origin.connect("moqt://relay/", SESSION)
    origin.announce(SPACE)
    network.run(0.2)
    relay.session.goaway(uri)
    network.run(0.4)
    assert 2 == len(relay.sessions)
    assert [SPACE, SPACE] == [request.namespace for request in relay.requests()]


@WRONG
def test_a_relay_comes_back_where_it_was(uri: bytes) -> None:
    """So does a relay at the relay above it."""
    network, above = Network(seed=1), Peer()
    network.listen("above", above, SESSION)
    network.listen("relay", Relay(RelayConfig(upstreams=("moqt://above/",))), SESSION)
    network.run(0.2)
    above.session.goaway(uri)
    network.run(0.4)
    assert 2 == len(above.sessions)


def test_a_new_track_is_not_offered_to_a_session_that_ends() -> None:
    """R045: after the subscriber's GOAWAY nothing is asked of it; a Track can still be added."""
    world, origin = World(), OpenOrigin()
    world.net.listen("origin", origin, SESSION)
    peer = world.peer("peer", url="moqt://origin/")
    peer.session.subscribe_tracks(SPACE)
    world.settle()
    peer.session.goaway()
    world.settle()
    origin.add_track(TRACK)
    world.settle()
    assert [] == peer.requests()
