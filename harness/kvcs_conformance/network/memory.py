"""The simulated link: virtual time, and the same octets for the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moqt.drivers.memory import ConnectionEvent, Link, Network, SimulationError
from moqt.drivers.sessions import make_session

from kvcs_conformance.network.base import Action
from kvcs_conformance.network.doing import Doing
from kvcs_conformance.network.plan import PLAIN, Plan

if TYPE_CHECKING:
    from moqt.endpoint import Endpoint
    from moqt.session import Session, SessionConfig, Transport

LATENCY = 0.005


class MemoryLink(Doing):
    """A simulated network: the same seed gives the same run, octet for octet."""

    name = "memory"

    def __init__(self, seed: int = 0, plan: Plan = PLAIN) -> None:
        lossy = any(path.lost for path in plan.pairs.values())
        self._network = Network(
            seed,
            latency=LATENCY,
            idle_timeout=plan.idle_timeout,
            observer=self._observe if lossy else None,
            session_factory=self._make_session if plan.streams else make_session,
        )
        super().__init__(plan)
        self._nodes: dict[str, Endpoint] = {}
        self._alive: set[str] = set()
        self._sent: dict[tuple[str, str], int] = {}

    def now(self) -> float:
        return self._network.now

    def serve(self, name: str, endpoint: Endpoint, config: SessionConfig) -> str:
        self._add(name, endpoint)
        self._network.listen(name, endpoint, config)
        return f"moqt://{name}/"

    def client(self, name: str, endpoint: Endpoint) -> None:
        self._add(name, endpoint)
        self._network.client(name, endpoint)

    def url(self, to: str, by: str, url: str) -> str:
        return url

    def act(self, name: str, action: Action) -> None:
        self._network.at(self._network.now, action)
        self._network.run(self._network.now)

    def later(self, name: str, delay: float, action: Action) -> None:
        node = name

        def run() -> None:
            if node in self._alive:
                action()

        self._network.at(self._network.now + delay, run)

    def wait(self, until: Callable[[], bool], within: float) -> bool:
        end = self._network.now + within
        try:
            self._network.run(until, limit=within)
        except SimulationError:
            # Perhaps nothing at all happens any more: the time passes all the same.
            self._network.run(end)
        return until()

    def keylog(self) -> str:
        return ""

    @property
    def certificate(self) -> Path | None:
        return None

    def close(self) -> None:
        return None

    # Faults.

    def _partition(self, one: str, other: str) -> None:
        self._network.partition(one, other)

    def _heal(self, one: str, other: str) -> None:
        self._network.heal(one, other)

    def _sever(self, one: str, other: str) -> None:
        self._network.sever(one, other)

    def _kill(self, name: str) -> None:
        self._alive.discard(name)
        self._network.kill(name)

    def _peer_of(self, node: str, transport: Any) -> str:
        return str(transport.peer_name)

    def _make_session(
        self, is_client: bool, transport: Transport, config: SessionConfig
    ) -> Session:
        node: Any = transport
        faults = self.interference(node.name)
        assert faults is not None
        return faults.make_session(is_client, transport, config)

    def _add(self, name: str, endpoint: Endpoint) -> None:
        """Links between this node and those before it, as the plan has them."""
        self._alive.add(name)
        known = name in self._nodes
        self._nodes[name] = endpoint
        if known:
            return
        for other in self._nodes:
            if other == name:
                continue
            for sender, receiver in ((name, other), (other, name)):
                self._network.set_link(sender, receiver, self._link(sender, receiver), one_way=True)

    def _link(self, sender: str, receiver: str) -> Link:
        path = self.plan.between(sender, receiver)
        link = Link(
            latency=LATENCY if path.latency is None else path.latency,
            bandwidth=path.bandwidth,
            chunk=path.chunks,
            pieces_lost=path.lost.get(sender, frozenset()),
            max_datagram=self.plan.datagram_size,
        )
        granted = self.plan.grants.get(receiver)
        granted = granted or getattr(self._nodes[receiver], "grants", None)
        return link if granted is None else replace(link, **granted.options())

    def _observe(self, event: ConnectionEvent) -> None:
        """Pieces of streams are the packets of this link; each is told of that is lost."""
        if event.kind not in ("data-sent", "data-lost"):
            return
        pair = (event.node, event.peer)
        number = self._sent.get(pair, 0)
        self._sent[pair] = number + 1
        if event.kind == "data-lost":
            ends = {"from": event.node, "to": event.peer}
            self.note("lost", **ends, packet=number, octets=len(event.data))
