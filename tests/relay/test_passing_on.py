"""What a relay passes on and what it keeps to itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from moqt.session import Request, RequestKind
from moqt.session.events import StateNotified
from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import Parameters, PublishStateNotify, SubscribeOk
from moqt.wire.names import FullTrackName, Location

from .world import SPACE, TRACK, Peer, World, make, token


def accept_with(largest: Location) -> Callable[[Request], None]:
    """An answer to SUBSCRIBE that reports `largest`."""

    def answer(request: Request) -> None:
        request.session.accept_subscribe(request, largest=largest)

    return answer


def largest_of(peer: Peer, request: Request) -> Location | None:
    """LARGEST_OBJECT of the SUBSCRIBE_OK."""
    answer = peer.ok(request)
    assert isinstance(answer, SubscribeOk)
    return answer.parameters.largest_object


def test_session_level_requests_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """R016, R017: requests below `.session` are answered, and no publisher sees them."""
    monkeypatch.setattr("moqt.session.outgoing.reserved_name", lambda request: None)
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(())
    world.settle()
    peer = world.peer("peer")
    names = [FullTrackName((b".session",), b""), FullTrackName((b".session", b"x"), b"stats")]
    requests = [peer.session.subscribe(name) for name in names]
    requests += [peer.session.fetch(name) for name in names]
    requests.append(peer.session.track_status(names[1], Parameters()))
    world.settle()
    codes = [error.code for one in requests if (error := peer.error(one))]
    assert [RequestErrorCode.DOES_NOT_EXIST] * 5 == codes
    assert [] == publisher.requests()


def test_the_token_of_subscribe_tracks_is_kept() -> None:
    """R080, R202: PUBLISH carries the parameters of SUBSCRIBE_TRACKS, its token excepted."""
    world = World()
    subscriber = world.peer("subscriber")
    subscriber.session.subscribe_tracks(
        SPACE, Parameters(authorization_tokens=(token(b"secret"),), forward=0, group_order=2)
    )
    world.settle()
    publisher = world.peer("publisher")
    publisher.session.publish(TRACK, Parameters())
    world.settle()
    (published,) = subscriber.requests()
    assert RequestKind.PUBLISH is published.kind
    assert () == published.parameters.authorization_tokens
    assert (0, 2) == (published.parameters.forward, published.parameters.group_order)


def test_largest_is_the_greatest_of_what_was_reported_and_received() -> None:
    """R091, R211: three publishers report; then Objects {6, 0} and, behind it, {5, 9} come."""
    world = World()
    publishers = [
        world.peer(f"publisher{number}", accept_with(largest))
        for number, largest in enumerate((Location(3, 7), Location(5, 1), Location(4, 2)))
    ]
    for publisher in publishers:
        publisher.session.publish_namespace(SPACE)
    world.settle()
    one, two, three = world.peer("one"), world.peer("two"), world.peer("three")
    world.subscribe(one)
    assert Location(5, 1) == largest_of(two, world.subscribe(two))
    for publisher, item in zip(publishers, (make(6, 0), make(5, 9)), strict=False):
        (upstream,) = publisher.requests()
        assert upstream.sender is not None
        assert upstream.sender.offer(item, first=True)
        world.settle()
    assert Location(6, 0) == largest_of(three, world.subscribe(three))


def test_a_publishers_pause_is_not_the_subscribers() -> None:
    """R128, R129: what a relay notifies changes no value that the subscriber set."""
    world = World()
    publisher = world.peer("publisher", accept_with(Location(1, 1)))
    publisher.session.publish_namespace(SPACE)
    world.settle()
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber, forward=1)
    (upstream,) = publisher.requests()
    publisher.session.state_notify(upstream, Parameters(largest_object=Location(1, 1), forward=0))
    world.settle()
    for event in subscriber.of(StateNotified, request):
        assert isinstance(event.message, PublishStateNotify)
        assert None is event.message.parameters.forward
    assert 1 == request.parameters.forward


def test_without_rendezvous_the_answer_is_at_once() -> None:
    """R082: no publisher and no RENDEZVOUS_TIMEOUT, or 0, is DOES_NOT_EXIST at once."""
    world = World()
    peer = world.peer("peer")
    for parameters in (Parameters(), Parameters(rendezvous_timeout=0)):
        request = peer.session.subscribe(TRACK, parameters)
        world.settle(0.02)
        error = peer.error(request)
        assert error is not None
        assert RequestErrorCode.DOES_NOT_EXIST == error.code
