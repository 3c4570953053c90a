"""Requests that would cost the publisher without end: one request pays, its session lives."""

from __future__ import annotations

from moqt.session.events import RequestCancelled, RequestReceived, UpdateAnswered, UpdateReceived
from moqt.wire.codec import encode_message
from moqt.wire.drafts import DRAFT_22
from moqt.wire.errors import RequestErrorCode, StreamError
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import NO_PARAMETERS, Parameters, RequestError, RequestUpdate, Subscribe
from moqt.wire.names import Location

from tests.session.pair import OTHER, TRACK, ListSource, Pair, RawPeer, config, subscribed

FILL = Parameters(
    fill=Parameters(location_filter=LocationFilter(LocationFilterType.ABSOLUTE_START, 0, 0))
)


def updates(first_id: int, count: int) -> bytes:
    """That many REQUEST_UPDATEs in one piece."""
    parameters = Parameters(subscriber_priority=3)
    return b"".join(
        encode_message(RequestUpdate(first_id + 2 * number, parameters), DRAFT_22)
        for number in range(count)
    )


def flooded(count: int) -> tuple[RawPeer, int]:
    """A peer whose SUBSCRIBE is accepted, after which it sends `count` updates at once."""
    peer = RawPeer(max_open_requests=8)
    stream = peer.request(encode_message(Subscribe(0, TRACK, NO_PARAMETERS), DRAFT_22))
    peer.session.accept_subscribe(peer.seen(RequestReceived)[0].request, largest=None)
    peer.send(stream, updates(2, count))
    return peer, stream


def test_as_many_updates_as_requests_may_wait() -> None:
    """R230: up to the limit all of them reach the application."""
    peer, _ = flooded(8)
    assert 8 == len(peer.seen(UpdateReceived))
    assert {} == peer.tap.codes("reset")


def test_more_updates_than_that_cost_their_request() -> None:
    """R230: one more is EXCESSIVE_LOAD for that request, and no fault of the others."""
    peer, stream = flooded(9)
    assert [StreamError.EXCESSIVE_LOAD] == [one.code for one in peer.seen(RequestCancelled)]
    assert {stream: StreamError.EXCESSIVE_LOAD} == peer.tap.codes("reset")
    assert peer.code is None
    peer.request(encode_message(Subscribe(100, OTHER, NO_PARAMETERS), DRAFT_22))
    assert OTHER == peer.seen(RequestReceived)[-1].request.track


def test_updates_wait_no_less_for_a_request_without_an_answer() -> None:
    """R230: nor may they pile up before the request itself is answered."""
    peer = RawPeer(max_open_requests=8)
    stream = peer.request(encode_message(Subscribe(0, TRACK, NO_PARAMETERS), DRAFT_22))
    peer.send(stream, updates(2, 9))
    assert {stream: StreamError.EXCESSIVE_LOAD} == peer.tap.codes("reset")


def test_fills_that_wait_for_streams_are_counted() -> None:
    """R230: a subscriber that grants no stream asks for fills until one is refused."""
    pair = Pair(server=config(max_open_requests=4))
    ours, theirs = subscribed(pair, largest=Location(0, 0))
    pair.taps[1].credit[True] = 0
    assert theirs.sender is not None
    for _ in range(5):
        pair.client.update(ours, FILL)
        pair.run()
        for event in pair.seen(1, UpdateReceived)[pair.server._core.open_fills :]:
            pair.server.accept_update(theirs, event.update)
            theirs.sender.open_fill(event.update.request_id, ListSource([]))
        pair.run()
    answers = [event.response for event in pair.seen(0, UpdateAnswered)]
    refused = [answer.code for answer in answers if isinstance(answer, RequestError)]
    assert [RequestErrorCode.EXCESSIVE_LOAD] == refused
    assert 5 == len(answers)
    assert 0 == pair.server._core.open_fills


def test_fills_that_ended_are_not_counted() -> None:
    """R230: one after the other there is no limit."""
    pair = Pair(server=config(max_open_requests=2))
    ours, theirs = subscribed(pair, largest=Location(0, 0))
    assert theirs.sender is not None
    for _ in range(5):
        pair.client.update(ours, FILL)
        pair.run()
        update = pair.seen(1, UpdateReceived)[-1].update
        pair.server.accept_update(theirs, update)
        theirs.sender.open_fill(update.request_id, ListSource([]))
        pair.run()
    assert not [
        event for event in pair.seen(0, UpdateAnswered) if isinstance(event.response, RequestError)
    ]


def test_a_stream_that_was_reset_before_its_octets_came_is_closed() -> None:
    """A cancellation may overtake the request: our direction ends too, or the stream stays open."""
    peer = RawPeer()
    peer.session.stream_reset(0, StreamError.CANCELLED, peer.now)
    assert {0: StreamError.CANCELLED} == peer.tap.codes("reset")
    assert peer.code is None
