"""PUBLISH_NAMESPACE, SUBSCRIBE_NAMESPACE, SUBSCRIBE_TRACKS (MOQT-22 §4, §3.6)."""

from __future__ import annotations

import pytest
from moqt.session.events import (
    NamespaceEnded,
    NamespaceReceived,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    TrackSkipped,
    UpdateReceived,
)
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, SessionError
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName

from tests.session.pair import Pair, RawPeer

LIVE = (b"live",)
ROOM = (b"live", b"room1")


def test_namespaces_come_and_go() -> None:
    """R193, R196: NAMESPACE and NAMESPACE_DONE carry the suffix; the events the whole name."""
    pair = Pair()
    pair.client.subscribe_namespace(LIVE)
    pair.run()
    theirs = pair.request()
    with pytest.raises(LocalProtocolError):
        pair.server.namespace(theirs, ROOM)
    pair.server.accept(theirs)
    pair.server.namespace(theirs, ROOM)
    pair.server.namespace(theirs, LIVE)
    pair.server.namespace_done(theirs, ROOM)
    with pytest.raises(LocalProtocolError):
        pair.server.namespace_done(theirs, ROOM)
    with pytest.raises(LocalProtocolError):
        pair.server.namespace(theirs, LIVE)
    with pytest.raises(LocalProtocolError):
        pair.server.namespace(theirs, (b"other",))
    pair.run()
    assert [ROOM, LIVE] == [event.namespace for event in pair.seen(0, NamespaceReceived)]
    assert [ROOM] == [event.namespace for event in pair.seen(0, NamespaceEnded)]
    assert (
        bytes.fromhex("070001000800070105726f6f6d310800010 0".replace(" ", ""))
        == (pair.taps[1].on_stream(0)[:18])
    )


@pytest.mark.parametrize("how", ["fin", "reset"])
def test_the_end_of_the_response_stream_withdraws_all(how: str) -> None:
    """R199: FIN or reset is NAMESPACE_DONE for all."""
    peer = RawPeer(session_is_client=True)
    request = peer.session.subscribe_namespace(LIVE)
    peer.send(0, "07 0001 00 08 0007 01 05 726f6f6d31 08 0001 00")
    if how == "fin":
        peer.send(0, b"", fin=True)
    else:
        peer.session.stream_reset(0, 0, 0.0)
        peer.take()
    assert {ROOM, LIVE} == {event.namespace for event in peer.seen(NamespaceEnded)}
    assert [request] == [event.request for event in peer.seen(RequestCancelled)]
    assert peer.code is None


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("08 0001 00", 0x3),
        ("0e 0001 00", 0x3),
        ("07 0001 00 0e 0001 00", 0x3),
        ("07 0001 00 08 0001 00 0e 0001 00", None),
        ("07 0001 00 08 0001 00 08 0001 00", None),
        ("07 0001 00 08 0001 00 0e 0001 00 0e 0001 00", 0x3),
        ("07 0001 00 0f 0003 00 01 61", 0x3),
        ("05 0003 01 00 00", None),
    ],
    ids=[
        "NAMESPACE first",
        "NAMESPACE_DONE first",
        "DONE without NAMESPACE",
        "NAMESPACE, DONE",
        "NAMESPACE twice",
        "DONE twice",
        "PUBLISH_SKIPPED",
        "refused",
    ],
)
def test_the_response_stream_of_subscribe_namespace(octets: str, code: int | None) -> None:
    """R192, R197: OK or error first; NAMESPACE_DONE only after its NAMESPACE."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe_namespace(LIVE)
    peer.send(0, octets)
    assert code == peer.code


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("0f 0003 00 01 61", 0x3),
        ("07 0001 00 0f 0003 00 01 61", None),
        ("07 0001 00 08 0001 00", 0x3),
    ],
)
def test_the_response_stream_of_subscribe_tracks(octets: str, code: int | None) -> None:
    """R192: OK or error first, then PUBLISH_SKIPPED only."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe_tracks(LIVE)
    peer.send(0, octets)
    assert code == peer.code


def test_a_whole_namespace_keeps_within_limits() -> None:
    """R009: prefix and suffix together have at most 32 fields."""
    for fields, code in ((31, None), (32, SessionError.PROTOCOL_VIOLATION)):
        peer = RawPeer(session_is_client=True)
        peer.session.subscribe_namespace(LIVE)
        suffix = f"{fields:02x}" + "0161" * fields
        peer.send(0, f"07 0001 00 08 {len(suffix) // 2:04x} {suffix}")
        assert code == peer.code


def test_skipped_tracks_are_named() -> None:
    """R201: PUBLISH_SKIPPED names suffix and Track Name."""
    pair = Pair()
    ours = pair.client.subscribe_tracks(LIVE)
    pair.run()
    pair.server.accept(pair.request())
    pair.server.publish_skipped(pair.request(), FullTrackName(ROOM, b"cam"))
    pair.run()
    skipped = pair.one(0, TrackSkipped)
    assert (ours, (b"room1",), b"cam") == (
        skipped.request,
        skipped.message.suffix,
        skipped.message.name,
    )


@pytest.mark.parametrize("kind", ["subscribe_namespace", "subscribe_tracks"])
@pytest.mark.parametrize("prefix", [LIVE, ROOM, ()], ids=["equal", "longer", "shorter"])
def test_overlapping_prefixes_are_refused(kind: str, prefix: tuple[bytes, ...]) -> None:
    """R069, R194, R195: we do not ask for them, and refuse them with PREFIX_OVERLAP."""
    pair = Pair()
    getattr(pair.client, kind)(LIVE)
    with pytest.raises(LocalProtocolError):
        getattr(pair.client, kind)(prefix)
    pair.run()
    pair.server.accept(pair.request())
    peer_message = {"subscribe_namespace": "50", "subscribe_tracks": "51"}[kind]
    field = "".join(f"{len(one):02x}{one.hex()}" for one in prefix)
    body = f"02{len(prefix):02x}{field}00"
    pair.server.stream_data(
        4, bytes.fromhex(f"{peer_message}{len(body) // 2:04x}{body}"), False, 0.0
    )
    refusal = pair.taps[1].on_stream(4)
    assert (0x05, RequestErrorCode.PREFIX_OVERLAP) == (refusal[0], refusal[3])
    assert not pair.server.closed


def test_the_two_discovery_kinds_do_not_clash() -> None:
    """R195: separate spaces; a withdrawn prefix is free again; each side has its own."""
    pair = Pair()
    first = pair.client.subscribe_namespace(LIVE)
    pair.client.subscribe_tracks(LIVE)
    pair.client.subscribe_tracks((b"other",))
    pair.server.subscribe_namespace(LIVE)
    pair.run()
    for side in (0, 1):
        for event in pair.seen(side, RequestReceived):
            pair.sessions[side].accept(event.request)
    pair.run()
    assert 3 == len(pair.seen(0, RequestAccepted))
    assert [] == pair.seen(0, RequestFailed)
    pair.client.cancel(first)
    pair.client.subscribe_namespace(ROOM)
    pair.run()
    assert ROOM == pair.request().namespace


def test_a_prefix_is_updated() -> None:
    """R069, R095: TRACK_NAMESPACE_PREFIX moves the prefix, unless it overlaps another."""
    pair = Pair()
    first = pair.client.subscribe_namespace((b"a",))
    pair.client.subscribe_namespace((b"b",))
    pair.run()
    theirs = pair.seen(1, RequestReceived)[0].request
    pair.server.accept(theirs)
    pair.run()
    with pytest.raises(LocalProtocolError):
        pair.client.update(first, Parameters(track_namespace_prefix=(b"b", b"c")))
    pair.client.update(first, Parameters(track_namespace_prefix=LIVE))
    pair.run()
    pair.server.accept_update(theirs, pair.one(1, UpdateReceived).update)
    pair.server.namespace(theirs, ROOM)
    pair.run()
    assert ROOM == pair.one(0, NamespaceReceived).namespace
    # REQUEST_UPDATE 6 with prefix (b).
    pair.server.stream_data(0, bytes.fromhex("02 0006 06 01 34 01 01 62"), False, 0.0)
    last = pair.taps[1].calls[-2]
    assert (0x05, RequestErrorCode.PREFIX_OVERLAP) == (last.data[0], last.data[3])
    assert pair.taps[1].fin_on(0)


def test_withdrawing_a_namespace_is_a_cancel() -> None:
    """R191: cancelling PUBLISH_NAMESPACE tells the peer."""
    pair = Pair()
    ours = pair.client.publish_namespace(LIVE)
    pair.run()
    theirs = pair.request()
    pair.server.accept(theirs, Parameters(expires=30000))
    pair.run()
    assert 30000 == pair.one(0, RequestAccepted).response.parameters.expires
    pair.client.cancel(ours)
    pair.run()
    assert theirs is pair.one(1, RequestCancelled).request
