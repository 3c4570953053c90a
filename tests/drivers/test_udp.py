"""The UDP socket: batches, segmentation, and a kernel that takes no more."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest
from moqt.drivers.quic import udp as module
from moqt.drivers.quic.udp import UdpSocket, bound_socket, connected_socket

PEER = ("192.0.2.1", 4433)


def exchange(sizes: list[int], sent_from: Callable[[UdpSocket], None] = lambda udp: None) -> None:
    """Send datagrams of these sizes over loopback and check that they arrive as they are."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        received: list[bytes] = []
        done = asyncio.Event()

        def readable(udp: UdpSocket) -> None:
            received.extend(data for data, _ in udp.receive())
            if len(received) >= len(sizes):
                done.set()

        server = UdpSocket(
            loop, await bound_socket(loop, "127.0.0.1", 0), None, readable, lambda udp: None
        )
        sock, address = await connected_socket(loop, *server.address)
        client = UdpSocket(loop, sock, address, readable, lambda udp: None)
        datagrams = [(bytes([i % 256]) * size, address) for i, size in enumerate(sizes)]
        sent_from(client)
        client.send(datagrams)
        async with asyncio.timeout(10):
            await done.wait()
        client.close()
        server.close()
        assert [data for data, _ in datagrams] == received

    asyncio.run(main())


@pytest.mark.parametrize(
    "sizes",
    [
        [1200] * 100,
        [1200] * 70 + [300, 1200, 1200, 40, 41],
        [16000] * 9 + [5],
        [100],
        [1, 1200, 1],
    ],
)
def test_datagrams_keep_their_bounds(sizes: list[int]) -> None:
    """Whether the kernel segments or not, what arrives are the datagrams that were sent."""
    exchange(sizes)


def test_kernel_without_segmentation_gets_them_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No UDP_SEGMENT, no UDP_GRO: the same datagrams."""
    monkeypatch.setattr(module, "_takes_option", lambda *arguments: False)
    exchange([1200] * 20 + [7])


def test_segments_are_of_one_size_and_address() -> None:
    """A run ends after a shorter datagram, before a longer one, and at another address."""
    datagrams = [
        (bytes(size), address)
        for size, address in ((9, "a"), (9, "a"), (5, "a"), (9, "a"), (10, "a"), (10, "b"))
    ]
    groups = [[(len(d), a) for d, a in group] for group in module._groups(datagrams)]
    expected = [[(9, "a"), (9, "a"), (5, "a")], [(9, "a")], [(10, "a")], [(10, "b")]]
    assert expected == groups


def test_segments_fit_one_ip_packet() -> None:
    """Neither more than 64 datagrams nor more octets than one packet holds."""
    small = module._groups([(bytes(10), PEER)] * 150)
    large = module._groups([(bytes(16000), PEER)] * 9)
    assert [64, 64, 22] == [len(group) for group in small]
    assert [4, 4, 1] == [len(group) for group in large]


class FullSocket:
    """A socket whose kernel takes what `errors` allow, in turn."""

    def __init__(self, errors: list[int]) -> None:
        self.errors = errors
        self.sent: list[bytes] = []

    def sendmsg(self, buffers: list[bytes], ancillary: Any = (), *rest: Any) -> None:
        error = self.errors.pop(0) if self.errors else 0
        if error:
            raise OSError(error, "no")
        self.sent.extend(buffers)

    def getsockname(self) -> Any:
        return PEER

    def setblocking(self, flag: bool) -> None:
        assert not flag

    def setsockopt(self, *arguments: Any) -> None:
        pass


class FakeLoop:
    """Keeps the writer that the socket asks for."""

    def __init__(self) -> None:
        self.writer: Callable[[], None] | None = None

    def add_reader(self, *arguments: Any) -> None:
        pass

    def add_writer(self, sock: Any, callback: Callable[[], None]) -> None:
        self.writer = callback

    @property
    def idle(self) -> bool:
        return self.writer is None

    def remove_writer(self, sock: Any) -> None:
        self.writer = None


def full(errors: list[int]) -> tuple[UdpSocket, FullSocket, FakeLoop, list[UdpSocket]]:
    """A UdpSocket over a FullSocket, and the list of its calls of on_writable."""
    loop, sock, writable = FakeLoop(), FullSocket(errors), list[UdpSocket]()
    anything: Any = (loop, sock)
    udp = UdpSocket(anything[0], anything[1], PEER, lambda udp: None, writable.append)
    return udp, sock, loop, writable


def test_what_the_kernel_does_not_take_waits_in_order() -> None:
    """EAGAIN: the rest is sent once the socket is writable, then the owner is told."""
    udp, sock, loop, writable = full([0, errno.EAGAIN])
    udp.send([(b"a", PEER), (b"bb", PEER)])
    udp.send([(b"c", PEER)])
    assert udp.blocked
    assert [b"a"] == sock.sent
    sock.errors = [0, errno.ENOBUFS]
    assert loop.writer is not None
    loop.writer()
    assert [b"a", b"bb"] == sock.sent
    assert [] == writable
    loop.writer()
    assert [b"a", b"bb", b"c"] == sock.sent
    assert [udp] == writable
    assert loop.idle


def test_route_that_cannot_segment_is_served_one_by_one() -> None:
    """An error of a segmented send turns segmentation off and loses nothing."""
    udp, sock, _, _ = full([errno.EINVAL])
    udp.send([(b"a", PEER), (b"b", PEER), (b"c", PEER)])
    assert [b"a", b"b", b"c"] == sock.sent


def test_error_of_a_single_datagram_is_told() -> None:
    """What the system refuses for good is raised."""
    udp, _, _, _ = full([errno.EMSGSIZE])
    with pytest.raises(OSError):
        udp.send([(b"a", PEER)])
