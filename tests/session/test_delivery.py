"""How a subscription's Objects are written: streams, datagrams, filters (MOQT-22 §3.3, §11)."""

from __future__ import annotations

import pytest
from moqt.session import SubscriptionSender
from moqt.session.events import (
    ObjectReceived,
    PublishDoneReceived,
    RequestFailed,
    RequestReceived,
    StreamEnded,
    StreamStopped,
    UpdateReceived,
    Via,
)
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, RequestErrorCode, StreamError
from moqt.wire.filters import (
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import Parameters, SetupOptions
from moqt.wire.names import Location
from moqt.wire.objects import Object

from tests.session.openers import NAME
from tests.session.pair import LIVE, TRACK, Pair, RawPeer, config, obj, subscribed


def sending(
    pair: Pair, parameters: Parameters = LIVE, largest: Location | None = None
) -> SubscriptionSender:
    _, theirs = subscribed(pair, parameters, largest)
    assert theirs.sender is not None
    return theirs.sender


def locations(pair: Pair) -> list[tuple[int, int]]:
    return [tuple(e.object.location) for e in pair.seen(0, ObjectReceived)]  # type: ignore[misc]


def test_one_stream_per_subgroup() -> None:
    """R004, R005, R006, R007: FIRST_OBJECT is set, a default priority left out."""
    pair = Pair()
    sender = sending(pair)
    for subgroup in (0, 1):
        for number in (0, 1):
            sender.offer(
                obj(7, 2 * number + subgroup, subgroup=subgroup), first=True, adjacent=True
            )
        sender.end_subgroup(7, subgroup)
    sender.offer(obj(8, 0, priority=9))
    pair.run()
    streams = pair.taps[1].data_streams()
    assert 3 == len(streams)
    assert [0x11, 0x71, 0x75] == [pair.taps[1].on_stream(s)[0] for s in streams]
    assert [False, True, True] == [pair.taps[1].fin_on(s) for s in streams]
    ended = pair.seen(0, StreamEnded)
    assert [(7, 0, True), (7, 1, True)] == [
        (e.stream.group, e.stream.subgroup, e.stream.first_object) for e in ended
    ]
    assert 9 == pair.seen(0, ObjectReceived)[0].object.priority


def test_payloads_are_handed_over_uncopied() -> None:
    """The transport gets the application's own buffer, sliced only where room ends."""
    pair = Pair()
    sender = sending(pair)
    seen: list[object] = []
    plain = pair.taps[1].send

    def send(stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        seen.append(data.obj if isinstance(data, memoryview) else data)
        plain(stream_id, data, fin)

    pair.taps[1].send = send  # type: ignore[method-assign]
    payload = bytes(200_000)
    sender.offer(obj(0, 0, payload))
    sender.end_subgroup(0, 0)
    pair.run()
    assert sum(one is payload for one in seen) > 1
    assert payload == pair.one(0, ObjectReceived).object.payload
    assert 0 == sender.backlog


def test_only_the_next_object_continues_a_stream() -> None:
    """R164, R165, R167, R168: a hole ends the stream with a reset and opens another."""
    pair = Pair()
    sender = sending(pair)
    sender.offer(obj(0, 0))
    sender.offer(obj(0, 1))
    sender.offer(obj(0, 3))
    sender.offer(obj(0, 5), adjacent=True)
    sender.end_subgroup(0, 0)
    pair.run()
    assert [(0, 0), (0, 1), (0, 3), (0, 5)] == locations(pair)
    assert [7, 11] == pair.taps[1].data_streams()
    assert {7: StreamError.CANCELLED} == pair.taps[1].codes("reset")
    assert pair.taps[1].fin_on(11)
    assert 2 == sender.streams_opened


def test_a_subgroup_keeps_its_priority() -> None:
    """R003: two priorities in one subgroup, or Objects after its end, are refused locally."""
    pair = Pair()
    sender = sending(pair)
    sender.offer(obj(0, 0))
    with pytest.raises(LocalProtocolError):
        sender.offer(obj(0, 1, priority=3))
    sender.end_subgroup(0, 0)
    with pytest.raises(LocalProtocolError):
        sender.offer(obj(0, 1))


def test_reset_subgroup_gives_up_what_waits() -> None:
    """R165: ended early, with the code given; a later Object opens a new stream."""
    pair = Pair()
    sender = sending(pair)
    pair.taps[1].window = 20
    sender.offer(obj(0, 0, bytes(100)))
    pair.run()
    sender.reset_subgroup(0, 0, StreamError.EXCESSIVE_LOAD)
    assert 0 == sender.backlog
    pair.taps[1].window = None
    assert sender.offer(obj(0, 1))
    pair.run()
    assert StreamError.EXCESSIVE_LOAD == pair.one(0, StreamEnded).code
    assert [(0, 1)] == locations(pair)


def test_after_stop_sending_the_subgroup_stays_shut() -> None:
    """R169: no new stream for it, until the subscriber resumes."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    sender.offer(obj(0, 0))
    pair.run()
    pair.server.stop_sending_received(7, StreamError.CANCELLED, 0.0)
    pair.run()
    assert 7 == pair.one(1, StreamStopped).stream_id
    assert [False, True] == [sender.offer(obj(0, 1)), sender.offer(obj(1, 0))]
    pair.client.update(ours, Parameters(forward=1))
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    assert sender.offer(obj(0, 2))


def test_datagrams() -> None:
    """R004: Objects without a subgroup travel as datagrams; priority only where it is needed."""
    pair = Pair()
    sender = sending(pair)
    objects = [
        obj(3, 1, b"data", subgroup=None),
        obj(3, 0, b"data", subgroup=None, priority=7),
        obj(3, 2, b"", subgroup=None, properties=bytes.fromhex("3c01")),
    ]
    for item in objects:
        assert sender.offer(item)
    pair.run()
    received = pair.seen(0, ObjectReceived)
    assert sorted(objects, key=repr) == sorted((e.object for e in received), key=repr)
    assert {(Via.SUBSCRIPTION, None)} == {(e.stream.via, e.stream.stream_id) for e in received}
    assert bytes.fromhex("08000301 64617461") in pair.taps[1].datagrams()
    assert [] == pair.taps[1].data_streams()


def test_datagrams_without_room_are_dropped() -> None:
    """A datagram is never repeated, and the end does not wait for it."""
    pair = Pair()
    sender = sending(pair)
    pair.taps[1].datagram_room = False
    sender.offer(obj(3, 1, b"data", subgroup=None))
    sender.finish(PublishDoneCode.TRACK_ENDED)
    pair.run()
    assert 0 == pair.one(0, PublishDoneReceived).message.stream_count
    assert [] == locations(pair)


# Filters.

ONE_GROUP = LocationFilter(LocationFilterType.ABSOLUTE_START_GROUP_END, 4, 1, 0)
NEXT_GROUP = LocationFilter(LocationFilterType.RELATIVE_START, 0)


@pytest.mark.parametrize(
    ("location_filter", "largest", "wanted"),
    [
        (None, (4, 1), "all"),
        (LocationFilter(LocationFilterType.NONE), (4, 1), "all"),
        (LIVE.location_filter, (4, 1), [(4, 2), (5, 0)]),
        (LIVE.location_filter, None, "all"),
        (NEXT_GROUP, (4, 1), [(5, 0)]),
        (
            LocationFilter(LocationFilterType.RELATIVE_START, 1),
            (4, 1),
            [(4, 0), (4, 1), (4, 2), (5, 0)],
        ),
        (ONE_GROUP, (3, 0), [(4, 1), (4, 2)]),
        (
            LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 3, 9, 1, 1),
            None,
            [(3, 9), (4, 0), (4, 1)],
        ),
    ],
)
def test_the_location_filter_is_evaluated_once(
    location_filter: LocationFilter | None,
    largest: tuple[int, int] | None,
    wanted: str | list[tuple[int, int]],
) -> None:
    """R121, R130: against the Largest Object at SUBSCRIBE_OK; both ends inclusive."""
    pair = Pair()
    sender = sending(
        pair,
        Parameters(location_filter=location_filter),
        None if largest is None else Location(*largest),
    )
    every = [(3, 8), (3, 9), (4, 0), (4, 1), (4, 2), (5, 0)]
    taken = [where for where in every if sender.offer(obj(*where), adjacent=True)]
    assert (every if wanted == "all" else wanted) == taken
    pair.run()
    assert taken == locations(pair)


def one(kind: RangeFilterType, *ranges: tuple[int, int | None], set_id: int = 0) -> RangeFilter:
    prop = 0x78 if kind is RangeFilterType.OBJECT_PROPERTY else None
    return RangeFilter(kind, set_id, prop, ranges)


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([one(RangeFilterType.OBJECT_ID, (1, 2))], [1, 2]),
        ([one(RangeFilterType.OBJECT_ID, (0, 0), (3, None))], [0, 3]),
        ([one(RangeFilterType.SUBGROUP, (1, 1))], [2, 3]),
        ([one(RangeFilterType.PRIORITY, (0, 100))], [0, 1]),
        ([one(RangeFilterType.OBJECT_PROPERTY, (5, 9))], [1]),
        (
            [one(RangeFilterType.SUBGROUP, (1, 1)), one(RangeFilterType.OBJECT_ID, (0, 2))],
            [2],
        ),
        (
            [
                one(RangeFilterType.SUBGROUP, (0, 0)),
                one(RangeFilterType.OBJECT_ID, (3, 3), set_id=1),
            ],
            [0, 1, 3],
        ),
    ],
)
def test_range_filters(filters: list[RangeFilter], wanted: list[int]) -> None:
    """R131, R174: Ranges are alternatives, one SetID is AND, SetIDs are OR."""
    pair = Pair()
    sender = sending(pair, Parameters(range_filters=tuple(filters)))
    objects: list[Object] = [
        obj(0, 0, subgroup=0, priority=100),
        obj(0, 1, subgroup=0, priority=100, properties=bytes.fromhex("7807")),
        obj(0, 2, subgroup=1, priority=101),
        obj(0, 3, subgroup=1, priority=101, properties=bytes.fromhex("780a")),
    ]
    assert wanted == [item.location.object for item in objects if sender.offer(item, adjacent=True)]
    pair.run()
    assert wanted == [number for _, number in locations(pair)]


def test_no_range_filters_to_a_peer_that_takes_none() -> None:
    """R036: MAX_FILTER_RANGES absent is 0; the limit itself is fine."""
    parameters = Parameters(range_filters=(one(RangeFilterType.OBJECT_ID, (0, 1), (3, 4)),))
    for limit in (0, 1, 2):
        pair = Pair(server=config(setup=SetupOptions(max_filter_ranges=limit)))
        if limit < 2:
            with pytest.raises(LocalProtocolError):
                pair.client.subscribe(TRACK, parameters)
        else:
            pair.client.subscribe(TRACK, parameters)
            pair.run()
            assert 1 == len(pair.seen(1, RequestReceived))


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ("26 05 00 00 01 01 01", None),
        ("26 07 00 00 01 01 01 01 01", 0x36),
        ("27 03 00 80ff", None),
        ("27 04 00 80ff 01", 0x36),
        ("28 03 00 78 05", None),
        ("28 03 00 79 05", 0x36),
        ("26 0b 00 ffffffffffffffffff 01", 0x36),
        ("26 02 00 01 00 02 00 02", 0x36),
        ("26 02 00 01 00 02 01 02", None),
    ],
    ids=[
        "two ranges",
        "three ranges",
        "priority 255",
        "priority 256",
        "even property",
        "odd property",
        "overflow",
        "repeated set",
        "two sets",
    ],
)
def test_invalid_filters_are_refused(filters: str, code: int | None) -> None:
    """R037, R086, R087, R097, R098: INVALID_FILTER, and the session lives."""
    peer = RawPeer(options=SetupOptions(max_filter_ranges=2))
    count = 2 if "00 02 0" in filters else 1
    body = f"00{NAME}{count:02x}{filters}".replace(" ", "")
    peer.request(f"03{len(body) // 2:04x}{body}")
    refusal = peer.tap.on_stream(0)
    assert peer.code is None
    assert (code is None) == bool(peer.seen(RequestReceived))
    if code is not None:
        assert (0x05, RequestErrorCode.INVALID_FILTER) == (refusal[0], refusal[3])


def test_filters_beyond_our_limit_are_refused_to_the_peer() -> None:
    """R037: the subscriber sees REQUEST_ERROR INVALID_FILTER."""
    pair = Pair(server=config(setup=SetupOptions(max_filter_ranges=0)))
    pair.server.stream_data(0, bytes.fromhex(f"03 0013 00 {NAME} 01 26 03 00 00 01"), False, 0.0)
    assert RequestErrorCode.INVALID_FILTER == pair.taps[1].on_stream(0)[3]
    assert [] == pair.seen(0, RequestFailed)
