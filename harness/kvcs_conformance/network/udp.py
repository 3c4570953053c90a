"""A UDP relay between two nodes: what it is handed it passes on late, not at all, or as it came.

`Lane` is one direction as a value of time, without sockets; `UdpRelay` puts two of them between a
listening socket and a server, with a socket of its own towards the server for every client.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

Address: TypeAlias = Any
Deliver: TypeAlias = Callable[[bytes], None]
Note: TypeAlias = Callable[..., None]

QUEUE = 4 << 20
"""Octets that wait in one direction at most; what comes on top is dropped."""

LOOPBACK = "127.0.0.1"
READ_SIZE = 65536
MOST_READS = 256


class Lane:
    """One direction. `latency` in seconds, `bandwidth` in octets per second, None for unlimited.

    `lost` are the numbers, from 0, of datagrams that do not arrive. `note` is told of each.
    """

    def __init__(
        self,
        note: Note,
        *,
        latency: float = 0.0,
        bandwidth: float | None = None,
        lost: frozenset[int] = frozenset(),
        queue: int = QUEUE,
    ) -> None:
        self.partitioned = False
        self._note = note
        self._latency = latency
        self._bandwidth = bandwidth
        self._lost = lost
        self._queue = queue
        self._number = 0
        self._waiting: deque[tuple[float, bytes, Deliver]] = deque()
        self._octets = 0
        self._free_at = 0.0

    def push(self, now: float, data: bytes, deliver: Deliver) -> None:
        """A datagram came in; `deliver` takes it to its end when its time has come."""
        number = self._number
        self._number += 1
        if number in self._lost:
            self._note("lost", packet=number, octets=len(data))
            return
        if self.partitioned:
            return
        if self._octets + len(data) > self._queue:
            self._note("dropped", packet=number, octets=len(data))
            return
        leaves = max(now, self._free_at)
        if self._bandwidth is not None:
            leaves += len(data) / self._bandwidth
            self._free_at = leaves
        self._octets += len(data)
        self._waiting.append((leaves + self._latency, data, deliver))

    def run(self, now: float) -> None:
        """Deliver what is due."""
        while self._waiting and self._waiting[0][0] <= now:
            _, data, deliver = self._waiting.popleft()
            self._octets -= len(data)
            if not self.partitioned:
                deliver(data)

    def next_time(self) -> float | None:
        """When the next one is due."""
        return self._waiting[0][0] if self._waiting else None


class UdpRelay:
    """Stands at `port` for a server at `target`; `there` and `back` are the two directions."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: tuple[str, int],
        there: Lane,
        back: Lane,
    ) -> None:
        """Raises OSError when there is no port to be had, or the target's host is unknown."""
        self.there, self.back = there, back
        self._loop = loop
        self._target = socket.getaddrinfo(*target, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
        self._near = LOOPBACK if self._target[0] == LOOPBACK else ""
        self._timer: asyncio.TimerHandle | None = None
        self._front = _bound(LOOPBACK)
        self.port = int(self._front.getsockname()[1])
        self._flows: dict[Address, socket.socket] = {}
        self._severed: set[socket.socket] = set()
        loop.add_reader(self._front, self._from_clients)

    def addresses(self) -> set[Address]:
        """From where the server is reached for the clients so far."""
        return {flow.getsockname() for flow in self._flows.values()}

    def partition(self, partitioned: bool) -> None:
        """Whether nothing passes, in either direction."""
        self.there.partitioned = self.back.partitioned = partitioned

    def sever(self) -> None:
        """Nothing passes any more for the clients so far; a new one is served."""
        self._severed.update(self._flows.values())

    def close(self) -> None:
        """Close all sockets."""
        if self._timer is not None:
            self._timer.cancel()
        for sock in (self._front, *self._flows.values()):
            self._loop.remove_reader(sock)
            sock.close()
        self._flows.clear()

    def _from_clients(self) -> None:
        now = self._loop.time()
        for _ in range(MOST_READS):
            try:
                data, client = self._front.recvfrom(READ_SIZE)
            except BlockingIOError:
                break
            except OSError:  # an ICMP error about a client that has gone
                continue
            flow = self._flows.get(client)
            if flow is None:
                flow = self._flows[client] = _bound(self._near)
                self._loop.add_reader(flow, self._from_server, flow, client)
            self.there.push(now, data, self._sender(flow, flow, self._target))
        self._run()

    def _from_server(self, flow: socket.socket, client: Address) -> None:
        now = self._loop.time()
        for _ in range(MOST_READS):
            try:
                data = flow.recv(READ_SIZE)
            except BlockingIOError:
                break
            except OSError:  # nobody listens there now
                continue
            self.back.push(now, data, self._sender(flow, self._front, client))
        self._run()

    def _sender(self, flow: socket.socket, sock: socket.socket, address: Address) -> Deliver:
        def deliver(data: bytes) -> None:
            if flow in self._severed:
                return
            with suppress(OSError):  # as if lost on the way
                sock.sendto(data, address)

        return deliver

    def _run(self) -> None:
        """Deliver what is due, and wake for what is not."""
        now = self._loop.time()
        for lane in (self.there, self.back):
            lane.run(now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        times = [at for lane in (self.there, self.back) if (at := lane.next_time()) is not None]
        if times:
            self._timer = self._loop.call_at(min(times), self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._run()


def _bound(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, QUEUE)
        sock.bind((host, 0))
    except OSError:
        sock.close()
        raise
    return sock
