"""Objects that are wrong, missing or contradictory, and what becomes of the tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from kvcs.consumer import Mode
from kvcs.manifest import Manifest
from kvcs.names import Component, DataTrack, TrackName
from kvcs.publisher import Publication, Publisher, SegmentProduction
from moqt.drivers.memory import Link
from moqt.session import SessionConfig
from moqt.session.events import ObjectReceived, StreamInfo, Via
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus

from tests.kvcs.caches import descriptor, layer_sections
from tests.kvcs.chain import (
    OTHER_ID,
    QUICK,
    Restored,
    Scene,
    assert_bit_identical,
    live,
    produce,
    put_layer,
    request,
    restore,
    spec,
)

SPOT = ("v.raw.s0", 1, 2)
"""Track, layer and block of the Object that goes wrong."""

Change = Callable[[bytes], bytes]


class Tampering(Publication):
    """Changes the payload of one Object on its way out; the manifest stays right."""

    change: Change = staticmethod(lambda payload: payload)

    def publish(self, track: TrackName, item: Object) -> None:
        if (str(track), *item.location) == SPOT and item.status is ObjectStatus.NORMAL:
            item = replace(item, payload=type(self).change(bytes(item.payload)))
        super().publish(track, item)


def tampering(change: Change) -> type[Tampering]:
    return type("Changed", (Tampering,), {"change": staticmethod(change)})


def put(offset: int, octets: bytes) -> Change:
    """Overwrite octets of the payload."""
    return lambda payload: payload[:offset] + octets + payload[offset + len(octets) :]


def other_data(payload: bytes) -> bytes:
    """Another block's Data under its own right digest."""
    data = sha256(payload[68:]).digest()
    return payload[:36] + sha256(data).digest() + data


WRONG: list[tuple[Change, str]] = [
    (put(0, b"KVO2"), "payload.magic"),
    (put(4, b"\x02"), "payload.version"),
    (put(5, b"\x01"), "payload.component"),
    (put(5, b"\x00"), "payload.component"),
    (put(8, b"\x00\x00\x00\x03"), "payload.layer-mismatch"),
    (put(12, b"\x00\x00\x00\x01"), "payload.block-mismatch"),
    (put(16, bytes(8)), "payload.token-start"),
    (put(24, b"\x00\x00\x00\x03"), "payload.token-count"),
    (put(28, b"\x00\x02"), "payload.codec"),
    (put(32, b"\x00\x00\x00\x1f"), "payload.length"),
    (put(32, b"\xff\xff\xff\xff"), "payload.length"),
    (put(36, bytes(32)), "payload.digest-mismatch"),
    (put(80, b"!"), "payload.digest-mismatch"),
    (lambda payload: payload[:68] + bytes(32), "payload.digest-mismatch"),
    (lambda payload: payload[:-1], "payload.length"),
    (lambda payload: payload + b"\x00", "payload.length"),
    (lambda payload: payload[:67], "payload.length"),
    (lambda payload: b"", "payload.length"),
    (lambda payload: payload + payload, "payload.length"),
    (other_data, "manifest.digest-mismatch"),
]


@pytest.mark.parametrize(("change", "reason"), WRONG)
def test_a_wrong_object_is_discarded_and_had_from_another_relay(
    change: Change, reason: str
) -> None:
    """KVCS-4-18 to KVCS-4-23, A6, KVCS-7.4-4: one Object is fetched again, the rest is kept."""
    scene = Scene()
    produce(scene.publisher("bad", tampering(change)).open(spec()))
    produce(scene.publisher("good").open(spec()))
    restored = restore(scene, request("bad", "good"))
    assert [reason] == restored.reasons
    repaired = [item for item in restored.named("object-accepted") if "good" in item["source"]]
    assert [SPOT] == [(item["track"], item["layer"], item["block"]) for item in repaired]
    assert_bit_identical(restored)
    assert "complete" == restored.last("done")["outcome"]


@pytest.mark.parametrize(("change", "reason"), WRONG)
def test_a_wrong_object_at_the_only_relay_costs_its_tokens(change: Change, reason: str) -> None:
    """KVCS-4-23, KVCS-7.4-4: two blocks stay, the rest is recomputed, within the budget."""
    scene = Scene()
    produce(scene.publisher("bad", tampering(change)).open(spec()))
    restored = restore(scene, request("bad"))
    assert {reason} == set(restored.reasons)
    assert 8 == restored.reused
    assert {"first_token": 8, "end_token": 12}.items() <= restored.last("recompute").items()
    assert [0, 2, 3] == restored.layers
    assert restored.last("done")["time"] < QUICK.recovery + 1


def test_flags_are_ignored() -> None:
    """KVCS-4-7: any Flags, and the Object counts."""
    scene = Scene()
    produce(scene.publisher(kind=tampering(put(6, b"\xff\xff"))).open(spec()))
    restored = restore(scene, request("origin"))
    assert [] == restored.reasons
    assert 12 == restored.reused


class Holed(Publication):
    """Leaves one Object out."""

    def publish(self, track: TrackName, item: Object) -> None:
        if (str(track), *item.location) != SPOT or item.status is not ObjectStatus.NORMAL:
            super().publish(track, item)


@pytest.mark.parametrize("mode", [Mode.LIVE, Mode.COMPLETED])
def test_a_missing_object_is_had_from_another_relay(mode: Mode) -> None:
    """KVCS-7.4-4: a gap where the manifest lists an Object is a loss."""
    scene = Scene()
    produce(scene.publisher("bad", Holed).open(spec()))
    produce(scene.publisher("good").open(spec()))
    restored = restore(scene, request("bad", "good", mode=mode))
    assert 12 == restored.reused
    assert_bit_identical(restored)


def test_a_missing_object_holds_its_layer_back_only() -> None:
    """KVCS-7.4-2: the event of layer 1 never fires, the others do."""
    scene = Scene()
    produce(scene.publisher("bad", Holed).open(spec()))
    restored = restore(scene, request("bad"))
    assert [0, 2, 3] == restored.layers
    assert 8 == restored.reused


def test_a_relay_that_dies_is_replaced_in_mid_production() -> None:
    """KVCS-7.4-4: the rest is had from the other one; what was there is not asked for again."""
    scene = Scene(idle_timeout=0.3)
    both = [scene.publisher(name).open(spec()) for name in ("first", "second")]
    for publication in both:
        publication.open_segment()

    def layer(number: int) -> None:
        for publication in both:
            put_layer(publication, 0, number)
            if number == 3:
                publication.complete_segment(0)

    for number in range(4):
        scene.network.at(0.5 * number, lambda number=number: layer(number))  # type: ignore[misc]
    scene.network.at(1.2, lambda: scene.network.kill("first"))
    restored = restore(scene, request("first", "second"))
    assert 12 == restored.reused
    assert_bit_identical(restored)
    by_layer = {item["layer"]: item["source"] for item in restored.named("object-accepted")}
    first, second = "moqt://first/", "moqt://second/"
    assert {0: first, 1: first, 2: first, 3: second} == by_layer


def test_a_manifest_of_another_model_discards_everything() -> None:
    """KVCS-5-17: a descriptor with another Compatibility ID; nothing of it is used."""

    class Foreign(Publication):
        def manifest_for(self) -> Manifest:
            return replace(super().manifest_for(), compat=descriptor(dtype="fp16"))

    scene = Scene()
    produce(scene.publisher(kind=Foreign).open(spec()))
    restored = restore(scene, request("origin"))
    assert "manifest.compat-mismatch" == restored.last("publication-discarded")["reason"]
    assert 0 == restored.count("object-accepted")
    assert 0 == restored.reused


def test_a_compat_mismatch_in_a_later_version_discards_what_came_before() -> None:
    """KVCS-5-17: data of layer 0 was verified already, and is not used."""

    class Later(Publication):
        def manifest_for(self) -> Manifest:
            right = super().manifest_for()
            return right if self.version == 0 else replace(right, compat=descriptor(dtype="fp16"))

    scene = Scene()
    publication = scene.publisher(kind=Later).open(spec(manifest_interval=2))
    publication.open_segment()
    for number in range(2):
        scene.network.at(
            0.5 + number,
            lambda number=number: put_layer(publication, 0, number),  # type: ignore[misc]
        )
    restored = restore(scene, request("origin"))
    assert [0] == restored.layers
    assert 0 == restored.reused
    assert "publication-discarded" in {item["event"] for item in restored.events}


def test_a_failed_restore_does_not_poison_the_next() -> None:
    """A corrupt publication is discarded, a good one of the same prefix is bit-exact after it."""

    class Foreign(Publication):
        def manifest_for(self) -> Manifest:
            return replace(super().manifest_for(), compat=descriptor(dtype="fp16"))

    scene = Scene()
    produce(scene.publisher("bad", Foreign).open(spec()))
    produce(scene.publisher("good").open(spec(publication_id=OTHER_ID)))
    restored = restore(scene, request("bad", "good"))
    assert OTHER_ID.hex() == restored.last("reused-tokens")["publication"]
    assert 12 == restored.reused
    assert_bit_identical(restored)


def two_publications(first: bool, second: bool, *, flavour: int = 0) -> tuple[Scene, Restored]:
    """A holed publication, and a whole one of the same prefix, `deterministic` or not."""
    scene = Scene()
    produce(scene.publisher("bad", Holed).open(spec(deterministic=first)))
    other = spec(publication_id=OTHER_ID, deterministic=second)
    produce(scene.publisher("good").open(other), flavour)
    return scene, restore(scene, request("bad", "good"))


@pytest.mark.parametrize(("first", "second"), [(False, False), (True, False), (False, True)])
def test_publications_are_not_mixed_in_a_segment(first: bool, second: bool) -> None:
    """KVCS-7.4-3: without two deterministic manifests the segment is retrieved again, whole."""
    _, restored = two_publications(first, second, flavour=7)
    result = restored.consumer.result
    assert result is not None
    assert OTHER_ID == result.publication
    assert 12 == restored.reused
    sections = layer_sections(1, range(3), 7)
    for block in range(3):
        found = tuple(map(bytes, result.sections(1, block)))
        assert tuple(data[block] for data in sections.values()) == found


def test_deterministic_publications_complete_each_other() -> None:
    """KVCS-7.4-3: both say deterministic, so one Object is had from the other."""
    _, restored = two_publications(True, True)
    other = [
        item for item in restored.named("object-accepted") if item["publication"] == OTHER_ID.hex()
    ]
    assert [SPOT] == [(item["track"], item["layer"], item["block"]) for item in other]
    assert 12 == restored.reused
    assert_bit_identical(restored)


def test_a_stopped_publication_is_replaced() -> None:
    """KVCS-3.4-4: the publisher stops and starts anew; the consumer follows, unmixed."""
    scene = Scene()
    publisher = scene.publisher()
    wrong = publisher.open(spec())
    wrong.open_segment()
    put_layer(wrong, 0, 0, 9)
    scene.network.at(0.5, lambda: wrong.stop("an error was found"))
    scene.network.at(0.7, lambda: produce(publisher.open(spec(publication_id=OTHER_ID))))
    restored = restore(scene, request("origin"))
    assert OTHER_ID.hex() == restored.last("reused-tokens")["publication"]
    assert 12 == restored.reused
    assert_bit_identical(restored)


def test_a_stalled_relay_is_given_up_within_the_budget() -> None:
    """KVCS-7.4-5: production is announced as complete, but half of it never arrives."""
    scene = Scene()

    class Silent(Publication):
        def publish(self, track: TrackName, item: Object) -> None:
            if isinstance(track, DataTrack) and item.location >= Location(2, 0):
                return
            super().publish(track, item)

        def end_track(self, track: DataTrack) -> None:
            return

    publication = scene.publisher(kind=Silent).open(spec())
    scene.network.at(0.3, lambda: produce(publication))
    restored = restore(scene, request("origin"))
    assert [0, 1] == restored.layers
    assert 0 == restored.reused
    assert restored.last("done")["time"] < 0.3 + QUICK.recovery + 1.0


def test_the_consumer_always_ends() -> None:
    """KVCS-7.4-5: a production that never goes on ends with the total budget."""
    scene = Scene()
    publication = scene.publisher().open(spec())
    publication.open_segment()
    put_layer(publication, 0, 0)
    restored = restore(scene, request("origin", budgets=replace(QUICK, total=5.0)))
    assert 5.0 == pytest.approx(restored.last("done")["time"])
    assert "recompute" == restored.last("done")["outcome"]
    assert [0] == restored.layers


def test_an_end_of_track_in_place_of_the_last_end_of_group_is_accepted() -> None:
    """A2: {L-1, n} is the other legal reading."""

    class Replacing(Publication):
        def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
            if layer < self.spec.layers - 1:
                super().end_group(part, track, layer)

        def end_track(self, track: DataTrack) -> None:
            location = Location(self.spec.layers - 1, 3)
            self.publish(track, Object(location, 0, 96, status=ObjectStatus.END_OF_TRACK))
            self._tracks[track].finish()

    scene = Scene()
    publication = scene.publisher(kind=Replacing).open(spec())
    scene.network.at(0.3, lambda: produce(publication))
    restored = restore(scene, request("origin"))
    assert 12 == restored.reused
    assert 0 == restored.count("mark-misplaced")
    assert 2 == restored.count("track-complete")


def again(restored: Restored, flavour: int) -> None:
    """Layer 0, block 0 of "k" comes a second time on the same subscription."""
    scene_restore = restored.consumer._restore
    assert scene_restore is not None
    track = DataTrack(Component.K, "raw", 0)
    main = scene_restore.supply.mains[track]
    held = main.part.get(track, Location(0, 0))
    assert held is not None
    payload = bytes(held.payload[:-1]) + bytes([held.payload[-1] ^ flavour])
    stream = StreamInfo(Via.SUBSCRIPTION, 99, 0, 0, 0)
    assert main.request is not None
    main.on_event(ObjectReceived(main.request, Object(Location(0, 0), 0, 0, payload), stream))


@pytest.mark.parametrize(("flavour", "reused"), [(0, 12), (1, 0)])
def test_an_object_that_comes_twice(flavour: int, reused: int) -> None:
    """KVCS-7.2-3, KVCS-6-7: the same octets are reported, others cost the publication."""
    scene = Scene()
    live(scene, scene.publisher().open(spec()), every=0.5)
    restored = scene.consumer(request("origin"))
    scene.network.run(0.7)
    restored.consumer.now = scene.network.now
    again(restored, flavour)
    scene.finish(restored)
    assert reused == restored.reused
    assert (1 if flavour == 0 else 0) == restored.count("object-duplicate")
    assert ([] if flavour == 0 else ["object.conflict"]) == [
        item["reason"] for item in restored.named("publication-discarded")
    ]


def reset_while_it_runs(kind: str, mode: Mode, *, joined: float) -> Restored:
    """The first data stream of a kind is reset half-way, at the preferred of two sources."""
    scene = Scene(link=Link(latency=0.005, bandwidth=20_000))
    streams: list[int] = []

    def trace(name: str, details: dict[str, Any]) -> None:
        if name == "moqt:stream_opened" and details["kind"] == kind:
            streams.append(details["stream"])

    fragile = Publisher()
    scene.network.listen("bad", fragile, SessionConfig(trace=trace))
    both = [fragile.open(spec(12)), scene.publisher("good").open(spec(12))]
    for publication in both:
        live(scene, publication, every=0.3)
    scene.network.run(joined)
    named = (both[0].namespace,)
    restored = scene.consumer(request("bad", "good", blocks=12, mode=mode, namespaces=named))

    def cut() -> None:
        session = next(iter(fragile.sessions))
        for stream in streams[1:3]:
            scene.network.reset_stream(session, stream, 0)

    scene.network.run(lambda: len(streams) >= 3)
    scene.network.at(scene.network.now + 0.01, cut)
    scene.finish(restored)
    return restored


@pytest.mark.parametrize(
    ("kind", "mode", "joined", "reason"),
    [
        ("fetch", Mode.LIVE, 2.0, "fill.reset"),
        ("fetch", Mode.COMPLETED, 2.0, "fetch.reset"),
        ("subgroup", Mode.LIVE, 0.0, "stream.reset"),
    ],
)
def test_what_a_reset_stream_carried_is_fetched(
    kind: str, mode: Mode, joined: float, reason: str
) -> None:
    """KVCS-7.4-4: fill, FETCH or Group stream cut off; the rest is fetched, and nothing twice."""
    restored = reset_while_it_runs(kind, mode, joined=joined)
    assert reason in {item["reason"] for item in restored.named("objects-lost")}
    assert restored.count("repair") > 0
    assert 12 * 4 * 2 == restored.count("object-accepted")
    assert 48 == restored.reused
    assert_bit_identical(restored, blocks=12)


@pytest.mark.parametrize("uri", [b"moqt://second/", b""])
def test_a_source_that_goes_away_is_followed(uri: bytes) -> None:
    """MOQT-22 §6.4: production goes on where GOAWAY points, or on a new session to the same."""
    scene = Scene()
    first = scene.publisher("first")
    both = [first.open(spec()), scene.publisher("second").open(spec())]
    for publication in both:
        live(scene, publication, every=1.0)
    restored = scene.consumer(request("first"))
    scene.network.run(1.5)
    leaving = next(iter(first.sessions))
    scene.network.at(1.6, lambda: leaving.goaway(uri))
    scene.network.at(1.8, lambda: leaving.close(0, "restart"))
    scene.finish(restored)
    assert 12 == restored.reused
    assert 24 == restored.count("object-accepted")
    assert_bit_identical(restored)


@pytest.mark.parametrize("uri", [b"moqt://nowhere/", b"http://x/", b"\xff\xfe"])
def test_a_source_that_points_nowhere_is_lost(uri: bytes) -> None:
    """KVCS-7.4-5: a useless GOAWAY leaves the consumer with what it has."""
    scene = Scene()
    first = scene.publisher("first")
    live(scene, first.open(spec()), every=1.0)
    restored = scene.consumer(request("first"))
    scene.network.run(1.5)
    leaving = next(iter(first.sessions))
    scene.network.at(1.6, lambda: leaving.goaway(uri))
    scene.network.at(1.8, lambda: leaving.close(0, "gone"))
    scene.finish(restored)
    assert [0, 1] == restored.layers
    assert "recompute" == restored.last("done")["outcome"]
