"""REQUEST_UPDATE: accounting, order, and what a failure brings (MOQT-22 §9.5)."""

from __future__ import annotations

import pytest
from moqt.session.events import (
    ObjectReceived,
    PublishDoneReceived,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    StateNotified,
    StreamEnded,
    UpdateAnswered,
    UpdateReceived,
)
from moqt.session.requests import RequestState
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, RequestErrorCode, SessionError
from moqt.wire.filters import (
    FROM_START,
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import FetchOk, Parameters, RequestError, RequestOk, SetupOptions
from moqt.wire.names import Location

from tests.session.openers import opener
from tests.session.pair import SETUP, TRACK, ListSource, Pair, RawPeer, config, obj, subscribed

NAME = "01 04 6c697665 05 766964656f"
SUBSCRIBE = f"03 000e 00 {NAME} 00"
PAUSE, RESUME = Parameters(forward=0), Parameters(forward=1)


def test_updates_are_answered_in_order() -> None:
    """R064, R068, R123, R132: one REQUEST_OK per update, with LARGEST_OBJECT once there is one."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    assert theirs.sender is not None
    theirs.sender.offer(obj(2, 5))
    ids = [pair.client.update(ours, PAUSE), pair.client.update(ours, RESUME)]
    pair.run()
    updates = [event.update for event in pair.seen(1, UpdateReceived)]
    assert ids == [update.request_id for update in updates]
    with pytest.raises(LocalProtocolError):
        pair.server.accept_update(theirs, updates[1])
    for update in updates:
        pair.server.accept_update(theirs, update)
    with pytest.raises(LocalProtocolError):
        pair.server.accept_update(theirs, updates[1])
    pair.run()
    answers = pair.seen(0, UpdateAnswered)
    assert ids == [answer.update_id for answer in answers]
    assert [RequestOk(Parameters(largest_object=Location(2, 5)))] * 2 == [
        answer.response for answer in answers
    ]
    assert (1, 1) == (ours.parameters.forward, theirs.parameters.forward)


def test_pausing_stops_objects_and_resuming_lets_them_flow() -> None:
    """R131: Forward State 0 sends no Objects."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    for parameters, expected in ((PAUSE, False), (RESUME, True)):
        pair.client.update(ours, parameters)
        pair.run()
        pair.server.accept_update(theirs, pair.seen(1, UpdateReceived)[-1].update)
        assert expected is sender.offer(obj(len(pair.seen(1, UpdateReceived)), 0))
    pair.run()
    assert [Location(2, 0)] == [e.object.location for e in pair.seen(0, ObjectReceived)]


def test_we_keep_to_the_peers_limit() -> None:
    """R038: with N updates unanswered, another one is refused locally."""
    pair = Pair(server=config(setup=SetupOptions(max_request_updates=2)))
    ours, theirs = subscribed(pair)
    pair.client.update(ours, PAUSE)
    pair.client.update(ours, PAUSE)
    with pytest.raises(LocalProtocolError):
        pair.client.update(ours, PAUSE)
    pair.run()
    pair.server.accept_update(theirs, pair.seen(1, UpdateReceived)[0].update)
    pair.run()
    pair.client.update(ours, PAUSE)
    pair.run()
    assert not pair.server.closed


@pytest.mark.parametrize(("count", "code"), [(2, None), (3, 0x1B)])
def test_too_many_updates_close(count: int, code: int | None) -> None:
    """R039: update N+1 while N are open."""
    limited = _limited(2)
    stream = limited.request(SUBSCRIBE)
    for number in range(count):
        limited.send(stream, f"02 0002 {2 + 2 * number:02x} 00")
    assert code == limited.code


def _limited(limit: int) -> RawPeer:
    return RawPeer(options=SetupOptions(max_request_updates=limit))


@pytest.mark.parametrize(
    ("kind", "octets", "code"),
    [
        ("SUBSCRIBE", "01 10 00", None),
        ("SUBSCRIBE", "01 22 01", 0x3),
        ("SUBSCRIBE", "01 08 05", 0x3),
        ("FETCH", "01 20 05", None),
        ("FETCH", "01 10 00", 0x3),
        ("PUBLISH_NAMESPACE", "01 20 05", 0x3),
        ("SUBSCRIBE_NAMESPACE", "01 34 01 04 6c697665", None),
        ("SUBSCRIBE_NAMESPACE", "01 10 00", 0x3),
        ("SUBSCRIBE_TRACKS", "01 10 00", None),
        ("SUBSCRIBE_TRACKS", "01 20 05", 0x3),
    ],
)
def test_updates_carry_what_their_request_allows(kind: str, octets: str, code: int | None) -> None:
    """R079: the request decides which parameters an update may have."""
    peer = RawPeer()
    stream = peer.request(opener(kind))
    body = "02" + octets.replace(" ", "")
    peer.send(stream, f"02 {len(body) // 2:04x} {body}")
    assert code == peer.code


def test_we_check_our_own_updates_first() -> None:
    """R079: LocalProtocolError, nothing sent, no Request ID used."""
    pair = Pair()
    ours, _ = subscribed(pair)
    calls = len(pair.taps[0].calls)
    for parameters in (
        Parameters(group_order=2),
        Parameters(largest_object=Location(0, 0)),
        Parameters(new_group_request=0),
    ):
        with pytest.raises(LocalProtocolError):
            pair.client.update(ours, parameters)
    assert calls == len(pair.taps[0].calls)
    assert 2 == pair.client.update(ours, Parameters())


def test_new_group_requests_need_dynamic_groups() -> None:
    """R093: only when the Track said DYNAMIC_GROUPS 1."""
    pair = Pair()
    ours, _ = subscribed(pair, track_properties=bytes.fromhex("3001"))
    pair.client.update(ours, Parameters(new_group_request=0))
    pair.run()
    assert 0 == pair.one(1, UpdateReceived).update.parameters.new_group_request


def test_a_refused_update_ends_a_subscription() -> None:
    """R065: REQUEST_ERROR, then PUBLISH_DONE UPDATE_FAILED, then FIN."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    assert theirs.sender is not None
    theirs.sender.offer(obj(0, 0))
    pair.run()
    update = pair.client.update(ours, PAUSE)
    pair.run()
    pair.server.refuse_update(
        theirs, pair.one(1, UpdateReceived).update, RequestErrorCode.UNAUTHORIZED, "no"
    )
    pair.run()
    answer = pair.one(0, UpdateAnswered)
    assert (update, RequestError(0x1, reason="no")) == (answer.update_id, answer.response)
    done = pair.one(0, PublishDoneReceived).message
    assert (PublishDoneCode.UPDATE_FAILED, 1) == (done.status_code, done.stream_count)
    assert pair.taps[1].fin_on(0)
    assert (RequestState.TERMINATED,) * 2 == (ours.state, theirs.state)
    assert pair.events[0].index(answer) < pair.events[0].index(pair.one(0, PublishDoneReceived))


def test_a_refused_update_resets_a_fetch() -> None:
    """R066: the data stream is reset."""
    pair = Pair()
    ours = pair.client.fetch(TRACK)
    pair.run()
    theirs = pair.request()
    pair.taps[1].window = 8
    pair.server.open_fetch(theirs, ListSource([obj(0, 0, bytes(100))]))
    pair.server.accept_fetch(theirs, FetchOk(False, Location(0, 0)))
    pair.client.update(ours, Parameters(subscriber_priority=3))
    pair.run()
    pair.server.refuse_update(theirs, pair.one(1, UpdateReceived).update, 0x1)
    pair.run()
    assert not pair.one(0, StreamEnded).complete
    assert 7 in pair.taps[1].codes("reset")


@pytest.mark.parametrize("kind", ["publish_namespace", "subscribe_namespace", "subscribe_tracks"])
def test_a_refused_update_ends_discovery(kind: str) -> None:
    """R067: the responder ends its side; the request is over on both."""
    pair = Pair()
    ours = getattr(pair.client, kind)((b"live",))
    pair.run()
    theirs = pair.request()
    pair.server.accept(theirs)
    pair.client.update(ours, Parameters())
    pair.run()
    pair.server.refuse_update(theirs, pair.one(1, UpdateReceived).update, 0x1)
    pair.run()
    assert pair.taps[1].fin_on(0)
    assert pair.taps[0].fin_on(0)
    assert ours is pair.one(0, RequestCancelled).request
    assert (RequestState.TERMINATED,) * 2 == (ours.state, theirs.state)


def test_one_error_may_answer_several_failed_updates() -> None:
    """R064: coalesced failures share one REQUEST_ERROR, and PUBLISH_DONE follows."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    ids = [peer.session.update(request, PAUSE) for _ in range(3)]
    peer.send(0, "07 0001 00 05 0003 01 00 00 0b 0003 08 00 00", fin=True)
    answers = peer.seen(UpdateAnswered)
    assert ids == [answer.update_id for answer in answers]
    assert [RequestOk, RequestError, RequestError] == [type(a.response) for a in answers]
    assert 1 == len(peer.seen(PublishDoneReceived))
    assert peer.code is None


def test_an_unasked_update_answer_closes() -> None:
    """R112: REQUEST_OK without an open update is a second response."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.session.update(request, PAUSE)
    peer.send(0, "07 0001 00")
    assert peer.code is None
    peer.send(0, "07 0001 00")
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize(
    ("octets", "code"),
    [("07 0003 01 08 05", None), ("07 0004 01 09 0307", None), ("07 0003 00 0e40", 0x3)],
)
def test_update_answers_carry_expires_and_largest_only(octets: str, code: int | None) -> None:
    """R070, R079: Track Properties have no place in REQUEST_UPDATE_OK."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.session.update(request, PAUSE)
    peer.send(0, octets)
    assert code == peer.code


def test_a_fin_with_updates_open_fails_the_request() -> None:
    """R058: the responder owes answers to updates."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.publish_namespace((b"live",))
    peer.session.update(request, Parameters())
    peer.send(0, "07 0001 00", fin=True)
    assert [request] == [event.request for event in peer.seen(RequestFailed)]


def test_invalid_filters_in_an_update_are_refused_in_turn() -> None:
    """R037, R064: the session answers INVALID_FILTER itself, after the updates before it."""
    pair = Pair(server=config(setup=SetupOptions(max_filter_ranges=1)))
    ours, theirs = subscribed(pair)
    one = RangeFilter(RangeFilterType.OBJECT_ID, 0, None, ((0, 5),))
    pair.client.update(ours, Parameters(range_filters=(one,)))
    pair.run()
    two = RangeFilter(RangeFilterType.OBJECT_ID, 0, None, ((0, 5), (9, 9)))
    with pytest.raises(LocalProtocolError):
        pair.client.update(ours, Parameters(range_filters=(two,)))
    # 02 0007: Request ID 4, OBJECTID_FILTER of length 5 with SetID 0 and two Ranges.
    pair.server.stream_data(0, bytes.fromhex("02 0009 04 01 26 05 00 00 05 04 00"), False, 0.0)
    pair.run()
    assert [] == pair.seen(0, UpdateAnswered)
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    assert RequestState.TERMINATED is theirs.state
    pair.client.close()


def test_narrowing_takes_effect_when_it_is_processed() -> None:
    """R130, R131: the new Location filter is evaluated at the Largest Object of the answer."""
    pair = Pair()
    ours, theirs = subscribed(pair, Parameters(location_filter=FROM_START))
    sender = theirs.sender
    assert sender is not None
    assert sender.offer(obj(0, 0))
    ends = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 0, 0, 1, 0)
    pair.client.update(ours, Parameters(location_filter=ends))
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    assert [True, False, False] == [
        sender.offer(obj(1, 0)),
        sender.offer(obj(1, 1), adjacent=True),
        sender.offer(obj(2, 0)),
    ]
    pair.run()
    assert [(0, 0), (1, 0)] == [e.object.location for e in pair.seen(0, ObjectReceived)]


def test_state_notify_tells_what_changed() -> None:
    """R127, R129: PUBLISH_STATE_NOTIFY carries LARGEST_OBJECT; no answer, no Request ID."""
    pair = Pair()
    ours, theirs = subscribed(pair, largest=Location(3, 7))
    pair.server.state_notify(theirs, PAUSE)
    pair.run()
    notified = pair.one(0, StateNotified)
    assert ours is notified.request
    assert Parameters(forward=0, largest_object=Location(3, 7)) == notified.message.parameters
    assert 0 == ours.parameters.forward
    with pytest.raises(LocalProtocolError):
        pair.client.state_notify(ours, PAUSE)


def test_the_subscriber_of_a_publish_updates_after_its_answer() -> None:
    """R063: the subscriber of a PUBLISH-made subscription may update it, once it is Established."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    pair.run()
    theirs = pair.request()
    with pytest.raises(LocalProtocolError):
        pair.server.update(theirs, PAUSE)
    pair.server.accept(theirs)
    update = pair.server.update(theirs, PAUSE)
    pair.run()
    received = pair.one(0, UpdateReceived)
    assert (sender.request, update) == (received.request, received.update.request_id)
    pair.client.accept_update(sender.request, received.update)
    assert sender.offer(obj(0, 0)) is False
    pair.run()
    assert update == pair.one(1, UpdateAnswered).update_id


def test_the_publisher_updates_its_own_publish() -> None:
    """R063: the sender of a request may update it; the subscriber answers."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    pair.run()
    theirs = pair.request()
    pair.server.accept(theirs)
    update = pair.client.update(sender.request, Parameters(object_delivery_timeout=50))
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    pair.run()
    assert update == pair.one(0, UpdateAnswered).update_id
    assert 50 == theirs.parameters.object_delivery_timeout
    assert SETUP == pair.server.peer_setup
    assert [theirs] == [event.request for event in pair.seen(1, RequestReceived)]


def test_updates_of_an_unanswered_request_wait_for_its_answer() -> None:
    """R064: the application hears of an update when it can answer it."""
    pair = Pair()
    ours = pair.client.subscribe(TRACK)
    update = pair.client.update(ours, PAUSE)
    pair.run()
    assert [] == pair.seen(1, UpdateReceived)
    pair.server.accept_subscribe(pair.request(), largest=None)
    pair.run()
    assert update == pair.one(1, UpdateReceived).update.request_id


def test_answers_to_what_ended_meanwhile_do_nothing() -> None:
    """R118: the peer's cancel overtakes the application: no error, nothing sent."""
    pair = Pair()
    asked = [
        pair.client.subscribe(TRACK),
        pair.client.fetch(TRACK),
        pair.client.subscribe_namespace((b"live",)),
    ]
    pair.run()
    subscribe, fetch, namespaces = (event.request for event in pair.seen(1, RequestReceived))
    for request in asked:
        pair.client.cancel(request)
        pair.client.cancel(request)
    pair.run()
    calls = len(pair.taps[1].calls)
    sender = pair.server.accept_subscribe(subscribe, largest=None)
    assert not sender.offer(obj(0, 0))
    assert sender.open_fill(0, ListSource([])).gone
    sender.finish(PublishDoneCode.TRACK_ENDED)
    pair.server.accept_fetch(fetch, FetchOk(False, Location(0, 0)))
    assert pair.server.open_fetch(fetch, ListSource([obj(0, 0)])).gone
    pair.server.accept(namespaces)
    pair.server.namespace(namespaces, (b"live", b"x"))
    pair.server.refuse(namespaces, 0x1)
    pair.server.cancel(namespaces)
    pair.run()
    assert calls == len(pair.taps[1].calls)


def test_an_object_missed_while_paused_leaves_its_subgroup_unfinished() -> None:
    """R164, R165: FIN says that a subgroup is whole; this one is reset."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    sender.offer(obj(0, 0))
    pair.client.update(ours, PAUSE)
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    assert not sender.offer(obj(0, 1))
    sender.end_subgroup(0, 0)
    pair.run()
    assert [False] == [event.complete for event in pair.seen(0, StreamEnded)]
