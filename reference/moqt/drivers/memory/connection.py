"""One end of a simulated connection: QUIC's stream semantics without packets."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from moqt.drivers.credit import HeldCredit
from moqt.drivers.memory.carrier import Carrier, ConnectionEvent
from moqt.drivers.memory.clock import Timer
from moqt.drivers.memory.link import Link, Wire
from moqt.drivers.memory.sending import Piece, SendQueue
from moqt.drivers.memory.streams import (
    ReceiveHalf,
    SendHalf,
    is_client_opened,
    is_unidirectional,
)

if TYPE_CHECKING:
    from moqt.session import Session

FLUSH_TIME = 1.0
"""Seconds that a close waits for the peer to take what was sent before it."""


class End:
    """The `Transport` of one session, and what arrives for it."""

    session: Session
    peer: End | None = None
    """None until the peer's node heard of the connection."""

    def __init__(
        self,
        network: Carrier,
        number: int,
        names: tuple[str, str],
        links: tuple[Link, Link],
        is_client: bool,
        seed: str,
    ) -> None:
        """`names` and `links` are (ours, the peer's): the link from us, the link to us."""
        self.name, self.peer_name = names
        self.number = number
        self.is_client = is_client
        self.established = False
        self.ended = False
        self.severed = False
        self.patience: Timer | None = None
        """Ends a handshake that nobody answers."""
        self._network = network
        outgoing, self._incoming = links
        self._wire = Wire(outgoing, Random(seed))
        self._sending: dict[int, SendHalf] = {}
        self._receiving: dict[int, ReceiveHalf] = {}
        self._queue = SendQueue(self._wire, self._sending)
        self._pump_scheduled = False
        self._closing: tuple[int, str] | None = None
        # Indexed by is_unidirectional.
        self._opened = [0, 0]
        self._stream_limit = [outgoing.streams(False), outgoing.streams(True)]
        self._seen = [0, 0]
        self._consumed = 0
        self._granted = self._incoming.connection_window
        self._held_credit = HeldCredit(self._incoming.connection_window)

    # What the session calls.

    def open_stream(self, *, unidirectional: bool) -> int | None:
        """See `Transport.open_stream`."""
        count = self._opened[unidirectional]
        if self._deaf or count >= self._stream_limit[unidirectional]:
            return None
        self._opened[unidirectional] = count + 1
        stream_id = count * 4 + (0 if self.is_client else 1) + (2 if unidirectional else 0)
        self._sending[stream_id] = SendHalf(self._wire.link.stream_window)
        if not unidirectional:
            self._receiving[stream_id] = ReceiveHalf(self._incoming.stream_window)
        return stream_id

    def send(self, stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        """See `Transport.send`."""
        half = self._sending.get(stream_id)
        if half is None or half.ended or half.fin_written or self._deaf:
            return
        self._queue.add(stream_id, half, data, fin)
        self._pump()

    def room(self, stream_id: int) -> int:
        """See `Transport.room`."""
        half = self._sending.get(stream_id)
        if half is None or half.ended or half.fin_written or self._deaf:
            return 0
        return self._queue.room(half)

    def reset(self, stream_id: int, code: int) -> None:
        """See `Transport.reset`."""
        half = self._sending.get(stream_id)
        if half is None or half.ended or self._deaf:
            return
        half.ended = True
        self._queue.drop(stream_id)
        self.observe("reset-sent", stream_id, code=code)
        at = self._wire.arrival(self._network.now, 0)
        self._carry(at, lambda peer: peer.reset_arrived(stream_id, code))
        self._forget_if_done(stream_id)

    def stop_sending(self, stream_id: int, code: int) -> None:
        """See `Transport.stop_sending`."""
        if stream_id not in self._receiving or self._deaf:
            return
        self.observe("stop-sent", stream_id, code=code)
        at = self._wire.arrival(self._network.now, 0)
        self._carry(at, lambda peer: peer.stop_arrived(stream_id, code))
        self.resume(stream_id)

    def pause(self, stream_id: int) -> None:
        """See `Transport.pause`."""
        if half := self._receiving.get(stream_id):
            half.paused = True

    def resume(self, stream_id: int) -> None:
        """See `Transport.resume`; what was held back arrives after the current call."""
        half = self._receiving.get(stream_id)
        if half is not None and half.paused:
            half.paused = False
            self._network.call_at(self._network.now, self, lambda: self._release(stream_id))

    def all_acknowledged(self, stream_id: int) -> bool:
        """See `Transport.all_acknowledged`."""
        return stream_id not in self._sending

    def send_datagram(self, data: bytes) -> bool:
        """See `Transport.send_datagram`."""
        link = self._wire.link
        backlog = (self._wire.free_at - self._network.now) * (link.bandwidth or 0.0)
        if self._deaf or len(data) > link.max_datagram or backlog > link.buffer:
            return False
        at = self._wire.arrival(self._network.now, len(data))
        lost = self._wire.loses_datagram()
        self.observe("datagram-lost" if lost else "datagram-sent", data=data)
        if not lost:
            self._carry(at, lambda peer: peer.datagram_arrived(data), droppable=True)
        return True

    def close(self, code: int, reason: str) -> None:
        """See `Transport.close`; the session hears of it after the current call."""
        if self._deaf:
            return
        self._closing = (code, reason)
        self._pump()
        at = self._network.now + (FLUSH_TIME if self._queue else 0.0)
        self._network.call_at(at, self, self._close_now)

    # What the network calls.

    def establish(self, alpn: str) -> None:
        """The handshake is done: the session starts."""
        if self._deaf:
            return
        self.established = True
        if self.patience is not None:
            self.patience.cancel()
        self.observe("established", reason=alpn)
        self.session.alpn = alpn
        self.session.start(self._network.now)

    def lost(self, reason: str, kind: str = "lost") -> None:
        """The connection ended without a word of the peer."""
        self._end(kind, None, reason, by_peer=False)

    def vanish(self) -> None:
        """Our node was killed: nobody hears or says anything here any more."""
        self.ended = True
        self._forget_streams()

    def data_arrived(self, stream_id: int, data: bytes, fin: bool) -> None:
        """A piece of a stream, in order within the stream."""
        if self.ended:
            return
        half = self._receive_half(stream_id)
        if fin:
            self._acknowledge(stream_id)
        if half is None:
            self._consume(len(data))
            return
        if half.paused or half.held:
            half.held.append((data, fin))
            granted = self._held_credit.hold(len(data))
            half.granted_early += granted
            self._consume(granted)
        else:
            self._deliver(stream_id, half, data, fin)

    def reset_arrived(self, stream_id: int, code: int) -> None:
        """RESET_STREAM: what is held back is dropped."""
        if self.ended:
            return
        half = self._receive_half(stream_id)
        self._acknowledge(stream_id)
        if half is None:
            return
        held = sum(len(data) for data, _ in half.held)
        self.observe("reset-received", stream_id, code=code)
        self._end_receiving(stream_id)
        self._consume_held(half, held)
        self.session.stream_reset(stream_id, code, self._network.now)

    def stop_arrived(self, stream_id: int, code: int) -> None:
        """STOP_SENDING: the session may reset with a code of its own, else we copy this one."""
        half = self._sending.get(stream_id)
        if self.ended or half is None or half.ended:
            return
        self.observe("stop-received", stream_id, code=code)
        self.session.stop_sending_received(stream_id, code, self._network.now)
        self.reset(stream_id, code)

    def datagram_arrived(self, data: bytes) -> None:
        """A datagram that was not lost."""
        if not self.ended:
            self.observe("datagram-received", data=data)
            self.session.datagram(data, self._network.now)

    def close_arrived(self, code: int, reason: str) -> None:
        """CONNECTION_CLOSE of the peer."""
        self._end("closed", code, reason, by_peer=True)

    # Sending.

    @property
    def _deaf(self) -> bool:
        return self.ended or self._closing is not None

    def _pump(self) -> None:
        """Give the link what it takes now; come back when it is free."""
        for piece in self._queue.take(self._network.now):
            self._transmit(piece)
        if self._queue and self._wire.free_at > self._network.now:
            self._schedule_pump()

    def _transmit(self, piece: Piece) -> None:
        stream_id, data, fin = piece.stream_id, piece.data, piece.fin
        self.observe("data-lost" if piece.lost else "data-sent", stream_id, data=data, fin=fin)
        self._carry(piece.arrival, lambda peer: peer.data_arrived(stream_id, data, fin))
        if fin:
            self._forget_if_done(stream_id)

    def _schedule_pump(self) -> None:
        if not self._pump_scheduled:
            self._pump_scheduled = True
            self._network.call_at(self._wire.free_at, self, self._pump_again)

    def _pump_again(self) -> None:
        self._pump_scheduled = False
        if not self.ended:
            self._pump()

    def _close_now(self) -> None:
        if self.ended or self._closing is None:
            return
        code, reason = self._closing
        self._carry_close(code, reason)
        self._end("closed", code, reason, by_peer=False)

    def _carry_close(self, code: int, reason: str) -> None:
        # After everything that was sent: a close must not cut off what went before it.
        at = max(self._wire.latest_arrival, self._wire.arrival(self._network.now, 0))
        self._carry(at, lambda peer: peer.close_arrived(code, reason))

    def _carry(self, at: float, action: Callable[[End], None], *, droppable: bool = False) -> None:
        def arrive() -> None:
            if self.peer is not None:
                action(self.peer)

        self._network.carry(at, self, arrive, droppable=droppable)

    # Receiving.

    def _receive_half(self, stream_id: int) -> ReceiveHalf | None:
        """The half that takes a frame, or None when it ended before."""
        if is_client_opened(stream_id) != self.is_client:
            kind = is_unidirectional(stream_id)
            # RFC 9000 §2.1: a stream opens all lower-numbered streams of its kind.
            for number in range(self._seen[kind], stream_id // 4 + 1):
                opened = number * 4 + (stream_id & 3)
                self._receiving[opened] = ReceiveHalf(self._incoming.stream_window)
                if not kind:
                    self._sending[opened] = SendHalf(self._wire.link.stream_window)
            self._seen[kind] = max(self._seen[kind], stream_id // 4 + 1)
        return self._receiving.get(stream_id)

    def _deliver(self, stream_id: int, half: ReceiveHalf, data: bytes, fin: bool) -> None:
        self.observe("data-received", stream_id, data=data, fin=fin)
        if fin:
            self._end_receiving(stream_id)
        self._consume_held(half, len(data))
        if not fin:
            self._consume_stream(stream_id, half, len(data))
        self.session.stream_data(stream_id, data, fin, self._network.now)

    def _release(self, stream_id: int) -> None:
        half = self._receiving.get(stream_id)
        while half is not None and half.held and not half.paused and not self.ended:
            data, fin = half.held.popleft()
            self._deliver(stream_id, half, data, fin)

    def _consume_stream(self, stream_id: int, half: ReceiveHalf, octets: int) -> None:
        """Grant the peer new credit once half a window was consumed."""
        half.consumed += octets
        window = self._incoming.stream_window
        if half.granted - half.consumed <= window // 2:
            half.granted = half.consumed + window
            granted = half.granted
            self._control(lambda peer: peer._stream_credit(stream_id, granted))

    def _consume_held(self, half: ReceiveHalf, octets: int) -> None:
        """Octets left the connection; those that were held before may be paid for already."""
        early = min(octets, half.granted_early)
        half.granted_early -= early
        self._held_credit.release(early)
        self._consume(octets - early)

    def _consume(self, octets: int) -> None:
        """Grant the peer new credit once half a window was consumed."""
        self._consumed += octets
        window = self._incoming.connection_window
        if self._granted - self._consumed <= window // 2:
            self._granted = self._consumed + window
            total = self._granted
            self._control(lambda peer: peer._connection_credit(total))

    def _end_receiving(self, stream_id: int) -> None:
        self._receiving.pop(stream_id, None)
        self._forget_if_done(stream_id)

    def _forget_if_done(self, stream_id: int) -> None:
        """Grant a new stream for one of the peer's that ended in both directions."""
        half = self._sending.get(stream_id)
        if (
            is_client_opened(stream_id) != self.is_client
            and stream_id not in self._receiving
            and (half is None or half.ended)
        ):
            kind = is_unidirectional(stream_id)
            self._control(lambda peer: peer._more_streams(kind))

    def _acknowledge(self, stream_id: int) -> None:
        self._control(lambda peer: peer._acknowledged(stream_id))

    def _control(self, action: Callable[[End], None]) -> None:
        if not self.ended:
            self._carry(self._wire.arrival(self._network.now, 0), action)

    # Control that arrives from the peer's end.

    def _stream_credit(self, stream_id: int, limit: int) -> None:
        if half := self._sending.get(stream_id):
            half.limit = max(half.limit, limit)
            self._pump()

    def _connection_credit(self, limit: int) -> None:
        self._queue.credit = max(self._queue.credit, limit)
        if not self.ended:
            self._pump()

    def _more_streams(self, unidirectional: bool) -> None:
        self._stream_limit[unidirectional] += 1

    def _acknowledged(self, stream_id: int) -> None:
        self._sending.pop(stream_id, None)

    # The end.

    def _end(self, kind: str, code: int | None, reason: str, *, by_peer: bool) -> None:
        if self.ended:
            return
        self.ended = True
        self.observe(kind, code=code, reason=reason)
        self._forget_streams()
        self.session.connection_closed(code, reason, by_peer, self._network.now)

    def _forget_streams(self) -> None:
        self._queue.clear()
        self._sending.clear()
        self._receiving.clear()

    def observe(
        self,
        kind: str,
        stream_id: int | None = None,
        *,
        data: bytes = b"",
        fin: bool = False,
        code: int | None = None,
        reason: str = "",
    ) -> None:
        if self._network.observed:
            now, number = self._network.now, self.number
            event = ConnectionEvent(
                now, number, self.name, self.peer_name, kind, stream_id, data, fin, code, reason
            )
            self._network.observe(event)
