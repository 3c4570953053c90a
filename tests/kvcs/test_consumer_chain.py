"""The whole chain: publisher, two relays, consumers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kvcs.consumer import Mode
from kvcs.names import TrackName
from kvcs.publisher import Publication, Publisher, Signer
from moqt.drivers.memory import Link
from moqt.session import SessionConfig
from moqt.wire.names import Location
from moqt.wire.objects import Object

from tests.kvcs.caches import tokens
from tests.kvcs.chain import (
    OTHER_ID,
    QUICK,
    Chain,
    Restored,
    assert_bit_identical,
    live,
    namespace,
    produce,
    request,
    restore,
    spec,
)

PATIENT = replace(QUICK, probe=0.5)


def once(restored: Restored) -> list[tuple[str, int, int]]:
    return sorted(
        (item["track"], item["layer"], item["block"]) for item in restored.named("object-accepted")
    )


EVERYTHING = sorted(
    (track, layer, block)
    for track in ("k.raw.s0", "v.raw.s0")
    for layer in range(4)
    for block in range(3)
)


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.COMPLETED])
def test_a_late_consumer_gets_all_of_it_through_two_relays(mode: Mode) -> None:
    """KVCS-8-2, KVCS-7.2, KVCS-7.3: production is over when the consumer comes."""
    chain = Chain()
    produce(chain.announce(spec()))
    restored = restore(chain, request("b", mode=mode, budgets=PATIENT))
    assert EVERYTHING == once(restored)
    assert [] == restored.reasons
    assert_bit_identical(restored)


def test_a_consumer_joins_half_way() -> None:
    """KVCS-7.2-3, KVCS-7.4-2: what is over comes by fill, the rest live, layer by layer."""
    chain = Chain()
    publication = chain.announce(spec())
    live(chain, publication, every=1.0, start=1.0)
    chain.network.run(2.5)
    restored = restore(chain, request("b", budgets=PATIENT))
    assert EVERYTHING == once(restored)
    assert [0, 1, 2, 3] == restored.layers
    via = {item["layer"]: item["via"] for item in restored.named("object-accepted")}
    assert {0: "fill", 1: "fill", 2: "subscription", 3: "subscription"} == via
    assert restored.named("layer-usable")[0]["time"] < 3.2
    assert_bit_identical(restored)


@pytest.mark.parametrize("seed", range(12))
def test_exactly_once_at_any_moment_over_unruly_links(seed: int) -> None:
    """KVCS-7.2-3: streams overtake each other and come in pieces, whenever one joins."""
    link = Link(latency=0.01, jitter=0.05, chunk=(1, 300))
    chain = Chain(seed=seed, link=link)
    publication = chain.announce(spec())
    live(chain, publication, every=0.1, start=1.0)
    chain.network.run(0.9 + seed * 0.06)
    at_b = chain.consumer(request("b", budgets=PATIENT), "one")
    at_a = chain.consumer(request("a", budgets=PATIENT), "two")
    chain.finish(at_a, at_b)
    for restored in (at_a, at_b):
        assert EVERYTHING == once(restored)
        assert [] == restored.reasons
        assert 0 == restored.count("object-duplicate")
        assert_bit_identical(restored)


def test_few_streams_do_not_stop_many_layers() -> None:
    """KVCS-9-2: 24 layers on two tracks against a credit of three streams."""
    chain = Chain(link=Link(unidirectional_streams=3))
    publication = chain.announce(spec(layers=24))
    live(chain, publication, every=0.02, start=1.0)
    restored = restore(chain, request("b", layer_count=24, budgets=PATIENT))
    assert 12 == restored.reused
    assert_bit_identical(restored, layers=24)


def test_two_segments_and_a_signed_manifest_pass_through() -> None:
    """KVCS-2-3, KVCS-10-5, A12: everything is verified against the signed list."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    chain = Chain()
    publication = chain.announce(spec(5, segment_blocks=3, signer=Signer(key, b"kid")))
    produce(publication)
    produce(publication)
    wanted = request(
        "b", blocks=5, authentic=True, producers={b"kid": key.public_key()}, budgets=PATIENT
    )
    restored = restore(chain, wanted)
    assert 20 == restored.reused
    assert_bit_identical(restored, blocks=5)


def test_a_turn_is_appended_while_the_consumer_is_there() -> None:
    """KVCS-5-15: the manifest's next version names the new segment."""
    chain = Chain()
    publication = chain.announce(spec(2))
    produce(publication)

    def turn() -> None:
        publication.extend(tokens(1, first=9))
        produce(publication)

    chain.network.at(3.0, turn)
    wanted = request("b", blocks=3, budgets=replace(PATIENT, append=5.0))
    restored = restore(chain, wanted)
    assert 12 == restored.reused
    assert_bit_identical(restored)


class Holed(Publication):
    """Leaves one Object out."""

    def publish(self, track: TrackName, item: Object) -> None:
        if (str(track), item.location) != ("k.raw.s0", Location(2, 1)):
            super().publish(track, item)


def test_a_hole_is_recomputed_behind_any_number_of_relays() -> None:
    """KVCS-7.4-4, KVCS-7.4-5: the relay says that it does not exist; one block is reused."""
    chain = Chain(Holed)
    produce(chain.announce(spec()))
    restored = restore(chain, request("b", budgets=PATIENT))
    assert 4 == restored.reused
    assert {"first_token": 4, "end_token": 12}.items() <= restored.last("recompute").items()
    assert [0, 1, 3] == restored.layers


def test_a_second_relay_completes_what_the_first_lost() -> None:
    """KVCS-7.4-4: the consumer's relay dies half-way; the rest comes from the other one."""
    chain = Chain(idle_timeout=0.5)
    publication = chain.announce(spec())
    live(chain, publication, every=1.0, start=1.0)
    chain.network.at(2.5, lambda: chain.network.kill("b"))
    named = (publication.namespace,)
    restored = restore(chain, request("b", "a", namespaces=named, budgets=PATIENT))
    assert 12 == restored.reused
    assert {"moqt://a/", "moqt://b/"} == {
        item["source"] for item in restored.named("object-accepted")
    }
    assert EVERYTHING == once(restored)
    assert_bit_identical(restored)


class Mute:
    """A relay that takes the connection and never answers anything."""

    def attach(self, host: object) -> None:
        pass

    def session_opened(self, session: object, now: float) -> None:
        pass

    def handle_event(self, session: object, event: object, now: float) -> None:
        pass

    def next_timer(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None:
        pass


def test_a_mute_relay_costs_no_more_than_the_budgets() -> None:
    """KVCS-7.4-5: neither a probe nor a manifest is ever answered."""
    chain = Chain()
    chain.network.listen("mute", Mute(), SessionConfig())
    probing = chain.consumer(request("mute"), "probing")
    named = chain.consumer(request("mute", namespaces=(namespace(spec()),)), "named")
    chain.finish(probing, named)
    for restored in (probing, named):
        assert "recompute" == restored.last("done")["outcome"]
        assert restored.last("done")["time"] < 2.0


def test_a_mute_relay_is_passed_by() -> None:
    """KVCS-7.4-4: the second source has the publication."""
    chain = Chain()
    chain.network.listen("mute", Mute(), SessionConfig())
    produce(chain.announce(spec()))
    restored = restore(chain, request("mute", "b", budgets=PATIENT))
    assert 12 == restored.reused


def test_a_stopped_publication_is_withdrawn_and_replaced() -> None:
    """KVCS-3.4-4: the relays pass on the end and the new name; nothing is mixed."""
    chain = Chain()
    wrong = chain.announce(spec())
    live(chain, wrong, every=5.0, start=1.0)
    chain.network.at(2.5, lambda: wrong.stop("an error was found"))
    chain.network.at(
        2.8, lambda: produce(chain.producer.open(spec(publication_id=OTHER_ID)), flavour=1)
    )
    chain.network.run(1.5)
    restored = chain.consumer(request("b", budgets=PATIENT))
    chain.network.run(lambda: restored.consumer.done, 3.4)
    assert {OTHER_ID.hex()} == {
        item["publication"] for item in restored.events if item["event"] == "reused-tokens"
    }
    assert 12 == restored.reused


def test_two_producers_of_one_name_cost_the_publication() -> None:
    """KVCS-2-2, KVCS-6-7: other payloads under the same five fields; nothing of either is used."""
    chain = Chain()
    first = chain.announce(spec())
    twin = Publisher()
    chain.network.client("twin", twin)
    twin.connect("moqt://a/", SessionConfig())
    second = twin.open(spec())
    chain.network.run(1.0)
    live(chain, first, every=0.2, start=1.5)
    live(chain, second, every=0.2, start=1.5, flavour=1)
    restored = restore(chain, request("b", budgets=replace(PATIENT, probe=1.0)))
    assert {"object.conflict"} == {
        item["reason"] for item in restored.named("publication-discarded")
    }
    assert 0 == restored.reused


def test_a_trickling_relay_is_bounded() -> None:
    """KVCS-7.4-5: 60 octets per second would take a minute; the budgets end it before."""
    chain = Chain()
    produce(chain.announce(spec()))
    chain.network.set_link("b", "consumer", Link(bandwidth=60), one_way=True)
    named = (namespace(spec()),)
    budgets = replace(PATIENT, manifest=60.0, connect=10.0, total=25.0)
    restored = restore(chain, request("b", namespaces=named, budgets=budgets))
    assert "recompute" == restored.last("done")["outcome"]
    assert restored.last("done")["time"] < 26.0
