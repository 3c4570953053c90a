"""GOAWAY from a hostile peer: a URI that is none moves nobody, a storm of them moves slowly."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Network
from moqt.relay import Relay, RelayConfig
from moqt.session import Request, RequestKind, Session

from tests.relay.world import SESSION, SPACE, TRACK, OpenOrigin, Peer, World


class Sending(Peer):
    """A peer that sends every session away as soon as it is there."""

    def session_opened(self, session: Session, now: float) -> None:
        super().session_opened(session, now)
        session.goaway()


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


def test_an_origin_follows_a_storm_of_goaways_slowly() -> None:
    """A relay that sends every session away is come back to once a second."""
    network, relay, origin = Network(seed=1), Sending(), OpenOrigin()
    network.listen("relay", relay, SESSION)
    network.client("origin", origin)
    origin.connect("moqt://relay/", SESSION)
    network.run(3.5)
    assert 5 == len(relay.sessions)


def test_a_relay_follows_a_storm_of_goaways_slowly() -> None:
    """So is the relay above, and no session that was left stays open."""
    network, above = Network(seed=1), Sending()
    network.listen("above", above, SESSION)
    network.listen("relay", Relay(RelayConfig(upstreams=("moqt://above/",))), SESSION)
    network.run(3.5)
    assert 5 == len(above.sessions)
    assert 1 >= sum(not session.closed for session in above.sessions)


def test_the_session_before_last_is_closed_even_when_it_is_in_use() -> None:
    """A Track that depends on it cannot keep more than two sessions to one upstream open."""
    network, above = Network(seed=1), Peer()

    def answer(request: Request) -> None:
        if request.session is above.session and request.kind is RequestKind.SUBSCRIBE:
            request.session.accept_subscribe(request, largest=None)

    above.answer = answer
    network.listen("above", above, SESSION)
    network.listen("relay", Relay(RelayConfig(upstreams=("moqt://above/",))), SESSION)
    reader = Peer()
    reader.sessions.append(network.client("reader", reader).connect("moqt://relay/", SESSION))
    network.run(0.2)
    reader.session.subscribe(TRACK)
    network.run(0.4)
    for number in range(2):
        above.sessions[number].goaway()
        network.run(2.0 + 2 * number)
    assert [True, False, False] == [session.closed for session in above.sessions]
