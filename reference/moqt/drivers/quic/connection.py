"""aioquic's QuicConnection with flow control by what was consumed and work per packet bounded.

aioquic doubles a flow-control window when half of it was *seen*, and looks at every open stream
for every packet. Here credit follows what the application took, streams are looked at only while
they have something to send, and what is written is counted, so that a sender can be told how much
room there is. Everything of aioquic that is private and used here is named in PRIVATE, and a
test asserts that it is still there.
"""

from __future__ import annotations

from collections import deque
from functools import cached_property
from typing import Any

from aioquic._buffer import Buffer
from aioquic.buffer import size_uint_var
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import (
    RESET_STREAM_FRAME_CAPACITY,
    STOP_SENDING_FRAME_CAPACITY,
    QuicConnection,
    QuicReceiveContext,
)
from aioquic.quic.events import StopSendingReceived
from aioquic.quic.packet import (
    QuicFrameType,
    pull_quic_transport_parameters,
)
from aioquic.quic.packet_builder import QuicDeliveryState, QuicPacketBuilder
from aioquic.quic.recovery import QuicPacketPacer, QuicPacketSpace

from moqt.drivers.credit import control_reserve
from moqt.drivers.quic.streams import Front, Stream, StreamTable, can_go, check_gaps, goes_first

PRIVATE: dict[type, tuple[str, ...]] = {
    QuicConnection: (
        "_assert_stream_can_send",
        "_close_begin",
        "_get_or_create_stream",
        "_get_or_create_stream_for_send",
        "_handle_crypto_frame",
        "_handle_max_stream_data_frame",
        "_handle_stop_sending_frame",
        "_on_connection_limit_delivery",
        "_on_max_stream_data_delivery",
        "_parse_transport_parameters",
        "_write_application",
        "_write_connection_limits",
        "_write_reset_stream_frame",
        "_write_stop_sending_frame",
        "_write_stream_limits",
    ),
    QuicPacketPacer: ("next_send_time", "update_after_send", "update_rate"),
}
PRIVATE_ATTRIBUTES = (
    "_close_event",
    "_crypto_streams",
    "_datagrams_pending",
    "_events",
    "_local_max_data",
    "_local_max_streams_bidi",
    "_local_max_streams_uni",
    "_loss",
    "_max_datagram_size",
    "_peer_cid",
    "_quic_logger",
    "_remote_max_data",
    "_remote_max_data_used",
    "_remote_max_datagram_frame_size",
    "_remote_max_streams_bidi",
    "_remote_max_streams_uni",
    "_streams",
    "_streams_queue",
)

FRONT = 64
"""Streams at most that one packet is filled from."""

MINIMUM_BUFFER = 256 << 10
MAXIMUM_BUFFER = 4 << 20
"""Octets that a connection buffers before `room` is 0: twice its congestion window, within these
bounds."""

BURST = 64 << 10
"""Octets that leave at once before pacing spreads them; a timer is no finer than 1 ms."""

DATAGRAMS_PENDING = 64
CREDIT_FRAME_CAPACITY = 9


class _Pacer(QuicPacketPacer):
    """aioquic's pacer with bursts that fit the granularity of timers."""

    def update_rate(self, congestion_window: int, smoothed_rtt: float) -> None:
        super().update_rate(congestion_window, smoothed_rtt)
        if self.packet_time is not None:
            burst = self.packet_time * BURST / self._max_datagram_size
            self.bucket_max = max(self.bucket_max, burst, 0.002)


class Connection(QuicConnection):
    """A QUIC connection whose credit follows consumption.

    `streams` are how many streams of (bidirectional, unidirectional) kind the peer may have open
    at a time. `configuration.max_data` and `.max_stream_data` are the windows, in octets.
    """

    def __init__(
        self, *, configuration: QuicConfiguration, streams: tuple[int, int], **arguments: Any
    ) -> None:
        self._front = Front(self)
        self._waiting: deque[Stream] = deque()
        self._parked: dict[int, Stream] = {}
        super().__init__(configuration=configuration, **arguments)
        self._streams: StreamTable = StreamTable(self)  # type: ignore[assignment]
        self.buffered = 0
        """Octets written and not acknowledged."""
        self.unsent = 0
        """Octets written and never sent."""
        self.unfinished: dict[int, None] = {}
        """Streams with something that the peer has not acknowledged."""
        self.closed_by_peer = False
        self._consumed = 0
        self._local_max_streams_bidi.value, self._local_max_streams_uni.value = streams
        for limit in (self._local_max_streams_bidi, self._local_max_streams_uni):
            limit.sent = limit.value
        self._loss._pacer = _Pacer(max_datagram_size=configuration.max_datagram_size)

    # Streams with work.

    @property  # type: ignore[override]
    def _streams_queue(self) -> list[Stream]:
        front, waiting = self._front, self._waiting
        if waiting:
            # As many as fill a packet; all while none of them may send its octets.
            wanted = self._max_datagram_size
            if self._remote_max_data_used < self._remote_max_data:
                for stream in front:
                    wanted -= stream.sender.pending
            while waiting and wanted > 0 and len(front) < FRONT:
                stream = waiting.popleft()
                if front.keep(len(front), stream):
                    wanted -= stream.sender.pending
        return front

    @_streams_queue.setter
    def _streams_queue(self, streams: list[Stream]) -> None:
        """aioquic assigns what is left of the queue after each packet."""
        front = Front(self)
        for stream in streams:
            front.keep(len(front), stream)
        self._front = front

    def activate(self, stream: Stream, *, urgent: bool = False) -> None:
        """Let the stream take part in the next packets; what is lost or urgent goes first.

        Objects never keep a control or request stream waiting (MOQT-22 §5.1.2).
        """
        first = goes_first(stream)
        urgent = urgent or first
        parked = self._parked.pop(stream.stream_id, None) is not None
        if stream.sender.queued and not parked:
            if not urgent or stream not in self._waiting:
                return
            self._waiting.remove(stream)
        sender = stream.sender
        sender.queued = True
        sender.turn = sender.highest_offset if urgent else sender._buffer_stop
        if urgent:
            self._front.insert(0 if first else self._front.behind_first(), stream)
        else:
            self._waiting.append(stream)

    def park(self, stream: Stream) -> None:
        """Let the stream wait until the peer grants it credit."""
        self._parked[stream.stream_id] = stream

    def requeue(self, stream: Stream) -> None:
        """Let the stream wait behind what others wrote before."""
        if can_go(self, stream):
            stream.sender.turn = stream.sender._buffer_stop
            self._waiting.append(stream)

    def _handle_max_stream_data_frame(
        self, context: QuicReceiveContext, frame_type: int, buf: Buffer
    ) -> None:
        start = buf.tell()
        stream_id = buf.pull_uint_var()
        buf.seek(start)
        super()._handle_max_stream_data_frame(context, frame_type, buf)
        if stream := self._parked.pop(stream_id, None):
            self._waiting.appendleft(stream)

    def open_stream(self, unidirectional: bool) -> int | None:
        """A new stream's ID, or None while the peer grants none."""
        stream_id = self.get_next_available_stream_id(is_unidirectional=unidirectional)
        granted = self._remote_max_streams_uni if unidirectional else self._remote_max_streams_bidi
        if stream_id // 4 >= granted:
            return None
        self._get_or_create_stream_for_send(stream_id)
        return stream_id

    def room(self, stream_id: int) -> int:
        """Octets that the stream takes now (see `Transport.room`)."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.sender.ended:
            return 0
        sender = stream.sender
        return max(
            0,
            min(
                stream.max_stream_data_remote - sender._buffer_stop,
                self._remote_max_data - self._remote_max_data_used - self.unsent - self._reserve,
                self._buffer_target() - self.buffered,
            ),
        )

    @cached_property
    def _reserve(self) -> int:
        """What Objects leave to control streams; nobody writes before the peer granted credit."""
        return control_reserve(self._remote_max_data)

    def _buffer_target(self) -> int:
        window = 2 * self._loss.congestion_window
        return min(max(window, MINIMUM_BUFFER), MAXIMUM_BUFFER)

    # Credit.

    def consume(self, octets: int) -> None:
        """Grant the peer as many octets again on the connection.

        Credit is announced once half a window was consumed.
        """
        self._consumed += octets
        window = self._configuration.max_data
        if self._local_max_data.value - self._consumed <= window // 2:
            self._local_max_data.value = self._consumed + window

    def consume_stream(self, stream_id: int, total: int) -> None:
        """The application took `total` octets of a stream so far: grant a window more."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.receiver.is_finished:
            return
        window = self._configuration.max_stream_data
        if stream.max_stream_data_local - total <= window // 2:
            stream.max_stream_data_local = total + window
            self._streams.credit_due[stream_id] = stream

    def received_size(self, stream_id: int) -> int:
        """Octets of a stream that count against the connection's credit."""
        stream = self._streams.get(stream_id)
        return 0 if stream is None else stream.receiver.highest_offset

    def _write_connection_limits(self, builder: QuicPacketBuilder, space: QuicPacketSpace) -> None:
        streams = (self._local_max_streams_bidi, self._local_max_streams_uni)
        # Many streams' worth of credit in one frame: when half of it is used up.
        due = [
            limit for limit in streams if limit.value - limit.sent > max(limit.sent - limit.used, 0)
        ]
        if self._local_max_data.sent != self._local_max_data.value:
            due.append(self._local_max_data)
        for limit in due:
            frame = builder.start_frame(
                limit.frame_type,
                capacity=CREDIT_FRAME_CAPACITY,
                handler=self._on_connection_limit_delivery,
                handler_args=(limit,),
            )
            frame.push_uint_var(limit.value)
            limit.sent = limit.value
            if self._quic_logger is not None:
                assert builder.quic_logger_frames is not None
                builder.quic_logger_frames.append(
                    self._quic_logger.encode_connection_limit_frame(
                        frame_type=limit.frame_type, maximum=limit.value
                    )
                )

    def _write_stream_limits(  # type: ignore[override]
        self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: Stream
    ) -> None:
        if stream.max_stream_data_local_sent == stream.max_stream_data_local:
            return
        # `values` forgot the stream when it named it; a full packet must not lose it.
        self._streams.credit_due[stream.stream_id] = stream
        if builder.remaining_flight_space < 1 + 2 * CREDIT_FRAME_CAPACITY:
            return
        frame = builder.start_frame(
            QuicFrameType.MAX_STREAM_DATA,
            capacity=1 + 2 * CREDIT_FRAME_CAPACITY,
            handler=self._on_max_stream_data_delivery,
            handler_args=(stream,),
        )
        del self._streams.credit_due[stream.stream_id]
        frame.push_uint_var(stream.stream_id)
        frame.push_uint_var(stream.max_stream_data_local)
        stream.max_stream_data_local_sent = stream.max_stream_data_local
        if self._quic_logger is not None:
            assert builder.quic_logger_frames is not None
            builder.quic_logger_frames.append(
                self._quic_logger.encode_max_stream_data_frame(
                    maximum=stream.max_stream_data_local, stream_id=stream.stream_id
                )
            )

    def _on_max_stream_data_delivery(  # type: ignore[override]
        self, delivery: QuicDeliveryState, stream: Stream
    ) -> None:
        super()._on_max_stream_data_delivery(delivery, stream)
        if delivery != QuicDeliveryState.ACKED and not stream.receiver.is_finished:
            self._streams.credit_due[stream.stream_id] = stream

    # A frame that does not fit goes into the next packet; aioquic would end the batch there.

    def _write_reset_stream_frame(  # type: ignore[override]
        self, builder: QuicPacketBuilder, stream: Stream
    ) -> None:
        if builder.remaining_flight_space >= RESET_STREAM_FRAME_CAPACITY:
            super()._write_reset_stream_frame(builder, stream)

    def _write_stop_sending_frame(  # type: ignore[override]
        self, builder: QuicPacketBuilder, stream: Stream
    ) -> None:
        if builder.remaining_flight_space >= STOP_SENDING_FRAME_CAPACITY:
            super()._write_stop_sending_frame(builder, stream)

    # What the application decides.

    def _close_begin(self, is_initiator: bool, now: float) -> None:
        """Tell of the close at once; aioquic does when the closing period is over."""
        super()._close_begin(is_initiator, now)
        self.closed_by_peer = not is_initiator
        assert self._close_event is not None
        self._events.append(self._close_event)

    def _handle_crypto_frame(
        self, context: QuicReceiveContext, frame_type: int, buf: Buffer
    ) -> None:
        """Take a handshake in pieces, but not one that is scattered to keep us busy."""
        super()._handle_crypto_frame(context, frame_type, buf)
        check_gaps(self._crypto_streams[context.epoch].receiver)

    def _handle_stop_sending_frame(
        self, context: QuicReceiveContext, frame_type: int, buf: Buffer
    ) -> None:
        """Leave the answer, RESET_STREAM with a code, to the application."""
        stream_id = buf.pull_uint_var()
        error_code = buf.pull_uint_var()
        if self._quic_logger is not None:
            assert context.quic_logger_frames is not None
            context.quic_logger_frames.append(
                self._quic_logger.encode_stop_sending_frame(
                    error_code=error_code, stream_id=stream_id
                )
            )
        self._assert_stream_can_send(frame_type, stream_id)
        self._get_or_create_stream(frame_type, stream_id)
        self._events.append(StopSendingReceived(error_code=error_code, stream_id=stream_id))

    def end_log(self) -> None:
        """Write the qlog file, if there is one, without waiting for the closing period."""
        logger = self._configuration.quic_logger
        if logger is not None and self._quic_logger is not None:
            logger.end_trace(self._quic_logger)
            self._quic_logger = None

    def stream_ended(self, stream_id: int) -> None:
        """The application has all of a stream that it will get: its state may go."""
        stream = self._streams.get(stream_id)
        if stream is not None and stream.is_finished:
            self.activate(stream)

    def reset(self, stream_id: int, code: int) -> bool:
        """RESET_STREAM, unless the stream ended before; whether it was done."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.sender.is_finished:
            return False
        stream.sender.reset(code)
        return True

    def write(self, stream_id: int, data: bytes | memoryview, fin: bool) -> bool:
        """Append to a stream, unless it ended before; whether it was done."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.sender.ended:
            return False
        stream.sender.write(data, fin)
        return True

    def stop(self, stream_id: int, code: int) -> bool:
        """STOP_SENDING, unless the stream ended before; whether it was done."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.receiver.is_finished:
            return False
        stream.receiver.stop(code)
        return True

    def all_acknowledged(self, stream_id: int) -> bool:
        """See `Transport.all_acknowledged`."""
        stream = self._streams.get(stream_id)
        return stream is None or stream.sender.is_finished

    @property
    def takes_datagrams(self) -> bool:
        """Whether the peer negotiated the DATAGRAM extension (RFC 9221)."""
        return bool(self._remote_max_datagram_frame_size)

    def send_datagram(self, data: bytes) -> bool:
        """Queue a DATAGRAM frame; False when it does not fit a packet or too many wait."""
        overhead = 1 + len(self._peer_cid.cid) + 2 + 16
        frame = 1 + size_uint_var(len(data)) + len(data)
        most = min(self._max_datagram_size - overhead, self._remote_max_datagram_frame_size or 0)
        if frame > most or len(self._datagrams_pending) >= DATAGRAMS_PENDING:
            return False
        self.send_datagram_frame(data)
        return True

    def _parse_transport_parameters(self, data: bytes, from_session_ticket: bool = False) -> None:
        super()._parse_transport_parameters(data, from_session_ticket)
        peer = pull_quic_transport_parameters(Buffer(data=data))
        if peer.max_udp_payload_size is not None:
            self._max_datagram_size = min(self._max_datagram_size, peer.max_udp_payload_size)
