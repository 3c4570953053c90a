"""What the consumer counts: arrivals, usable layers, reused blocks, the mixing rule."""

from __future__ import annotations

import pytest
from kvcs.consumer.assembly import Arrival, Assembly, SegmentAssembly, may_combine, same_content
from kvcs.manifest import Manifest, Segment
from kvcs.names import DataTrack, parse_track_name
from moqt.wire.names import Location

from tests.kvcs.caches import descriptor

ONE = b"1" * 16
TWO = b"2" * 16


def track(name: str) -> DataTrack:
    parsed = parse_track_name(name.encode())
    assert isinstance(parsed, DataTrack)
    return parsed


K, V = track("k.raw.s0"), track("v.raw.s0")


def segment(number: int = 0, first_block: int = 0, blocks: int = 3) -> Segment:
    return Segment(
        segment=number,
        first_block=first_block,
        blocks=blocks,
        block_keys_sha256=bytes(32),
        tracks=(K, V),
        complete=True,
    )


def opened(blocks: int = 3, layers: range = range(2)) -> SegmentAssembly:
    part = SegmentAssembly(segment(), (K, V), layers, blocks)
    part.admit(ONE)
    return part


def fill(part: SegmentAssembly, *, but: tuple[DataTrack, int, int] | None = None) -> None:
    for name in part.tracks:
        for layer in part.layers:
            for block in range(part.blocks):
                if (name, layer, block) != but:
                    part.add(name, Location(layer, block), b"x", ONE, verified=True)


def test_a_layer_is_usable_with_its_last_object_of_all_tracks() -> None:
    """KVCS-7.4-2: one missing v Object keeps its layer back, and no other layer."""
    part = opened()
    fill(part, but=(V, 1, 2))
    assert [True, False] == [part.usable(0), part.usable(1)]
    assert Arrival.NEW is part.add(V, Location(1, 2), b"x", ONE, verified=True)
    assert part.usable(1)
    assert part.whole


def test_an_object_counts_once() -> None:
    """KVCS-7.2-3: the same octets again are a duplicate, others a conflict; the first one stays."""
    part = opened()
    assert Arrival.NEW is part.add(K, Location(0, 0), b"a", ONE, verified=True)
    assert Arrival.DUPLICATE is part.add(K, Location(0, 0), b"a", ONE, verified=True)
    assert Arrival.CONFLICT is part.add(K, Location(0, 0), b"b", ONE, verified=True)
    kept = part.get(K, Location(0, 0))
    assert kept is not None
    assert b"a" == kept.payload


@pytest.mark.parametrize("location", [Location(2, 0), Location(0, 2), Location(7, 7)])
def test_excess_objects_are_never_counted(location: Location) -> None:
    """KVCS-7.3-5: blocks from n on and layers outside the range change nothing."""
    part = opened(blocks=2)
    assert Arrival.EXCESS is part.add(K, location, b"x", ONE, verified=True)
    assert 8 == sum(1 for name in part.tracks for _ in part.missing(name))


def test_a_foreign_publication_stays_out_of_a_segment() -> None:
    """KVCS-7.4-3: Objects of a second publication enter only once it is admitted."""
    part = opened()
    assert Arrival.FOREIGN is part.add(K, Location(0, 0), b"x", TWO, verified=True)
    part.admit(TWO)
    assert Arrival.NEW is part.add(K, Location(0, 0), b"x", TWO, verified=True)


def test_an_unverified_object_is_neither_missing_nor_usable() -> None:
    """KVCS-10-5: an Object that no signed digest lists yet waits, and counts when confirmed."""
    part = opened(blocks=1, layers=range(1))
    part.add(K, Location(0, 0), b"x", ONE, verified=True)
    part.add(V, Location(0, 0), b"x", ONE, verified=False)
    assert [] == list(part.missing(V))
    assert not part.usable(0)
    part.confirm(V, Location(0, 0))
    part.confirm(V, Location(0, 0))
    assert part.usable(0)
    assert 1 == part.leading_blocks


def test_a_dropped_object_is_missing_again() -> None:
    """KVCS-4-23: an Object found wrong afterwards takes its layer and its block back."""
    part = opened()
    fill(part)
    part.drop(K, Location(1, 1))
    assert [Location(1, 1)] == list(part.missing(K))
    assert not part.usable(1)
    assert 1 == part.leading_blocks


def test_reused_tokens_are_leading_blocks_over_segments() -> None:
    """A hole in a segment ends the count there, whatever later segments hold."""
    assembly = Assembly(4)
    for number, first in ((0, 0), (1, 3)):
        part = assembly.open(segment(number, first), (K, V), range(2), 3)
        part.admit(ONE)
        fill(part)
    assert 6 * 4 == assembly.reused_tokens
    assembly.segments[0].drop(V, Location(1, 1))
    assert 1 * 4 == assembly.reused_tokens


def test_a_segment_taken_in_part_ends_the_count() -> None:
    """Blocks behind a segment of which only the first n are wanted are not adjacent."""
    assembly = Assembly(4)
    for number, first, blocks in ((0, 0, 2), (1, 3, 3)):
        part = assembly.open(segment(number, first), (K, V), range(1), blocks)
        part.admit(ONE)
        fill(part)
    assert 2 == assembly.reused_blocks


def manifest(deterministic: bool, layers: int = 4) -> Manifest:
    return Manifest(
        compat=descriptor(layers),
        layers=layers,
        block_tokens=4,
        deterministic=deterministic,
        segments=(segment(),),
    )


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (manifest(True), manifest(True), True),
        (manifest(True), manifest(False), False),
        (manifest(False), manifest(True), False),
        (manifest(True), None, False),
        (None, manifest(True), False),
        (manifest(True), manifest(True, layers=5), False),
    ],
)
def test_mixing_needs_two_deterministic_manifests(
    first: Manifest | None, second: Manifest | None, expected: bool
) -> None:
    """KVCS-7.4-3: one false, one missing, or another descriptor, and nothing is combined."""
    assert expected is may_combine(first, second)


def test_segments_are_the_same_by_blocks_and_keys() -> None:
    """Two publications' segments match by what they cover, not by number."""
    assert same_content(segment(0, 3), segment(1, 3))
    assert not same_content(segment(0, 0), segment(0, 3))
