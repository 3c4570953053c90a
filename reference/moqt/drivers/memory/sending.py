"""What one end of a simulated connection has to send, in the order of the writes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from moqt.drivers.credit import control_reserve
from moqt.drivers.memory.link import Wire
from moqt.drivers.memory.streams import SendHalf


@dataclass(frozen=True, slots=True)
class Write:
    """One `Transport.send` that waits for credit or for the link."""

    stream_id: int
    data: memoryview
    fin: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """What the link takes at a time, and when it arrives."""

    stream_id: int
    data: bytes
    fin: bool
    arrival: float
    lost: bool
    """Whether it was lost on the way first."""


class SendQueue:
    """Writes of all streams of a connection; `credit` is the peer's for all of them."""

    def __init__(self, wire: Wire, halves: dict[int, SendHalf]) -> None:
        self.credit = wire.link.connection_window
        self._reserve = control_reserve(self.credit)
        self._wire = wire
        self._halves = halves
        self._writes: deque[Write] = deque()
        self._queued = 0
        self._sent = 0

    def __len__(self) -> int:
        return len(self._writes)

    def add(self, stream_id: int, half: SendHalf, data: bytes | memoryview, fin: bool) -> None:
        """Append a write."""
        half.fin_written = fin
        half.written += len(data)
        self._queued += len(data)
        self._writes.append(Write(stream_id, memoryview(data).cast("B"), fin))

    def room(self, half: SendHalf) -> int:
        """Octets that a stream takes now: its credit, the connection's, and the buffer."""
        stream = half.limit - half.written
        connection = self.credit - self._sent - self._queued - self._reserve
        return max(0, min(stream, connection, self._wire.link.buffer - self._queued))

    def drop(self, stream_id: int) -> None:
        """Forget what a stream did not send yet."""
        self._queued -= sum(len(w.data) for w in self._writes if w.stream_id == stream_id)
        self._writes = deque(w for w in self._writes if w.stream_id != stream_id)
        self._wire.stream_arrival.pop(stream_id, None)

    def clear(self) -> None:
        """Forget everything."""
        self._writes.clear()
        self._queued = 0

    def take(self, now: float) -> Iterator[Piece]:
        """Give the link what credit and bandwidth allow now."""
        blocked: dict[int, None] = {}
        held: list[Write] = []
        while self._writes and self._wire.free_at <= now:
            write = self._writes.popleft()
            half = self._halves[write.stream_id]
            size = 0 if write.stream_id in blocked else self._sendable(half, write)
            if write.stream_id in blocked or (write.data and not size):
                blocked[write.stream_id] = None
                held.append(write)
                continue
            if size < len(write.data):
                self._writes.appendleft(Write(write.stream_id, write.data[size:], write.fin))
            yield self._piece(half, write, size, now)
        self._writes.extendleft(reversed(held))

    def _sendable(self, half: SendHalf, write: Write) -> int:
        size = min(len(write.data), half.limit - half.sent, self.credit - self._sent)
        piece = self._wire.piece_size() if size else None
        return size if piece is None else min(size, piece)

    def _piece(self, half: SendHalf, write: Write, size: int, now: float) -> Piece:
        fin = write.fin and size == len(write.data)
        half.sent += size
        half.ended = half.ended or fin
        self._sent += size
        self._queued -= size
        lost = self._wire.loses_piece()
        late = self._wire.link.recovery if lost else 0.0
        arrival = self._wire.arrival(now, size, write.stream_id, late)
        if fin:
            self._wire.stream_arrival.pop(write.stream_id, None)
        return Piece(write.stream_id, bytes(write.data[:size]), fin, arrival, lost)
