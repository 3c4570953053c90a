"""Two nodes on the simulated network with sessions that only record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moqt.drivers.memory import Link, Network

from tests.drivers.stand_in import FACTORY, StandInEndpoint, stand_in_config


class Pair:
    """A server, a client, and one established connection between them."""

    def __init__(self, link: Link | None = None, seed: int = 0, **network: Any) -> None:
        self.server, self.client = StandInEndpoint(), StandInEndpoint()
        self.net = Network(seed, link=link, session_factory=FACTORY, **network)
        self.net.listen("server", self.server, stand_in_config())
        self.host: Any = self.net.client("client", self.client)
        self.near: Any = self.host.connect("moqt://server/p", stand_in_config())
        self.net.run(lambda: bool(self.near.named("start")))
        self.far: Any = self.server.sessions[0]

    def open(self, *, unidirectional: bool = True) -> int:
        stream_id: int | None = self.near.transport.open_stream(unidirectional=unidirectional)
        assert stream_id is not None
        return stream_id

    def until(self, condition: Callable[[], bool]) -> None:
        self.net.run(condition)
