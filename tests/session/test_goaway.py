"""GOAWAY for a session and for one request (MOQT-22 §9.2, §6.6.1)."""

from __future__ import annotations

import pytest
from moqt.session.events import GoawayReceived, RequestCancelled, RequestFailed, SessionClosed
from moqt.session.requests import RequestState
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, SessionError, StreamError
from moqt.wire.messages import Goaway

from tests.session.openers import opener
from tests.session.pair import TRACK, Pair, RawPeer, obj, subscribed


def test_a_server_sends_its_clients_away() -> None:
    """R040, R043, R045: URI and timeout arrive; the client asks nothing new; running ones go on."""
    pair = Pair()
    _, theirs = subscribed(pair)
    pair.server.goaway(b"moqt://other/x", 5000)
    pair.run()
    assert Goaway(b"moqt://other/x", 5000) == pair.one(0, GoawayReceived).message
    assert pair.one(0, GoawayReceived).request is None
    with pytest.raises(LocalProtocolError):
        pair.client.subscribe(TRACK)
    with pytest.raises(LocalProtocolError):
        pair.server.goaway()
    assert theirs.sender is not None
    assert theirs.sender.offer(obj(0, 0))


@pytest.mark.parametrize("sender_is_peer", [True, False])
def test_new_requests_after_goaway_are_refused(sender_is_peer: bool) -> None:
    """R045: both sides answer new requests with GOING_AWAY."""
    peer = RawPeer()
    if sender_is_peer:
        peer.send(peer.control, "10 0003 00 9388")
    else:
        peer.session.goaway(b"", 0)
    stream = peer.request(opener("SUBSCRIBE"))
    refusal = peer.tap.on_stream(stream)
    assert (0x05, RequestErrorCode.GOING_AWAY) == (refusal[0], refusal[3])
    assert peer.code is None


@pytest.mark.parametrize(
    ("is_client", "octets", "code"),
    [
        (False, "10 0002 00 00", None),
        (False, "10 0009 07 6d6f71743a2f2f 00", 0x3),
        (True, "10 0009 07 6d6f71743a2f2f 00", None),
        (True, "10 0002 00 00 10 0002 00 00", 0x3),
        (True, "10 2003 a000" + "61" * 8192 + "00", None),
        (True, "10 2004 a001" + "61" * 8193 + "00", 0x3),
    ],
    ids=["no URI", "URI to a server", "URI to a client", "twice", "8192", "8193"],
)
def test_goaway_on_the_control_stream(is_client: bool, octets: str, code: int | None) -> None:
    """R041, R042, R044: a client's GOAWAY has no URI, there is one, and the URI has a limit."""
    peer = RawPeer(session_is_client=is_client)
    peer.send(peer.control, octets)
    assert code == peer.code


def test_a_client_sends_no_uri() -> None:
    """R040: nothing is sent."""
    pair = Pair()
    calls = len(pair.taps[0].calls)
    with pytest.raises(LocalProtocolError):
        pair.client.goaway(b"moqt://x/")
    assert calls == len(pair.taps[0].calls)
    pair.client.goaway(b"", 100)


@pytest.mark.parametrize("finished", [False, True])
def test_when_time_is_over(finished: bool) -> None:
    """R046: GOAWAY_TIMEOUT with requests open, NO_ERROR when nothing is left."""
    pair = Pair()
    ours, _ = subscribed(pair)
    pair.server.goaway(b"", 2000)
    pair.run()
    if finished:
        pair.client.cancel(ours)
        pair.run()
    pair.wait(1.9)
    assert not pair.server.closed
    pair.wait(0.2)
    expected = SessionError.NO_ERROR if finished else SessionError.GOAWAY_TIMEOUT
    assert expected == pair.one(1, SessionClosed).code
    assert expected == pair.one(0, SessionClosed).code


def test_goaway_for_one_request() -> None:
    """R042, R046: only that request is meant; it is reset GOING_AWAY when its time is over."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    pair.server.goaway(b"moqt://other/", 1000, request=theirs)
    with pytest.raises(LocalProtocolError):
        pair.server.goaway(b"", 0, request=theirs)
    pair.run()
    assert ours is pair.one(0, GoawayReceived).request
    pair.client.subscribe(TRACK)
    pair.wait(1.1)
    cancelled = pair.one(0, RequestCancelled)
    assert (ours, StreamError.GOING_AWAY) == (cancelled.request, cancelled.code)
    assert RequestState.TERMINATED is theirs.state
    assert [] == pair.seen(0, RequestFailed)
    assert not pair.client.closed


@pytest.mark.parametrize(
    ("octets", "code"),
    [("10 0002 00 00", None), ("10 0002 00 00 10 0002 00 00", 0x3), ("10 0003 01 61 00", 0x3)],
)
def test_goaway_on_a_request_stream(octets: str, code: int | None) -> None:
    """R041, R042: the same rules hold on a request stream."""
    peer = RawPeer()
    stream = peer.request(opener("SUBSCRIBE"))
    peer.send(stream, octets)
    assert code == peer.code
