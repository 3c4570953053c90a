"""The job itself: compute, publish, carry, restore, compute on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kvcs.consumer import Budgets, Consumer, ConsumeRequest, Mode
from kvcs.geometry import Geometry
from kvcs.identity import profile
from kvcs.model import CacheModel, LayerStep, ModelPass, encode_text
from kvcs.names import Component
from kvcs.publisher import PublicationSpec, Publisher
from kvcs.tensorfile import Layer, restored_layer
from kvcs.tensors import split_layer
from moqt.session import SessionConfig

from kvcs_conformance.mainjob.chain import Chain, Link, chain

PATIENCE_S = 120.0
SCOPE_KEY = bytes(range(32))
PUBLICATION_ID = bytes.fromhex("0123456789abcdef0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of the job: `blocks` complete blocks of the prompt and a tail that has no block."""

    blocks: int = 40
    block_tokens: int = 32
    tail: int = 17

    @property
    def prompt(self) -> list[int]:
        """Token ids."""
        words = (
            f"Clause {i}: a relay serves {i * i} and asks for {i * 7919 % 997}." for i in range(999)
        )
        return encode_text(" ".join(words))[: self.cached + self.tail]

    @property
    def cached(self) -> int:
        """Tokens in complete blocks: what the publication covers."""
        return self.blocks * self.block_tokens


@dataclass(slots=True)
class Computation:
    """What computing on from a cache gave: per layer, and the next-token scores at the end."""

    attention: list[bytes] = field(default_factory=list)
    logits: bytes = b""
    next_token: int = -1


@dataclass(slots=True)
class Reader:
    """One consumer: what it was told, received and computed. Times are seconds of the job."""

    name: str
    mode: Mode
    link: Link
    joined: float
    first_usable: float = 0.0
    restored: float = 0.0
    computed: float = 0.0
    usable: dict[int, float] = field(default_factory=dict)
    accepted: int = 0
    discarded: int = 0
    reused_tokens: int = 0
    layers: list[Layer] = field(default_factory=list)
    result: Computation = field(default_factory=Computation)
    upstream_objects: int = 0
    """Objects that relay B asked relay A for meanwhile."""


@dataclass(slots=True)
class Done:
    """Everything that the findings and the tables are made from."""

    plan: Plan
    model: str
    layers: int
    cache: list[LayerStep] = field(default_factory=list)
    published: list[float] = field(default_factory=list)
    own: Computation = field(default_factory=Computation)
    readers: list[Reader] = field(default_factory=list)
    links: dict[str, Link] = field(default_factory=dict)
    stored: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Objects and octets that each relay held at the end."""
    seconds: float = 0.0

    def as_json(self, findings: list[Any]) -> dict[str, Any]:
        """The form of main-job.json."""
        return {
            "schema": 1,
            "model": self.model,
            "layers": self.layers,
            "blocks": self.plan.blocks,
            "block_tokens": self.plan.block_tokens,
            "prompt_tokens": len(self.plan.prompt),
            "seconds": self.seconds,
            "published_s": self.published,
            "findings": [
                {"what": one.what, "upheld": one.upheld, "found": one.found} for one in findings
            ],
            "links": [
                {
                    "name": link.name,
                    "objects": link.crossed.total(),
                    "distinct": len(link.crossed),
                    "octets": link.octets,
                    "ways": dict(link.ways),
                }
                for link in self.links.values()
            ],
            "relays": {
                name: {"objects": objects, "octets": octets}
                for name, (objects, octets) in self.stored.items()
            },
            "consumers": [
                {
                    "name": reader.name,
                    "joined_s": reader.joined,
                    "first_usable_s": reader.first_usable,
                    "restored_s": reader.restored,
                    "computed_s": reader.computed,
                    "usable_s": [reader.usable.get(layer) for layer in range(self.layers)],
                    "reused_tokens": reader.reused_tokens,
                    "next_token": reader.result.next_token,
                }
                for reader in self.readers
            ],
        }


async def do_job(plan: Plan, make_model: Callable[[], CacheModel]) -> Done:
    """Run the whole job; TimeoutError when a step does not come to its end.

    `make_model` makes one model per party: they have nothing in common but the seed.
    """
    async with chain() as at_work, asyncio.timeout(PATIENCE_S):
        job = _Job(plan, make_model, at_work)
        await job.run()
    return job.done


class _Job:
    """The steps, in the order in which they happen."""

    def __init__(self, plan: Plan, make_model: Callable[[], CacheModel], at_work: Chain) -> None:
        self._make_model = make_model
        self._chain = at_work
        self._producer = make_model()
        self._descriptor = self._producer.descriptor(plan.block_tokens)
        self._geometry = Geometry.from_descriptor(self._descriptor)
        self._prompt = plan.prompt
        self._half = asyncio.Event()
        self._start = time.monotonic()
        self.done = Done(plan, self._producer.name, self._geometry.layers, links=at_work.links)

    @property
    def _now(self) -> float:
        return time.monotonic() - self._start

    async def run(self) -> None:
        """All of it."""
        models = self._make_model(), self._make_model()
        producing = asyncio.create_task(self._produce())
        await self._half.wait()
        await self._restore("consumer 1", Mode.LIVE, models[0])
        await producing
        await self._restore("consumer 2", Mode.COMPLETED, models[1])
        at_work = self._chain
        for name, relay in (("relay A", at_work.relay_a), ("relay B", at_work.relay_b)):
            self.done.stored[name] = (len(relay.budget), relay.budget.used)
        self.done.seconds = self._now

    async def _produce(self) -> None:
        """Compute the cache, publish each layer at once, then compute on from it."""
        plan, done = self.done.plan, self.done
        announced = asyncio.Event()

        def heard(event: dict[str, Any]) -> None:
            if event["event"] == "announce-accepted":
                announced.set()

        publisher = Publisher(report=heard)
        host = self._chain.host(publisher)
        spec = PublicationSpec(
            profile=profile("kvsp-p0"),
            scope_key=SCOPE_KEY,
            descriptor=self._descriptor,
            tokens=self._prompt[: plan.cached],
            publication_id=PUBLICATION_ID,
        )
        publication = publisher.open(spec)
        publication.open_segment()
        publisher.connect(self._chain.url_a, SessionConfig())
        await announced.wait()
        self._start = time.monotonic()
        prefill = self._producer.begin(self._prompt[: plan.cached])
        for layer in range(done.layers):
            step = await asyncio.to_thread(prefill.advance)
            done.cache.append(step)
            sections = {
                Component.K: split_layer(step.k, self._geometry, Component.K),
                Component.V: split_layer(step.v, self._geometry, Component.V),
            }
            publication.put_layer(0, layer, sections)
            host.wake()
            done.published.append(self._now)
            if layer == done.layers // 2:
                self._half.set()
        publication.complete_segment(0)
        host.wake()
        onward = self._producer.begin(self._prompt[plan.cached :], plan.cached)
        for step in done.cache:
            await _advance(onward, Layer(step.k, step.v), done.own)
        _conclude(onward, done.own)

    async def _restore(self, name: str, mode: Mode, model: CacheModel) -> None:
        """One consumer: restore through relay B, and compute each layer once it is usable."""
        before = self._chain.links["relay A - relay B"].crossed.total()
        reader = Reader(name, mode, self._chain.link(f"relay B - {name}"), self._now)
        self.done.readers.append(reader)
        moved = asyncio.Event()
        ended = asyncio.Event()

        def heard(event: dict[str, Any]) -> None:
            match event["event"]:
                case "layer-usable":
                    reader.usable[event["layer"]] = self._now
                case "object-accepted":
                    reader.accepted += 1
                case "object-discarded":
                    reader.discarded += 1
                case "reused-tokens":
                    reader.reused_tokens = event["tokens"]
                case "done":
                    reader.restored = self._now
                    ended.set()
            moved.set()

        request = ConsumeRequest(
            profile=profile("kvsp-p0"),
            scope_key=SCOPE_KEY,
            descriptor=self._descriptor,
            tokens=self._prompt,
            sources=(self._chain.url_b,),
            mode=mode,
            budgets=Budgets(total=PATIENCE_S, stall=10.0, recovery=20.0),
        )
        consumer = Consumer(request, heard, reader.link.config())
        self._chain.host(consumer)
        plan = self.done.plan
        onward = model.begin(self._prompt[plan.cached :], plan.cached)
        for layer in range(self.done.layers):
            while layer not in reader.usable and not ended.is_set():
                moved.clear()
                await moved.wait()
            result = consumer.result
            if layer not in reader.usable or result is None:
                return
            reader.first_usable = reader.first_usable or reader.usable[layer]
            restored = restored_layer(result, self._geometry, layer, plan.blocks)
            reader.layers.append(restored)
            await _advance(onward, restored, reader.result)
        _conclude(onward, reader.result)
        reader.computed = self._now
        await ended.wait()
        reader.upstream_objects = self._chain.links["relay A - relay B"].crossed.total() - before


async def _advance(onward: ModelPass, layer: Layer, result: Computation) -> None:
    step = await asyncio.to_thread(onward.advance, layer.k, layer.v)
    result.attention.append(step.attention.tobytes())


def _conclude(onward: ModelPass, result: Computation) -> None:
    scores = onward.logits()
    result.logits = scores.tobytes()
    result.next_token = int(scores.argmax())
