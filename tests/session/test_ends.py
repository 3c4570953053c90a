"""FIN and cancel on request streams (MOQT-22 §6.4.2.2, §6.4.2.3)."""

from __future__ import annotations

import pytest
from moqt.session import RequestKind, RequestState
from moqt.session.events import (
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
)
from moqt.wire.errors import SessionError, StreamError

from tests.session.openers import ASK, answer, opener
from tests.session.pair import TRACK, Pair, RawPeer, obj, subscribed


def test_an_early_fin_of_the_requester_is_no_cancel() -> None:
    """R061: SUBSCRIBE + FIN is still served to its end."""
    peer = RawPeer()
    stream = peer.request(opener("SUBSCRIBE"), fin=True)
    request = peer.seen(RequestReceived)[0].request
    sender = peer.session.accept_subscribe(request, largest=None)
    assert sender.offer(obj(0, 0))
    sender.end_subgroup(0, 0)
    sender.finish(0x2)
    peer.take()
    assert peer.tap.data_streams() == [7]
    assert peer.tap.fin_on(stream)
    assert [] == peer.seen(RequestCancelled)
    assert peer.code is None


@pytest.mark.parametrize("kind", [k for k in RequestKind if k is not RequestKind.PUBLISH])
def test_a_fin_before_the_answer_fails_the_request(kind: RequestKind) -> None:
    """R058, R059: the responder owes an answer."""
    peer = RawPeer(session_is_client=True)
    request = ASK[kind](peer.session)
    peer.send(0, b"", fin=True)
    (failed,) = peer.seen(RequestFailed)
    assert (request, None, None) == (failed.request, failed.error, failed.code)
    assert peer.code is None


def test_a_fin_before_publish_done_fails_the_subscription() -> None:
    """R060: a publisher owes PUBLISH_DONE, as responder and as opener."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00", fin=True)
    assert [request] == [event.request for event in peer.seen(RequestFailed)]
    peer = RawPeer()
    stream = peer.request(opener("PUBLISH"))
    peer.session.accept(peer.seen(RequestReceived)[0].request)
    peer.send(stream, b"", fin=True)
    assert 1 == len(peer.seen(RequestCancelled))
    assert peer.code is None


def test_a_fin_inside_a_message_closes() -> None:
    """A FIN in the middle of a message counts as a wrong length (choice 24)."""
    peer = RawPeer()
    peer.request(opener("SUBSCRIBE")[:14], fin=True)
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize("kind", list(RequestKind), ids=lambda k: k.name)
def test_the_requester_cancels(kind: RequestKind) -> None:
    """R062, R146, R147: RESET_STREAM and STOP_SENDING; the responder resets its direction."""
    pair = Pair()
    ours = ASK[kind](pair.client)
    pair.run()
    theirs = pair.request()
    if kind is not RequestKind.TRACK_STATUS:
        answer(pair.server, theirs)
        pair.run()
    pair.client.cancel(ours)
    pair.run()
    assert ours.stream_id is not None
    assert StreamError.CANCELLED == pair.taps[0].codes("reset")[ours.stream_id]
    assert StreamError.CANCELLED == pair.taps[0].codes("stop")[ours.stream_id]
    assert StreamError.CANCELLED == pair.taps[1].codes("reset")[ours.stream_id]
    cancelled = pair.one(1, RequestCancelled)
    assert (theirs, StreamError.CANCELLED) == (cancelled.request, cancelled.code)
    assert (RequestState.TERMINATED,) * 2 == (ours.state, theirs.state)
    assert [] == pair.seen(0, RequestFailed)


def test_the_responder_cancels() -> None:
    """R062: either side may cancel, with a code that fits."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    pair.server.cancel(theirs, StreamError.EXCESSIVE_LOAD)
    pair.run()
    cancelled = pair.one(0, RequestCancelled)
    assert (ours, StreamError.EXCESSIVE_LOAD) == (cancelled.request, cancelled.code)


def test_a_cancel_before_the_answer_fails_the_request() -> None:
    """R062: there is no answer any more."""
    pair = Pair()
    ours = pair.client.subscribe(TRACK)
    pair.run()
    pair.server.cancel(pair.request(), StreamError.GOING_AWAY)
    pair.run()
    failed = pair.one(0, RequestFailed)
    assert (ours, None, StreamError.GOING_AWAY) == (failed.request, failed.error, failed.code)


def test_messages_after_a_cancel_are_dropped() -> None:
    """R062: what still arrives for a cancelled request is no error."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.session.cancel(request)
    peer.send(0, "04 0002 07 00")
    peer.send(0, "ffff")
    peer.session.stream_reset(0, 1, 0.0)
    assert peer.code is None
    assert [] == peer.seen(RequestAccepted)
