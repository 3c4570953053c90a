"""aioquic's streams, with halves that tell their connection when they have something to send."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, SupportsIndex

from aioquic.quic.connection import QuicConnectionError
from aioquic.quic.events import StreamDataReceived
from aioquic.quic.packet import QuicErrorCode, QuicFrameType, QuicStreamFrame
from aioquic.quic.packet_builder import QuicDeliveryState
from aioquic.quic.stream import QuicStream, QuicStreamReceiver, QuicStreamSender

PRIVATE: dict[type, tuple[str, ...]] = {
    QuicStreamSender: ("get_frame", "on_data_delivery", "on_reset_delivery", "reset", "write"),
    QuicStreamReceiver: ("handle_frame", "on_stop_sending_delivery", "stop"),
}
PRIVATE_STREAM_ATTRIBUTES = {
    "sender": (
        "_buffer",
        "_buffer_fin",
        "_buffer_start",
        "_buffer_stop",
        "_pending",
        "_pending_eof",
        "_reset_error_code",
        "buffer_is_empty",
        "highest_offset",
        "is_finished",
        "next_offset",
        "reset_pending",
    ),
    "receiver": ("_ranges", "highest_offset", "is_finished", "stop_pending"),
}


MAX_GAPS = 512
"""Pieces of a stream that may wait for what lies before them: each costs time for every other."""


def check_gaps(receiver: QuicStreamReceiver) -> None:
    """Raise QuicConnectionError when a peer scatters a stream; loss alone never does so much."""
    if len(receiver._ranges) > MAX_GAPS:
        raise QuicConnectionError(
            error_code=QuicErrorCode.INTERNAL_ERROR,
            frame_type=QuicFrameType.STREAM_BASE,
            reason_phrase=f"more than {MAX_GAPS} gaps in a stream",
        )


class StreamOwner(Protocol):
    """What the halves of a stream need of their connection."""

    buffered: int
    unsent: int
    unfinished: dict[int, None]

    def activate(self, stream: Stream, *, urgent: bool = False) -> None:
        """Let the stream take part in the next packets."""

    def park(self, stream: Stream) -> None:
        """Let the stream wait until the peer grants it credit."""

    def requeue(self, stream: Stream) -> None:
        """Let the stream wait behind what others wrote before."""


class Stream(QuicStream):
    """A QuicStream as `StreamTable` leaves it: aioquic makes it, its halves are ours."""

    stream_id: int
    sender: StreamSender
    receiver: StreamReceiver


def goes_first(stream: Stream) -> bool:
    """Whether it goes before Objects: control and request streams, resets, STOP_SENDING."""
    stream_id = stream.stream_id
    return (
        not stream_id & 2
        or stream_id < 4
        or stream.sender.reset_pending
        or stream.receiver.stop_pending
    )


class StreamSender(QuicStreamSender):
    """The sending half of a stream, which counts for its connection what it buffers."""

    def __init__(self, connection: StreamOwner, stream: Stream) -> None:
        super().__init__(stream.stream_id, writable=not stream.sender.is_finished)
        self.queued = False
        self.turn = 0
        """Up to this offset it goes on; what was written later waits for another turn."""
        self._connection = connection
        self._stream = stream

    def write(self, data: bytes | memoryview, end_stream: bool = False) -> None:
        super().write(data, end_stream)  # type: ignore[arg-type]
        self._connection.buffered += len(data)
        self._connection.unsent += len(data)
        self._connection.unfinished[self._stream.stream_id] = None
        self._connection.activate(self._stream)

    def get_frame(self, max_size: int, max_offset: int | None = None) -> QuicStreamFrame | None:
        highest = self.highest_offset
        frame = super().get_frame(max_size, max_offset)
        self._connection.unsent -= self.highest_offset - highest
        if not self._pending_eof and not len(self._pending):
            self.buffer_is_empty = True
        return frame

    def reset(self, error_code: int) -> None:
        if self._reset_error_code is not None or self.is_finished:
            return
        # Octets that wait for an acknowledgement are not sent again: RESET_STREAM is.
        super().reset(error_code)
        self._connection.buffered -= len(self._buffer)
        self._connection.unsent -= self._buffer_stop - self.highest_offset
        self._buffer = bytearray()
        self._connection.unfinished[self._stream.stream_id] = None
        self._connection.activate(self._stream, urgent=True)

    def on_data_delivery(
        self, delivery: QuicDeliveryState, start: int, stop: int, fin: bool
    ) -> None:
        before = self._buffer_start
        super().on_data_delivery(delivery, start, stop, fin)
        if self._reset_error_code is not None:
            return
        self._connection.buffered -= self._buffer_start - before
        if delivery != QuicDeliveryState.ACKED:
            self._connection.activate(self._stream, urgent=True)
        elif self.is_finished or (
            self._buffer_fin is None and self._buffer_start == self._buffer_stop
        ):
            self._delivered()

    def on_reset_delivery(self, delivery: QuicDeliveryState) -> None:
        super().on_reset_delivery(delivery)
        if self.is_finished:
            self._delivered()
        else:
            self._connection.activate(self._stream, urgent=True)

    def _delivered(self) -> None:
        self._connection.unfinished.pop(self._stream.stream_id, None)
        if self._stream.is_finished:
            self._connection.activate(self._stream)

    @property
    def ended(self) -> bool:
        """Whether FIN or a reset was written."""
        return (
            self.is_finished or self._buffer_fin is not None or self._reset_error_code is not None
        )

    @property
    def pending(self) -> int:
        """Octets that wait for a packet, or nearly: what is lost in between counts too."""
        return self._buffer_stop - self.next_offset

    def has_work(self) -> bool:
        """Whether a packet could carry something of this stream."""
        return (
            self.reset_pending
            or not self.buffer_is_empty
            or self._stream.receiver.stop_pending
            or self._stream.is_finished
        )

    def is_stream_blocked(self) -> bool:
        """Whether only the peer's credit for this stream lets it go on."""
        return (
            not self.reset_pending
            and not self._stream.receiver.stop_pending
            and len(self._pending) > 0
            and self.next_offset >= self._stream.max_stream_data_remote
        )


class StreamReceiver(QuicStreamReceiver):
    """The receiving half of a stream, which tells when STOP_SENDING is to be sent."""

    def __init__(self, connection: StreamOwner, stream: Stream) -> None:
        super().__init__(stream.stream_id, readable=not stream.receiver.is_finished)
        self._connection = connection
        self._stream = stream

    def handle_frame(self, frame: QuicStreamFrame) -> StreamDataReceived | None:
        event = super().handle_frame(frame)
        check_gaps(self)
        return event

    def stop(self, error_code: int = 0) -> None:
        super().stop(error_code)
        self._connection.activate(self._stream, urgent=True)

    def on_stop_sending_delivery(self, delivery: QuicDeliveryState) -> None:
        super().on_stop_sending_delivery(delivery)
        if self.stop_pending:
            self._connection.activate(self._stream, urgent=True)


class Front(list[Stream]):
    """The streams that aioquic fills a packet from; none that only credit lets go on."""

    def __init__(self, connection: StreamOwner) -> None:
        super().__init__()
        self._connection = connection

    def append(self, stream: Stream) -> None:
        """aioquic adds every new stream; here one enters when it has something to send."""

    def extend(self, served: Iterable[Stream]) -> None:
        """aioquic puts a served stream last; here it goes on until its turn is over."""
        for stream in served:
            if goes_first(stream):
                self.keep(0, stream)
            elif stream.sender.next_offset < stream.sender.turn:
                self.keep(self.behind_first(), stream)
            else:
                self._connection.requeue(stream)

    def behind_first(self) -> int:
        """Where the streams of Objects begin."""
        return next((at for at, stream in enumerate(self) if not goes_first(stream)), len(self))

    def keep(self, index: int, stream: Stream) -> bool:
        """Put a stream at `index`, unless it has nothing to send or must wait for credit."""
        if not can_go(self._connection, stream):
            return False
        self.insert(index, stream)
        return True


def can_go(connection: StreamOwner, stream: Stream) -> bool:
    """Whether a packet can carry something of it now; parks a stream that waits for credit."""
    stream.sender.queued = stream.sender.has_work()
    if stream.sender.is_stream_blocked():
        connection.park(stream)
        return False
    return stream.sender.queued


class StreamTable(dict[int, Stream]):
    """Streams by ID; `values` is what aioquic looks through for credit to grant."""

    def __init__(self, connection: StreamOwner) -> None:
        super().__init__()
        self._connection = connection
        self.credit_due: dict[int, Stream] = {}

    def __setitem__(self, stream_id: int, stream: Stream) -> None:
        stream.sender = StreamSender(self._connection, stream)
        stream.receiver = StreamReceiver(self._connection, stream)
        super().__setitem__(stream_id, stream)

    def values(self) -> list[Stream]:  # type: ignore[override]
        """Only the streams whose credit is to be raised."""
        due, self.credit_due = self.credit_due, {}
        return list(due.values())

    def pop(self, stream_id: SupportsIndex, *default: Any) -> Any:
        self.credit_due.pop(int(stream_id), None)
        return super().pop(int(stream_id), *default)
