"""Publisher, relay and consumer, each in a process of its own: a cache from end to end."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moqt.drivers.quic import QuicHost
from moqt.session import SessionConfig

from kvcs.bench.processes import Channel, Process, Start, Usage, clock, usage
from kvcs.bench.relaying import LOOPBACK, options
from kvcs.consumer import Budgets, Consumer, ConsumeRequest, Mode
from kvcs.identity import profile
from kvcs.model.base import ModelShape, describe
from kvcs.names import Component
from kvcs.publisher import PublicationSpec, Publisher

SCOPE_KEY = bytes(range(32))
BLOCK_TOKENS = 16
PATIENCE_S = 600.0
POOL = 1 << 20
HIGH_WATER = 2 << 20
"""Octets that wait at the publisher before it makes the next layer."""


@dataclass(frozen=True, slots=True)
class Size:
    """A cache of `layers` x `blocks` blocks, K and V of 32 KiB each."""

    layers: int = 32
    blocks: int = 64

    @property
    def octets(self) -> int:
        """Tensor data in sum."""
        return self.layers * self.blocks * 2 * 32768

    @property
    def descriptor(self) -> dict[str, Any]:
        """16 tokens x 8 heads x 128 channels of bf16 are 32 KiB."""
        shape = ModelShape(layers=self.layers, heads=32, kv_heads=8, head_dim=128)
        return describe(shape, "example/bench", {}, BLOCK_TOKENS)

    @property
    def tokens(self) -> list[int]:
        """As many as fill the blocks."""
        return list(range(self.blocks * BLOCK_TOKENS))


@dataclass(frozen=True, slots=True)
class Transfer:
    """One cache that went through: seconds from the first put layer, and what each role used.

    CPU is that of the transfer alone, memory the process's peak.
    """

    octets: int
    seconds: float
    first_layer_s: float
    used: dict[str, Usage]

    @property
    def mb_per_s(self) -> float:
        """Tensor data per second, in units of 10^6 octets."""
        return self.octets / self.seconds / 1e6


def transfer(
    start: Start, relay_at_work: Process, port: int, settings: dict[str, Any], size: Size
) -> Transfer:
    """Send one cache through a relay that is at work; the consumer subscribes first."""
    mine = settings | {"url": f"moqt://{LOOPBACK}:{port}", "size": size}
    source = start("publisher", publisher, mine)
    idle = {"relay": relay_at_work.ask_usage(), "publisher": source.wait("announced", 30)}
    sink = start("consumer", consumer, mine)
    idle["consumer"] = sink.wait("subscribed", 30)
    source.tell("go")
    began = source.wait("began", 30)
    first, ended, accepted = sink.wait("done", PATIENCE_S)
    busy = {
        "publisher": source.ask_usage(),
        "relay": relay_at_work.ask_usage(),
        "consumer": sink.ask_usage(),
    }
    used = {role: total.since(idle[role]) for role, total in busy.items()}
    expected = 2 * size.layers * size.blocks
    if accepted != expected:
        raise RuntimeError(f"{accepted} of {expected} Objects were verified")
    for process in (source, sink):
        process.end()
    return Transfer(size.octets, ended - began, first - began, used)


async def publisher(channel: Channel, settings: dict[str, Any]) -> None:
    """Announce, wait for "go", publish every layer."""
    size: Size = settings["size"]
    announced = asyncio.Event()

    def heard(event: dict[str, Any]) -> None:
        if event["event"] == "announce-accepted":
            announced.set()

    role = Publisher(report=heard)
    host = QuicHost(role, options(settings))
    publication = role.open(
        PublicationSpec(
            profile=profile("kvsp-p0"),
            scope_key=SCOPE_KEY,
            descriptor=size.descriptor,
            tokens=size.tokens,
            publication_id=secrets.token_bytes(16),
        )
    )
    publication.open_segment()
    role.connect(settings["url"], SessionConfig())
    await announced.wait()
    channel.tell("announced", usage())
    await channel.heard()
    pool = os.urandom(POOL + 32768)
    # What comes before the relay's SUBSCRIBE would take the detour of a fill.
    while not all(track.senders for track in role.tracks.values()):
        await asyncio.sleep(0.001)
    channel.tell("began", clock())
    for layer in range(size.layers):
        publication.put_layer(0, layer, _layer(pool, size, layer))
        host.wake()
        # A model does not compute layers faster than they leave.
        while _backlog(role) > HIGH_WATER:
            await asyncio.sleep(0.001)
    publication.complete_segment(0)
    host.wake()
    await channel.answer_usage()


def _backlog(role: Publisher) -> int:
    return sum(
        sender.backlog for track in role.tracks.values() for sender in track.senders.values()
    )


async def consumer(channel: Channel, settings: dict[str, Any]) -> None:
    """Restore live; every Object's digest is verified before it counts."""
    size: Size = settings["size"]
    accepted = 0
    first = 0.0
    done = asyncio.Event()

    def heard(event: dict[str, Any]) -> None:
        nonlocal accepted, first
        match event["event"]:
            case "object-accepted":
                accepted += 1
            case "layer-usable":
                first = first or clock()
            case "segment":
                channel.tell("subscribed", usage())
            case "done":
                done.set()

    request = ConsumeRequest(
        profile=profile("kvsp-p0"),
        scope_key=SCOPE_KEY,
        descriptor=size.descriptor,
        tokens=size.tokens,
        sources=(settings["url"],),
        mode=Mode.LIVE,
        budgets=Budgets(stall=60, recovery=60, total=PATIENCE_S, probe=10, discovery=30),
    )
    _host = QuicHost(Consumer(request, heard), options(settings))
    await done.wait()
    channel.tell("done", (first, clock(), accepted))
    await channel.answer_usage()


def _layer(pool: bytes, size: Size, layer: int) -> dict[Component, Sequence[memoryview]]:
    """Sections that differ from block to block, cut from one pool of random octets."""
    view = memoryview(pool)

    def section(index: int) -> memoryview:
        offset = index * 251 % POOL
        return view[offset : offset + 32768]

    first = 2 * layer * size.blocks
    return {
        Component.K: [section(first + 2 * block) for block in range(size.blocks)],
        Component.V: [section(first + 2 * block + 1) for block in range(size.blocks)],
    }
