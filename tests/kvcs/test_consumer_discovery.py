"""Finding publications: the descent, its bounds, and what is ignored."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kvcs.consumer import Budgets
from kvcs.publisher import Publisher
from moqt.session import Request, RequestKind, SessionConfig
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import TrackNamespace

from tests.kvcs.caches import keys, tokens
from tests.kvcs.chain import OTHER_ID, QUICK, Scene, namespace, produce, request, restore, spec


class Watching(Publisher):
    """Keeps the prefixes that were asked for."""

    def authorise(self, request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE_NAMESPACE:
            self.asked: list[TrackNamespace] = getattr(self, "asked", [])
            assert request.namespace is not None
            self.asked.append(request.namespace)


def watching(scene: Scene, name: str = "origin") -> Watching:
    publisher = Watching()
    scene.network.listen(name, publisher, SessionConfig())
    return publisher


def test_only_the_longest_prefix_is_asked_for_when_it_is_published() -> None:
    """KVCS-7.1-1: one SUBSCRIBE_NAMESPACE with four fields, and no wider one."""
    scene = Scene()
    publisher = watching(scene)
    publication = publisher.open(spec())
    produce(publication)
    restored = restore(scene, request("origin"))
    assert [publication.namespace.prefix(4)] == publisher.asked
    assert 12 == restored.reused


def test_the_descent_is_linear() -> None:
    """Publications for 2 and 7 blocks, none for 4: a consumer with 8 blocks finds 7."""
    scene = Scene()
    publisher = watching(scene)
    for blocks in (2, 7):
        produce(publisher.open(spec(blocks)))
    restored = restore(scene, request("origin", blocks=8))
    assert [keys(8)[7], keys(8)[6]] == [prefix[3] for prefix in publisher.asked]
    assert 7 * 4 == restored.reused
    assert {"first_token": 28, "end_token": 32}.items() <= restored.last("recompute").items()


def test_without_any_publication_everything_is_recomputed() -> None:
    """KVCS-7.1-4, A20: the descent ends by its timers, and so does the consumer."""
    scene = Scene()
    publisher = watching(scene)
    restored = restore(scene, request("origin", blocks=3))
    assert 3 == len(publisher.asked)
    assert 0 == restored.reused
    assert {"first_token": 0, "end_token": 12}.items() <= restored.last("recompute").items()
    assert "recompute" == restored.last("done")["outcome"]


def test_the_descent_is_bounded() -> None:
    """KVCS-7.4-5: a budget for all anchors in sum."""
    scene = Scene()
    publisher = watching(scene)
    budgets = replace(QUICK, discovery=0.35)
    restored = restore(scene, request("origin", blocks=20, budgets=budgets))
    assert len(publisher.asked) <= 4
    assert restored.last("done")["time"] < 1.0


def test_a_prompt_under_one_block_asks_for_nothing() -> None:
    """KVCS-4-11: there is no key for a partial block."""
    scene = Scene()
    publisher = watching(scene)
    restored = restore(scene, request("origin", tokens=tokens(1)[:3]))
    assert not hasattr(publisher, "asked")
    assert 0 == restored.reused
    assert 0 == restored.count("recompute")


def test_without_probing_only_what_an_index_named_is_asked_for() -> None:
    """KVCS-11-2, KVCS-7.1-3: no SUBSCRIBE_NAMESPACE at all, and the named publication is read."""
    scene = Scene()
    publisher = watching(scene)
    wanted = spec()
    produce(publisher.open(wanted))
    named = request("origin", probing=False, namespaces=(namespace(wanted),))
    restored = restore(scene, named)
    assert not hasattr(publisher, "asked")
    assert 12 == restored.reused


def test_a_named_publication_of_another_scope_is_skipped() -> None:
    """KVCS-7.1-3: a record that leads elsewhere is ignored, and the consumer ends."""
    scene = Scene()
    scene.publisher()
    foreign = replace(namespace(spec()), scope_id=bytes(16))
    restored = restore(scene, request("origin", namespaces=(foreign,)))
    assert 1 == restored.count("namespace-ignored")
    assert "recompute" == restored.last("done")["outcome"]


def test_a_longer_publication_from_an_index_gives_its_first_blocks() -> None:
    """KVCS-7.1-5, KVCS-7.3-5: 5 blocks are published, the prompt has 3: excess is not counted."""
    scene = Scene()
    publisher = scene.publisher()
    longer = spec(5)
    produce(publisher.open(longer))
    restored = restore(scene, request("origin", blocks=3, namespaces=(namespace(longer),)))
    assert 12 == restored.reused
    assert [] == restored.reasons


class Refusing(Watching):
    """Refuses every probe."""

    def authorise(self, request: Request) -> None:
        super().authorise(request)
        raise RequestRefused("no token", RequestErrorCode.UNAUTHORIZED)


def test_a_refusal_ends_a_step_at_once() -> None:
    """KVCS-10-7: no time is lost on a source that says no."""
    scene = Scene()
    scene.network.listen("origin", Refusing(), SessionConfig())
    budgets = Budgets(probe=100.0)
    restored = restore(scene, request("origin", budgets=budgets))
    assert 3 == restored.count("probe")
    assert restored.last("done")["time"] < 1.0


def test_a_refusal_is_told_with_its_code() -> None:
    """A user whose token opens nothing learns that, and from whom."""
    scene = Scene()
    scene.network.listen("origin", Refusing(), SessionConfig())
    restored = restore(scene, request("origin"))
    told = restored.last("probe-refused")
    assert ("moqt://origin/", RequestErrorCode.UNAUTHORIZED, "no token") == (
        told["source"],
        told["code"],
        told["reason"],
    )


def test_a_source_that_cannot_be_reached_costs_its_budget_only() -> None:
    """KVCS-7.4-5: with no source at all the consumer recomputes."""
    scene = Scene()
    scene.publisher()
    scene.network.partition("consumer", "origin")
    restored = restore(scene, request("origin", budgets=replace(QUICK, connect=1.0)))
    assert 1 == restored.count("source-failed")
    assert 0 == restored.reused


def test_the_second_source_is_asked_too() -> None:
    """KVCS-7.4-4: the publication is only known at the second source."""
    scene = Scene()
    scene.publisher("empty")
    produce(scene.publisher("full").open(spec()))
    restored = restore(scene, request("empty", "full"))
    assert 12 == restored.reused
    assert "complete" == restored.last("done")["outcome"]


def test_reuse_is_by_whole_published_prefixes() -> None:
    """A and B are published as one prefix of 12 blocks, then A alone as one of 8.

    A+B+C reuses 12 blocks; A+C reuses nothing, then 8; hit and miss make the prompt.
    """
    scene = Scene()
    publisher = scene.publisher()
    other = tokens(4, first=1000)
    produce(publisher.open(spec(12)))
    with_c = restore(scene, request("origin", tokens=tokens(12) + other[:8]))
    assert 12 * 4 == with_c.reused
    before = scene.consumer(request("origin", tokens=tokens(8) + other), "before")
    scene.finish(before)
    assert 0 == before.reused
    produce(publisher.open(spec(8, publication_id=OTHER_ID)))
    after = scene.consumer(request("origin", tokens=tokens(8) + other), "after")
    scene.finish(after)
    assert 8 * 4 == after.reused
    assert {"first_token": 32, "end_token": 48}.items() <= after.last("recompute").items()


@pytest.mark.parametrize(("changed", "reused"), [(0, 0), (3, 0), (4, 1), (15, 3)])
def test_the_first_changed_token_ends_the_reuse(changed: int, reused: int) -> None:
    """Four turns were published, of 1 to 4 blocks: what follows a changed token is no hit."""
    scene = Scene()
    publisher = scene.publisher()
    for blocks in range(1, 5):
        produce(publisher.open(spec(blocks, publication_id=bytes([blocks]) * 16)))
    prompt = tokens(4)
    prompt[changed] += 1
    restored = restore(scene, request("origin", tokens=prompt))
    assert reused * 4 == restored.reused
