"""FETCH: answers, streams, order, gaps, cancel (MOQT-22 §3.2, §9.11, §11.4)."""

from __future__ import annotations

import pytest
from moqt.session import FetchFailed, FetchState
from moqt.session.events import (
    ObjectReceived,
    ObjectStarted,
    RangeReceived,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    StreamEnded,
    StreamStopped,
    TrackMalformed,
    Via,
)
from moqt.session.requests import RequestState
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, SessionError, StreamError
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import FetchOk, Parameters
from moqt.wire.names import Location
from moqt.wire.objects import RangeKind, RangeMarker

from tests.session.pair import OTHER, TRACK, ListSource, Pair, RawPeer, obj

RANGE = Parameters(location_filter=LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 12, 5, 3, 9))
OK = FetchOk(False, Location(15, 9))


def started(pair: Pair, items: list[object], parameters: Parameters = RANGE) -> ListSource:
    pair.client.fetch(TRACK, parameters)
    pair.run()
    source = ListSource(items)  # type: ignore[arg-type]
    pair.server.open_fetch(pair.request(), source)
    return source


def test_a_fetch_delivers_its_range() -> None:
    """R139, R143, R149, R153: header, absolute first Object, FIN, then the end."""
    pair = Pair()
    items = [obj(12, 5, b"aa"), obj(12, 6, b""), obj(13, 0, b"cc", subgroup=None, priority=3)]
    started(pair, list(items))
    pair.server.accept_fetch(pair.request(), OK)
    pair.run()
    assert items == [event.object for event in pair.seen(0, ObjectReceived)]
    ended = pair.one(0, StreamEnded)
    assert (True, Via.FETCH, 0) == (ended.complete, ended.stream.via, ended.stream.request_id)
    assert bytes.fromhex("0500 1c0c05 80 02 6161") == pair.taps[1].on_stream(7)[:9]
    assert OK == pair.one(0, RequestAccepted).response
    assert (RequestState.TERMINATED,) * 2 == (pair.request().state, ended.request.state)
    assert pair.taps[1].fin_on(0)
    assert pair.taps[0].fin_on(0)


def test_objects_may_come_before_the_answer() -> None:
    """R140: FETCH_OK waits until the end is known, Objects need not."""
    pair = Pair()
    started(pair, [obj(12, 5)])
    pair.run()
    assert 1 == len(pair.seen(0, ObjectReceived))
    assert [] == pair.seen(0, RequestAccepted)
    request = pair.one(0, StreamEnded).request
    states = [request.state]
    assert not pair.taps[1].fin_on(0)
    pair.server.accept_fetch(pair.request(), OK)
    pair.run()
    states.append(request.state)
    assert 1 == len(pair.seen(0, RequestAccepted))
    assert [RequestState.PENDING, RequestState.TERMINATED] == states


def test_an_empty_range_is_a_header_and_fin() -> None:
    """R139: no Objects in the range."""
    pair = Pair()
    started(pair, [])
    pair.run()
    assert b"\x05\x00" == pair.taps[1].on_stream(7)
    assert pair.one(0, StreamEnded).complete


def test_ranges_are_reported_from_where_the_last_item_ended() -> None:
    """R144: markers of unknown, timed out and absent ranges, with both ends."""
    pair = Pair()
    started(
        pair,
        [
            RangeMarker(RangeKind.UNKNOWN, Location(12, 7)),
            obj(12, 8),
            RangeMarker(RangeKind.TIMED_OUT, Location(14, 2)),
            RangeMarker(RangeKind.NON_EXISTENT, Location(15, 9)),
        ],
    )
    pair.run()
    assert [
        (RangeKind.UNKNOWN, (12, 5), (12, 7)),
        (RangeKind.TIMED_OUT, (12, 9), (14, 2)),
        (RangeKind.NON_EXISTENT, (14, 3), (15, 9)),
    ] == [(e.kind, e.start, e.end) for e in pair.seen(0, RangeReceived)]


def test_a_failing_source_resets_the_stream() -> None:
    """R144: a range that cannot go on is reset, UNKNOWN_OBJECT_STATUS here."""
    pair = Pair()
    started(pair, [obj(12, 5), FetchFailed(StreamError.UNKNOWN_OBJECT_STATUS)])
    pair.server.accept_fetch(pair.request(), OK)
    pair.run()
    ended = pair.one(0, StreamEnded)
    assert (False, StreamError.UNKNOWN_OBJECT_STATUS) == (ended.complete, ended.code)
    assert pair.taps[1].fin_on(0)


def test_a_source_that_waits_is_asked_again_after_wake() -> None:
    """A pulled source holds one Object at a time and may pause."""
    pair = Pair()
    pair.client.fetch(TRACK, RANGE)
    pair.run()
    source = ListSource([obj(12, 5), FetchState.WAIT, obj(12, 6)])
    fetch = pair.server.open_fetch(pair.request(), source)
    pair.run()
    assert 2 == source.asked
    pair.run()
    assert 2 == source.asked
    fetch.wake()
    pair.run()
    assert 4 == source.asked
    assert 2 == len(pair.seen(0, ObjectReceived))


def test_nothing_is_pulled_without_room() -> None:
    """A fetch of any size holds one Object: the source is asked only when there is room."""
    pair = Pair()
    pair.taps[1].window = 1000
    source = started(pair, [obj(12, n, bytes(400)) for n in range(5, 100)])
    pair.run()
    assert 3 == source.asked
    assert ObjectStarted in [type(event) for event in pair.events[0]]
    pair.taps[1].window = 10**6
    pair.run()
    assert 95 == len(pair.seen(0, ObjectReceived))


def test_a_refused_fetch() -> None:
    """R139, R141, R142: REQUEST_ERROR is the only answer."""
    pair = Pair()
    pair.client.fetch(TRACK, RANGE)
    pair.run()
    pair.server.refuse(pair.request(), RequestErrorCode.INVALID_RANGE)
    with pytest.raises(LocalProtocolError):
        pair.server.accept_fetch(pair.request(), OK)
    assert pair.server.open_fetch(pair.request(), ListSource([])).gone
    pair.run()
    assert [] == pair.taps[1].data_streams()
    error = pair.one(0, RequestFailed).error
    assert error is not None
    assert RequestErrorCode.INVALID_RANGE == error.code


def test_cancelling_a_fetch() -> None:
    """R146, R147: STOP_SENDING on the request stream; request and data stream are reset."""
    pair = Pair()
    pair.taps[1].window = 100
    ours = pair.client.fetch(TRACK, RANGE)
    pair.run()
    pair.server.open_fetch(pair.request(), ListSource([obj(12, 5, bytes(1000))]))
    pair.run()
    pair.client.cancel(ours)
    pair.run()
    assert {0: 1, 7: 1} == pair.taps[0].codes("stop")
    assert {0: 1, 7: 1} == pair.taps[1].codes("reset")
    assert pair.request() is pair.one(1, RequestCancelled).request
    assert [] == pair.seen(0, StreamEnded)


def test_stopping_only_the_data_stream() -> None:
    """R147: STOP_SENDING on the data stream resets it."""
    pair = Pair()
    pair.taps[1].window = 100
    started(pair, [obj(12, 5, bytes(1000))])
    pair.run()
    pair.server.stop_sending_received(7, StreamError.CANCELLED, 0.0)
    pair.run()
    assert {7: 1} == pair.taps[1].codes("reset")
    assert 7 == pair.one(1, StreamStopped).stream_id


def test_data_of_a_cancelled_fetch_is_discarded() -> None:
    """A fetch stream that comes after its cancel is stopped, and no error."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.fetch(TRACK)
    peer.session.cancel(request)
    stream = peer.stream("05 00 1c 0c 05 80 02 61 61")
    assert StreamError.CANCELLED == peer.tap.codes("stop")[stream]
    peer.send(stream, "ffffffff", fin=True)
    assert (None, []) == (peer.code, peer.seen(ObjectReceived))


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("05 00 1c 0c 05 80 02 61 61", None),
        ("05 00 14 05 80 02 61 61", 0x3),
        ("05 00 18 0c 80 02 61 61", 0x3),
        ("05 00 0c 0c 05 02 61 61", 0x3),
        ("05 00 1d 0c 05 80 02 61 61", 0x3),
        ("05 00 5f 0c 05 80 02 61 61", None),
        ("05 00 80 80", 0x3),
        ("05 00 81 0c 0c 07", None),
        ("05 01 1c 0c 05 80 02 61 61", 0x3),
        ("05 02 1c 0c 05 80 02 61 61", 0x3),
        ("05 00 1c ff ffffffffffffffff 05 80 01 61 0c 00 00 01 61", 0x3),
        ("05 00 1c 0c ff ffffffffffffffff 80 01 61 00 01 61", 0x3),
    ],
    ids=[
        "absolute",
        "no group",
        "no object",
        "no priority",
        "prior subgroup",
        "datagram, low bits ignored",
        "unknown flags",
        "marker",
        "peer's parity",
        "unknown request",
        "Group ID overflow",
        "Object ID overflow",
    ],
)
def test_fetch_streams_keep_the_rules(octets: str, code: int | None) -> None:
    """R149 to R155: what a subscriber refuses, and its legal neighbours."""
    peer = RawPeer(session_is_client=True)
    peer.session.fetch(TRACK)
    peer.stream(octets)
    assert code == peer.code


def test_descending_group_ids_do_not_go_below_zero() -> None:
    """R151: GROUP_ORDER 2 counts down."""
    for second, code in (("0c 0b 00 01 62", None), ("0c 0c 00 01 62", 0x3)):
        peer = RawPeer(session_is_client=True)
        peer.session.fetch(TRACK, Parameters(group_order=2))
        peer.stream("05 00 1c 0c 05 80 01 61" + second)
        assert code == peer.code


def test_a_second_stream_for_a_fetch_closes() -> None:
    """R139: Objects of a FETCH come on one stream."""
    peer = RawPeer(session_is_client=True)
    peer.session.fetch(TRACK)
    peer.stream("05 00")
    peer.stream("05 00")
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize(
    ("location_filter", "end", "code"),
    [
        ((LocationFilterType.ABSOLUTE_RANGE, 12, 5, 3, 9), "0c 05", None),
        ((LocationFilterType.ABSOLUTE_RANGE, 12, 5, 3, 9), "0c 04", 0x3),
        ((LocationFilterType.ABSOLUTE_RANGE, 12, 5, 3, 9), "0b 09", 0x3),
        ((LocationFilterType.RELATIVE_START, 1, 0, 0, 0), "00 00", None),
        ((LocationFilterType.NONE, 0, 0, 0, 0), "00 00", None),
    ],
)
def test_fetch_ok_ends_behind_its_start(
    location_filter: tuple[LocationFilterType, int, int, int, int], end: str, code: int | None
) -> None:
    """R148: an End Location before the start that we asked for closes."""
    peer = RawPeer(session_is_client=True)
    peer.session.fetch(TRACK, Parameters(location_filter=LocationFilter(*location_filter)))
    peer.send(0, f"18 0004 00 {end} 00")
    assert code == peer.code


@pytest.mark.parametrize("include", [0, 1])
def test_include_properties_is_honoured(include: int) -> None:
    """R096: INCLUDE_PROPERTIES 0 empties Track Properties in the answer."""
    pair = Pair()
    pair.client.fetch(TRACK, Parameters(include_properties=include))
    pair.client.track_status(OTHER, Parameters(include_properties=include))
    pair.run()
    properties = bytes.fromhex("0e40")
    fetch, status = (event.request for event in pair.events[1][-2:])  # type: ignore[union-attr]
    assert fetch is not None
    assert status is not None
    pair.server.accept_fetch(fetch, FetchOk(False, Location(0, 0), track_properties=properties))
    pair.server.accept(status, track_properties=properties)
    pair.run()
    assert [properties if include else b""] * 2 == [
        event.response.track_properties for event in pair.seen(0, RequestAccepted)
    ]


def test_too_large_objects_stop_their_stream_only() -> None:
    """A stream with an Object above our limit is stopped; what stood before it is kept."""
    peer = RawPeer(session_is_client=True, max_object_size=10)
    peer.session.fetch(TRACK)
    stream = peer.stream("05 00 1c 0c 05 80 02 61 61 00 0b 61")
    received = [event.object for event in peer.seen(ObjectReceived)]
    assert [(Location(12, 5), b"aa")] == [(item.location, item.payload) for item in received]
    assert StreamError.EXCESSIVE_LOAD == peer.tap.codes("stop")[stream]
    assert [StreamError.EXCESSIVE_LOAD] == [event.code for event in peer.seen(StreamEnded)]
    assert peer.code is None


def test_a_request_tells_when_octets_last_came() -> None:
    """A part of an Object counts too: who waits can tell a slow path from a dead one."""
    pair = Pair()
    ours = pair.client.fetch(TRACK)
    pair.run()
    assert 0.0 == ours.heard
    pair.taps[1].window = 50
    pair.server.open_fetch(pair.request(), ListSource([obj(0, 0, bytes(200))]))
    pair.wait(1.0)
    pair.taps[1].window = 50
    pair.wait(1.0)
    assert 2.0 == ours.heard
    assert [] == pair.seen(0, ObjectReceived)
    pair.wait(1.0)
    assert 2.0 == ours.heard


@pytest.mark.parametrize(
    ("location", "outside"),
    [((12, 4), True), ((12, 5), False), ((15, 9), False), ((15, 10), True), ((16, 0), True)],
)
def test_an_object_outside_of_the_range_ends_the_fetch(
    location: tuple[int, int], outside: bool
) -> None:
    """Nobody asked for it, so what the stream leaves out says nothing; other requests go on."""
    pair = Pair()
    other = pair.client.fetch(OTHER, RANGE)
    started(pair, [obj(*location)])
    pair.server.accept_fetch(pair.request(), OK)
    pair.run()
    ended = pair.one(0, StreamEnded)
    assert outside is not ended.complete
    assert outside is not bool(pair.seen(0, ObjectReceived))
    assert (StreamError.CANCELLED if outside else None) == ended.code
    assert [] == pair.seen(0, TrackMalformed)
    assert RequestState.TERMINATED is ended.request.state
    assert RequestState.PENDING is other.state
    assert ({7: StreamError.CANCELLED} if outside else {}) == pair.taps[0].codes("stop")


def test_what_came_in_the_range_before_is_delivered() -> None:
    """Also when the header of the Object outside is all that came of it."""
    peer = RawPeer(session_is_client=True)
    peer.session.fetch(TRACK, RANGE)
    peer.stream("05 00 1c 0c 05 80 01 61 1c 10 00 80 05 61")
    assert [(12, 5)] == [tuple(event.object.location) for event in peer.seen(ObjectReceived)]
    assert [] == peer.seen(ObjectStarted)
    assert [StreamError.CANCELLED] == [event.code for event in peer.seen(StreamEnded)]
    assert peer.code is None


def test_a_range_that_only_the_publisher_knows_has_any_object() -> None:
    """Relative starts depend on the Largest Object."""
    pair = Pair()
    two_back = Parameters(location_filter=LocationFilter(LocationFilterType.RELATIVE_START, 3))
    started(pair, [obj(0, 0), obj(900, 0)], two_back)
    pair.run()
    assert 2 == len(pair.seen(0, ObjectReceived))
    assert pair.one(0, StreamEnded).complete
