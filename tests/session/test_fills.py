"""Fills and joins (MOQT-22 §3.4, §3.5)."""

from __future__ import annotations

import pytest
from moqt.session import FetchFailed, Request
from moqt.session.events import (
    ObjectReceived,
    RangeReceived,
    StreamEnded,
    SubscriptionEnded,
    UpdateReceived,
    Via,
)
from moqt.wire.errors import PublishDoneCode, StreamError
from moqt.wire.filters import FROM_START, NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import RangeKind, RangeMarker

from tests.session.pair import TRACK, ListSource, Pair, RawPeer, obj, subscribed

ALL = Parameters(location_filter=NEXT_OBJECT, fill=Parameters(location_filter=FROM_START))


def joined(pair: Pair, largest: Location) -> tuple[Request, Request]:
    ours, theirs = subscribed(pair, ALL, largest)
    assert theirs.sender is not None
    return ours, theirs


def test_everything_exactly_once() -> None:
    """R115, R133, R138: the fill ends at Largest, the subscription starts right behind it."""
    pair = Pair()
    _, theirs = joined(pair, Location(1, 1))
    sender = theirs.sender
    assert sender is not None
    assert Location(1, 1) == sender.largest
    past = [obj(0, 0), obj(0, 1), obj(1, 0), obj(1, 1)]
    sender.open_fill(theirs.id, ListSource(past))
    assert [False, True, True] == [
        sender.offer(obj(1, 1)),
        sender.offer(obj(1, 2)),
        sender.offer(obj(2, 0)),
    ]
    pair.run()
    received = pair.seen(0, ObjectReceived)
    assert [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0)] == sorted(
        event.object.location for event in received
    )
    assert [Via.FILL] * 4 == [e.stream.via for e in received if e.object.location <= (1, 1)]
    assert b"\x05\x00" == pair.taps[1].on_stream(pair.one(0, StreamEnded).stream.stream_id or 0)[:2]


def test_fills_go_before_the_subscription_in_the_same_group() -> None:
    """R190: fill-delivered first, then by subgroup."""
    pair = Pair()
    _, theirs = joined(pair, Location(1, 1))
    sender = theirs.sender
    assert sender is not None
    sender.offer(obj(1, 2))
    sender.open_fill(theirs.id, ListSource([obj(1, 0), obj(1, 1)]))
    pair.run()
    # The fill's group is not known before it is pulled: it starts as group 0.
    assert [0, 1, 2] == [e.object.location.object for e in pair.seen(0, ObjectReceived)]


def test_a_failed_fill_is_a_header_and_a_reset() -> None:
    """R136: the stream begins with 05 and the ID, then RESET; there is no REQUEST_ERROR."""
    pair = Pair()
    ours, theirs = joined(pair, Location(1, 1))
    assert theirs.sender is not None
    theirs.sender.fill_failed(theirs.id, StreamError.UNKNOWN_OBJECT_STATUS)
    pair.run()
    assert b"\x05\x00" == pair.taps[1].on_stream(7)
    ended = pair.one(0, StreamEnded)
    assert (ours, StreamError.UNKNOWN_OBJECT_STATUS) == (ended.request, ended.code)
    assert theirs.sender.offer(obj(2, 0))


@pytest.mark.parametrize("order", [None, 1, 2])
def test_a_fill_may_come_before_subscribe_ok(order: int | None) -> None:
    """R133: the stream may overtake the answer; it waits if only that tells its Group Order."""
    pair = Pair()
    fill = Parameters(location_filter=FROM_START, group_order=order)
    pair.client.subscribe(TRACK, Parameters(location_filter=NEXT_OBJECT, fill=fill))
    pair.run()
    pair.held = lambda call: call.stream == 0
    sender = pair.server.accept_subscribe(
        pair.request(), largest=Location(1, 0), track_properties=bytes.fromhex("2202")
    )
    items = [obj(0, 0), obj(1, 0)] if order == 1 else [obj(1, 0), obj(0, 0)]
    sender.open_fill(pair.request().id, ListSource(items))
    pair.run()
    assert (order is not None) == bool(pair.seen(0, ObjectReceived))
    pair.let_go()
    assert items == [event.object for event in pair.seen(0, ObjectReceived)]
    assert pair.one(0, StreamEnded).complete
    assert not pair.client.closed


def test_a_fill_that_waits_is_dropped_with_its_subscription() -> None:
    """A refused subscription has no fill."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK, ALL)
    stream = peer.stream("05 00 1c 0c 05 80 02 61 61")
    assert {} == peer.tap.codes("stop")
    peer.send(0, "05 0003 10 00 00", fin=True)
    assert {stream: StreamError.CANCELLED} == peer.tap.codes("stop")
    assert (None, []) == (peer.code, peer.seen(ObjectReceived))


def test_stopping_one_fill_leaves_the_rest() -> None:
    """R137: STOP_SENDING on a fill: subscription and other fills go on."""
    pair = Pair()
    ours, theirs = joined(pair, Location(1, 1))
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].window = 10
    sender.open_fill(theirs.id, ListSource([obj(0, 0, bytes(100))]))
    update = pair.client.update(ours, Parameters(fill=Parameters(location_filter=FROM_START)))
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    sender.open_fill(update, ListSource([obj(0, 0)]))
    pair.server.stop_sending_received(7, 1, 0.0)
    pair.taps[1].window = None
    sender.offer(obj(2, 0))
    pair.run()
    assert {7: 1} == pair.taps[1].codes("reset")
    assert {(0, 0), (2, 0)} == {e.object.location for e in pair.seen(0, ObjectReceived)}


def test_cancelling_the_subscription_resets_its_fills() -> None:
    """R116, R135: no stream of it goes on."""
    pair = Pair()
    ours, theirs = joined(pair, Location(1, 1))
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].window = 10
    sender.open_fill(theirs.id, ListSource([obj(0, 0, bytes(100))]))
    sender.offer(obj(2, 0, bytes(100)))
    pair.run()
    pair.taps[1].window = 1
    pair.run()
    pair.client.cancel(ours)
    pair.run()
    assert {0, 7, 11} == set(pair.taps[1].codes("reset"))
    assert [7] == pair.taps[1].data_streams()
    assert 1 == sender.streams_opened
    assert not sender.offer(obj(3, 0))
    assert sender.open_fill(99, ListSource([])).gone


def test_fills_count_as_streams() -> None:
    """R117, R125: PUBLISH_DONE waits for the fill and counts it."""
    pair = Pair()
    ours, theirs = joined(pair, Location(0, 0))
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].window = 10
    sender.open_fill(theirs.id, ListSource([obj(0, 0, bytes(100))]))
    sender.offer(obj(1, 0))
    sender.end_subgroup(1, 0)
    sender.finish(PublishDoneCode.TRACK_ENDED)
    pair.run()
    assert [] == pair.seen(0, SubscriptionEnded)
    pair.taps[1].window = None
    pair.run()
    ended = pair.one(0, SubscriptionEnded)
    assert (ours, True, 2) == (ended.request, ended.complete, ended.message.stream_count)


def test_a_descending_fill() -> None:
    """R133: GROUP_ORDER inside FILL_PARAMETERS is the fill's own."""
    pair = Pair()
    fill = Parameters(location_filter=FROM_START, group_order=2)
    _, theirs = subscribed(pair, Parameters(location_filter=NEXT_OBJECT, fill=fill), Location(1, 0))
    assert theirs.sender is not None
    theirs.sender.open_fill(theirs.id, ListSource([obj(1, 0), obj(0, 0), obj(0, 1)]))
    pair.run()
    assert [(1, 0), (0, 0), (0, 1)] == [
        event.object.location for event in pair.seen(0, ObjectReceived)
    ]


def test_ranges_in_a_fill() -> None:
    """R144: gaps are told as in a FETCH."""
    pair = Pair()
    _, theirs = joined(pair, Location(4, 4))
    assert theirs.sender is not None
    theirs.sender.open_fill(
        theirs.id,
        ListSource([obj(0, 0), RangeMarker(RangeKind.UNKNOWN, Location(4, 4)), FetchFailed(2)]),
    )
    pair.run()
    assert ((0, 1), (4, 4)) == (
        pair.one(0, RangeReceived).start,
        pair.one(0, RangeReceived).end,
    )
    assert StreamError.DELIVERY_TIMEOUT == pair.one(0, StreamEnded).code


def test_a_late_fill_is_discarded() -> None:
    """Data for a subscription that ended is stopped, and no error."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK, ALL)
    peer.session.cancel(request)
    stream = peer.stream("05 00 1c 0c 05 80 02 61 61")
    assert StreamError.CANCELLED == peer.tap.codes("stop")[stream]
    assert (None, []) == (peer.code, peer.seen(ObjectReceived))


def test_an_object_outside_of_a_fill_ends_the_fill_alone() -> None:
    """Its range is that of the fill's own filter; the subscription goes on."""
    pair = Pair()
    range_ = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 1, 0, 0, 1)
    parameters = Parameters(location_filter=NEXT_OBJECT, fill=Parameters(location_filter=range_))
    _, theirs = subscribed(pair, parameters, Location(1, 1))
    assert theirs.sender is not None
    theirs.sender.open_fill(theirs.id, ListSource([obj(1, 0), obj(1, 2), obj(1, 3)]))
    pair.run()
    ended = pair.one(0, StreamEnded)
    assert (Via.FILL, StreamError.CANCELLED) == (ended.stream.via, ended.code)
    theirs.sender.offer(obj(1, 2))
    pair.run()
    assert [(1, 0), (1, 2)] == [tuple(e.object.location) for e in pair.seen(0, ObjectReceived)]
