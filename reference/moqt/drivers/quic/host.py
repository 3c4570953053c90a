"""QUIC over UDP on asyncio: drain the socket, process, transmit once per batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aioquic.quic.configuration import QuicConfiguration

from moqt.drivers.quic.connection import Connection
from moqt.drivers.quic.demux import Demultiplexer
from moqt.drivers.quic.errors import listen_error
from moqt.drivers.quic.options import Configurations, QuicOptions
from moqt.drivers.quic.transport import QuicTransport
from moqt.drivers.quic.udp import Address, UdpSocket, bound_socket, connected_socket
from moqt.drivers.sessions import SessionFactory, make_session
from moqt.drivers.urls import MoqtUrl, client_config, parse_url
from moqt.wire.errors import SessionError

if TYPE_CHECKING:
    from moqt.endpoint import Endpoint
    from moqt.session import Session, SessionConfig


class QuicHost:
    """The Host of one Endpoint on the running asyncio loop (see `moqt.endpoint`).

    Use it from its loop. Code that acts on a session outside of the Endpoint's methods does so
    within `call_soon_threadsafe`, or calls `wake` afterwards.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        options: QuicOptions | None = None,
        *,
        session_factory: SessionFactory = make_session,
    ) -> None:
        """Raises DriverError for a datagram size out of range or an unusable log path."""
        self._options = options or QuicOptions()
        self._configurations = Configurations(self._options)
        self._loop = asyncio.get_running_loop()
        self._endpoint = endpoint
        self._make_session = session_factory
        self._now = self._loop.time()
        self._transports: dict[QuicTransport, None] = {}
        self._dirty: dict[QuicTransport, None] = {}
        self._sockets: list[UdpSocket] = []
        self._connecting: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._awake = False
        self._gone = False
        self._idle = asyncio.Event()
        self._idle.set()
        endpoint.attach(self)

    # The Host interface.

    def now(self) -> float:
        """Seconds on the loop's monotonic clock."""
        self._now = max(self._now, self._loop.time())
        return self._now

    def connect(self, url: str, config: SessionConfig) -> Session:
        """See `Host.connect`; a failure's SessionClosed says in words what it was."""
        target = parse_url(url)
        configuration = self._configurations.client(config.draft.alpn, target.host)
        now = self.now()
        transport = self._add(configuration, self._established)
        session = self._make_session(True, transport, client_config(target, config))
        session.url = url
        session.advance(now)
        transport.session = session
        self.wake(transport)
        task = self._loop.create_task(self._open(transport, target))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return session

    async def listen(
        self,
        host: str,
        port: int,
        config: SessionConfig | Iterable[SessionConfig],
        *,
        cert_file: Path,
        key_file: Path,
    ) -> int:
        """Accept connections on a UDP port (0: any free one) and return the port.

        One config for each ALPN that is taken. Raises DriverError when the port is in use, the
        host is unknown, or the certificate or its key cannot be read.
        """
        configs = config if isinstance(config, Iterable) else (config,)
        accepts = {config.draft.alpn: config for config in configs}
        configuration = self._configurations.server(list(accepts), cert_file, key_file)
        try:
            sock = await bound_socket(self._loop, host, port)
        except OSError as error:
            raise listen_error(host, port, error) from error
        accept = partial(self._accept, accepts, configuration)
        demultiplexer = Demultiplexer(configuration, accept)
        readable = partial(self._readable, demultiplexer.route)
        udp = UdpSocket(self._loop, sock, None, readable, self._writable)
        demultiplexer.socket = udp
        self._sockets.append(udp)
        return int(udp.address[1])

    async def close(self) -> None:
        """Close every session that is open without an error, then the sockets."""
        for transport in tuple(self._transports):
            transport.close(SessionError.NO_ERROR, "")
        self.wake()
        for task in self._connecting:
            task.cancel()
        await self._idle.wait()
        self.abort()

    def abort(self) -> None:
        """Go without a word, as a killed process does: no session hears of it, nor any peer."""
        self._gone = True
        for task in self._connecting:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for transport in tuple(self._transports):
            self._drop(transport)
        for udp in self._sockets:
            udp.close()
        self._sockets.clear()
        self._configurations.close()

    def call_soon_threadsafe(self, action: Callable[[], None]) -> None:
        """Run `action` on the loop, with sessions that know the time; from any thread."""

        def run() -> None:
            with self._batch():
                action()

        self._loop.call_soon_threadsafe(run)

    def wake(self, transport: QuicTransport | None = None) -> None:
        """Hand over events and transmit soon."""
        if transport is not None:
            self._dirty[transport] = None
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._settle)

    # A batch.

    @contextmanager
    def _batch(self) -> Iterator[float]:
        """What is done at one time, `now`; everything that follows from it is done at the end."""
        self._awake = True
        now = self.now()
        self._advance(now)
        try:
            yield now
        finally:
            self._settle()

    def _readable(
        self, route: Callable[[bytes, Address], QuicTransport | None], udp: UdpSocket
    ) -> None:
        touched: dict[QuicTransport, None] = {}
        with self._batch() as now:
            try:
                datagrams = udp.receive()
            except OSError as error:
                self._unreachable(udp, error)
                return
            for data, address in datagrams:
                transport = route(data, address)
                if transport is not None:
                    transport.receive(data, address, now)
                    touched[transport] = None
            for transport in touched:
                transport.handle_events(now)
            self._dirty.update(touched)

    def _writable(self, udp: UdpSocket) -> None:
        with self._batch():
            for transport in self._transports:
                if transport.socket is udp:
                    self._dirty[transport] = None

    def _settle(self) -> None:
        """Hand over events and flush sessions until nothing more happens, then transmit."""
        now = self.now()
        try:
            self._advance(now)
            self._flush(now)
            while self._handle_events(now) or self._dirty:
                self._flush(now)
                self._transmit(now)
        finally:
            self._awake = False
        for transport in tuple(self._transports):
            if transport.is_over:
                self._drop(transport)
        self._set_timer(now)
        if all(transport.ended for transport in self._transports):
            self._idle.set()

    def _advance(self, now: float) -> None:
        for transport in self._transports:
            transport.now = now
            if transport.session is not None:
                transport.session.advance(now)

    def _flush(self, now: float) -> None:
        for transport in tuple(self._transports):
            transport.flush(now)

    def _handle_events(self, now: float) -> bool:
        happened = False
        for transport in tuple(self._transports):
            happened |= transport.release()
            session = transport.session
            while session is not None and (event := session.next_event()) is not None:
                happened = True
                self._endpoint.handle_event(session, event, now)
        return happened

    def _transmit(self, now: float) -> None:
        dirty, self._dirty = self._dirty, {}
        for transport in dirty:
            try:
                transport.transmit(now)
            except OSError as error:
                transport.fail(_unreachable_reason(transport.socket, error))

    def _set_timer(self, now: float) -> None:
        times = [self._endpoint.next_timer()]
        for transport in self._transports:
            times.append(transport.timer)
            if transport.started and transport.session is not None:
                times.append(transport.session.next_timer())
        due = min((time for time in times if time is not None), default=None)
        if self._gone:
            due = None
        if self._timer is not None:
            if self._timer.when() == due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = self._loop.call_at(due, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        # asyncio calls up to its clock's resolution early.
        self._now = max(self._now, self._loop.time() + 1e-6)
        with self._batch() as now:
            for transport in tuple(self._transports):
                if transport.timer is not None and transport.timer <= now:
                    transport.handle_timer(now)
                    self._dirty[transport] = None
                session = transport.session
                if transport.started and session is not None and not transport.ended:
                    _fire(session.next_timer(), now, session.handle_timer)
            _fire(self._endpoint.next_timer(), now, self._endpoint.handle_timer)

    # Connections.

    def _add(
        self,
        configuration: QuicConfiguration,
        on_handshake: Callable[[QuicTransport, str], None],
        routes: dict[bytes, QuicTransport] | None = None,
        original_cid: bytes | None = None,
    ) -> QuicTransport:
        options = self._options
        connection = Connection(
            configuration=configuration,
            streams=(options.bidirectional_streams, options.unidirectional_streams),
            original_destination_connection_id=original_cid,
        )
        transport = QuicTransport(
            connection,
            self.now(),
            wake=self.wake,
            on_handshake=on_handshake,
            routes=routes,
            close_patience=options.close_patience,
            keep_alive=options.idle_timeout / 3,
        )
        transport.handshake_deadline = self.now() + options.connect_timeout
        self._transports[transport] = None
        self._idle.clear()
        return transport

    async def _open(self, transport: QuicTransport, target: MoqtUrl) -> None:
        try:
            sock, address = await connected_socket(self._loop, target.host, target.port)
        except OSError as error:
            reason = f"cannot reach {target.host}:{target.port}: {error.strerror or error}"
            self._advance(self.now())
            transport.fail(reason)
            self.wake(transport)
            return
        if transport.ended:
            sock.close()
            return
        readable = partial(self._readable, lambda data, address: transport)
        transport.socket = UdpSocket(self._loop, sock, address, readable, self._writable)
        transport.connection.connect(address, self.now())
        self.wake(transport)

    def _established(self, transport: QuicTransport, alpn: str) -> None:
        """The handshake of a connection of ours is done."""
        assert transport.session is not None
        transport.session.alpn = alpn
        transport.session.start(transport.now)

    def _accept(
        self,
        accepts: dict[str, SessionConfig],
        configuration: QuicConfiguration,
        demultiplexer: Demultiplexer,
        original_cid: bytes,
    ) -> QuicTransport:
        opened = partial(self._opened, accepts)
        transport = self._add(configuration, opened, demultiplexer.routes, original_cid)
        transport.socket = demultiplexer.socket
        transport.route(original_cid)
        transport.route(transport.connection.host_cid)
        return transport

    def _opened(
        self, accepts: dict[str, SessionConfig], transport: QuicTransport, alpn: str
    ) -> None:
        """The handshake of a peer's connection is done."""
        session = self._make_session(False, transport, accepts[alpn])
        session.alpn = alpn
        session.advance(transport.now)
        transport.session = session
        session.start(transport.now)
        self._endpoint.session_opened(session, transport.now)

    def _unreachable(self, udp: UdpSocket, error: OSError) -> None:
        """ICMP told that nothing listens where a connection of ours goes."""
        for transport in self._transports:
            if transport.socket is udp and udp.peer is not None:
                transport.fail(_unreachable_reason(udp, error))

    def _drop(self, transport: QuicTransport) -> None:
        self._transports.pop(transport, None)
        transport.drop()
        if transport.socket is not None and transport.socket.peer is not None:
            transport.socket.close()


def _unreachable_reason(udp: UdpSocket | None, error: OSError) -> str:
    what = error.strerror or str(error)
    if udp is None or udp.peer is None:
        return f"cannot send: {what}"
    return f"cannot reach {udp.peer[0]}:{udp.peer[1]}: {what}"


def _fire(due: float | None, now: float, handle_timer: Callable[[float], None]) -> None:
    if due is not None and due <= now:
        handle_timer(now)
