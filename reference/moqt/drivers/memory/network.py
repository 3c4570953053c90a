"""A network of nodes under virtual time; its course is a pure function of seed and inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from moqt.drivers.memory.carrier import ConnectionEvent
from moqt.drivers.memory.clock import Clock, SimulationError, Timer
from moqt.drivers.memory.connection import End
from moqt.drivers.memory.link import Link
from moqt.drivers.memory.node import Node
from moqt.drivers.sessions import SessionFactory, make_session
from moqt.drivers.urls import client_config, parse_url

if TYPE_CHECKING:
    from moqt.endpoint import Endpoint, Host
    from moqt.session import Session, SessionConfig

Observer = Callable[[ConnectionEvent], None]


class Network:
    """Nodes by name, links between pairs of names, faults, and the clock that moves them.

    Every connection draws from random numbers of its own, seeded by `seed` and its number, so
    that traffic elsewhere does not change what happens to it.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        latency: float = 0.005,
        link: Link | None = None,
        idle_timeout: float = 30.0,
        observer: Observer | None = None,
        session_factory: SessionFactory = make_session,
    ) -> None:
        self._seed = seed
        self._link = link or Link(latency=latency)
        self._idle_timeout = idle_timeout
        self._observer = observer
        self._make_session = session_factory
        self._clock = Clock()
        self._nodes: dict[str, Node] = {}
        self._links: dict[tuple[str, str], Link] = {}
        self._touched: dict[Node, None] = {}
        self._connections = 0
        self._partitions: dict[frozenset[str], Timer] = {}
        self._held: dict[frozenset[str], list[tuple[Node, Callable[[], None]]]] = {}

    @property
    def now(self) -> float:
        """Seconds of virtual time since the start."""
        return self._clock.now

    # Building.

    def listen(
        self,
        name: str,
        endpoint: Endpoint,
        config: SessionConfig | Iterable[SessionConfig],
    ) -> None:
        """Let `endpoint` be reached as `moqt://name/`, with one config for each ALPN it takes."""
        configs = config if isinstance(config, Iterable) else (config,)
        node = self._add(name, endpoint)
        node.accepts = {config.draft.alpn: config for config in configs}

    def client(self, name: str, endpoint: Endpoint) -> Host:
        """A node that only connects."""
        return self._add(name, endpoint)

    def set_link(self, sender: str, receiver: str, link: Link, *, one_way: bool = False) -> None:
        """What connections made from now on between two names see; both ways by default."""
        self._links[sender, receiver] = link
        if not one_way:
            self._links[receiver, sender] = link

    # Running.

    def run(self, until: Callable[[], bool] | float, limit: float = 60.0) -> None:
        """Run until the predicate holds, or until a time on the network's clock.

        Raises SimulationError when nothing more can happen or `limit` seconds of virtual time
        passed while the predicate does not hold, and when the simulation loops.
        """
        self._settle(self._nodes.values())
        if not callable(until):
            while (at := self._clock.next_time()) is not None and at <= until:
                self._step()
            self._clock.now = max(self.now, until)
            return
        end = self.now + limit
        while not until():
            at = self._clock.next_time()
            if at is None:
                raise SimulationError(
                    f"nothing more happens after {self.now:g} s, and the condition does not hold"
                )
            if at > end:
                raise SimulationError(f"the condition did not hold within {limit:g} s")
            self._step()

    def at(self, time: float, callback: Callable[[], None]) -> None:
        """Call back at a time on the network's clock; the callback may act on any session."""

        def call() -> None:
            for node in self._nodes.values():
                self._touch(node)
            callback()

        self._clock.schedule(time, call)

    def _step(self) -> None:
        self._clock.run_next()
        touched, self._touched = self._touched, {}
        self._settle(touched)

    def _settle(self, nodes: Iterable[Node]) -> None:
        for node in tuple(nodes):
            if node.alive:
                node.advance(self.now)
                node.settle(self.now)

    # Faults.

    def partition(self, one: str, other: str) -> None:
        """Nothing passes between two names; connections between them die of it when it lasts."""
        pair = frozenset((one, other))
        if pair not in self._partitions:
            self._held.setdefault(pair, [])
            self._partitions[pair] = self._clock.schedule(
                self.now + self._idle_timeout, lambda: self._lose(pair)
            )

    def heal(self, one: str, other: str) -> None:
        """Let pass again what waited; datagrams that arrived meanwhile are gone."""
        pair = frozenset((one, other))
        if timer := self._partitions.pop(pair, None):
            timer.cancel()
            latency = self._link_from(one, other).latency
            self._clock.schedule(self.now + latency, lambda: self._release(pair))

    def kill(self, name: str) -> None:
        """The node vanishes; its peers lose their connections after the idle timeout."""
        node = self._node(name)
        node.alive = False
        del self._nodes[name]
        for end in node.ends:
            end.vanish()
            self._lose_later(end.peer, f"{name} went silent")
        node.ends.clear()

    def sever(self, one: str, other: str) -> None:
        """Nothing passes any more on the connections between two names; new ones are unharmed.

        Both ends lose them after the idle timeout.
        """
        for node in self._nodes.values():
            for end in node.ends:
                if {end.name, end.peer_name} == {one, other} and not end.severed:
                    end.severed = True
                    self._lose_later(end, "nothing was heard of the peer for the idle timeout")

    def reset_stream(self, session: Session, stream_id: int, code: int) -> None:
        """RESET_STREAM as if `session` had sent it, behind its back."""
        end = self._end_of(session)
        self._touch(self._nodes[end.name])
        end.reset(stream_id, code)

    def stop_sending(self, session: Session, stream_id: int, code: int) -> None:
        """STOP_SENDING as if `session` had sent it, behind its back."""
        end = self._end_of(session)
        self._touch(self._nodes[end.name])
        end.stop_sending(stream_id, code)

    def _lose(self, pair: frozenset[str]) -> None:
        self._held[pair].clear()
        for node in self._nodes.values():
            for end in node.ends:
                if {end.name, end.peer_name} == pair:
                    self._touch(node)
                    end.lost("nothing was heard of the peer for the idle timeout")

    def _lose_later(self, end: End | None, reason: str) -> None:
        if end is not None:
            self.call_at(self.now + self._idle_timeout, end, lambda: end.lost(reason))

    def _release(self, pair: frozenset[str]) -> None:
        if pair not in self._partitions:
            for node, action in self._held.pop(pair, ()):
                self._arrive(node, action)

    # Connecting.

    def connect(self, node: Node, url: str, config: SessionConfig) -> Session:
        """What `Host.connect` of `node` does."""
        target = parse_url(url)
        self._connections += 1
        end = self._make_end((node.name, target.host), client_config(target, config), True)
        end.session.url = url
        end.observe("connecting", reason=url)
        node.ends.append(end)
        alpn = config.draft.alpn
        at = self.now + self._link_from(node.name, target.host).latency
        self.carry(at, end, lambda: self._greet(end, alpn), droppable=False)
        reason = f"{target.host} did not answer"
        patience = self.now + self._idle_timeout
        end.patience = self.call_at(patience, end, lambda: end.lost(reason, "refused"))
        return end.session

    def _greet(self, client: End, alpn: str) -> None:
        """The client's first flight arrives where its URL points."""
        node = self._nodes.get(client.peer_name)
        back = self.now + self._link_from(client.peer_name, client.name).latency
        if node is None or not node.accepts:
            reason = f"no node listens as {client.peer_name!r}"
            self.call_at(back, client, lambda: client.lost(reason, "refused"))
            return
        config = node.accepts.get(alpn)
        if config is None:
            taken = ", ".join(node.accepts)
            reason = f"{client.peer_name} refuses ALPN {alpn!r}; it takes {taken}"
            self.call_at(back, client, lambda: client.lost(reason, "refused"))
            return
        end = self._make_end((client.peer_name, client.name), config, False)
        end.number = client.number
        end.peer, client.peer = client, end
        node.ends.append(end)
        self._touch(node)
        self.carry(back, end, lambda: client.establish(alpn), droppable=False)
        end.establish(alpn)
        node.endpoint.session_opened(end.session, self.now)

    def _make_end(self, names: tuple[str, str], config: SessionConfig, is_client: bool) -> End:
        links = (self._link_from(*names), self._link_from(names[1], names[0]))
        seed = f"{self._seed}/{self._connections}/{is_client}"
        end = End(self, self._connections, names, links, is_client, seed)
        end.session = self._make_session(is_client, end, config)
        end.session.advance(self.now)
        return end

    # What ends and nodes need of us.

    def carry(self, at: float, sender: End, action: Callable[[], None], *, droppable: bool) -> None:
        """See `Carrier.carry`."""
        receiver = sender.peer_name
        pair = frozenset((sender.name, receiver))

        def arrive() -> None:
            if sender.severed:
                return
            node = self._nodes.get(receiver)
            if pair not in self._held:
                self._arrive(node, action)
            elif node is not None and not droppable:
                self._held[pair].append((node, action))

        self._clock.schedule(at, arrive)

    def call_at(self, at: float, end: End, action: Callable[[], None]) -> Timer:
        """See `Carrier.call_at`."""

        def call() -> None:
            node = self._nodes.get(end.name)
            if node is not None and end in node.ends:
                self._touch(node)
                action()

        return self._clock.schedule(at, call)

    def call_later(self, at: float, action: Callable[[], None], node: Node) -> Timer:
        """Run `action` at `node` at a time."""

        def call() -> None:
            if node.alive:
                self._touch(node)
                action()

        return self._clock.schedule(at, call)

    def observe(self, event: ConnectionEvent) -> None:
        """See `Carrier.observe`."""
        if self._observer is not None:
            self._observer(event)

    @property
    def observed(self) -> bool:
        """See `Carrier.observed`."""
        return self._observer is not None

    def _arrive(self, node: Node | None, action: Callable[[], None]) -> None:
        if node is not None:
            self._touch(node)
        action()

    def _touch(self, node: Node) -> None:
        if node not in self._touched:
            node.advance(self.now)
            self._touched[node] = None

    def _add(self, name: str, endpoint: Endpoint) -> Node:
        if name in self._nodes:
            raise ValueError(f"the network has a node {name!r} already")
        node = self._nodes[name] = Node(self, name, endpoint)
        return node

    def _node(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise ValueError(f"the network has no node {name!r}; it has {', '.join(self._nodes)}")
        return node

    def _end_of(self, session: Session) -> End:
        for node in self._nodes.values():
            for end in node.ends:
                if end.session is session:
                    return end
        raise ValueError("the session is not, or no longer, on this network")

    def _link_from(self, sender: str, receiver: str) -> Link:
        return self._links.get((sender, receiver), self._link)
