"""The link between the nodes of a run: simulated under virtual time, or QUIC on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kvcs_conformance.errors import UsageError

if TYPE_CHECKING:
    from moqt.drivers.quic import QuicHost
    from moqt.endpoint import Endpoint
    from moqt.session import SessionConfig

Action = Callable[[], None]
_POLL = 0.002


class Link(Protocol):
    """What a stage needs of the network; all calls return when they are done."""

    name: str

    def now(self) -> float:
        """Seconds since the run began."""

    def serve(self, name: str, endpoint: Endpoint, config: SessionConfig) -> str:
        """Let an endpoint listen; its URL."""

    def client(self, name: str, endpoint: Endpoint) -> None:
        """An endpoint that only connects."""

    def act(self, name: str, action: Action) -> None:
        """Let a node do something now, and let what it sent begin to move."""

    def later(self, name: str, delay: float, action: Action) -> None:
        """Let a node do something after `delay` seconds of the run's clock."""

    def wait(self, until: Callable[[], bool], within: float) -> bool:
        """Let time pass until the condition holds; False when it does not within the time."""

    def close(self) -> None:
        """End all that the run began."""


class MemoryLink:
    """A simulated network: the same seed gives the same run, octet for octet."""

    name = "memory"

    def __init__(self, seed: int = 0) -> None:
        from moqt.drivers.memory import Network

        self._network = Network(seed=seed)

    def now(self) -> float:
        return self._network.now

    def serve(self, name: str, endpoint: Endpoint, config: SessionConfig) -> str:
        self._network.listen(name, endpoint, config)
        return f"moqt://{name}/"

    def client(self, name: str, endpoint: Endpoint) -> None:
        self._network.client(name, endpoint)

    def act(self, name: str, action: Action) -> None:
        self._network.at(self._network.now, action)
        self._network.run(self._network.now)

    def later(self, name: str, delay: float, action: Action) -> None:
        self._network.at(self._network.now + delay, action)

    def wait(self, until: Callable[[], bool], within: float) -> bool:
        from moqt.drivers.memory import SimulationError

        with contextlib.suppress(SimulationError):
            self._network.run(until, limit=within)
        return until()

    def close(self) -> None:
        return None


class QuicLink:
    """Loopback QUIC: one asyncio loop, one host per node, a throw-away certificate."""

    name = "quic"

    def __init__(self, seed: int = 0) -> None:
        from moqt.drivers.quic import write_throwaway_certificate

        self._folder = tempfile.TemporaryDirectory(prefix="kvcs-")
        self._cert = Path(self._folder.name, "cert.pem")
        self._key = Path(self._folder.name, "key.pem")
        write_throwaway_certificate(self._cert, self._key)
        self._loop = asyncio.new_event_loop()
        self._begun = self._loop.time()
        self._hosts: dict[str, QuicHost] = {}
        self._failures: list[BaseException] = []
        self._loop.set_exception_handler(self._failed)

    def now(self) -> float:
        return self._loop.time() - self._begun

    def serve(self, name: str, endpoint: Endpoint, config: SessionConfig) -> str:
        async def listen() -> int:
            host = await self._host(name, endpoint)
            return await host.listen(
                "127.0.0.1", 0, config, cert_file=self._cert, key_file=self._key
            )

        return f"moqt://127.0.0.1:{self._loop.run_until_complete(listen())}/"

    def client(self, name: str, endpoint: Endpoint) -> None:
        self._loop.run_until_complete(self._host(name, endpoint))

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
        self._loop.call_later(delay, self._hosts[name].call_soon_threadsafe, action)

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

    def close(self) -> None:
        for host in self._hosts.values():
            self._loop.run_until_complete(host.close())
        self._loop.close()
        self._folder.cleanup()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An exception in a callback must end the run as it would on the simulated network."""
        self._failures.append(context.get("exception") or RuntimeError(context["message"]))

    async def _host(self, name: str, endpoint: Endpoint) -> QuicHost:
        from moqt.drivers.quic import QuicHost, QuicOptions

        host = self._hosts[name] = QuicHost(endpoint, QuicOptions(insecure=True))
        return host


LINKS: dict[str, Callable[[int], Link]] = {"memory": MemoryLink, "quic": QuicLink}


def make_link(name: str, seed: int) -> Link:
    """The link of that name; UsageError when the system does not let it be."""
    try:
        return LINKS[name](seed)
    except OSError as error:
        raise UsageError(f"no {name} link here: {error.strerror}") from error
