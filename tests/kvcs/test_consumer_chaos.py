"""Seeded chaos: whatever goes wrong, the consumer ends in time and reuses right blocks only."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from kvcs.consumer import Mode
from kvcs.names import DataTrack, TrackName
from kvcs.publisher import Publication, PublicationSpec, Publisher
from moqt.drivers.memory import Link
from moqt.wire.objects import Object, ObjectStatus

from tests.kvcs.caches import section
from tests.kvcs.chain import KINDS, OTHER_ID, QUICK, Restored, Scene, live, request, spec

BUDGETS = replace(QUICK, connect=1.0, probe=0.5, stall=0.3, recovery=1.0, total=8.0)


class Chaotic(Publication):
    """Drops, truncates and corrupts Objects and marks at random."""

    def __init__(self, publisher: Publisher, wanted: PublicationSpec) -> None:
        self.random = Random(f"{wanted.publication_id!r} {wanted.max_cache_duration}")
        self.badness = self.random.choice([0.0, 0.02, 0.1])
        super().__init__(publisher, wanted)

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and self.random.random() < self.badness:
            if item.status is not ObjectStatus.NORMAL or self.random.random() < 0.4:
                return
            payload = bytearray(item.payload)
            payload[self.random.randrange(len(payload))] ^= 1 + self.random.randrange(255)
            item = replace(item, payload=bytes(payload[: self.random.choice([None, None, 70])]))
        super().publish(track, item)


def chaos(seed: int) -> Restored:
    random = Random(seed)
    link = Link(
        latency=0.01, jitter=random.choice([0.0, 0.05]), chunk=random.choice([None, (1, 200)])
    )
    scene = Scene(seed=seed, link=link, idle_timeout=0.5)
    deterministic = random.random() < 0.5
    names = ["one", "two", "three"][: random.randint(1, 3)]
    for index, name in enumerate(names):
        identity = OTHER_ID if random.random() < 0.3 else spec().publication_id
        wanted = spec(
            publication_id=identity,
            deterministic=deterministic,
            max_cache_duration=seed * 10 + index,
            manifest_interval=random.choice([1, 2, 8]),
        )
        publication = scene.publisher(name, Chaotic).open(wanted)
        live(scene, publication, every=random.choice([0.01, 0.2]), start=random.random())
        if random.random() < 0.3:
            at = 0.1 + random.random()
            fault = random.choice(["kill", "cut", "stop"])
            if fault == "kill":
                scene.network.at(at, lambda name=name: scene.network.kill(name))  # type: ignore[misc]
            elif fault == "cut":
                scene.network.at(
                    at,
                    lambda name=name: scene.network.partition(name, "consumer"),  # type: ignore[misc]
                )
            else:
                scene.network.at(2.0, lambda one=publication: one.stop("error"))  # type: ignore[misc]
    scene.network.run(random.random())
    restored = scene.consumer(
        request(*names, mode=random.choice([Mode.LIVE, Mode.COMPLETED]), budgets=BUDGETS)
    )
    started = scene.network.now
    scene.finish(restored)
    assert scene.network.now - started <= BUDGETS.total + 0.001
    return restored


@pytest.mark.parametrize("seed", range(25))
def test_any_chaos_ends_in_time_with_right_blocks(seed: int) -> None:
    """KVCS-7.4-5, KVCS-4-23: `done` comes, and every reused block is bit-identical."""
    restored = chaos(seed)
    assert 1 == restored.count("done")
    result = restored.consumer.result
    reused = restored.reused // 4
    assert reused == (0 if result is None else result.reused_blocks)
    for block in range(reused):
        for layer in range(4):
            assert result is not None
            expected = tuple(section(kind, layer, block) for kind in KINDS)
            assert expected == tuple(map(bytes, result.sections(layer, block)))
