"""What the trace is told: everything that is needed to judge a session by its octets."""

from __future__ import annotations

from typing import Any

import pytest
from moqt.session import Session, SessionConfig
from moqt.session.fetching import FetchItem
from moqt.wire.messages import Parameters, SetupOptions, Subscribe
from moqt.wire.names import Location
from moqt.wire.objects import RangeKind, RangeMarker

from tests.session.pair import TRACK, ListSource, Pair, RawPeer, WireTap, config, obj, subscribed


def traced() -> tuple[Pair, list[tuple[str, dict[str, Any]]], list[tuple[str, dict[str, Any]]]]:
    logs: tuple[list[tuple[str, dict[str, Any]]], ...] = ([], [])
    pair = Pair(
        config(trace=lambda name, data: logs[0].append((name, data))),
        config(trace=lambda name, data: logs[1].append((name, data))),
    )
    return pair, logs[0], logs[1]


def named(log: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [data for found, data in log if found == f"moqt:{name}"]


def test_messages_come_with_their_octets() -> None:
    """Each message on both sides: stream, value, whole frame."""
    pair, client, server = traced()
    subscribed(pair)
    sent, received = named(client, "message_sent"), named(server, "message_received")
    assert sent == received
    assert isinstance(sent[-1]["message"], Subscribe)
    assert (0, b"\x03") == (sent[-1]["stream"], sent[-1]["raw"][:1])
    assert 2 == len(named(client, "message_received"))


def test_objects_and_ranges_are_traced_on_both_sides() -> None:
    """One entry per Object and range, with all fields and how it came."""
    pair, client, server = traced()
    _, theirs = subscribed(pair)
    assert theirs.sender is not None
    theirs.sender.offer(obj(1, 0, b"abc", priority=7))
    theirs.sender.offer(obj(1, 1, b"d", subgroup=None))
    theirs.sender.end_subgroup(1, 0)
    pair.client.fetch(TRACK)
    pair.run()
    items: list[FetchItem] = [obj(0, 0, b"f"), RangeMarker(RangeKind.UNKNOWN, Location(0, 9))]
    pair.server.open_fetch(pair.request(), ListSource(items))
    pair.run()
    assert named(server, "object_sent") == named(client, "object_received")
    assert named(server, "range_sent") == named(client, "range_received")
    first = named(client, "object_received")[0]
    assert {
        "stream": 7,
        "request": 0,
        "track": TRACK,
        "via": "subscription",
        "group": 1,
        "object": 0,
        "subgroup": 0,
        "priority": 7,
        "status": 0,
        "properties": b"",
        "payload": b"abc",
    } == first
    assert {"kind": RangeKind.UNKNOWN, "end": Location(0, 9)}.items() <= named(
        client, "range_received"
    )[0].items()
    assert [7, 11] == [entry["stream"] for entry in named(server, "fin_sent")]
    assert [7, 11] == [entry["stream"] for entry in named(client, "fin_received")]


def test_the_end_is_traced() -> None:
    """Resets, stops and the close with its code."""
    pair, client, server = traced()
    ours, theirs = subscribed(pair)
    assert theirs.sender is not None
    theirs.sender.offer(obj(0, 0))
    pair.run()
    pair.client.cancel(ours)
    pair.run()
    assert {0, 7} == {entry["stream"] for entry in named(client, "stop_sent")}
    assert {0, 7} == {entry["stream"] for entry in named(server, "reset_sent")}
    pair.client.close(0, "bye")
    pair.run()
    assert {"code": 0, "reason": "bye", "by_peer": False} == named(client, "session_closed")[0]
    assert {"code": 0, "reason": "closed", "by_peer": True} == named(server, "session_closed")[0]


def test_our_setup_octet_by_octet() -> None:
    """R022, R023, R029: PATH, cache, AUTHORITY, implementation and updates, each once."""
    tap = WireTap(True)
    setup = SetupOptions(
        path=b"/moq",
        authority=b"relay.example.com",
        max_auth_token_cache_size=4096,
        implementation=b"kvcs/1",
        max_request_updates=16,
    )
    Session(True, tap, SessionConfig(setup=setup)).start(0.0)
    golden = (
        "af 00 00 26 | 01 04 2f6d6f71 | 03 90 00 | 01 11 72656c61792e6578616d706c652e636f6d |"
        "02 06 6b7663732f31 | 01 10"
    )
    assert bytes.fromhex(golden.replace("|", "")) == tap.on_stream(2)


@pytest.mark.parametrize(
    "parameters",
    [Parameters(), Parameters(subscriber_priority=1, group_order=2, object_delivery_timeout=9)],
)
def test_parameters_do_not_alter_payloads(parameters: Parameters) -> None:
    """R078: the same octets whatever the subscriber asked for."""
    pair, client, _ = traced()
    _, theirs = subscribed(pair, parameters)
    assert theirs.sender is not None
    theirs.sender.offer(obj(0, 0, b"payload", properties=bytes.fromhex("7807")))
    pair.run()
    (entry,) = named(client, "object_received")
    assert (b"payload", bytes.fromhex("7807")) == (entry["payload"], entry["properties"])


def test_a_fetch_stream_that_nobody_waits_for_is_told() -> None:
    """R118: a stream for a request of ours that is over is dropped, and leaves a trace."""
    log: list[tuple[str, dict[str, Any]]] = []
    raw = RawPeer(session_is_client=True, trace=lambda name, data: log.append((name, data)))
    request = raw.session.fetch(TRACK)
    raw.take()
    raw.send(0, "05 00 03 11 00 00")  # REQUEST_ERROR INVALID_RANGE
    stream = raw.stream("05 00")
    assert [{"stream": stream, "request": request.id}] == named(log, "stream_unclaimed")
    assert raw.code is None
