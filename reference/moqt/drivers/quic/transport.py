"""One QUIC connection and the session on it: events go up, writes go down."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aioquic.quic import events

from moqt.drivers.credit import HeldCredit
from moqt.drivers.quic.connection import Connection
from moqt.drivers.quic.errors import close_reason
from moqt.drivers.quic.udp import Address, UdpSocket
from moqt.wire.errors import SessionError

if TYPE_CHECKING:
    from moqt.session import Session

LONGEST_REASON = 512
"""Octets of a reason phrase that go out, so that the close frame fits a packet."""

CLOSE_REPEATS = 3

SMALL = 256
"""A held piece below that many octets is packed together with its neighbours."""

PACK = 4096
"""How many octets are packed into one piece."""


@dataclass(slots=True)
class Inbound:
    """A stream that we read: what was delivered of it, and what `pause` holds back."""

    consumed: int = 0
    paused: bool = False
    held: deque[bytes | bytearray] = field(default_factory=deque)
    granted_early: int = 0
    """Held octets that the connection counts as consumed."""
    fin: bool = False
    """Whether FIN waits behind what is held back."""

    def hold(self, data: bytes) -> None:
        """Keep octets for later; many small pieces cost hardly more than their octets."""
        last = self.held[-1] if self.held else None
        if len(data) >= SMALL:
            self.held.append(data)
        elif isinstance(last, bytearray) and len(last) < PACK:
            last += data
        else:
            self.held.append(bytearray(data))


@dataclass(slots=True)
class Closing:
    """A close that waits until what was sent before it is acknowledged."""

    code: int
    reason: str
    deadline: float


class QuicTransport:
    """The `Transport` of one session.

    `wake` is called when something is to be transmitted or delivered. `on_handshake` starts the
    session of the ALPN. `routes` is the table by which a server's socket finds us.
    """

    def __init__(
        self,
        connection: Connection,
        now: float,
        *,
        wake: Callable[[QuicTransport], None],
        on_handshake: Callable[[QuicTransport, str], None],
        routes: dict[bytes, QuicTransport] | None = None,
        close_patience: float,
        keep_alive: float,
    ) -> None:
        self.connection = connection
        self.session: Session | None = None
        self.socket: UdpSocket | None = None
        """None until the peer's address is known."""
        self.peer_address: Address | None = None
        self.now = now
        self.started = False
        self.ended = False
        self.timer: float | None = None
        self.closing: Closing | None = None
        self.handshake_deadline: float | None = None
        self.failed = False
        self._routes = routes
        self._keep_alive = keep_alive
        self._quiet_since = now
        self._wake = wake
        self._on_handshake = on_handshake
        self._close_patience = close_patience
        self._inbound: dict[int, Inbound] = {}
        self._held_credit = HeldCredit(connection.configuration.max_data)
        self._resumed: dict[int, None] = {}
        self._close_packets: list[tuple[bytes, Address]] = []
        self._close_repeats = CLOSE_REPEATS

    # What the session calls.

    def open_stream(self, *, unidirectional: bool) -> int | None:
        """See `Transport.open_stream`."""
        return None if self._deaf else self.connection.open_stream(unidirectional)

    def send(self, stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        """See `Transport.send`."""
        if not self._deaf and self.connection.write(stream_id, data, fin):
            self._wake(self)

    def room(self, stream_id: int) -> int:
        """See `Transport.room`."""
        return 0 if self._deaf else self.connection.room(stream_id)

    def reset(self, stream_id: int, code: int) -> None:
        """See `Transport.reset`."""
        if not self._deaf and self.connection.reset(stream_id, code):
            self._wake(self)

    def stop_sending(self, stream_id: int, code: int) -> None:
        """See `Transport.stop_sending`."""
        if not self._deaf and self.connection.stop(stream_id, code):
            self.resume(stream_id)
            self._wake(self)

    def pause(self, stream_id: int) -> None:
        """See `Transport.pause`."""
        if inbound := self._inbound.get(stream_id):
            inbound.paused = True

    def resume(self, stream_id: int) -> None:
        """See `Transport.resume`; what was held back arrives after the current call."""
        inbound = self._inbound.get(stream_id)
        if inbound is not None and inbound.paused:
            inbound.paused = False
            self._resumed[stream_id] = None
            self._wake(self)

    def all_acknowledged(self, stream_id: int) -> bool:
        """See `Transport.all_acknowledged`."""
        return self.connection.all_acknowledged(stream_id)

    def send_datagram(self, data: bytes) -> bool:
        """See `Transport.send_datagram`."""
        if self._deaf or not self.connection.send_datagram(data):
            return False
        self._wake(self)
        return True

    def close(self, code: int, reason: str) -> None:
        """See `Transport.close`; the session hears of it after the current call."""
        if not self._deaf:
            phrase = reason.encode()[:LONGEST_REASON].decode(errors="ignore")
            self.closing = Closing(code, phrase, self.now + self._close_patience)
            self._wake(self)

    @property
    def _deaf(self) -> bool:
        return self.ended or self.closing is not None

    # What the host calls.

    def receive(self, data: bytes, address: Address, now: float) -> None:
        """A UDP datagram of this connection."""
        self.now = self._quiet_since = now
        self.peer_address = address
        if self._close_packets and self._close_repeats:
            # The peer did not hear the close yet (RFC 9000 §10.2.1).
            self._close_repeats -= 1
            if self.socket is not None:
                self.socket.send(self._close_packets)
            return
        if self.failed:
            return
        try:
            self.connection.receive_datagram(data, address, now)
        except Exception as error:
            # The library met octets that it does not expect: no other connection suffers.
            self.fail(f"the QUIC library cannot handle a packet: {error!r}")

    def handle_events(self, now: float) -> None:
        """Hand what arrived to the session: each stream's octets of a batch in one piece."""
        self.now = now
        arrived: dict[int, list[bytes]] = {}
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, events.StreamDataReceived):
                self._take_data(event, arrived)
            elif isinstance(event, events.StreamReset):
                self._flush(event.stream_id, arrived)
                self._take_reset(event)
            elif isinstance(event, events.StopSendingReceived):
                self._take_stop(event)
            elif isinstance(event, events.DatagramFrameReceived):
                if self.started and self.session is not None and not self.ended:
                    self.session.datagram(event.data, now)
            elif isinstance(event, events.ConnectionIdIssued):
                self.route(event.connection_id)
            elif isinstance(event, events.ConnectionIdRetired):
                self._unroute(event.connection_id)
            elif isinstance(event, events.HandshakeCompleted):
                self._take_handshake(event)
            elif isinstance(event, events.ConnectionTerminated):
                for stream_id in tuple(arrived):
                    self._flush(stream_id, arrived)
                code, reason = close_reason(event, self.connection.configuration.alpn_protocols)
                self.end(code, reason, by_peer=self.connection.closed_by_peer)
        for stream_id in tuple(arrived):
            self._flush(stream_id, arrived)

    def release(self) -> bool:
        """Deliver what `resume` asked for; whether there was something."""
        resumed, self._resumed = self._resumed, {}
        for stream_id in resumed:
            inbound = self._inbound.get(stream_id)
            if inbound is None or inbound.paused or self.ended:
                continue
            data = b"".join(inbound.held)
            inbound.held.clear()
            if data or inbound.fin:
                self._deliver(stream_id, inbound, data, fin=inbound.fin)
        return bool(resumed)

    def flush(self, now: float) -> None:
        """Let the session write what there is room for."""
        if self.started and not self.ended and self.session is not None:
            self.session.writable(now)

    def transmit(self, now: float) -> None:
        """Send all that may leave now; raises OSError when the system refuses."""
        self.now = now
        if self.closing is not None and not self.ended:
            self._close_if_due(now)
        if self.failed:
            return
        if self.socket is None:
            self.timer = None if self.ended else self.handshake_deadline
            return
        if self.socket.blocked:
            return
        packets = self.connection.datagrams_to_send(now)
        if packets:
            self.socket.send(packets)
        if self.ended and not self._close_packets:
            self._close_packets = packets
        self.handle_events(now)
        self._set_timer()

    def handle_timer(self, now: float) -> None:
        """The time that `timer` named has come."""
        self.now = now
        if self.handshake_deadline is not None and self.handshake_deadline <= now:
            self.fail("the peer does not answer")
            return
        if self.socket is None:
            return
        due = self.connection.get_timer()
        if due is not None and due <= now:
            self.connection.handle_timer(now)
        if self.started and now >= self._quiet_since + self._keep_alive:
            self._quiet_since = now
            self.connection.send_ping(0)
        self.handle_events(now)

    def fail(self, reason: str) -> None:
        """The connection is no use any more, and there is nobody to tell."""
        self.failed = True
        self.timer = None
        self.end(None, reason, by_peer=False)

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more, not even a repeated close."""
        return self.ended and self.timer is None

    def end(self, code: int | None, reason: str, *, by_peer: bool) -> None:
        """Nothing more comes or goes: the session hears why."""
        if self.ended:
            return
        self.ended = True
        self._inbound.clear()
        self._resumed.clear()
        if self.session is not None:
            self.session.connection_closed(code, reason, by_peer, self.now)

    def route(self, connection_id: bytes) -> None:
        """Datagrams to this connection ID are ours."""
        if self._routes is not None:
            self._routes[connection_id] = self

    def drop(self) -> None:
        """The connection is over: no datagram finds it any more."""
        self.connection.end_log()
        if self._routes is not None:
            for connection_id in [cid for cid, other in self._routes.items() if other is self]:
                del self._routes[connection_id]

    def _unroute(self, connection_id: bytes) -> None:
        if self._routes is not None:
            self._routes.pop(connection_id, None)

    def _set_timer(self) -> None:
        times = [self.connection.get_timer()]
        if not self.ended:
            times.append(self.handshake_deadline)
            if self.closing is not None:
                times.append(self.closing.deadline)
            if self.started:
                times.append(self._quiet_since + self._keep_alive)
        self.timer = min((time for time in times if time is not None), default=None)

    # Events.

    def _take_handshake(self, event: events.HandshakeCompleted) -> None:
        self.handshake_deadline = None
        if self.ended:
            return
        if self.connection.takes_datagrams:
            self.started = True
            self._on_handshake(self, event.alpn_protocol or "")
            return
        reason = "the peer does not negotiate the QUIC DATAGRAM extension"
        self.connection.close(SessionError.PROTOCOL_VIOLATION, None, reason)
        self.end(None, reason, by_peer=False)

    def _take_data(self, event: events.StreamDataReceived, arrived: dict[int, list[bytes]]) -> None:
        inbound = self._inbound.get(event.stream_id)
        if inbound is None:
            inbound = self._inbound[event.stream_id] = Inbound()
        if inbound.paused or inbound.held:
            self._hold(inbound, event.data)
            inbound.fin = event.end_stream
            return
        arrived.setdefault(event.stream_id, []).append(event.data)
        if event.end_stream:
            self._flush(event.stream_id, arrived, fin=True)

    def _flush(self, stream_id: int, arrived: dict[int, list[bytes]], *, fin: bool = False) -> None:
        pieces = arrived.pop(stream_id, None)
        inbound = self._inbound.get(stream_id)
        if pieces is None or inbound is None:
            return
        if inbound.paused:
            # Paused by what the session did with another stream of the same batch.
            for piece in pieces:
                self._hold(inbound, piece)
            inbound.fin = fin
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._deliver(stream_id, inbound, data, fin=fin)

    def _hold(self, inbound: Inbound, data: bytes) -> None:
        inbound.hold(data)
        granted = self._held_credit.hold(len(data))
        inbound.granted_early += granted
        self.connection.consume(granted)

    def _consume(self, inbound: Inbound, octets: int) -> None:
        """Octets left the connection; those that were held before may be paid for already."""
        self.connection.consume(max(octets - inbound.granted_early, 0))
        self._held_credit.release(inbound.granted_early)
        inbound.granted_early = 0

    def _deliver(self, stream_id: int, inbound: Inbound, data: bytes, *, fin: bool) -> None:
        inbound.consumed += len(data)
        self._consume(inbound, len(data))
        self.connection.consume_stream(stream_id, inbound.consumed)
        if fin:
            self._forget(stream_id)
        if self.session is not None and not self.ended:
            self.session.stream_data(stream_id, data, fin, self.now)

    def _take_reset(self, event: events.StreamReset) -> None:
        stream_id = event.stream_id
        inbound = self._inbound.get(stream_id) or Inbound()
        self._consume(inbound, self.connection.received_size(stream_id) - inbound.consumed)
        self._forget(stream_id)
        if self.session is not None and not self.ended:
            self.session.stream_reset(stream_id, event.error_code, self.now)

    def _forget(self, stream_id: int) -> None:
        self._inbound.pop(stream_id, None)
        self.connection.stream_ended(stream_id)

    def _take_stop(self, event: events.StopSendingReceived) -> None:
        if self.session is not None and not self.ended:
            self.session.stop_sending_received(event.stream_id, event.error_code, self.now)
            self.reset(event.stream_id, event.error_code)

    def _close_if_due(self, now: float) -> None:
        assert self.closing is not None
        waiting = self.started and self.connection.unfinished and now < self.closing.deadline
        if not waiting:
            self.connection.close(self.closing.code, None, self.closing.reason)
            self.end(self.closing.code, self.closing.reason, by_peer=False)
