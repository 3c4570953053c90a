"""Retrieval during production and of completed caches, without faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kvcs.codecs import Codec
from kvcs.consumer import Mode
from kvcs.identity import KvspP0
from kvcs.names import Component
from kvcs.publisher import Encoding, Publication, Publisher
from moqt.drivers.memory import Link
from moqt.session import SessionConfig
from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import Fetch, RequestError, SetupOptions

from tests.kvcs.caches import descriptor, section, tokens
from tests.kvcs.chain import (
    KINDS,
    QUICK,
    Restored,
    Scene,
    assert_bit_identical,
    live,
    produce,
    request,
    restore,
    spec,
)


def locations(restored: Restored) -> list[tuple[str, int, int]]:
    return sorted(
        (item["track"], item["layer"], item["block"]) for item in restored.named("object-accepted")
    )


EVERYTHING = sorted(
    (track, layer, block)
    for track in ("k.raw.s0", "v.raw.s0")
    for layer in range(4)
    for block in range(3)
)


@pytest.mark.parametrize("joined", [0.0, 0.05, 0.15, 0.21, 0.3, 0.31, 1.0])
def test_every_object_arrives_exactly_once_whenever_one_joins(joined: float) -> None:
    """KVCS-7.2-3: before, during and after production; fill and subscription meet exactly."""
    scene = Scene()
    publication = scene.publisher().open(spec())
    live(scene, publication, start=0.1)
    scene.network.run(joined)
    restored = restore(scene, request("origin", budgets=replace(QUICK, append=0.0)))
    assert EVERYTHING == locations(restored)
    assert [] == restored.reasons
    assert 0 == restored.count("object-duplicate")
    assert_bit_identical(restored)
    assert 12 == restored.reused


def test_layer_0_is_usable_before_the_last_layer_is_published() -> None:
    """KVCS-6-6, KVCS-7.4-2: layers become usable one by one, in order."""
    scene = Scene()
    publication = scene.publisher().open(spec())
    live(scene, publication, every=1.0)
    restored = restore(scene, request("origin"))
    assert [0, 1, 2, 3] == restored.layers
    assert restored.named("layer-usable")[0]["time"] < 1.0
    assert restored.named("layer-usable")[3]["time"] > 3.0


def test_what_came_before_the_join_is_filled_and_the_rest_subscribed() -> None:
    """KVCS-7.2-1, KVCS-7.2-2: two layers from the fill, two live."""
    scene = Scene()
    publication = scene.publisher().open(spec())
    live(scene, publication, every=1.0)
    scene.network.run(1.5)
    restored = restore(scene, request("origin"))
    via = {item["layer"]: item["via"] for item in restored.named("object-accepted")}
    assert {0: "fill", 1: "fill", 2: "subscription", 3: "subscription"} == via


def test_a_late_consumer_completes_by_the_manifest() -> None:
    """KVCS-7.2-7 (c): statuses do not come on a fill; FIN and the manifest are enough."""
    scene = Scene()
    produce(scene.publisher().open(spec()))
    restored = restore(scene, request("origin"))
    assert {"k.raw.s0", "v.raw.s0"} == {item["track"] for item in restored.named("track-complete")}
    assert all("manifest" in item["by"] for item in restored.named("track-complete"))


class FirstManifestOnly(Publication):
    """Never says that the segment is complete."""

    def publish_manifest(self) -> None:
        if self.version < 0:
            super().publish_manifest()


def test_a_live_consumer_completes_by_the_end_of_the_track() -> None:
    """KVCS-7.2-7 (a), (b): End of Track, or PUBLISH_DONE TRACK_ENDED, without a manifest."""
    scene = Scene()
    live(scene, scene.publisher(kind=FirstManifestOnly).open(spec()))
    restored = restore(scene, request("origin"))
    assert 2 == restored.count("track-complete")
    ends = {end for item in restored.named("track-complete") for end in item["by"]}
    assert {"end-of-track"} <= ends <= {"end-of-track", "publish-done"}


def test_a_completed_cache_is_fetched() -> None:
    """KVCS-7.3-1 to KVCS-7.3-3: one FETCH per track, layers ascending."""
    scene = Scene()
    produce(scene.publisher().open(spec()))
    restored = restore(scene, request("origin", mode=Mode.COMPLETED))
    assert EVERYTHING == locations(restored)
    assert [0, 1, 2, 3] == restored.layers
    assert {"fetch"} == {item["via"] for item in restored.named("object-accepted")}
    assert_bit_identical(restored)


@pytest.mark.parametrize("layers", [(0, 0), (1, 2), (3, 3), (0, 3)])
def test_a_range_of_layers_is_fetched(layers: tuple[int, int]) -> None:
    """KVCS-7.3-1: both ends count, and nothing else arrives."""
    scene = Scene()
    produce(scene.publisher().open(spec()))
    restored = restore(scene, request("origin", mode=Mode.COMPLETED, layers=layers))
    expected = [item for item in EVERYTHING if layers[0] <= item[1] <= layers[1]]
    assert expected == locations(restored)
    assert 0 == restored.count("object-excess")
    assert "complete" == restored.last("done")["outcome"]


@pytest.mark.parametrize(("ranges", "excess"), [(1, 0), (0, 14)])
def test_the_first_blocks_are_filtered_where_the_peer_allows_it(ranges: int, excess: int) -> None:
    """KVCS-7.3-4, KVCS-7.3-5: OBJECTID_FILTER with MAX_FILTER_RANGES, else excess is dropped.

    The restore ends with the last wanted Object: the two behind it are not waited for.
    """
    scene = Scene()
    publisher = Publisher()
    config = SessionConfig(setup=SetupOptions(max_filter_ranges=ranges))
    scene.network.listen("limited", publisher, config)
    produce(publisher.open(spec(5)))
    wanted = request("limited", blocks=5, mode=Mode.COMPLETED)
    restored = restore(scene, replace(wanted, blocks=3))
    assert 12 == restored.reused
    assert excess == restored.count("object-excess")
    assert [] == restored.reasons


def test_a_kv_track_is_as_good_as_a_pair() -> None:
    """KVCS-3.2-5, KVCS-4-16: one kv track, K then V."""
    scene = Scene()
    produce(scene.publisher().open(spec(encodings=(Encoding(Component.KV),))))
    restored = restore(scene, request("origin"))
    assert ["kv.raw.s0"] == restored.last("segment")["tracks"]
    assert_bit_identical(restored)


def test_of_several_encodings_one_is_taken() -> None:
    """KVCS-3.2-5: the preferred codec, and no redundant third track."""
    scene = Scene()
    every = (Encoding(Component.K), Encoding(Component.V), Encoding(Component.KV, "zstd"))
    produce(scene.publisher().open(spec(encodings=every)))
    pair = scene.consumer(request("origin"))
    joint = scene.consumer(request("origin", codecs=("zstd",)), "second")
    scene.finish(pair, joint)
    assert ["k.raw.s0", "v.raw.s0"] == pair.last("segment")["tracks"]
    assert ["kv.zstd.s0"] == joint.last("segment")["tracks"]
    for restored in (pair, joint):
        assert_bit_identical(restored)


def test_two_segments_make_one_context() -> None:
    """KVCS-2-3, KVCS-3.4-2, A12: a chunked prefill is found at its first chunk."""
    scene = Scene()
    publication = scene.publisher().open(spec(3, segment_blocks=2))
    produce(publication)
    produce(publication)
    restored = restore(scene, request("origin", blocks=3))
    assert [0, 1] == [item["segment"] for item in restored.named("segment")]
    assert 12 == restored.reused
    assert_bit_identical(restored)


def test_an_appended_segment_is_awaited_as_long_as_wanted() -> None:
    """KVCS-5-15: a later turn arrives while the consumer is there."""
    scene = Scene()
    publication = scene.publisher().open(spec(2))
    produce(publication)

    def turn() -> None:
        publication.extend(tokens(1, first=9))
        produce(publication)

    scene.network.at(1.0, turn)
    restored = restore(scene, request("origin", blocks=3, budgets=replace(QUICK, append=2.0)))
    assert 12 == restored.reused


def test_another_continuation_is_left_aside() -> None:
    """A7: the segment after the shared prefix has other Block Keys: 2 blocks are reused."""
    scene = Scene()
    publication = scene.publisher().open(spec(2))
    produce(publication)
    publication.extend(tokens(1, first=100))
    produce(publication)
    restored = restore(scene, request("origin", blocks=3))
    assert 8 == restored.reused
    assert {"first_token": 8, "end_token": 12}.items() <= restored.last("recompute").items()


def test_a_completed_restore_waits_for_a_production_under_way() -> None:
    """KVCS-7.3-1: a segment is fetched when the manifest calls it complete."""
    scene = Scene()
    live(scene, scene.publisher().open(spec()), every=0.5)
    scene.network.run(0.6)
    restored = restore(scene, request("origin", mode=Mode.COMPLETED))
    assert 12 == restored.reused
    assert {"fetch"} == {item["via"] for item in restored.named("object-accepted")}


def test_a_publisher_with_a_fetch_limit_still_serves() -> None:
    """KVCS-10-11, R073: a refused FETCH is asked again, not before its Retry Interval is over."""
    scene = Scene()
    publisher = scene.publisher(max_fetches_per_session=1, retry_interval=301)
    produce(publisher.open(spec()))
    refused: list[float] = []
    asked: list[float] = []

    def trace(name: str, details: dict[str, Any]) -> None:
        match name, details.get("message"):
            case "moqt:message_received", RequestError(code=RequestErrorCode.EXCESSIVE_LOAD):
                refused.append(scene.network.now)
            case "moqt:message_sent", Fetch():
                asked.append(scene.network.now)

    restored = scene.consumer(
        request("origin", mode=Mode.COMPLETED), config=SessionConfig(trace=trace)
    )
    scene.network.run(lambda: restored.count("done") > 0)
    assert 12 == restored.reused
    assert 1 <= len(refused)
    for moment in refused:
        assert [] == [at for at in asked if moment < at < moment + 0.3]
    assert max(asked) >= refused[0] + 0.3


@pytest.mark.parametrize("mode", Mode)
def test_an_object_may_take_longer_than_a_stall(mode: Mode) -> None:
    """KVCS-7.4-5: while octets of an Object come, nothing is lost and nothing asked again."""
    large = descriptor(2, kv_heads=512)
    scene = Scene(link=Link(bandwidth=20_000, buffer=2400))
    publication = scene.publisher().open(spec(1, layers=2, descriptor=large))
    publication.open_segment()
    for layer in range(2):
        sections = {kind: [section(kind, layer, 0) * 512] for kind in KINDS}
        publication.put_layer(0, layer, sections)
    publication.complete_segment(0)
    restored = restore(scene, request("origin", blocks=1, descriptor=large, mode=mode))
    times = [item["time"] for item in restored.named("object-accepted")]
    assert 4 == len(times)
    assert times[0] > 2 * QUICK.stall
    assert 0 == restored.count("repair")
    assert 4 == restored.reused


def test_production_may_pause_longer_than_a_recovery() -> None:
    """KVCS-7.4-5: what was produced after a pause is not late the moment it is known to exist."""
    scene = Scene(link=Link(bandwidth=3000))
    publication = scene.publisher().open(spec(12, layers=3))
    live(scene, publication, every=8.0)
    budgets = replace(QUICK, stall=0.5, recovery=2.0, total=60.0)
    restored = restore(scene, request("origin", blocks=12, layer_count=3, budgets=budgets))
    assert [0, 1, 2] == restored.layers
    assert 0 == restored.count("repair")
    assert 48 == restored.reused


def test_the_tail_under_one_block_is_always_computed() -> None:
    """Hit and miss make the prompt: `done` says from which token on to compute."""
    scene = Scene()
    produce(scene.publisher().open(spec()))
    restored = restore(scene, request("origin", tokens=[*tokens(3), 99, 98]))
    done = restored.last("done")
    assert ("complete", 12, 14) == (done["outcome"], done["compute_from"], done["prompt_tokens"])
    assert 0 == restored.count("recompute")


def test_a_cache_without_values_is_one_kv_track() -> None:
    """A21: with a latent cache there is no V section; Data of kv is the latent section."""
    scene = Scene()
    latent = descriptor(attention="mla", v_head_dim=0)
    wanted = spec(descriptor=latent, encodings=(Encoding(Component.KV),))
    publication = scene.publisher().open(wanted)
    publication.open_segment()
    for layer in range(4):
        data = [section(Component.KV, layer, block) for block in range(3)]
        publication.put_layer(0, layer, {Component.KV: data})
    publication.complete_segment(0)
    restored = restore(scene, request("origin", descriptor=latent))
    result = restored.consumer.result
    assert result is not None
    assert 12 == result.reused_tokens
    k, v = result.sections(3, 2)
    assert (section(Component.KV, 3, 2), b"") == (bytes(k), bytes(v))


def test_an_unknown_encoding_is_passed_over() -> None:
    """KVCS-3.2-2: a codec that this profile does not have does not cost the publication."""
    private = KvspP0([Codec("x-own", 0xFF00, bytes, lambda data, octets: data)])
    every = (Encoding(Component.KV, "x-own"), Encoding(Component.K), Encoding(Component.V))
    scene = Scene()
    produce(scene.publisher().open(spec(profile=private, encodings=every)))
    restored = restore(scene, request("origin"))
    assert ["k.raw.s0", "v.raw.s0"] == restored.last("segment")["tracks"]
    assert 12 == restored.reused
