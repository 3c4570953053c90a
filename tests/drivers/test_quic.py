"""The QUIC driver on loopback, seen by sessions that only record."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from moqt.drivers.quic import QuicOptions

from tests.drivers.loop import QuicPair, run_pair
from tests.drivers.stand_in import StandInEndpoint, stand_in_config

Certificate = tuple[Path, Path]


@pytest.mark.parametrize("size", [1200, 1452, 16000, 16383])
def test_stream_arrives_whole_at_any_datagram_size(certificate: Certificate, size: int) -> None:
    """Octets arrive in order and whole, FIN included, and are acknowledged."""
    data = bytes(range(256)) * 1200

    async def scenario(pair: QuicPair) -> None:
        stream_id = pair.near.transport.open_stream(unidirectional=True)
        assert stream_id == 2
        pair.near.send_all(stream_id, data)
        await pair.until(lambda: stream_id in pair.far.finished)
        assert data == pair.far.received[stream_id]
        await pair.until(lambda: pair.near.transport.all_acknowledged(stream_id))

    run_pair(
        certificate,
        scenario,
        QuicOptions(datagram_size=size),
        QuicOptions(datagram_size=size),
    )


def test_session_knows_url_and_alpn(certificate: Certificate) -> None:
    """Both sides know the ALPN that was negotiated, the client its URL."""

    async def scenario(pair: QuicPair) -> None:
        assert f"moqt://localhost:{pair.port}/p" == pair.near.url
        assert ["moqt-22", "moqt-22"] == [pair.near.alpn, pair.far.alpn]
        assert b"/p" == pair.near.config.setup.path
        assert f"localhost:{pair.port}".encode() == pair.near.config.setup.authority

    run_pair(certificate, scenario)


def test_many_streams_end_and_give_their_credit_back(certificate: Certificate) -> None:
    """160 streams pass through a limit of 8 without a deadlock, and none is remembered."""

    async def scenario(pair: QuicPair) -> None:
        opened: list[int] = []

        def open_more() -> bool:
            while len(opened) < 160:
                stream_id = pair.near.transport.open_stream(unidirectional=True)
                if stream_id is None:
                    return False
                opened.append(stream_id)
                pair.near.transport.send(stream_id, b"x" * 100, True)
            return len(pair.far.finished) == 160

        await pair.until(open_more)
        await pair.until(lambda: all(map(pair.near.transport.all_acknowledged, opened)))
        transport: Any = pair.near.transport
        assert 0 == transport.connection.buffered
        assert {} == transport.connection.unfinished

    run_pair(certificate, scenario, QuicOptions(unidirectional_streams=8))


def test_paused_stream_takes_one_window(certificate: Certificate) -> None:
    """Credit follows what was consumed: a paused stream stops its sender, others go on."""

    async def scenario(pair: QuicPair) -> None:
        held, other = (pair.near.transport.open_stream(unidirectional=True) for _ in range(2))
        assert held is not None
        assert other is not None
        pair.near.transport.send(held, b"x")
        await pair.until(lambda: held in pair.far.received)
        pair.far.transport.pause(held)
        pair.near.send_all(held, bytes(300_000))
        pair.near.send_all(other, bytes(300_000))
        await pair.until(lambda: other in pair.far.finished)
        assert 1 == len(pair.far.received[held])
        assert 0 == pair.near.transport.room(held)
        pair.far.transport.resume(held)
        await pair.until(lambda: held in pair.far.finished)
        assert 300_001 == len(pair.far.received[held])

    run_pair(certificate, scenario, QuicOptions(stream_window=50_000))


def test_far_offset_grants_no_credit(certificate: Certificate) -> None:
    """One octet at the end of the window is seen, not consumed: no credit, no further memory."""

    async def scenario(pair: QuicPair) -> None:
        transport: Any = pair.near.transport
        stream_id = transport.open_stream(unidirectional=True)
        stream = transport.connection._streams[stream_id]
        pair.near.transport.send(stream_id, bytes(49_999))
        stream.sender._pending.subtract(0, 49_990)
        first = pair.near.transport.open_stream(unidirectional=True)
        assert first is not None
        pair.near.transport.send(first, b"done", True)
        await pair.until(lambda: first in pair.far.finished)
        far: Any = pair.far.transport
        assert 50_000 == far.connection._streams[stream_id].max_stream_data_local
        assert 50_000 == stream.max_stream_data_remote

    run_pair(certificate, scenario, QuicOptions(stream_window=50_000))


def test_room_is_bounded_by_what_is_buffered(certificate: Certificate) -> None:
    """A sender that fills `room` holds a bounded number of octets."""

    async def scenario(pair: QuicPair) -> None:
        transport: Any = pair.near.transport
        stream_id = transport.open_stream(unidirectional=True)
        transport.send(stream_id, bytes(256 << 10))
        assert 0 == transport.room(stream_id)
        await pair.until(lambda: transport.room(stream_id) > 0)

    run_pair(certificate, scenario)


def test_reset_and_stop_sending_carry_their_codes(certificate: Certificate) -> None:
    """RESET_STREAM and STOP_SENDING reach the peer; a stopped stream is reset by its sender."""

    async def scenario(pair: QuicPair) -> None:
        one, two, three = (
            pair.near.transport.open_stream(unidirectional=True) or 0 for _ in range(3)
        )
        for stream_id in (one, two, three):
            pair.near.transport.send(stream_id, b"a")
        await pair.until(lambda: three in pair.far.received)
        pair.near.transport.reset(one, 5)
        pair.far.transport.stop_sending(two, 7)
        await pair.until(lambda: len(pair.far.named("reset")) == 2)
        pair.near.reset_on_stop = 2
        pair.far.transport.stop_sending(three, 8)
        await pair.until(lambda: len(pair.far.named("reset")) == 3)
        assert {("stop", two, 7), ("stop", three, 8)} == set(pair.near.named("stop"))
        expected = {("reset", one, 5), ("reset", two, 7), ("reset", three, 2)}
        assert expected == set(pair.far.named("reset"))
        pair.near.transport.send(one, b"late")

    run_pair(certificate, scenario)


def test_fin_alone_arrives_when_all_else_is_acknowledged(certificate: Certificate) -> None:
    """FIN written after everything was acknowledged is not lost (field case 14)."""

    async def scenario(pair: QuicPair) -> None:
        transport: Any = pair.near.transport
        for _ in range(20):
            stream_id = pair.near.transport.open_stream(unidirectional=True)
            assert stream_id is not None
            pair.near.transport.send(stream_id, b"object")
            await pair.until(lambda: not transport.connection.unfinished)
            assert not pair.near.transport.all_acknowledged(stream_id)
            pair.near.transport.send(stream_id, b"", True)
            await pair.until(partial(pair.far.finished.__contains__, stream_id))

    run_pair(certificate, scenario)


def test_aborted_host_says_nothing_and_its_port_is_free(certificate: Certificate) -> None:
    """As after a kill: our sessions hear nothing, peers find out, and one can listen again."""

    async def scenario(pair: QuicPair) -> None:
        pair.hosts[0].abort()
        assert not pair.far.closed
        transport: Any = pair.near.transport
        transport.send(transport.open_stream(unidirectional=True), b"a")
        pair.hosts[1].wake(transport)
        await pair.until(lambda: pair.near.closed)
        assert [None] == [event[1] for event in pair.near.named("closed")]
        cert, key = certificate
        again = pair.host(StandInEndpoint(), QuicOptions())
        config = stand_in_config()
        port = await again.listen("127.0.0.1", pair.port, config, cert_file=cert, key_file=key)
        assert pair.port == port

    run_pair(certificate, scenario)


def test_datagrams_arrive_and_large_ones_are_refused(certificate: Certificate) -> None:
    """What fits one packet goes; what does not is refused and blocks nothing."""

    async def scenario(pair: QuicPair) -> None:
        assert pair.near.transport.send_datagram(bytes(1160))
        assert not pair.near.transport.send_datagram(bytes(1200))
        assert pair.near.transport.send_datagram(b"small")
        await pair.until(lambda: len(pair.far.named("datagram")) == 2)
        assert ("datagram", b"small") == pair.far.named("datagram")[1]

    run_pair(certificate, scenario)


def test_close_flushes_and_carries_its_code(certificate: Certificate) -> None:
    """Everything sent before the close arrives first; both sides hear code and reason."""

    async def scenario(pair: QuicPair) -> None:
        stream_id = pair.near.transport.open_stream(unidirectional=True)
        assert stream_id is not None
        pair.near.transport.send(stream_id, bytes(200_000), True)
        pair.near.transport.close(3, "broken")
        await pair.until(lambda: pair.far.closed and pair.near.closed)
        assert 200_000 == len(pair.far.received[stream_id])
        assert [("closed", 3, "broken", True)] == pair.far.named("closed")
        assert [("closed", 3, "broken", False)] == pair.near.named("closed")
        assert pair.near.transport.open_stream(unidirectional=True) is None

    run_pair(certificate, scenario)


def test_long_reason_does_not_break_the_close(certificate: Certificate) -> None:
    """A reason phrase is cut so that the close frame fits its packet."""

    async def scenario(pair: QuicPair) -> None:
        pair.near.transport.close(1, "é" * 5000)
        await pair.until(lambda: pair.far.closed)
        assert ("closed", 1, "é" * 256, True) == pair.far.named("closed")[0]

    run_pair(certificate, scenario)


def test_one_server_serves_many_connections(certificate: Certificate) -> None:
    """Connections of one socket are told apart; closing one leaves the others."""

    async def scenario(pair: QuicPair) -> None:
        options = QuicOptions(ca_file=certificate[0])
        others = [pair.connect(options) for _ in range(4)]
        await pair.until(lambda: len(pair.server.sessions) == 5)
        pair.near.transport.close(0, "")
        await pair.until(lambda: pair.far.closed)
        for number, session in enumerate(others):
            stream_id = session.transport.open_stream(unidirectional=True)
            assert stream_id is not None
            session.transport.send(stream_id, bytes([number]), True)
        await pair.until(lambda: all(s.finished for s in pair.server.sessions[1:]))
        received = [bytes(s.received[2]) for s in pair.server.sessions[1:]]
        assert [b"\0", b"\1", b"\2", b"\3"] == sorted(received)

    run_pair(certificate, scenario)


def test_timers_fire(certificate: Certificate) -> None:
    """A session's timer is called on the loop's clock."""

    async def scenario(pair: QuicPair) -> None:
        pair.near.timer = pair.hosts[1].now() + 0.01
        pair.hosts[1].wake()
        await pair.until(lambda: pair.near.named("timer"))
        assert pair.near.timer is None

    run_pair(certificate, scenario)


def test_action_from_another_thread_is_flushed(certificate: Certificate) -> None:
    """call_soon_threadsafe runs on the loop and what it wrote goes out."""

    async def scenario(pair: QuicPair) -> None:
        def act() -> None:
            stream_id = pair.near.transport.open_stream(unidirectional=True)
            assert stream_id is not None
            pair.near.transport.send(stream_id, b"x", True)

        await asyncio.to_thread(pair.hosts[1].call_soon_threadsafe, act)
        await pair.until(lambda: pair.far.finished)
        assert b"x" == pair.far.received[2]

    run_pair(certificate, scenario)


def test_our_transport_parameters_offer_datagrams(certificate: Certificate) -> None:
    """max_datagram_frame_size is above 0 on both sides (R019)."""

    async def scenario(pair: QuicPair) -> None:
        transports: list[Any] = [pair.near.transport, pair.far.transport]
        sizes = [t.connection._remote_max_datagram_frame_size for t in transports]
        assert [65536, 65536] == sizes

    run_pair(certificate, scenario)


def test_key_log_and_qlog_are_written(certificate: Certificate, tmp_path: Path) -> None:
    """Secrets in NSS form, and one qlog file for each connection."""
    keylog = tmp_path / "keys.log"
    options = QuicOptions(keylog_file=keylog, qlog_dir=tmp_path)

    async def scenario(pair: QuicPair) -> None:
        assert "CLIENT_TRAFFIC_SECRET_0" in keylog.read_text()
        stream_id = pair.near.transport.open_stream(unidirectional=True)
        assert stream_id is not None
        pair.near.transport.send(stream_id, bytes(3000), True)
        await pair.until(lambda: stream_id in pair.far.finished)
        pair.near.transport.stop_sending(stream_id, 1)
        pair.near.transport.close(0, "")
        await pair.until(lambda: pair.far.closed)

    run_pair(certificate, scenario, client=options)
    (qlog,) = tmp_path.glob("*.qlog")
    names = {event["name"] for event in json.loads(qlog.read_text())["traces"][0]["events"]}
    assert {"transport:packet_sent", "transport:packet_received"} <= names


def test_options_are_one_value() -> None:
    """Options can be shared and varied."""
    assert 9000 == replace(QuicOptions(), datagram_size=9000).datagram_size


@pytest.mark.slow
def test_silent_connection_is_kept_alive(certificate: Certificate) -> None:
    """Without traffic a connection outlives its idle timeout, because it is pinged."""

    async def scenario(pair: QuicPair) -> None:
        pair.near.timer = pair.hosts[1].now() + 0.5
        pair.hosts[1].wake()
        await pair.until(lambda: pair.near.named("timer"))
        assert not pair.near.closed
        assert not pair.far.closed

    options = QuicOptions(idle_timeout=0.15, insecure=True)
    run_pair(certificate, scenario, options, options)
