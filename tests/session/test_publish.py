"""PUBLISH: objects before and after the answer, refusals, Track Aliases (MOQT-22 §9.8, §3.1.3)."""

from __future__ import annotations

import pytest
from moqt.session.events import (
    ObjectReceived,
    PublishDoneReceived,
    RequestAccepted,
    RequestFailed,
    RequestReceived,
    SubscriptionEnded,
    TrackMalformed,
)
from moqt.session.requests import RequestState
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, RequestErrorCode, SessionError
from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import ObjectStatus

from tests.session.openers import NAME
from tests.session.pair import OTHER, TRACK, Pair, RawPeer, config, obj, subscribed


def test_objects_flow_before_the_answer() -> None:
    """R111: FORWARD absent: no wait for PUBLISH_OK; LARGEST_OBJECT is told."""
    pair = Pair()
    sender = pair.client.publish(TRACK, Parameters(largest_object=Location(3, 7)))
    assert Location(3, 7) == sender.largest
    assert sender.offer(obj(3, 8))
    pair.run()
    theirs = pair.request()
    assert RequestState.PENDING is theirs.state
    assert Location(3, 7) == theirs.parameters.largest_object
    assert theirs is pair.one(1, ObjectReceived).request
    kinds = [type(event) for event in pair.events[1]]
    assert kinds.index(RequestReceived) < kinds.index(ObjectReceived)
    pair.server.accept(theirs, Parameters(expires=1000))
    pair.run()
    assert sender.request is pair.one(0, RequestAccepted).request
    with pytest.raises(LocalProtocolError):
        pair.server.accept(theirs)


def test_forward_0_waits_for_the_subscriber() -> None:
    """R131: nothing goes out until it is resumed."""
    pair = Pair()
    sender = pair.client.publish(TRACK, Parameters(forward=0))
    assert not sender.offer(obj(0, 0))
    pair.run()
    assert [] == pair.seen(1, ObjectReceived)


def test_a_refused_publish() -> None:
    """R118, R122: error and FIN, STOP_SENDING on its data streams; the publisher stops."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    sender.offer(obj(0, 0))
    pair.run()
    pair.server.refuse(pair.request(), RequestErrorCode.UNINTERESTED)
    pair.run()
    assert {6: 1} == pair.taps[1].codes("stop")
    assert {6: 1} == pair.taps[0].codes("reset")
    assert sender.request is pair.one(0, RequestFailed).request
    assert not sender.offer(obj(0, 1))
    assert sender.finished


def test_publish_done_may_come_before_the_answer() -> None:
    """R111, R117: a short publication ends early; the answer is still given, then FIN."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    sender.offer(obj(0, 0))
    sender.end_subgroup(0, 0)
    sender.finish(PublishDoneCode.TRACK_ENDED, "done")
    pair.run()
    theirs = pair.request()
    assert ("done", 1) == (
        pair.one(1, PublishDoneReceived).message.reason,
        pair.one(1, PublishDoneReceived).message.stream_count,
    )
    assert pair.one(1, SubscriptionEnded).complete
    pair.server.accept(theirs)
    pair.run()
    assert pair.taps[1].fin_on(0)
    assert RequestState.TERMINATED is theirs.state
    assert not pair.client.closed
    assert not pair.server.closed


@pytest.mark.parametrize("understood", [False, True])
def test_mandatory_properties_in_a_publish(understood: bool) -> None:
    """R179: an unknown Mandatory Track Property is refused with 0x33, a known one is not."""
    known = frozenset({0x4000}) if understood else frozenset()
    pair = Pair(server=config(understood_properties=known))
    pair.client.publish(TRACK, track_properties=bytes.fromhex("c0400007"))
    pair.run()
    failed = pair.seen(0, RequestFailed)
    assert ([] if understood else [RequestErrorCode.UNSUPPORTED_EXTENSION]) == [
        event.error.code for event in failed if event.error is not None
    ]
    assert understood == bool(pair.seen(1, RequestReceived))


@pytest.mark.parametrize("kind", ["subscribe", "fetch"])
def test_mandatory_properties_in_an_answer(kind: str) -> None:
    """R179: SUBSCRIBE_OK and FETCH_OK with one are cancelled; the application learns why."""
    peer = RawPeer(session_is_client=True)
    request = getattr(peer.session, kind)(TRACK)
    answer = "04 0006 07 00" if kind == "subscribe" else "18 0008 00 00 00 00"
    peer.send(0, answer + "c0400007")
    (failed,) = peer.seen(RequestFailed)
    assert failed.error is not None
    assert (request, RequestErrorCode.UNSUPPORTED_EXTENSION) == (
        failed.request,
        failed.error.code,
    )
    assert {0: 1} == peer.tap.codes("reset")
    assert {0: 1} == peer.tap.codes("stop")
    assert peer.code is None


@pytest.mark.parametrize(
    ("properties", "code", "malformed"),
    [
        ("2201", None, False),
        ("2203", 0x3, False),
        ("3001", None, False),
        ("3002", 0x3, False),
        ("0e40", None, False),
        ("0e812c", None, True),
        ("0b02 0201", None, False),
        ("0b03 0b0100", None, True),
        ("0b", 0x3, False),
        ("ff ffffffffffffffff 00 0100", 0x3, False),
    ],
)
def test_track_properties_in_subscribe_ok(
    properties: str, code: int | None, malformed: bool
) -> None:
    """R047, R171, R172, R175: what closes, and what makes the Track malformed."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    octets = bytes.fromhex(properties)
    peer.send(0, bytes.fromhex(f"04 {2 + len(octets):04x} 07 00") + octets)
    assert code == peer.code
    assert malformed == bool(peer.seen(TrackMalformed))


# Track Aliases.


def test_we_never_share_an_alias_between_tracks() -> None:
    """R119: own aliases differ; a given one is checked."""
    pair = Pair()
    first, second = pair.client.publish(TRACK), pair.client.publish(OTHER)
    assert first.alias != second.alias
    pair.server.subscribe(TRACK)
    pair.server.subscribe(OTHER)
    pair.run()
    one, two = (event.request for event in pair.seen(0, RequestReceived))
    sender = pair.client.accept_subscribe(one, largest=None, alias=77)
    calls = len(pair.taps[0].calls)
    with pytest.raises(LocalProtocolError):
        pair.client.accept_subscribe(two, largest=None, alias=77)
    assert calls == len(pair.taps[0].calls)
    sender.finish(PublishDoneCode.TRACK_ENDED)
    pair.client.accept_subscribe(two, largest=None, alias=77)


@pytest.mark.parametrize(("name", "code"), [(NAME, None), (NAME[:-2] + "70", 0x5)])
def test_an_alias_of_another_live_track_closes(name: str, code: int | None) -> None:
    """R120: PUBLISH with the alias of another Established Track; the same Track may share it."""
    peer = RawPeer()
    peer.request(f"1d 000f 00 {NAME} 01 00")
    peer.request(f"1d 000f 02 {name} 01 00")
    assert code == peer.code


def test_an_alias_of_another_live_track_in_subscribe_ok_closes() -> None:
    """R120: the same for SUBSCRIBE_OK; after the end of the first one it is free."""
    for ended, code in ((False, SessionError.DUPLICATE_TRACK_ALIAS), (True, None)):
        peer = RawPeer(session_is_client=True)
        peer.session.subscribe(TRACK)
        peer.session.subscribe(OTHER)
        peer.send(0, "04 0002 07 00")
        if ended:
            peer.send(0, "0b 0003 02 00 00", fin=True)
        peer.send(4, "04 0002 07 00")
        assert code == peer.code


def test_two_subscriptions_get_each_object_once_each() -> None:
    """R114: k matching subscriptions, k deliveries, one per request, with own or shared alias."""
    for alias in (None, 9):
        pair = Pair()
        first, theirs_1 = subscribed(pair, alias=alias)
        second, theirs_2 = subscribed(pair, alias=alias)
        for theirs in (theirs_1, theirs_2):
            assert theirs.sender is not None
            for number in range(3):
                assert theirs.sender.offer(obj(0, number))
            theirs.sender.end_subgroup(0, 0)
            theirs.sender.finish(PublishDoneCode.TRACK_ENDED)
        pair.run()
        for ours in (first, second):
            assert [0, 1, 2] == [
                event.object.location.object
                for event in pair.seen(0, ObjectReceived)
                if event.request is ours
            ]
        assert {first, second} == {e.request for e in pair.seen(0, SubscriptionEnded)}
        assert not pair.client.closed


def test_an_end_of_group_status_is_an_object_like_others() -> None:
    """R158: status Objects have no payload and arrive in order."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    sender.offer(obj(0, 0))
    sender.offer(obj(0, 1, b"", status=ObjectStatus.END_OF_GROUP))
    with pytest.raises(LocalProtocolError):
        sender.offer(obj(1, 0, b"x", status=ObjectStatus.END_OF_TRACK))
    sender.end_subgroup(0, 0)
    pair.run()
    assert [ObjectStatus.NORMAL, ObjectStatus.END_OF_GROUP] == [
        event.object.status for event in pair.seen(1, ObjectReceived)
    ]


def test_streams_of_a_publish_that_was_refused_at_once_are_stopped() -> None:
    """R122, R179: whether they come before the refusal or after it."""
    peer = RawPeer()
    early = peer.stream("70 01 03 00 05 61")
    peer.request(f"1d 0013 00 {NAME} 01 00 c0400007")
    late = peer.stream("70 01 04 00 05 61")
    assert {early: 1, late: 1} == peer.tap.codes("stop")
    assert [] == peer.seen(RequestReceived)
    assert peer.code is None


@pytest.mark.parametrize("code", [0x3, 0x77, PublishDoneCode.MALFORMED_TRACK])
def test_any_code_may_end_a_subscription(code: int) -> None:
    """R055, R117: codes that nobody knows end it like the others."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    pair.taps[0].window = 10
    sender.offer(obj(0, 0, bytes(100)))
    pair.run()
    sender.finish(code, "gone")
    pair.run()
    assert code == pair.one(1, PublishDoneReceived).message.status_code
    expected = 0x12 if code == PublishDoneCode.MALFORMED_TRACK else 0x1
    assert {6: expected} == pair.taps[0].codes("reset")
