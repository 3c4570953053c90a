"""Our QUIC connection without sockets: two ends, virtual time, seeded loss."""

from __future__ import annotations

import ssl
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StopSendingReceived, StreamDataReceived, StreamReset
from moqt.drivers.quic.connection import PRIVATE as CONNECTION_PRIVATE
from moqt.drivers.quic.connection import PRIVATE_ATTRIBUTES, Connection
from moqt.drivers.quic.streams import PRIVATE as STREAM_PRIVATE
from moqt.drivers.quic.streams import PRIVATE_STREAM_ATTRIBUTES

Certificate = tuple[Path, Path]
CLIENT, SERVER = "client", "server"


class Ends:
    """A client and a server that exchange datagrams; `loss` is a seeded probability."""

    def __init__(
        self,
        certificate: Certificate,
        *,
        streams: tuple[int, int] = (100, 100),
        window: int = 1 << 20,
        connection_window: int = 1 << 24,
        loss: float = 0.0,
        seed: int = 0,
    ) -> None:
        common: dict[str, Any] = {
            "alpn_protocols": ["moqt-22"],
            "max_stream_data": window,
            "max_data": connection_window,
            "max_datagram_frame_size": 65536,
        }
        client = QuicConfiguration(verify_mode=ssl.CERT_NONE, **common)
        server = QuicConfiguration(is_client=False, **common)
        server.load_cert_chain(*certificate)
        self.client = Connection(configuration=client, streams=streams)
        self.server = Connection(
            configuration=server,
            streams=streams,
            original_destination_connection_id=self.client.original_destination_connection_id,
        )
        self.now = 0.0
        self.received: dict[int, bytearray] = {}
        self.finished: set[int] = set()
        self.resets: dict[int, int] = {}
        self.stops: dict[int, int] = {}
        self.paused: set[int] = set()
        self._loss = 0.0
        self._random = Random(seed)
        self.client.connect((SERVER, 0), now=0.0)
        self.run()
        self._loss = loss

    def run(self, seconds: float = 20.0) -> None:
        """Let the ends talk until both are silent or the virtual time has passed."""
        end = self.now + seconds
        while self.now < end:
            if self._exchange():
                self.now += 0.001
                continue
            if not (self.client.unfinished or self.server.unfinished):
                return
            timers = [t for c in (self.client, self.server) if (t := c.get_timer()) is not None]
            self.now = min(max(self.now + 0.001, min(timers)), end)
            for connection in (self.client, self.server):
                timer = connection.get_timer()
                if timer is not None and timer <= self.now:
                    connection.handle_timer(self.now)

    def _exchange(self) -> bool:
        moved = False
        for sender, receiver, name in (
            (self.client, self.server, CLIENT),
            (self.server, self.client, SERVER),
        ):
            if sender is self.server and not sender._network_paths:
                continue
            for data, _ in sender.datagrams_to_send(self.now):
                moved = True
                if self._random.random() >= self._loss:
                    receiver.receive_datagram(data, (name, 0), self.now)
            self._take_events(receiver)
        return moved

    def _take_events(self, connection: Connection) -> None:
        while (event := connection.next_event()) is not None:
            if isinstance(event, StreamDataReceived):
                held = self.received.setdefault(event.stream_id, bytearray())
                held += event.data
                if event.stream_id not in self.paused:
                    connection.consume(len(event.data))
                    connection.consume_stream(event.stream_id, len(held))
                if event.end_stream:
                    self.finished.add(event.stream_id)
                    connection.stream_ended(event.stream_id)
            elif isinstance(event, StreamReset):
                self.resets[event.stream_id] = event.error_code
                connection.stream_ended(event.stream_id)
            elif isinstance(event, StopSendingReceived):
                self.stops[event.stream_id] = event.error_code

    def open(self, *, unidirectional: bool = True) -> int:
        stream_id = self.client.open_stream(unidirectional)
        assert stream_id is not None
        return stream_id


def test_what_we_use_of_aioquic_is_there(certificate: Certificate) -> None:
    """Every private name that the driver relies on exists in the installed aioquic."""
    missing = [
        f"{owner.__name__}.{name}"
        for table in (CONNECTION_PRIVATE, STREAM_PRIVATE)
        for owner, names in table.items()
        for name in names
        if not callable(getattr(owner, name, None))
    ]
    ends = Ends(certificate)
    ends.client.write(ends.open(), b"x", False)
    stream = next(iter(dict.values(ends.client._streams)))
    missing += [name for name in PRIVATE_ATTRIBUTES if not hasattr(ends.client, name)]
    for half, names in PRIVATE_STREAM_ATTRIBUTES.items():
        missing += [name for name in names if not hasattr(getattr(stream, half), name)]
    assert [] == missing


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_loss_costs_no_octet_and_no_counter(certificate: Certificate, seed: int) -> None:
    """With one datagram in eight lost, all streams arrive whole and nothing stays counted."""
    ends = Ends(certificate, loss=0.125, seed=seed, window=20_000, connection_window=60_000)
    data = bytes(range(256)) * 200
    ids = [ends.open() for _ in range(6)]
    for stream_id in ids:
        ends.client.write(stream_id, data, True)
    ends.run(200.0)
    assert set(ids) == ends.finished
    assert [data] * 6 == [bytes(ends.received[stream_id]) for stream_id in ids]
    assert (0, 0, {}) == (ends.client.buffered, ends.client.unsent, ends.client.unfinished)


def test_earlier_writes_leave_first(certificate: Certificate) -> None:
    """Streams are drained in the order in which they were first written."""
    ends = Ends(certificate)
    ends.open()
    ids = [ends.open() for _ in range(4)]
    order = [ids[2], ids[0], ids[3], ids[1]]
    for stream_id in order:
        ends.client.write(stream_id, bytes(5000), True)
    ends.run()
    assert order == list(ends.received)


def test_later_writes_overtake_no_earlier_ones(certificate: Certificate) -> None:
    """A stream that is written again and again does not keep the others waiting."""
    ends = Ends(certificate)
    ends.open()
    busy, other = ends.open(), ends.open()
    ends.client.write(busy, bytes(20_000), False)
    ends.client.write(other, bytes(20_000), True)
    for _ in range(200):
        ends.client.write(busy, bytes(20_000), False)
    while other not in ends.finished:
        ends.run(0.001)
    assert len(ends.received[busy]) < 200_000


@pytest.mark.parametrize("what", ["control", "request", "reset"])
def test_objects_keep_no_control_waiting(certificate: Certificate, what: str) -> None:
    """Control and request streams and resets go before Objects that were written earlier."""
    ends = Ends(certificate)
    control, bulk, victim = ends.open(), ends.open(), ends.open()
    request = ends.open(unidirectional=False)
    ends.client.write(victim, bytes(1000), False)
    ends.run(0.1)
    ends.client.write(bulk, bytes(1_000_000), True)
    if what == "reset":
        ends.client.reset(victim, 7)
    else:
        ends.client.write(control if what == "control" else request, b"now", False)
    while not (ends.resets or control in ends.received or request in ends.received):
        ends.run(0.001)
    assert len(ends.received.get(bulk, b"")) < 100_000


def test_a_reset_behind_a_busy_stream_leaves(certificate: Certificate) -> None:
    """A stream that is reset while another one is served before it does not wait for that."""
    ends = Ends(certificate)
    ends.open()
    victim, bulk = ends.open(), ends.open()
    ends.run(0.1)
    ends.client.write(victim, bytes(100_000), False)
    ends.client.datagrams_to_send(ends.now)  # lost: the victim is being served, and not done
    ends.client.write(bulk, bytes(1_000_000), True)
    ends.client.activate(ends.client._streams[bulk], urgent=True)
    ends.client.reset(victim, 7)
    while not ends.resets:
        ends.run(0.001)
    assert len(ends.received.get(bulk, b"")) < 100_000


def test_many_resets_leave_in_one_batch(certificate: Certificate) -> None:
    """Resets that fill more than a packet do not wait for an acknowledgement each."""
    ends = Ends(certificate, streams=(10, 400))
    ids = [ends.open() for _ in range(400)]
    for stream_id in ids:
        ends.client.write(stream_id, b"x", False)
    ends.run(1.0)
    for stream_id in ids:
        ends.client.reset(stream_id, 3)
    packets = ends.client.datagrams_to_send(ends.now)
    assert sum(len(data) for data, _ in packets) > 400 * 5


def test_stream_without_credit_holds_up_no_other(certificate: Certificate) -> None:
    """100 streams that the peer does not read do not keep the next one from going."""
    ends = Ends(certificate, window=1000, streams=(100, 200))
    ids = [ends.open() for _ in range(100)]
    ends.paused.update(ids)
    for stream_id in ids:
        ends.client.write(stream_id, bytes(2000), True)
    free = ends.open()
    ends.client.write(free, bytes(5000), True)
    ends.run(1.0)
    assert {free} == ends.finished
    assert {1000} == {len(ends.received[stream_id]) for stream_id in ids}


def test_blocked_stream_can_still_be_reset(certificate: Certificate) -> None:
    """RESET_STREAM needs no credit; what was buffered is forgotten."""
    ends = Ends(certificate, window=1000)
    stream_id = ends.open()
    ends.paused.add(stream_id)
    ends.client.write(stream_id, bytes(5000), True)
    ends.run(1.0)
    ends.client.reset(stream_id, 5)
    ends.run()
    assert {stream_id: 5} == ends.resets
    assert (0, 0, {}) == (ends.client.buffered, ends.client.unsent, ends.client.unfinished)


def test_reset_passes_a_connection_without_credit(certificate: Certificate) -> None:
    """A connection that the peer does not read still resets streams."""
    ends = Ends(certificate, connection_window=3000)
    first, second = ends.open(), ends.open()
    ends.paused.update((first, second))
    ends.client.write(first, bytes(9000), True)
    ends.client.write(second, b"x", False)
    ends.run(1.0)
    ends.client.reset(second, 6)
    ends.run(1.0)
    assert {second: 6} == ends.resets
    assert first not in ends.finished


@pytest.mark.slow
def test_finished_streams_are_forgotten(certificate: Certificate) -> None:
    """2048 streams leave no state behind, at a limit of 100 at a time."""
    ends = Ends(certificate)
    opened = 0
    while opened < 2048:
        while opened < 2048 and (stream_id := ends.client.open_stream(True)) is not None:
            ends.client.write(stream_id, b"object", True)
            opened += 1
        ends.run()
    assert 2048 == len(ends.finished)
    assert ({}, {}) == (dict(ends.client._streams), dict(ends.server._streams))


def test_stop_sending_leaves_the_answer_to_the_application(certificate: Certificate) -> None:
    """STOP_SENDING is told with its code; the stream is not reset by itself."""
    ends = Ends(certificate)
    stream_id = ends.open(unidirectional=False)
    ends.client.write(stream_id, b"x", False)
    ends.run()
    assert ends.server.stop(stream_id, 7)
    ends.run()
    assert {stream_id: 7} == ends.stops
    assert ends.client.write(stream_id, b"y", False)
    ends.run()
    assert b"xy" == ends.received[stream_id]
    assert {} == ends.resets


def test_calls_for_ended_streams_do_nothing(certificate: Certificate) -> None:
    """A stream that ended takes no octets, no reset and no STOP_SENDING, without an error."""
    ends = Ends(certificate)
    stream_id = ends.open()
    ends.client.write(stream_id, b"x", True)
    assert not ends.client.write(stream_id, b"late", True)
    ends.run()
    assert not ends.client.write(stream_id, b"late", True)
    assert not ends.client.reset(stream_id, 1)
    assert not ends.server.stop(stream_id, 1)
    assert 0 == ends.client.room(stream_id)
    assert ends.client.all_acknowledged(stream_id)
