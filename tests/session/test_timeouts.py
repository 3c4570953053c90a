"""Delivery timeouts, slow subscribers, and the end of a subscription (MOQT-22 §5.2, §9.9)."""

from __future__ import annotations

import pytest
from moqt.session import SubscriptionSender
from moqt.session.events import (
    ObjectReceived,
    PublishDoneReceived,
    RequestReceived,
    StreamEnded,
    SubscriptionCut,
    SubscriptionEnded,
)
from moqt.session.requests import RequestState
from moqt.wire.errors import PublishDoneCode, SessionError, StreamError
from moqt.wire.filters import NEXT_OBJECT
from moqt.wire.messages import Parameters

from tests.session.openers import NAME
from tests.session.pair import LIVE, TRACK, Pair, RawPeer, config, obj, subscribed

OBJECT_100 = Parameters(location_filter=NEXT_OBJECT, object_delivery_timeout=100)
SUBGROUP_100 = Parameters(location_filter=NEXT_OBJECT, subgroup_delivery_timeout=100)


def sending(pair: Pair, parameters: Parameters, properties: str = "") -> SubscriptionSender:
    _, theirs = subscribed(pair, parameters, track_properties=bytes.fromhex(properties))
    assert theirs.sender is not None
    return theirs.sender


@pytest.mark.parametrize(
    ("parameters", "properties", "object_properties", "timeout"),
    [
        (OBJECT_100, "", "", 0.1),
        (LIVE, "0232", "", 0.05),
        (OBJECT_100, "0232", "", 0.05),
        (OBJECT_100, "0200", "", 0.1),
        (LIVE, "0232", "0205", 0.005),
        (LIVE, "", "", None),
    ],
    ids=["subscriber", "track", "smaller one", "0 is none", "object property", "none"],
)
def test_object_delivery_timeout(
    parameters: Parameters, properties: str, object_properties: str, timeout: float | None
) -> None:
    """R183, R184, R185, R189: a stalled stream is reset 0x2 in time; its subgroup stays shut."""
    pair = Pair()
    sender = sending(pair, parameters, properties)
    pair.taps[1].window = 10
    sender.offer(obj(0, 0, bytes(100), properties=bytes.fromhex(object_properties)))
    pair.run()
    if timeout is None:
        pair.wait(100.0)
        assert {} == pair.taps[1].codes("reset")
        pair.taps[1].window = None
        pair.run()
        assert 1 == len(pair.seen(0, ObjectReceived))
        return
    pair.wait(timeout * 0.9)
    assert {} == pair.taps[1].codes("reset")
    pair.wait(timeout * 0.2)
    assert {7: StreamError.DELIVERY_TIMEOUT} == pair.taps[1].codes("reset")
    assert StreamError.DELIVERY_TIMEOUT == pair.one(0, StreamEnded).code
    pair.taps[1].window = None
    assert [False, True] == [sender.offer(obj(0, 1)), sender.offer(obj(1, 0))]


def test_an_object_in_time_is_delivered() -> None:
    """R183: the clock of each Object starts when it is offered."""
    pair = Pair()
    sender = sending(pair, OBJECT_100)
    for number in range(5):
        sender.offer(obj(0, number))
        pair.run()
        pair.wait(0.09)
    assert 5 == len(pair.seen(0, ObjectReceived))
    assert {} == pair.taps[1].codes("reset")


def test_expired_datagrams_are_dropped() -> None:
    """R186: checked when it would be handed to the transport."""
    pair = Pair()
    sender = sending(pair, OBJECT_100)
    sender.offer(obj(0, 0, b"old", subgroup=None))
    pair.now = 0.2
    sender.core.now = 0.15
    sender.offer(obj(0, 1, b"new", subgroup=None))
    pair.run()
    assert [b"new"] == [event.object.payload for event in pair.seen(0, ObjectReceived)]


@pytest.mark.parametrize("acknowledged", [True, False])
def test_subgroup_delivery_timeout(acknowledged: bool) -> None:
    """R187: from "all published" until all is acknowledged, else reset."""
    pair = Pair()
    sender = sending(pair, SUBGROUP_100)
    pair.taps[1].acknowledged = acknowledged
    sender.offer(obj(0, 0))
    pair.run()
    pair.wait(10.0)
    assert {} == pair.taps[1].codes("reset")
    pair.taps[1].window = None if acknowledged else 0
    sender.offer(obj(0, 1, bytes(100)))
    sender.end_subgroup(0, 0)
    pair.run()
    pair.wait(0.2)
    assert ({} if acknowledged else {7: 0x2}) == pair.taps[1].codes("reset")


def test_too_far_behind_by_budget() -> None:
    """R188: the backlog exceeds its budget: PUBLISH_DONE TOO_FAR_BEHIND, streams reset."""
    pair = Pair(server=config(subscriber_budget=1000))
    sender = sending(pair, LIVE)
    pair.taps[1].window = 100
    assert sender.offer(obj(0, 0, bytes(900)))
    pair.run()
    assert sender.offer(obj(1, 0, bytes(100)))
    assert not sender.offer(obj(2, 0, bytes(100)))
    pair.run()
    cut = pair.one(1, SubscriptionCut)
    assert (sender.request, PublishDoneCode.TOO_FAR_BEHIND) == (cut.request, cut.code)
    done = pair.one(0, PublishDoneReceived).message
    assert (PublishDoneCode.TOO_FAR_BEHIND, 1) == (done.status_code, done.stream_count)
    assert pair.one(0, SubscriptionEnded).complete
    assert {7: StreamError.TOO_FAR_BEHIND} == pair.taps[1].codes("reset")
    assert (0, True) == (sender.backlog, sender.finished)


def test_too_far_behind_by_time() -> None:
    """R188: a backlog that does not move for the stall timeout is cut; one that moves is not."""
    pair = Pair(server=config(stall_timeout=2.0))
    sender = sending(pair, LIVE)
    pair.taps[1].window = 100
    sender.offer(obj(0, 0, bytes(900)))
    pair.run()
    for _ in range(5):
        pair.wait(1.5)
        pair.taps[1].window = 50
        pair.run()
    assert [] == pair.seen(1, SubscriptionCut)
    pair.wait(2.1)
    assert PublishDoneCode.TOO_FAR_BEHIND == pair.one(1, SubscriptionCut).code


def test_an_idle_subscription_is_not_stalled() -> None:
    """R189: without a backlog nothing is cut."""
    pair = Pair(server=config(stall_timeout=2.0))
    sender = sending(pair, LIVE)
    for group in range(3):
        sender.offer(obj(group, 0))
        pair.run()
        pair.wait(10.0)
    assert [] == pair.seen(1, SubscriptionCut)


# The end.


def test_publish_done_waits_for_all_streams() -> None:
    """R117, R124, R125: only after FIN or reset of each; the count is exact."""
    pair = Pair()
    sender = sending(pair, LIVE)
    pair.taps[1].window = 30
    for group in range(3):
        sender.offer(obj(group, 0, bytes(20)))
        if group != 1:
            sender.end_subgroup(group, 0)
    sender.finish(PublishDoneCode.TRACK_ENDED)
    assert not sender.offer(obj(9, 0))
    pair.run()
    assert [] == pair.seen(0, PublishDoneReceived)
    pair.taps[1].window = None
    pair.run()
    assert 3 == pair.one(0, PublishDoneReceived).message.stream_count
    assert pair.one(0, SubscriptionEnded).complete
    # The subgroup that was not ended is reset after its Objects went out.
    assert {11} == set(pair.taps[1].codes("reset"))
    assert 3 == len(pair.seen(0, ObjectReceived))


def test_no_stream_at_all() -> None:
    """R124: Stream Count 0."""
    pair = Pair()
    sending(pair, LIVE).finish(PublishDoneCode.TRACK_ENDED)
    pair.run()
    assert 0 == pair.one(0, SubscriptionEnded).message.stream_count


@pytest.mark.parametrize("extra", [0, 1])
def test_publish_done_may_overtake_streams(extra: int) -> None:
    """R125: the subscriber waits for the counted streams, but not for ever."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.stream("30 07 00 00 01 61", fin=True)
    peer.send(0, f"0b 0003 02 {2 + extra:02x} 00", fin=True)
    assert [] == peer.seen(SubscriptionEnded)
    peer.wait(4.0)
    peer.stream("30 07 01 00 01 61", fin=True)
    assert 2 == len(peer.seen(ObjectReceived))
    if extra:
        peer.wait(4.5)
        assert [] == peer.seen(SubscriptionEnded)
        peer.wait(1.0)
    (ended,) = peer.seen(SubscriptionEnded)
    assert (request, not extra) == (ended.request, ended.complete)
    assert RequestState.TERMINATED is request.state
    assert peer.code is None


def test_an_unknown_count_ends_by_time() -> None:
    """R125: 2^64-1 is "unknown": the wait is bounded, the end not complete."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00 0b 000b 02 ffffffffffffffffff 00", fin=True)
    peer.wait(4.9)
    assert [] == peer.seen(SubscriptionEnded)
    peer.wait(0.2)
    assert [False] == [event.complete for event in peer.seen(SubscriptionEnded)]


@pytest.mark.parametrize(("count", "code"), [(1, None), (0, SessionError.PROTOCOL_VIOLATION)])
@pytest.mark.parametrize("first", ["stream", "done"])
def test_more_streams_than_announced_close(count: int, code: int | None, first: str) -> None:
    """R126: whichever comes first."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    done = f"0b 0003 02 {count:02x} 00"
    if first == "done" and count:
        peer.send(0, done)
        peer.stream("30 07 00 00 01 61", fin=True)
    elif first == "stream" or count:
        peer.stream("30 07 00 00 01 61", fin=True)
        peer.send(0, done)
    else:
        # A count of 0 ends at once; the alias is retired and later data dropped.
        peer.send(0, done)
        stream = peer.stream("30 07 00 00 01 61")
        assert StreamError.CANCELLED == peer.tap.codes("stop")[stream]
        return
    assert code == peer.code


def test_nothing_follows_publish_done() -> None:
    """It is the publisher's last message."""
    peer = RawPeer()
    stream = peer.request(f"1d 000f 00 {NAME} 01 00 0b 0003 02 00 00")
    assert 1 == len(peer.seen(RequestReceived))
    peer.send(stream, "22 0001 00")
    assert SessionError.PROTOCOL_VIOLATION == peer.code


def test_a_transfer_in_progress_is_not_cut_off() -> None:
    """The wait after PUBLISH_DONE starts anew whenever something arrives."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    stream = peer.stream("30 07 00 00 0a")
    peer.send(0, "0b 0003 02 01 00", fin=True)
    for _ in range(9):
        peer.wait(4.0)
        peer.send(stream, b"x")
    peer.wait(4.0)
    peer.send(stream, b"x", fin=True)
    assert [True] == [event.complete for event in peer.seen(SubscriptionEnded)]
    assert b"x" * 10 == peer.seen(ObjectReceived)[0].object.payload


def test_a_paused_subscription_waits() -> None:
    """Time does not run against a subscription that the application paused."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.stream("30 07 00 00 0a")
    peer.session.pause_request(request)
    peer.send(0, "0b 0003 02 01 00", fin=True)
    peer.wait(60.0)
    assert [] == peer.seen(SubscriptionEnded)
    peer.session.resume_request(request)
    peer.wait(11.0)
    assert [False] == [event.complete for event in peer.seen(SubscriptionEnded)]
