"""Two QUIC hosts on one loop, and waiting without polling."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from moqt.drivers.quic import QuicHost, QuicOptions

from tests.drivers.stand_in import FACTORY, StandInEndpoint, StandInSession, stand_in_config

PATIENCE = 60.0
"""Seconds of real time after which a test that hangs is ended; none waits for them."""


class Signal:
    """Wakes those who wait for a condition whenever a driver called a session."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def __call__(self) -> None:
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Return once the condition holds; it is looked at after every call of a driver."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class QuicPair:
    """A server and a client host; `near` and `far` are the sessions once connected."""

    near: StandInSession
    far: StandInSession

    def __init__(self, cert_file: Path, key_file: Path) -> None:
        self.cert_file, self.key_file = cert_file, key_file
        self.signal = Signal()
        self.until = self.signal.until
        self.server, self.client = StandInEndpoint(), StandInEndpoint()
        self.hosts: list[QuicHost] = []
        self.port = 0

    def host(self, endpoint: StandInEndpoint, options: QuicOptions) -> QuicHost:
        """A host that is closed at the end."""
        host = QuicHost(endpoint, options, session_factory=FACTORY)
        self.hosts.append(host)
        return host

    async def listen(self, options: QuicOptions, config: Any = None) -> int:
        """Start the server."""
        self.port = await self.host(self.server, options).listen(
            "127.0.0.1",
            0,
            config or stand_in_config(),
            cert_file=self.cert_file,
            key_file=self.key_file,
        )
        return self.port

    def connect(self, options: QuicOptions, config: Any = None) -> StandInSession:
        """Start a session of the client to the server."""
        host = self.host(self.client, options)
        return cast(
            StandInSession,
            host.connect(f"moqt://localhost:{self.port}/p", config or stand_in_config()),
        )

    async def open(self, server: QuicOptions, client: QuicOptions) -> None:
        """Bring up one connection."""
        await self.listen(server)
        self.near = self.connect(client)
        await self.until(lambda: self.near.told and self.server.sessions)
        self.far = self.server.sessions[0]


def run_pair(
    certificate: tuple[Path, Path],
    scenario: Callable[[QuicPair], Awaitable[None]],
    server: QuicOptions | None = None,
    client: QuicOptions | None = None,
    *,
    connected: bool = True,
) -> None:
    """Run `scenario` with a connected pair, or with hosts that are still to be started."""

    async def main() -> None:
        pair = QuicPair(*certificate)
        StandInSession.hooks.append(pair.signal)
        try:
            if connected:
                trusting = client or QuicOptions()
                if trusting.ca_file is None:
                    trusting = replace(trusting, ca_file=certificate[0])
                await pair.open(server or QuicOptions(), trusting)
            await scenario(pair)
        finally:
            StandInSession.hooks.clear()
            async with asyncio.timeout(PATIENCE):
                for host in pair.hosts:
                    await host.close()

    asyncio.run(main())
