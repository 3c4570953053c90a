"""A non-blocking UDP socket on an asyncio loop: many datagrams for each system call.

Where the kernel has them, UDP_GRO hands over several datagrams of a peer as one buffer, and
UDP_SEGMENT takes several of equal size as one (Linux udp(7)).
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Address: TypeAlias = Any
Datagram: TypeAlias = tuple[bytes, Address]

# <linux/udp.h>; not in the socket module.
UDP_SEGMENT = 103
UDP_GRO = 104

BUFFER = 4 << 20
READ_SIZE = 65535
MOST_READS = 32
"""Buffers read for one batch, so that a flood does not keep timers waiting."""

MOST_SEGMENTS = 64
MOST_OCTETS = 65000
"""Of one UDP_SEGMENT send; the kernel's limit is that of one IP packet."""

_GRO_SPACE = socket.CMSG_SPACE(4) if hasattr(socket, "CMSG_SPACE") else 0
_NOT_NOW = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)


class UdpSocket:
    """Owns `sock`. `connected` sockets have one peer and hear of its ICMP errors.

    `on_readable` is called when datagrams wait, `on_writable` once sending goes on after it was
    blocked.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        peer: Address | None,
        on_readable: Callable[[UdpSocket], None],
        on_writable: Callable[[UdpSocket], None],
    ) -> None:
        self.address: Address = sock.getsockname()
        self._loop = loop
        self._sock = sock
        self.peer = peer
        self._on_writable = on_writable
        self._unsent: deque[list[Datagram]] = deque()
        sock.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER)
        self._segments = sys.platform == "linux" and _takes_option(sock, UDP_SEGMENT, 0)
        self._coalesces = sys.platform == "linux" and _takes_option(sock, UDP_GRO, 1)
        loop.add_reader(sock, on_readable, self)

    @property
    def blocked(self) -> bool:
        """Whether the kernel takes no more now; `send` queues then."""
        return bool(self._unsent)

    def receive(self) -> list[Datagram]:
        """All datagrams that wait, up to a bound; raises OSError for an ICMP error."""
        received: list[Datagram] = []
        for _ in range(MOST_READS):
            try:
                data, ancillary, _, address = self._sock.recvmsg(READ_SIZE, _GRO_SPACE)
            except BlockingIOError:
                break
            if self.peer is not None:
                address = self.peer
            size = _segment_size(ancillary) if self._coalesces else 0
            if 0 < size < len(data):
                received.extend(
                    (data[start : start + size], address) for start in range(0, len(data), size)
                )
            else:
                received.append((data, address))
        return received

    def send(self, datagrams: Sequence[Datagram]) -> None:
        """Send in order; what the kernel does not take waits. Raises OSError if it refuses."""
        groups = _groups(datagrams) if self._segments else [[datagram] for datagram in datagrams]
        for index, group in enumerate(groups):
            if self._unsent or not self._try_send(group):
                if not self._unsent:
                    self._loop.add_writer(self._sock, self._write_on)
                self._unsent.extend(groups[index:])
                return

    def close(self) -> None:
        """Stop listening and close the socket; what still waits is dropped."""
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._unsent.clear()
        self._sock.close()

    def _try_send(self, group: list[Datagram]) -> bool:
        buffers = [data for data, _ in group]
        ancillary: list[tuple[int, int, bytes]] = []
        if len(group) > 1:
            size = struct.pack("H", len(buffers[0]))
            ancillary.append((socket.IPPROTO_UDP, UDP_SEGMENT, size))
        try:
            if self.peer is not None:
                self._sock.sendmsg(buffers, ancillary)
            else:
                self._sock.sendmsg(buffers, ancillary, 0, group[0][1])
        except OSError as error:
            if error.errno in _NOT_NOW:
                return False
            if len(group) == 1:
                raise
            # The route or the device cannot segment: one by one from now on.
            self._segments = False
            self.send(group)
        return True

    def _write_on(self) -> None:
        while self._unsent:
            try:
                if not self._try_send(self._unsent[0]):
                    return
            except OSError:
                # As if lost on the way; the connections find out by themselves.
                pass
            self._unsent.popleft()
        self._loop.remove_writer(self._sock)
        self._on_writable(self)


def _takes_option(sock: socket.socket, option: int, value: int) -> bool:
    try:
        sock.setsockopt(socket.IPPROTO_UDP, option, value)
    except OSError:
        return False
    return True


def _segment_size(ancillary: list[tuple[int, int, bytes]]) -> int:
    for level, kind, value in ancillary:
        if level == socket.IPPROTO_UDP and kind == UDP_GRO:
            return int.from_bytes(value[:4], sys.byteorder)
    return 0


def _groups(datagrams: Sequence[Datagram]) -> list[list[Datagram]]:
    """Runs of datagrams to one address of one size, the last of a run perhaps shorter."""
    groups: list[list[Datagram]] = []
    group: list[Datagram] = []
    size = total = 0
    open_group = False
    for datagram in datagrams:
        data, address = datagram
        length = len(data)
        if (
            open_group
            and length <= size
            and address == group[0][1]
            and len(group) < MOST_SEGMENTS
            and total + length <= MOST_OCTETS
        ):
            group.append(datagram)
            total += length
        else:
            group = [datagram]
            groups.append(group)
            size = total = length
        open_group = length == size
    return groups


async def bound_socket(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """A socket that listens; raises OSError when the host is unknown or the port in use."""
    family, address = await _resolve(loop, host or None, port, socket.AI_PASSIVE)
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


async def connected_socket(
    loop: asyncio.AbstractEventLoop, host: str, port: int
) -> tuple[socket.socket, Address]:
    """A socket with one peer, and its address; raises OSError when the host is unknown."""
    family, address = await _resolve(loop, host, port, 0)
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock, address


async def _resolve(
    loop: asyncio.AbstractEventLoop, host: str | None, port: int, flags: int
) -> tuple[socket.AddressFamily, Address]:
    """The first address, IPv4 before IPv6: so both sides mean the same by `localhost`."""
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=flags)
    found.sort(key=lambda item: item[0] != socket.AF_INET)
    family, _, _, _, address = found[0]
    return family, address
