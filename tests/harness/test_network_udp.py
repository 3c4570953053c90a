"""The UDP relay: one direction under a clock of the test, and both over loopback sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kvcs_conformance.network.udp import Lane, UdpRelay

PATIENCE = 20.0
"""Seconds of real time after which a test that hangs is ended; none waits for them."""


class Path:
    """A lane, what it delivered and when, and what it told."""

    def __init__(self, **options: Any) -> None:
        self.told: list[tuple[str, int]] = []
        self.came: list[tuple[float, bytes]] = []
        self.now = 0.0
        self.lane = Lane(lambda what, packet, octets: self.told.append((what, packet)), **options)

    def send(self, *datagrams: bytes) -> None:
        for data in datagrams:
            self.lane.push(self.now, data, lambda data: self.came.append((self.now, data)))

    def pass_time(self) -> None:
        """Run the clock from one due time to the next until nothing waits."""
        while (due := self.lane.next_time()) is not None:
            self.now = max(self.now, due)
            self.lane.run(self.now)


def test_a_lane_without_a_plan_delivers_at_once_and_in_order() -> None:
    """Nothing is late, lost or told of."""
    path = Path()
    path.send(b"a", b"b", b"c")
    path.pass_time()
    assert path.came == [(0.0, b"a"), (0.0, b"b"), (0.0, b"c")]
    assert path.told == []


def test_latency_delays_and_keeps_the_order() -> None:
    """Each datagram comes so much later than it was sent; nothing is due before."""
    path = Path(latency=0.25)
    path.send(b"a")
    path.now = 0.125
    path.send(b"b")
    path.lane.run(0.24)
    assert path.came == []
    path.pass_time()
    assert path.came == [(0.25, b"a"), (0.375, b"b")]


def test_bandwidth_spaces_datagrams() -> None:
    """At 100 octets a second 50 octets take half a second, and the next wait for them; a pause
    does not save up."""
    path = Path(bandwidth=100.0, latency=1.0)
    path.send(bytes(50), bytes(50))
    path.pass_time()
    assert [at for at, _ in path.came] == [1.5, 2.0]
    path.now = 10.0
    path.send(bytes(50), bytes(50))
    path.pass_time()
    assert [at for at, _ in path.came[2:]] == [11.5, 12.0]


def test_packets_of_the_list_are_lost_and_told() -> None:
    """By number from 0, each time it was sent; the others come."""
    path = Path(lost=frozenset({0, 2}))
    path.send(b"a", b"b", b"c", b"d")
    path.pass_time()
    assert [data for _, data in path.came] == [b"b", b"d"]
    assert path.told == [("lost", 0), ("lost", 2)]


def test_a_full_queue_drops_what_comes_on_top() -> None:
    """The queue is bounded in octets; when it has drained there is room again."""
    path = Path(bandwidth=10.0, queue=25)
    path.send(bytes(10), bytes(10), bytes(10), bytes(5))
    assert path.told == [("dropped", 2)]
    path.pass_time()
    path.send(bytes(25))
    path.pass_time()
    assert [len(data) for _, data in path.came] == [10, 10, 5, 25]


def test_a_partition_eats_what_is_under_way_and_what_is_sent() -> None:
    """After it ended datagrams pass again; numbers go on counting."""
    path = Path(latency=1.0, lost=frozenset({3}))
    path.send(b"a")
    path.lane.partitioned = True
    path.pass_time()
    path.send(b"b")
    path.lane.partitioned = False
    path.send(b"c", b"d", b"e")
    path.pass_time()
    assert [data for _, data in path.came] == [b"c", b"e"]
    assert path.told == [("lost", 3)]


class Ends:
    """A UDP relay between a server and clients, all plain sockets on loopback."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._sockets: list[socket.socket] = []
        self.told: list[str] = []
        self.server = self.end()
        note: Callable[..., None] = lambda what, **_: self.told.append(what)  # noqa: E731
        self.there, self.back = Lane(note, lost=frozenset({1})), Lane(note)
        self.relay = UdpRelay(loop, self.server.getsockname(), self.there, self.back)

    def end(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        self._sockets.append(sock)
        return sock

    async def send(self, sock: socket.socket, data: bytes, address: Any = None) -> None:
        await self.loop.sock_sendto(sock, data, address or ("127.0.0.1", self.relay.port))

    async def receive(self, sock: socket.socket) -> tuple[bytes, Any]:
        async with asyncio.timeout(PATIENCE):
            return await self.loop.sock_recvfrom(sock, 2048)

    def close(self) -> None:
        self.relay.close()
        for sock in self._sockets:
            sock.close()


def _with_ends(scenario: Callable[[Ends], Awaitable[None]]) -> None:
    async def main() -> None:
        ends = Ends(asyncio.get_running_loop())
        try:
            await scenario(ends)
        finally:
            ends.close()

    asyncio.run(main())


async def _each_client_has_an_address_of_its_own(ends: Ends) -> None:
    one, other = ends.end(), ends.end()
    await ends.send(one, b"from one")
    data, address = await ends.receive(ends.server)
    assert data == b"from one"
    await ends.send(other, b"lost")
    await ends.send(other, b"from other")
    data, second = await ends.receive(ends.server)
    assert (data, ends.told) == (b"from other", ["lost"])
    assert ends.relay.addresses() == {address, second}
    for target, text in ((second, b"to other"), (address, b"to one")):
        await ends.send(ends.server, text, target)
    assert (await ends.receive(one))[0] == b"to one"
    assert (await ends.receive(other))[0] == b"to other"


async def _a_severed_client_is_cut_off_and_a_new_one_is_not(ends: Ends) -> None:
    ends.there, ends.relay.there = (Lane(lambda *_, **__: None),) * 2
    old, new = ends.end(), ends.end()
    await ends.send(old, b"before")
    _, address = await ends.receive(ends.server)
    ends.relay.sever()
    await ends.send(old, b"behind")
    await ends.send(ends.server, b"back", address)
    await ends.send(new, b"new")
    data, other = await ends.receive(ends.server)
    assert data == b"new"
    await ends.send(ends.server, b"answer", other)
    assert (await ends.receive(new))[0] == b"answer"
    with pytest.raises(BlockingIOError):
        old.recv(10)


async def _what_is_late_is_delivered_by_a_timer(ends: Ends) -> None:
    ends.relay.back = Lane(lambda *_, **__: None, latency=0.01)
    client = ends.end()
    await ends.send(client, b"ask")
    _, address = await ends.receive(ends.server)
    await ends.send(ends.server, b"answer", address)
    assert (await ends.receive(client))[0] == b"answer"


async def _a_server_that_is_gone_is_no_error(ends: Ends) -> None:
    ends.relay.there = Lane(lambda *_, **__: None)
    client = ends.end()
    port = ends.server.getsockname()[1]
    ends.server.close()
    await ends.send(client, b"into nothing")
    await ends.send(client, b"again")
    await asyncio.sleep(0)
    again = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    again.setblocking(False)
    again.bind(("127.0.0.1", port))
    ends._sockets.append(again)
    while True:
        await ends.send(client, b"back")
        try:
            async with asyncio.timeout(0.05):
                data, _ = await ends.loop.sock_recvfrom(again, 2048)
        except TimeoutError:
            continue
        assert data in (b"into nothing", b"again", b"back")
        return


@pytest.mark.parametrize(
    "scenario",
    [
        _each_client_has_an_address_of_its_own,
        _a_severed_client_is_cut_off_and_a_new_one_is_not,
        _what_is_late_is_delivered_by_a_timer,
        _a_server_that_is_gone_is_no_error,
    ],
)
def test_datagrams_find_their_way(scenario: Callable[[Ends], Awaitable[None]]) -> None:
    """Both ways, each client apart, whatever becomes of the server."""
    _with_ends(scenario)
