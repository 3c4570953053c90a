"""The cursor that keeps the order of production."""

from __future__ import annotations

import pytest
from kvcs.names import Component, DataTrack
from kvcs.publisher.production import ProductionError, SegmentProduction

from tests.kvcs.caches import keys

K = DataTrack(Component.K, "raw", 0)
V = DataTrack(Component.V, "raw", 0)


def segment(blocks: int = 2, layers: int = 2) -> SegmentProduction:
    return SegmentProduction(0, 0, keys(blocks), (K, V), layers)


def digest(value: int) -> bytes:
    return bytes([value]) * 32


def test_layers_and_blocks_ascend_without_gap() -> None:
    """KVCS-3.3-2, KVCS-3.3-6: the next place is the only one that is taken."""
    part = segment()
    filled = []
    for layer in range(2):
        for block in range(2):
            part.expect(layer, block)
            filled.append(part.produced([digest(1), digest(2)]))
    assert [False, True, False, True] == filled


@pytest.mark.parametrize("place", [(0, 1), (1, 0), (2, 0)])
def test_a_place_ahead_is_refused(place: tuple[int, int]) -> None:
    """KVCS-3.3-2: no layer starts before the one below it is whole."""
    with pytest.raises(ProductionError, match="continues with layer 0 block 0"):
        segment().expect(*place)


def test_a_second_put_of_a_location_is_refused() -> None:
    """KVCS-3.4-4, KVCS-6-7: Objects never change, and the message says what to do instead."""
    part = segment()
    part.produced([digest(1), digest(2)])
    with pytest.raises(ProductionError, match="new Publication ID"):
        part.expect(0, 0)


def test_the_entry_lists_digests_of_completed_groups_only() -> None:
    """KVCS-5-9: per track, one element per completed Group, in Group and Object order."""
    part = segment()
    for value in range(3):
        part.produced([digest(value), digest(value + 10)])
    entry = part.entry(digests=True)
    assert entry.object_digests == {
        K: ((digest(0), digest(1)),),
        V: ((digest(10), digest(11)),),
    }
    assert None is part.entry(digests=False).object_digests


def test_a_segment_is_complete_with_its_last_layer() -> None:
    """KVCS-5-15: not before, and once."""
    part = segment(blocks=1, layers=1)
    with pytest.raises(ProductionError, match="0 of 1 layers"):
        part.finish()
    part.produced([digest(1), digest(2)])
    part.finish()
    assert part.entry(digests=True).complete
    with pytest.raises(ProductionError, match="complete already"):
        part.finish()
