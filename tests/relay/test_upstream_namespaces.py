"""What an upstream relay tells of namespaces is bounded."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Network
from moqt.relay import Relay, RelayConfig
from moqt.session import Request, RequestKind, SessionConfig
from moqt.wire.names import TrackNamespace

from tests.relay.world import SESSION, Peer

PREFIXES: tuple[TrackNamespace, ...] = ((b"one",), (b"two",))


class Flooded:
    """A relay below one that lists `count` namespaces for every prefix."""

    def __init__(self, config: RelayConfig, count: int) -> None:
        def answer(request: Request) -> None:
            if request.kind is RequestKind.SUBSCRIBE_NAMESPACE:
                request.session.accept(request)
                for number in range(count):
                    namespace = (*(request.namespace or ()), b"%d" % number)
                    request.session.namespace(request, namespace)

        self.net = Network(seed=1)
        self.above, self.relay, self.peer = Peer(answer), Relay(config), Peer()
        self.net.listen("above", self.above, SESSION)
        self.net.listen("relay", self.relay, SESSION)
        host = self.net.client("peer", self.peer)
        self.peer.sessions.append(host.connect("moqt://relay/", SESSION))
        self.net.run(0.5)

    def ask(self, prefix: TrackNamespace) -> list[tuple[str, TrackNamespace]]:
        """What the peer hears of a prefix."""
        request = self.peer.session.subscribe_namespace(prefix)
        self.net.run(self.net.now + 3.0)
        return self.peer.namespaces(request)


@pytest.mark.parametrize(
    "config",
    [
        RelayConfig(upstreams=("moqt://above/",), max_upstream_namespaces=20),
        RelayConfig(upstreams=("moqt://above/",), upstream_session=SessionConfig(max_announced=20)),
    ],
)
def test_a_flood_of_namespaces_is_forgotten(config: RelayConfig) -> None:
    """The view of that prefix is given up, and not asked for over and over."""
    flooded = Flooded(config, 100)
    heard = flooded.ask(PREFIXES[0])
    assert 20 == sum(sign == "+" for sign, _ in heard)
    assert 20 == sum(sign == "-" for sign, _ in heard)
    assert [] == list(flooded.relay._discovery._known)
    assert 1 == len(flooded.above.requests())
    assert not flooded.above.session.closed


def test_namespaces_are_counted_over_all_prefixes() -> None:
    """The prefix that goes beyond is given up, the one before it stays."""
    config = RelayConfig(upstreams=("moqt://above/",), max_upstream_namespaces=20)
    flooded = Flooded(config, 15)
    assert [("+", (b"one", b"%d" % number)) for number in range(15)] == flooded.ask(PREFIXES[0])
    assert 10 == len(flooded.ask(PREFIXES[1]))
    assert {b"one"} == {namespace[0] for namespace in flooded.relay._discovery._known}
