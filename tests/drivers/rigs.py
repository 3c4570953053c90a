"""One scenario, two drivers: real sessions over the simulated network or over loopback QUIC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from moqt.drivers.memory import Network
from moqt.drivers.quic import QuicHost, QuicOptions
from moqt.endpoint import Host
from moqt.session import Session, SessionConfig
from moqt.session.events import Event

from tests.drivers.loop import PATIENCE, Signal

T = TypeVar("T")

DEFAULTS = QuicOptions()


class Recorder:
    """An Endpoint that keeps its sessions and events, and may answer them."""

    def __init__(self) -> None:
        self.host: Host | None = None
        self.sessions: list[Session] = []
        self.events: list[Event] = []
        self.answer: Callable[[Session, Event], None] = lambda session, event: None
        self.signal: Callable[[], None] = lambda: None

    def attach(self, host: Host) -> None:
        self.host = host

    def session_opened(self, session: Session, now: float) -> None:
        self.sessions.append(session)
        self.signal()

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        self.events.append(event)
        self.answer(session, event)
        self.signal()

    def next_timer(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None:
        raise AssertionError("there is no timer to fire")

    def seen(self, kind: type[T]) -> list[T]:
        """Events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


class Rig(Protocol):
    """A publisher that listens and a consumer that is connected to it, on one driver."""

    publisher: Recorder
    consumer: Recorder
    near: Session

    @property
    def far(self) -> Session:
        """The publisher's side of the session."""

    async def until(self, condition: Callable[[], object]) -> None:
        """Run until the condition holds."""

    async def act(self, action: Callable[[], T]) -> T:
        """Do something with sessions from outside of an Endpoint's methods."""


class MemoryRig:
    """Both nodes on a network with reordering and partial delivery."""

    def __init__(self, network: Network, config: SessionConfig) -> None:
        self.publisher, self.consumer = Recorder(), Recorder()
        self.network = network
        network.listen("publisher", self.publisher, config)
        host = network.client("consumer", self.consumer)
        self.near = host.connect("moqt://publisher/p", config)

    @property
    def far(self) -> Session:
        return self.publisher.sessions[0]

    async def until(self, condition: Callable[[], object]) -> None:
        self.network.run(lambda: bool(condition()))

    async def act(self, action: Callable[[], T]) -> T:
        return action()


class QuicRig:
    """Both hosts on the running loop."""

    near: Session

    def __init__(self, options: QuicOptions) -> None:
        self.publisher, self.consumer = Recorder(), Recorder()
        self._options = options
        signal = Signal()
        self.until = signal.until
        self.publisher.signal = self.consumer.signal = signal
        self._hosts = [QuicHost(self.publisher, options)]

    async def open(self, certificate: tuple[Path, Path], config: SessionConfig) -> None:
        """Listen and connect."""
        cert_file, key_file = certificate
        port = await self._hosts[0].listen(
            "127.0.0.1", 0, config, cert_file=cert_file, key_file=key_file
        )
        self._hosts.append(QuicHost(self.consumer, replace(self._options, ca_file=cert_file)))
        self.near = self._hosts[1].connect(f"moqt://localhost:{port}/p", config)

    @property
    def far(self) -> Session:
        return self.publisher.sessions[0]

    async def act(self, action: Callable[[], T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._hosts[1].call_soon_threadsafe(lambda: done.set_result(action()))
        result = await done
        self._hosts[0].wake()
        return result

    async def close(self) -> None:
        """Close both hosts."""
        async with asyncio.timeout(PATIENCE):
            for host in reversed(self._hosts):
                await host.close()


Scenario = Callable[[Any], Awaitable[None]]


def run_in_memory(network: Network, config: SessionConfig, scenario: Scenario) -> None:
    """Run a scenario under virtual time; it never has to wait for the loop."""
    asyncio.run(_await(scenario(MemoryRig(network, config))))


def run_over_quic(
    certificate: tuple[Path, Path],
    config: SessionConfig,
    scenario: Scenario,
    options: QuicOptions = DEFAULTS,
) -> None:
    """Run a scenario over loopback."""

    async def main() -> None:
        rig = QuicRig(options)
        try:
            await rig.open(certificate, config)
            await scenario(rig)
        finally:
            await rig.close()

    asyncio.run(main())


async def _await(scenario: Awaitable[None]) -> None:
    await scenario
