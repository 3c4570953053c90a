"""What a plain aioquic stream copy does on this machine: the measure of our own throughput.

The library as it comes: its asyncio server and client, its default settings but for the datagram
size, one stream, no MOQT, no relay cache, no digests. Once from process to process, and once with
a third process in between that forwards the stream.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.server import serve
from aioquic.quic.configuration import QuicConfiguration

from kvcs.bench.processes import Channel, Start, clock

ALPN = "stock-copy"
PIECE = 32768


async def sender(channel: Channel, settings: dict[str, Any]) -> None:
    """Serve `octets` octets to whoever opens a stream, in pieces."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        piece = bytes(PIECE)
        for _ in range(settings["octets"] // PIECE):
            writer.write(piece)
        writer.write_eof()

    await _serve(channel, settings, copy)


async def forwarder(channel: Channel, settings: dict[str, Any]) -> None:
    """Serve the stream of the server at `upstream`."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        async with connect(
            "127.0.0.1", settings["upstream"], configuration=_client(settings)
        ) as connection:
            source, asking = await connection.create_stream()
            asking.write(b"?")
            while data := await source.read(65536):
                writer.write(data)
            writer.write_eof()
            asking.close()

    await _serve(channel, settings, copy)


async def receiver(channel: Channel, settings: dict[str, Any]) -> None:
    """Read the stream of the server at `upstream` to its end and tell how long it took."""
    async with connect(
        "127.0.0.1", settings["upstream"], configuration=_client(settings)
    ) as connection:
        reader, writer = await connection.create_stream()
        started = clock()
        writer.write(b"?")
        received = 0
        while data := await reader.read(65536):
            received += len(data)
        channel.tell("received", (received, clock() - started))
        await channel.answer_usage()


async def _serve(channel: Channel, settings: dict[str, Any], copy: Any) -> None:
    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=[ALPN], max_datagram_size=settings["datagram_size"]
    )
    configuration.load_cert_chain(settings["cert"], settings["key"])
    tasks: set[asyncio.Task[None]] = set()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.get_running_loop().create_task(copy(reader, writer)))

    server = await serve("127.0.0.1", 0, configuration=configuration, stream_handler=accepted)
    # The library's server keeps its socket to itself.
    socket = server._transport
    assert socket is not None
    channel.tell("ready", socket.get_extra_info("sockname")[1])
    await channel.answer_usage()


def _client(settings: dict[str, Any]) -> QuicConfiguration:
    return QuicConfiguration(
        is_client=True,
        alpn_protocols=[ALPN],
        max_datagram_size=settings["datagram_size"],
        verify_mode=ssl.CERT_NONE,
    )


def copy_rate(start: Start, settings: dict[str, Any], octets: int, *, forwarded: bool) -> float:
    """10^6 octets per second of one stream copy; `forwarded`: over a third process."""
    mine = settings | {"octets": octets}
    source = start("stock sender", sender, mine)
    at_work = [source]
    port = source.wait("ready", 30)
    if forwarded:
        middle = start("stock forwarder", forwarder, mine | {"upstream": port})
        at_work.append(middle)
        port = middle.wait("ready", 30)
    sink = start("stock receiver", receiver, mine | {"upstream": port})
    received, seconds = sink.wait("received", 600)
    for process in (*at_work, sink):
        process.end()
    if received != octets:
        raise RuntimeError(f"the stock copy delivered {received} of {octets} octets")
    return float(octets / seconds / 1e6)
