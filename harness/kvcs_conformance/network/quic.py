"""Loopback QUIC: one asyncio loop, one host per node, a UDP relay where the plan wants one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moqt.drivers.quic import QuicHost, QuicOptions, write_throwaway_certificate
from moqt.drivers.sessions import make_session
from moqt.drivers.urls import parse_url

from kvcs_conformance.network.base import Action
from kvcs_conformance.network.doing import Doing
from kvcs_conformance.network.plan import PLAIN, Plan
from kvcs_conformance.network.udp import Lane, UdpRelay
from kvcs_conformance.remote import Remote

if TYPE_CHECKING:
    from moqt.endpoint import Endpoint
    from moqt.session import SessionConfig

HOST = "127.0.0.1"
_POLL = 0.002


class QuicLink(Doing):
    """Loopback QUIC with a throw-away certificate.

    The TLS secrets of all connections go to `keylog`; aioquic's own qlog files go to `qlog_dir`
    when there is one.
    """

    name = "quic"

    def __init__(
        self,
        seed: int = 0,
        plan: Plan = PLAIN,
        *,
        qlog_dir: Path | None = None,
        remote: Remote | None = None,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kvcs-")
        folder = Path(self._folder.name)
        self._certificate = folder / "cert.pem"
        self._key = folder / "key.pem"
        self._keylog = folder / "keylog.txt"
        self._qlog_dir = qlog_dir
        self._remote = remote
        write_throwaway_certificate(self._certificate, self._key)
        self._loop = asyncio.new_event_loop()
        self._begun = self._loop.time()
        super().__init__(plan)
        self._hosts: dict[str, QuicHost] = {}
        self._ports: dict[str, int] = {}
        self._relays: dict[tuple[str, str], UdpRelay] = {}
        self._failures: list[BaseException] = []
        self._loop.set_exception_handler(self._failed)

    def now(self) -> float:
        return self._loop.time() - self._begun

    def serve(self, name: str, endpoint: Endpoint, config: SessionConfig) -> str:
        async def listen() -> int:
            host = self._host(name, endpoint)
            port = self._ports.get(name, 0)
            return await host.listen(
                HOST, port, config, cert_file=self._certificate, key_file=self._key
            )

        self._ports[name] = self._loop.run_until_complete(listen())
        return _url(self._ports[name])

    def client(self, name: str, endpoint: Endpoint) -> None:
        async def make() -> None:
            self._host(name, endpoint)

        self._loop.run_until_complete(make())

    def url(self, to: str, by: str, url: str) -> str:
        # A node that accepts knows who connects by the relay between them.
        if frozenset((to, by)) not in self.plan.touched and not self.plan.streams:
            return url
        relay = self._relays.get((by, to))
        if relay is None:
            there, back = self._lane(by, to), self._lane(to, by)
            target = parse_url(url)
            relay = UdpRelay(self._loop, (target.host, target.port), there, back)
            self._relays[by, to] = relay
        return _url(relay.port)

    def act(self, name: str, action: Action) -> None:
        done: asyncio.Future[None] = self._loop.create_future()

        def call() -> None:
            try:
                action()
            except Exception as error:  # handed to the step that asked for the action
                done.set_exception(error)
            else:
                done.set_result(None)

        self._hosts[name].call_soon_threadsafe(call)
        self._loop.run_until_complete(done)

    def later(self, name: str, delay: float, action: Action) -> None:
        host = self._hosts[name]

        def run() -> None:
            if self._hosts.get(name) is host:
                host.call_soon_threadsafe(action)

        self._loop.call_later(delay, run)

    def wait(self, until: Callable[[], bool], within: float) -> bool:
        async def watch() -> bool:
            end = self._loop.time() + within
            while not until():
                if self._failures:
                    raise self._failures[0]
                if self._loop.time() > end:
                    return False
                await asyncio.sleep(_POLL)
            return True

        return self._loop.run_until_complete(watch())

    @property
    def certificate(self) -> Path | None:
        return self._certificate

    def keylog(self) -> str:
        return self._keylog.read_text() if self._keylog.is_file() else ""

    def close(self) -> None:
        for relay in self._relays.values():
            relay.partition(False)
        for host in self._hosts.values():
            self._loop.run_until_complete(host.close())
        for relay in self._relays.values():
            relay.close()
        self._loop.close()
        self._folder.cleanup()

    # Faults.

    def _partition(self, one: str, other: str) -> None:
        for relay in self._between(one, other):
            relay.partition(True)

    def _heal(self, one: str, other: str) -> None:
        for relay in self._between(one, other):
            relay.partition(False)

    def _sever(self, one: str, other: str) -> None:
        for relay in self._between(one, other):
            relay.sever()

    def _kill(self, name: str) -> None:
        self._hosts.pop(name).abort()

    def _peer_of(self, node: str, transport: Any) -> str:
        """By its address: that of a listening node or of a UDP relay's side."""
        address = transport.peer_address
        for (by, to), relay in self._relays.items():
            if node == to and address in relay.addresses():
                return by
            if node == by and address is not None and address[1] == relay.port:
                return to
        return next((to for to, port in self._ports.items() if address == (HOST, port)), "")

    def _between(self, one: str, other: str) -> list[UdpRelay]:
        return [relay for pair, relay in self._relays.items() if set(pair) == {one, other}]

    def _lane(self, sender: str, receiver: str) -> Lane:
        path = self.plan.between(sender, receiver)
        ends = {"from": sender, "to": receiver}
        return Lane(
            lambda what, **details: self.note(what, **ends, **details),
            latency=path.latency or 0.0,
            bandwidth=path.bandwidth,
            lost=path.lost.get(sender, frozenset()),
        )

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception in a callback must end the run as it would on the simulated network."""
        self._failures.append(context.get("exception") or RuntimeError(context["message"]))

    def _host(self, name: str, endpoint: Endpoint) -> QuicHost:
        granted = self.plan.grants.get(name) or getattr(endpoint, "grants", None)
        options: dict[str, Any] = granted.options() if granted is not None else {}
        faults = self.interference(name)
        qlog_dir = None
        if self._qlog_dir is not None:  # both ends of a connection name their file alike
            qlog_dir = self._qlog_dir / name
            qlog_dir.mkdir(exist_ok=True)
        host = self._hosts[name] = QuicHost(
            endpoint,
            QuicOptions(
                insecure=self._remote is None or self._remote.insecure,
                ca_file=self._remote.ca if self._remote is not None else None,
                keylog_file=self._keylog,
                qlog_dir=qlog_dir,
                idle_timeout=self.plan.idle_timeout,
                datagram_size=self.plan.datagram_size,
                **options,
            ),
            session_factory=make_session if faults is None else faults.make_session,
        )
        return host


def _url(port: int) -> str:
    return f"moqt://{HOST}:{port}/"
