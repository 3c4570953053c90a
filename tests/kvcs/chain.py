"""A chain of publishers, relays and consumers on the simulated network, for the tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kvcs.consumer import Budgets, Consumer, ConsumeRequest
from kvcs.identity import P0
from kvcs.names import Component, KvcsNamespace
from kvcs.publisher import Publication, PublicationSpec, Publisher
from moqt.drivers.memory import Network
from moqt.relay import Relay, RelayConfig
from moqt.session import SessionConfig

from tests.kvcs.caches import SCOPE_KEY, descriptor, layer_sections, section, tokens

PUBLICATION_ID = bytes.fromhex("0123456789abcdef0123456789abcdef")
OTHER_ID = bytes.fromhex("fedcba9876543210fedcba9876543210")

KINDS = (Component.K, Component.V)

QUICK = Budgets(probe=0.1, manifest=1.0, stall=0.5, recovery=2.0, total=20.0)

Event = dict[str, Any]


def spec(
    blocks: int = 3,
    *,
    layers: int = 4,
    publication_id: bytes = PUBLICATION_ID,
    segment_blocks: int | None = None,
    **members: Any,
) -> PublicationSpec:
    """A publication of `tokens(blocks)`; segment 0 may cover fewer of them."""
    settings: dict[str, Any] = {
        "profile": P0,
        "scope_key": SCOPE_KEY,
        "descriptor": descriptor(layers),
        "tokens": tokens(blocks),
        "publication_id": publication_id,
        "blocks": segment_blocks,
    }
    return PublicationSpec(**{**settings, **members})


def request(*sources: str, blocks: int = 3, layer_count: int = 4, **members: Any) -> ConsumeRequest:
    """A restore of `tokens(blocks)` from nodes by name."""
    settings: dict[str, Any] = {
        "profile": P0,
        "scope_key": SCOPE_KEY,
        "descriptor": descriptor(layer_count),
        "tokens": tokens(blocks),
        "sources": tuple(f"moqt://{name}/" for name in sources),
        "budgets": QUICK,
    }
    return ConsumeRequest(**{**settings, **members})


def put_layer(publication: Publication, segment: int, layer: int, flavour: int = 0) -> None:
    """Publish one layer with the sections of `caches`."""
    part = publication.segments[segment]
    blocks = range(part.first_block, part.first_block + part.blocks)
    publication.put_layer(segment, layer, layer_sections(layer, blocks, flavour))


def produce(publication: Publication, flavour: int = 0) -> None:
    """Publish the next segment whole."""
    part = publication.open_segment()
    for layer in range(publication.spec.layers):
        put_layer(publication, part.number, layer, flavour)
    publication.complete_segment(part.number)


@dataclass
class Restored:
    """A consumer and what it reported."""

    consumer: Consumer
    events: list[Event] = field(default_factory=list)

    def named(self, event: str) -> list[Event]:
        """The events of one name."""
        return [item for item in self.events if item["event"] == event]

    def last(self, event: str) -> Event:
        """The last event of a name; there must be one."""
        return self.named(event)[-1]

    def count(self, event: str) -> int:
        """How many events of a name there are."""
        return len(self.named(event))

    @property
    def reasons(self) -> list[str]:
        """Why Objects were discarded."""
        return [item["reason"] for item in self.named("object-discarded")]

    @property
    def layers(self) -> list[int]:
        """Layers in the order in which they became usable."""
        return [item["layer"] for item in self.named("layer-usable")]

    @property
    def reused(self) -> int:
        """Reused tokens, as reported."""
        return int(self.last("reused-tokens")["tokens"])


class Scene:
    """The network with everything on it."""

    def __init__(self, **settings: Any) -> None:
        self.network = Network(**settings)
        self.heard: dict[str, list[Event]] = {}

    def publisher(
        self, name: str = "origin", kind: type[Publication] = Publication, **settings: Any
    ) -> Publisher:
        """A publisher that consumers reach directly by name."""
        heard: list[Event] = []
        self.heard[name] = heard
        publisher = Publisher(report=heard.append, **settings)
        publisher.publication_class = kind
        self.network.listen(name, publisher, SessionConfig())
        return publisher

    def consumer(
        self,
        wanted: ConsumeRequest,
        name: str = "consumer",
        kind: type[Consumer] = Consumer,
        config: SessionConfig | None = None,
    ) -> Restored:
        """A consumer that starts at once."""
        events: list[Event] = []
        restored = Restored(kind(wanted, events.append, config), events)
        self.network.client(name, restored.consumer)
        return restored

    def finish(self, *restored: Restored, limit: float = 60.0) -> None:
        """Run until all are done."""
        self.network.run(lambda: all(item.consumer.done for item in restored), limit)


def restore(scene: Scene, wanted: ConsumeRequest, **settings: Any) -> Restored:
    """A consumer, run to its end."""
    restored = scene.consumer(wanted, **settings)
    scene.finish(restored)
    return restored


def assert_bit_identical(restored: Restored, layers: int = 4, blocks: int = 3) -> None:
    """Every section is the published one."""
    result = restored.consumer.result
    assert result is not None
    for layer in range(layers):
        for block in range(blocks):
            expected = tuple(section(kind, layer, block) for kind in KINDS)
            found = tuple(map(bytes, result.sections(layer, block)))
            assert expected == found


def namespace(of: PublicationSpec) -> KvcsNamespace:
    """The namespace that a publication has."""
    return of.namespace(of.block_keys(of.tokens))


class Chain(Scene):
    """producer -> relay "a" -> relay "b"; consumers may attach to either."""

    def __init__(self, kind: type[Publication] = Publication, **settings: Any) -> None:
        super().__init__(**settings)
        config = SessionConfig()
        self.network.listen("a", Relay(), config)
        self.network.listen("b", Relay(RelayConfig(upstreams=("moqt://a/",))), config)
        self.heard["producer"] = []
        self.producer = Publisher(report=self.heard["producer"].append)
        self.producer.publication_class = kind
        self.network.client("producer", self.producer)
        self.producer.connect("moqt://a/", config)

    def announce(self, wanted: PublicationSpec) -> Publication:
        """Open a publication, and run until the relay took it."""
        publication = self.producer.open(wanted)
        name = publication.spec.publication_id.hex()
        self.network.run(
            lambda: any(
                item["event"] == "announce-accepted" and item["publication"] == name
                for item in self.heard["producer"]
            )
        )
        return publication


def live(
    scene: Scene,
    publication: Publication,
    *,
    every: float = 0.1,
    start: float = 0.0,
    flavour: int = 0,
) -> None:
    """Schedule the production of segment 0, one layer after the other, from `start` on."""
    layers = publication.spec.layers

    def step(layer: int) -> None:
        if layer == 0:
            publication.open_segment()
        put_layer(publication, 0, layer, flavour)
        if layer == layers - 1:
            publication.complete_segment(0)

    for layer in range(layers):
        scene.network.at(start + every * layer, partial(step, layer))
