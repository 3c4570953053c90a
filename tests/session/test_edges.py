"""Orders of events that are rare, and local mistakes that must leave nothing sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moqt.session.events import (
    NamespaceEnded,
    ObjectReceived,
    PublishDoneReceived,
    RequestCancelled,
    RequestReceived,
    StateNotified,
    StreamEnded,
    SubscriptionEnded,
    TrackMalformed,
    UpdateReceived,
)
from moqt.session.requests import RequestState
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, RequestErrorCode, StreamError
from moqt.wire.filters import (
    FROM_START,
    NEXT_OBJECT,
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import FetchOk, Parameters, SetupOptions
from moqt.wire.names import FullTrackName, Location
from moqt.wire.tokens import AliasType, Token

from tests.session.openers import NAME, opener
from tests.session.pair import LIVE, TRACK, ListSource, Pair, RawPeer, config, obj, subscribed


def test_a_fin_may_come_alone() -> None:
    """R164: a subgroup that ends after all its data went out: FIN without octets, every time."""
    pair = Pair()
    _, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    for group in range(50):
        sender.offer(obj(group, 0))
        pair.run()
        pair.wait(1.0)
        sender.end_subgroup(group, 0)
        pair.run()
    assert 50 == sum(event.complete for event in pair.seen(0, StreamEnded))


def test_a_fin_that_is_not_acknowledged_in_time() -> None:
    """R187: FIN went out, the acknowledgement did not come: reset; the count stays."""
    pair = Pair()
    parameters = Parameters(location_filter=NEXT_OBJECT, subgroup_delivery_timeout=100)
    _, theirs = subscribed(pair, parameters)
    sender = theirs.sender
    assert sender is not None
    resets: list[int] = []
    pair.taps[1].reset = lambda stream_id, code: resets.append(code)  # type: ignore[method-assign]
    pair.taps[1].acknowledged = False
    sender.offer(obj(0, 0))
    sender.end_subgroup(0, 0)
    pair.run()
    pair.wait(0.2)
    assert [StreamError.DELIVERY_TIMEOUT] == resets
    assert 1 == sender.streams_opened


def test_an_object_is_checked_when_room_comes() -> None:
    """R183: an Object that is too old is not handed over, even before its timer fired."""
    pair = Pair()
    parameters = Parameters(location_filter=NEXT_OBJECT, object_delivery_timeout=100)
    _, theirs = subscribed(pair, parameters)
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].window = 10
    sender.offer(obj(0, 0, bytes(50)))
    pair.run()
    pair.taps[1].window = None
    pair.now = 0.1
    pair.run()
    assert {7: StreamError.DELIVERY_TIMEOUT} == pair.taps[1].codes("reset")
    assert [] == pair.seen(0, ObjectReceived)


def test_later_objects_have_their_own_time() -> None:
    """R183: the timer moves on to the Object that waits now."""
    pair = Pair()
    parameters = Parameters(location_filter=NEXT_OBJECT, object_delivery_timeout=100)
    _, theirs = subscribed(pair, parameters)
    sender = theirs.sender
    assert sender is not None
    sender.offer(obj(0, 0))
    pair.run()
    pair.wait(0.05)
    pair.taps[1].window = 0
    sender.offer(obj(0, 1))
    pair.wait(0.06)
    assert {} == pair.taps[1].codes("reset")
    pair.wait(0.06)
    assert {7: StreamError.DELIVERY_TIMEOUT} == pair.taps[1].codes("reset")


def test_streams_of_all_kinds_may_overtake_setup() -> None:
    """Data streams that come before SETUP wait for it; a reset that follows them, too."""
    peer = RawPeer(setup=None)
    peer.request(f"1d 000f 00 {NAME} 07 00")
    whole = peer.stream("70 07 03 00 01 61", fin=True)
    cut = peer.stream("70 07 04 00 05 61")
    peer.session.stream_reset(cut, 0x2, 0.0)
    peer.send(peer.control, "af000000")
    assert [(3, 0)] == [event.object.location for event in peer.seen(ObjectReceived)]
    assert {whole: None, cut: 0x2} == {
        event.stream.stream_id: event.code for event in peer.seen(StreamEnded)
    }


def test_an_early_stream_that_was_reset_counts() -> None:
    """R125: it is one of the streams that PUBLISH_DONE counted."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    stream = peer.stream("70 07 04 00 05 61")
    peer.session.stream_reset(stream, 0x2, 0.0)
    peer.send(0, "04 0002 07 00 0b 0003 02 01 00", fin=True)
    assert [True] == [event.complete for event in peer.seen(SubscriptionEnded)]


def test_cancelling_a_fetch_stream_before_its_header() -> None:
    """R136: the header goes before the reset, whatever the room."""
    pair = Pair()
    pair.client.fetch(TRACK)
    pair.run()
    pair.taps[1].window = 0
    fetch = pair.server.open_fetch(pair.request(), ListSource([obj(0, 0)]))
    fetch.cancel(StreamError.UNKNOWN_OBJECT_STATUS)
    fetch.cancel(StreamError.CANCELLED)
    pair.run()
    assert b"\x05\x00" == pair.taps[1].on_stream(7)
    assert StreamError.UNKNOWN_OBJECT_STATUS == pair.one(0, StreamEnded).code


def test_an_accepted_publish_ends() -> None:
    """R060, R061: PUBLISH_DONE and FIN of the publisher, then FIN of the subscriber."""
    pair = Pair()
    sender = pair.client.publish(TRACK)
    pair.run()
    pair.server.accept(pair.request())
    sender.offer(obj(0, 0))
    sender.end_subgroup(0, 0)
    sender.finish(PublishDoneCode.TRACK_ENDED)
    pair.run()
    assert pair.one(1, SubscriptionEnded).complete
    assert [True, True] == [pair.taps[0].fin_on(0), pair.taps[1].fin_on(0)]
    assert [RequestState.TERMINATED] * 2 == [pair.request().state, sender.request.state]
    assert [] == pair.seen(1, RequestCancelled)


def test_stop_sending_alone_cancels() -> None:
    """R062, R116: whoever sent FIN cancels with STOP_SENDING; all streams are reset."""
    peer = RawPeer()
    stream = peer.request(opener("SUBSCRIBE"), fin=True)
    request = peer.seen(RequestReceived)[0].request
    sender = peer.session.accept_subscribe(request, largest=None)
    sender.offer(obj(0, 0))
    peer.take()
    peer.session.stop_sending_received(stream, StreamError.CANCELLED, 0.0)
    peer.take()
    assert {stream: 1, 7: 1} == peer.tap.codes("reset")
    assert [request] == [event.request for event in peer.seen(RequestCancelled)]


def test_a_stream_that_asks_nothing() -> None:
    """A FIN without any message is no request and no error."""
    peer = RawPeer()
    stream = peer.request(b"", fin=True)
    assert peer.tap.fin_on(stream)
    assert peer.code is None


def test_a_malformed_publish_is_refused() -> None:
    """R175: Track Properties that make the Track malformed."""
    pair = Pair()
    pair.client.publish(TRACK, track_properties=bytes.fromhex("0b030b0100"))
    pair.run()
    assert [] == pair.seen(1, RequestReceived)
    assert (0x05, RequestErrorCode.MALFORMED_TRACK) == (
        pair.taps[1].on_stream(0)[0],
        pair.taps[1].on_stream(0)[3],
    )


def test_updates_reach_fetches_and_tokens() -> None:
    """R099, R190: a new priority moves the stream, a new token replaces the old one."""
    pair = Pair()
    pair.taps[1].window = 0
    requests = [pair.client.fetch(FullTrackName((b"live",), b"%d" % n)) for n in range(2)]
    pair.run()
    for number, event in enumerate(pair.seen(1, RequestReceived)):
        pair.server.open_fetch(event.request, ListSource([obj(number, 0)]))
    token = Token(AliasType.USE_VALUE, None, 0, b"new")
    pair.client.update(
        requests[1], Parameters(subscriber_priority=1, authorization_tokens=(token,))
    )
    pair.run()
    theirs = pair.seen(1, RequestReceived)[1].request
    pair.server.accept_fetch(theirs, FetchOk(False, Location(1, 0)))
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    pair.taps[1].window = None
    pair.run()
    assert (token,) == theirs.tokens
    assert [1, 0] == [event.object.location.group for event in pair.seen(0, ObjectReceived)]


def test_a_publishers_new_filter_holds_for_its_subscriber() -> None:
    """R130: LOCATION_FILTER of PUBLISH_STATE_NOTIFY and of a publisher's own update."""
    ends = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 0, 0, 1, 0)
    for notify in (True, False):
        peer = RawPeer()
        stream = peer.request(f"1d 000f 00 {NAME} 07 00")
        request = peer.seen(RequestReceived)[0].request
        peer.session.accept(request)
        filter_octets = "21 04 00 00 01 00"
        if notify:
            peer.send(stream, f"22 0007 01 {filter_octets}")
            assert 1 == len(peer.seen(StateNotified))
        else:
            peer.send(stream, f"02 0008 02 01 {filter_octets}")
            peer.session.accept_update(request, peer.seen(UpdateReceived)[0].update)
        assert ends == request.parameters.location_filter
        peer.stream("70 07 01 00 01 61 00 01 62")
        assert [(1, 0)] == [event.object.location for event in peer.seen(ObjectReceived)]


def test_range_filters_are_applied_again() -> None:
    """R131: what does not pass is not delivered, even alone on its alias."""
    peer = RawPeer(session_is_client=True, setup="af00 0002 06 04")
    only = RangeFilter(RangeFilterType.OBJECT_ID, 0, None, ((1, 1),))
    peer.session.subscribe(TRACK, Parameters(range_filters=(only,)))
    peer.send(0, "04 0002 07 00")
    peer.stream("70 07 01 00 01 61 00 01 62", fin=True)
    peer.stream("74 07 01 01 05 01 61", fin=True)
    assert [(1, 1)] == [event.object.location for event in peer.seen(ObjectReceived)]
    assert [] == peer.seen(TrackMalformed)


def test_the_wait_for_streams_covers_the_delivery_timeout() -> None:
    """R125: at least the larger delivery timeout, ten seconds here."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0005 07 00 02 a710")
    peer.send(0, "0b 0003 02 01 00", fin=True)
    peer.wait(9.9)
    assert [] == peer.seen(SubscriptionEnded)
    peer.wait(0.2)
    assert [False] == [event.complete for event in peer.seen(SubscriptionEnded)]


def test_one_more_stream_after_publish_done_closes() -> None:
    """R126: while an announced one is still open."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.stream("70 07 01 00 05 61")
    peer.send(0, "0b 0003 02 01 00", fin=True)
    peer.stream("70 07 02 00 01 61")
    assert peer.code == 0x3


def test_a_fill_may_have_a_priority_of_its_own() -> None:
    """R133, R190: SUBSCRIBER_PRIORITY inside FILL_PARAMETERS."""
    pair = Pair()
    fill = Parameters(location_filter=FROM_START, subscriber_priority=200)
    _, theirs = subscribed(pair, Parameters(location_filter=NEXT_OBJECT, fill=fill), Location(5, 0))
    sender = theirs.sender
    assert sender is not None
    sender.open_fill(theirs.id, ListSource([obj(5, 0)]))
    with pytest.raises(LocalProtocolError):
        sender.open_fill(theirs.id, ListSource([]))
    sender.offer(obj(6, 0))
    pair.run()
    assert [6, 5] == [event.object.location.group for event in pair.seen(0, ObjectReceived)]
    assert PublishDoneReceived not in [type(event) for event in pair.events[0]]


def test_a_failed_prefix_update_withdraws_its_namespaces() -> None:
    """R067, R199: the response stream ends with the refused update."""
    pair = Pair()
    ours = pair.client.subscribe_namespace((b"live",))
    pair.run()
    theirs = pair.request()
    pair.server.accept(theirs)
    pair.server.namespace(theirs, (b"live", b"a"))
    pair.client.update(ours, Parameters())
    pair.run()
    pair.server.refuse_update(theirs, pair.one(1, UpdateReceived).update, 0x1)
    pair.run()
    assert (b"live", b"a") == pair.one(0, NamespaceEnded).namespace


def test_answers_that_do_not_fit() -> None:
    """R070, R079: LocalProtocolError, nothing sent, the request still waits for its answer."""
    pair = Pair()
    for ask in (pair.client.subscribe, pair.client.fetch, pair.client.track_status):
        ask(TRACK)
    pair.client.publish_namespace((b"live",))
    pair.run()
    subscribe, fetch, status, namespace = (e.request for e in pair.seen(1, RequestReceived))
    server = pair.server
    pair.run()
    calls = len(pair.taps[1].calls)
    wrong: list[Callable[[], Any]] = [
        lambda: server.accept(subscribe),
        lambda: server.accept(fetch),
        lambda: server.accept_subscribe(fetch, largest=None),
        lambda: server.accept_fetch(subscribe, FetchOk(False, Location(0, 0))),
        lambda: server.open_fetch(subscribe, ListSource([])),
        lambda: server.accept(namespace, track_properties=bytes.fromhex("0e40")),
        lambda: server.accept(namespace, Parameters(largest_object=Location(0, 0))),
        lambda: server.accept(status, Parameters(forward=1)),
        lambda: server.accept_subscribe(subscribe, largest=None, parameters=Parameters(forward=1)),
        lambda: server.state_notify(subscribe),
        lambda: server.namespace(namespace, (b"live",)),
        lambda: server.update(subscribe, Parameters()),
    ]
    for call in wrong:
        with pytest.raises(LocalProtocolError):
            call()
    assert calls == len(pair.taps[1].calls)
    assert {RequestState.PENDING} == {r.state for r in (subscribe, fetch, status, namespace)}
    server.accept_subscribe(subscribe, largest=None)


def test_what_a_setup_may_not_say() -> None:
    """R100: our own SETUP has no DELETE and no USE_ALIAS; GOAWAY does not go before it."""
    for alias_type in (AliasType.DELETE, AliasType.USE_ALIAS):
        with pytest.raises(LocalProtocolError):
            Pair(config(setup=SetupOptions(authorization_tokens=(Token(alias_type, 1),))))
    pair = Pair(start=False)
    with pytest.raises(LocalProtocolError):
        pair.client.goaway()


def test_setup_waits_for_stream_credit() -> None:
    """R022: without credit for the control stream nothing else goes out."""
    pair = Pair(start=False)
    pair.taps[0].credit[True] = 0
    pair.client.subscribe(TRACK, LIVE)
    pair.client.start(0.0)
    pair.server.start(0.0)
    pair.run()
    assert [] == pair.taps[0].calls
    pair.taps[0].credit[True] = 1
    pair.run()
    assert 1 == len(pair.seen(1, RequestReceived))


def test_streams_of_one_subgroup_with_different_ends() -> None:
    """R180: two FINs of one subgroup after different Objects."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.stream("70 07 01 05 01 61", fin=True)
    peer.stream("70 07 01 03 01 61", fin=True)
    assert 1 == len(peer.seen(TrackMalformed))
