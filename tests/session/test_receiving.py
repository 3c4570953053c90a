"""Data that comes early, late, twice or wrong (MOQT-22 §3.1.3, §11, §12.1)."""

from __future__ import annotations

from typing import Any

import pytest
from moqt.session.events import (
    ObjectReceived,
    ObjectStarted,
    RequestCancelled,
    StreamEnded,
    TrackMalformed,
)
from moqt.wire.errors import SessionError, StreamError
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import Location

from tests.session.openers import NAME
from tests.session.pair import LIVE, OTHER, TRACK, RawPeer

SUBSCRIBE_OK = "04 0002 07 00"


def subscriber(parameters: Parameters = LIVE, ok: str = SUBSCRIBE_OK, **changes: Any) -> RawPeer:
    peer = RawPeer(session_is_client=True, **changes)
    peer.session.subscribe(TRACK, parameters)
    if ok:
        peer.send(0, ok)
    return peer


def where(peer: RawPeer) -> list[tuple[int, int]]:
    return [tuple(e.object.location) for e in peer.seen(ObjectReceived)]  # type: ignore[misc]


# Early and late.


def test_data_may_come_before_subscribe_ok() -> None:
    """Streams and datagrams on an alias that is not bound yet are kept and then delivered."""
    peer = subscriber(ok="")
    peer.stream("70 07 03 00 01 61 00 01 62", fin=True)
    open_stream = peer.stream("70 07 04 00 05 61")
    peer.session.datagram(bytes.fromhex("08 07 05 01 64"), 0.0)
    peer.stream("70 08 03 00 01 61", fin=True)
    assert [] == peer.events[1:]
    peer.send(0, SUBSCRIBE_OK)
    assert [(3, 0), (3, 1), (5, 1)] == where(peer)
    assert [(4, 0)] == [tuple(event.location) for event in peer.seen(ObjectStarted)]
    peer.send(open_stream, "62636465", fin=True)
    assert (4, 0) == where(peer)[-1]
    assert b"abcde" == peer.seen(ObjectReceived)[-1].object.payload


def test_early_data_is_released_in_time() -> None:
    """What nothing claims is dropped after a while, its streams are stopped."""
    peer = subscriber(ok="")
    stream = peer.stream("70 07 03 00 02 61")
    peer.session.datagram(bytes.fromhex("08 07 05 01 64"), 0.0)
    peer.wait(5.1)
    assert {stream: StreamError.CANCELLED} == peer.tap.codes("stop")
    peer.send(0, SUBSCRIBE_OK)
    peer.send(stream, "62", fin=True)
    assert [] == where(peer)
    assert peer.code is None


def test_early_data_is_bounded() -> None:
    """Ten thousand Objects on an alias that is never bound: memory stays bounded, nobody stalls."""
    peer = subscriber(ok="", early_data_budget=10_000)
    for number in range(10_000):
        if number % 2:
            peer.session.datagram(bytes.fromhex("08 09 05 01") + bytes(100), 0.0)
        else:
            peer.session.stream_data(
                3 + 4 + 4 * number, bytes.fromhex("70 09 03 00 32") + bytes(50), True, 0.0
            )
    assert peer.session._receiver._held <= 2 * 10_000
    peer.wait(5.1)
    assert 0 == peer.session._receiver._held
    peer.send(0, SUBSCRIBE_OK)
    peer.uni = 1_000_003
    peer.stream("70 07 03 00 01 61")
    assert [(3, 0)] == where(peer)


def test_beyond_the_budget_streams_are_paused_first() -> None:
    """An early stream above the budget is held back, and delivered when its alias is bound."""
    peer = subscriber(ok="", early_data_budget=100)
    stream = peer.stream(bytes.fromhex("70 07 03 00 64") + bytes(60))
    assert {stream} == peer.tap.paused
    peer.send(0, SUBSCRIBE_OK)
    assert set() == peer.tap.paused
    peer.send(stream, bytes(40))
    assert [(3, 0)] == where(peer)


def test_late_data_is_stopped() -> None:
    """Data of a cancelled subscription: the alias is remembered, streams are stopped."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.send(0, SUBSCRIBE_OK)
    running = peer.stream("70 07 03 00 05 61")
    peer.session.cancel(request)
    late = peer.stream("70 07 04 00 01 61")
    peer.session.datagram(bytes.fromhex("08 07 05 01 64"), 0.0)
    peer.send(running, "ffffffff")
    peer.session.stream_reset(running, 1, 0.0)
    peer.take()
    assert {0: 1, running: 1, late: 1} == peer.tap.codes("stop")
    assert ([], None) == (where(peer), peer.code)
    assert [] == peer.seen(StreamEnded)


def test_an_alias_may_be_bound_again() -> None:
    """A retired alias is live again with a new SUBSCRIBE_OK."""
    peer = RawPeer(session_is_client=True)
    peer.session.cancel(peer.session.subscribe(TRACK))
    peer.session.subscribe(OTHER)
    peer.send(4, SUBSCRIBE_OK)
    peer.stream("70 07 03 00 01 61")
    assert OTHER == peer.seen(ObjectReceived)[0].request.track


def test_filters_are_applied_again() -> None:
    """R130: what the publisher should not have sent does not reach the application."""
    peer = subscriber(ok="04 0005 07 01 09 0307")
    peer.stream("70 07 03 07 01 61 00 01 62", fin=True)
    assert [(3, 8)] == where(peer)
    ends = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 1, 0, 0, 5)
    peer = subscriber(Parameters(location_filter=ends))
    peer.stream("70 07 01 05 01 61 00 01 62")
    assert [(1, 5)] == where(peer)


def test_while_an_update_is_open_both_filters_count() -> None:
    """R131: Objects for the new filter may overtake the answer to the update."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK, LIVE)
    peer.send(0, "04 0005 07 01 09 0307")
    peer.session.update(
        request, Parameters(location_filter=LocationFilter(LocationFilterType.NONE))
    )
    peer.stream("70 07 01 00 01 61", fin=True)
    peer.send(0, "07 0004 01 09 0307")
    peer.stream("70 07 02 00 01 61", fin=True)
    assert [(1, 0), (2, 0)] == where(peer)


def test_priorities_come_from_the_track() -> None:
    """A header without a priority takes the Track's default; early data, too."""
    peer = subscriber(ok="")
    peer.stream("70 07 03 00 01 61", fin=True)
    peer.send(0, "04 0004 07 00 0e40")
    peer.session.datagram(bytes.fromhex("08 07 05 01 64"), 0.0)
    peer.stream("50 07 04 09 00 01 61", fin=True)
    assert {(3, 0): 0x40, (5, 1): 0x40, (4, 0): 9} == {
        tuple(e.object.location): e.object.priority for e in peer.seen(ObjectReceived)
    }


def test_the_subgroup_id_may_be_the_first_object_id() -> None:
    """SUBGROUP_ID_MODE 01: the event's stream knows it with the first Object."""
    peer = subscriber()
    peer.stream("72 07 03 05 01 61", fin=True)
    event = peer.seen(ObjectReceived)[0]
    assert (5, 5) == (event.object.subgroup, event.stream.subgroup)


@pytest.mark.parametrize(
    ("octets", "fin", "code"),
    [
        ("70 07 03 00 00 00", True, None),
        ("70 07 03 00 00 03", True, None),
        ("70 07 03 00 00 04", True, None),
        ("70 07 03 00 00 01", True, 0x3),
        ("71 07 03 00 02 3e00 00 03", True, 0x3),
        ("71 07 03 00 00 00 03", True, None),
        ("70 07 03", True, None),
        ("70 07", True, 0x3),
        ("70", True, 0x3),
        ("", True, 0x3),
        ("70 07 03 00", True, 0x3),
        ("70 07 03 00 02 61", True, 0x3),
        ("70 07 03 00 02 61", False, None),
        ("70 07 03 ff ffffffffffffffff 01 61", False, None),
        ("70 07 03 ff ffffffffffffffff 01 61 00 01 61", False, 0x3),
        ("71 07 03 00 01 3e 01 61", False, 0x3),
    ],
)
def test_subgroup_streams_keep_the_rules(octets: str, fin: bool, code: int | None) -> None:
    """R157, R159, R161, R163 and their legal neighbours."""
    peer = subscriber()
    peer.stream(octets, fin)
    assert code == peer.code


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("08 07 03 01 64", None),
        ("28 07 03 09 03", None),
        ("28 07 03 09 04", None),
        ("28 07 03 09 01", 0x3),
        ("2a 07 03 09 03", 0x3),
        ("18 07 03 01 64", 0x3),
        ("09 07 03 01 00 64", 0x3),
        ("09 07 03 01 02 3c01 64", None),
        ("29 07 03 01 02 3c01 03", 0x3),
        ("29 07 03 01 02 3c01 00", None),
        ("08 07", 0x3),
        ("", 0x3),
    ],
)
def test_datagrams_keep_the_rules(octets: str, code: int | None) -> None:
    """R051, R160: flags that exclude each other, and fields that are cut."""
    peer = subscriber()
    peer.session.datagram(bytes.fromhex(octets), 0.0)
    assert code == peer.code


# Malformed tracks.

FIRST = "70 07 03 00 01 61"


@pytest.mark.parametrize(
    ("streams", "datagrams", "malformed"),
    [
        (["50 07 03 09 00 01 61", "50 07 03 0a 05 01 61"], [], True),
        (["50 07 03 09 00 01 61", "50 07 03 09 05 01 61"], [], False),
        ([FIRST + "F", "70 07 03 01 01 61"], [], True),
        ([FIRST + "F", "70 07 03 00 01 61"], [], False),
        ([FIRST + "F", "70 07 03 00 01 61 00 01 61F"], [], True),
        (["70 07 03 00 00 03", "74 07 03 01 00 01 61"], [], True),
        (["70 07 03 01 00 03", "74 07 03 01 00 01 61"], [], False),
        (["70 07 03 05 01 61", "74 07 03 01 02 00 03"], [], True),
        (["78 07 03 02 01 61F", "74 07 03 01 03 01 61"], [], True),
        (["78 07 03 02 01 61F", "74 07 03 01 01 01 61"], [], False),
        (["70 07 03 05 00 04", "70 07 04 00 01 61"], [], True),
        (["70 07 03 05 00 04", "70 07 02 00 01 61"], [], False),
        (["70 07 04 00 01 61", "70 07 03 05 00 04"], [], True),
        (["71 07 03 05 02 3e05 01 61"], [], False),
        (["71 07 03 05 02 3e06 01 61"], [], True),
        (["71 07 03 00 02 3c03 01 61"], [], False),
        (["71 07 03 00 02 3c04 01 61"], [], True),
        (["71 07 03 05 02 3e02 01 61", "74 07 03 01 04 01 61"], [], True),
        (["71 07 03 05 02 3e02 01 61", "74 07 03 01 02 01 61"], [], False),
        (["74 07 03 01 04 01 61", "71 07 03 05 02 3e02 01 61"], [], True),
        (["70 07 02 00 01 61", "71 07 03 00 02 3c01 01 61"], [], True),
        (["71 07 03 00 02 3c01 01 61", "70 07 02 00 01 61"], [], True),
        (["71 07 03 00 02 3c01 01 61 00 02 3c02 01 61"], [], True),
        (["71 07 03 05 04 3e01 0001 01 61"], [], True),
        (["71 07 03 05 04 0b02 3e01 01 61"], [], False),
        (["71 07 03 05 04 0b02 0b00 01 61"], [], True),
        (["71 07 03 05 04 0b00 0000 01 61"], [], True),
        (["71 07 03 05 03 0b0182 01 61"], [], True),
        (["71 07 03 05 04 c0400001 01 61"], [], True),
        ([], ["0a 07 03 05 61", "08 07 03 06 61"], True),
        ([], ["0a 07 03 05 61", "08 07 03 04 61"], False),
    ],
)
def test_malformed_tracks(streams: list[str], datagrams: list[str], malformed: bool) -> None:
    """R158, R175, R176, R177, R179, R180: the subscription is cancelled, the session lives."""
    peer = subscriber()
    for octets in streams:
        peer.stream(octets.removesuffix("F"), octets.endswith("F"))
    for octets in datagrams:
        peer.session.datagram(bytes.fromhex(octets), 0.0)
    peer.take()
    assert peer.code is None
    assert malformed == bool(peer.seen(TrackMalformed))
    if malformed:
        assert StreamError.MALFORMED_TRACK == peer.tap.codes("stop")[0]
        assert StreamError.MALFORMED_TRACK == peer.tap.codes("reset")[0]


def test_all_requests_of_a_malformed_track_are_cancelled() -> None:
    """R180: subscriptions and fetches of it at that publisher; other tracks are not touched."""
    peer = subscriber()
    peer.session.fetch(TRACK)
    peer.session.subscribe(OTHER)
    peer.stream("05 02 3c 0c 05 80 04 3e01 0001 02 61 61")
    assert {0, 4} == {0 if e.request.id == 0 else 4 for e in peer.seen(TrackMalformed)}
    assert {0, 4} <= set(peer.tap.codes("reset"))
    assert 8 not in peer.tap.codes("reset")
    peer.stream("70 07 03 00 01 61")
    assert [] == where(peer)
    assert (None, []) == (peer.code, peer.seen(RequestCancelled))


# Backpressure.


def test_paused_requests_hold_back_their_streams() -> None:
    """Streams that run and streams that come later; resuming lets all go."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe(TRACK)
    peer.session.subscribe(OTHER)
    peer.send(0, SUBSCRIBE_OK)
    peer.send(4, "04 0002 08 00")
    first = peer.stream("70 07 03 00 02 61")
    other = peer.stream("70 08 03 00 02 61")
    peer.session.pause_request(request)
    later = peer.stream("70 07 04 00 02 61")
    assert {first, later} == peer.tap.paused
    assert other not in peer.tap.paused
    peer.session.resume_request(request)
    assert set() == peer.tap.paused
    assert {first, later} == set(peer.tap.resumed)
    peer.stream("70 07 05 00 02 61")
    assert set() == peer.tap.paused


def test_objects_are_announced_while_they_arrive() -> None:
    """ObjectStarted: the header is here, the payload is not."""
    peer = subscriber()
    stream = peer.stream("70 07 03 00 02")
    assert [Location(3, 0)] == [event.location for event in peer.seen(ObjectStarted)]
    peer.send(stream, "6161 00 01 62")
    assert 1 == len(peer.seen(ObjectStarted))
    assert [(3, 0), (3, 1)] == where(peer)


def test_resets_are_told() -> None:
    """R165: a reset does not end the subscription."""
    peer = subscriber()
    stream = peer.stream("70 07 03 00 01 61")
    peer.session.stream_reset(stream, 0x2, 0.0)
    peer.take()
    ended = peer.seen(StreamEnded)[0]
    assert (False, 0x2, 3) == (ended.complete, ended.code, ended.stream.group)
    peer.stream("70 07 04 00 01 61")
    assert [(3, 0), (4, 0)] == where(peer)


def test_isolation_of_a_broken_peer() -> None:
    """R225: what a peer sends after its error is not read any more."""
    peer = subscriber()
    peer.stream("02")
    assert SessionError.PROTOCOL_VIOLATION == peer.code
    peer.stream("70 07 03 00 01 61")
    peer.request(f"03 000e 01 {NAME} 00")
    assert [] == where(peer)
