"""Which tracks of a segment are asked for."""

from __future__ import annotations

import pytest
from kvcs.consumer.selection import offers
from kvcs.identity import P0
from kvcs.manifest import Segment
from kvcs.names import DataTrack, parse_track_name


def segment(*names: str) -> Segment:
    tracks = []
    for name in names:
        parsed = parse_track_name(name.encode())
        assert isinstance(parsed, DataTrack)
        tracks.append(parsed)
    return Segment(
        segment=0,
        first_block=0,
        blocks=1,
        block_keys_sha256=bytes(32),
        tracks=tuple(tracks),
        complete=False,
    )


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (("k.raw.s0", "v.raw.s0"), [("k.raw.s0", "v.raw.s0")]),
        (("v.raw.s0", "k.raw.s0"), [("k.raw.s0", "v.raw.s0")]),
        (("kv.raw.s0",), [("kv.raw.s0",)]),
        (
            ("kv.zstd.s0", "k.raw.s0", "v.raw.s0"),
            [("k.raw.s0", "v.raw.s0"), ("kv.zstd.s0",)],
        ),
        (
            ("kv.raw.s0", "k.raw.s0", "v.raw.s0"),
            [("k.raw.s0", "v.raw.s0"), ("kv.raw.s0",)],
        ),
        (("k.raw.s0", "v.zstd.s0"), []),
        (("k.raw.s0",), []),
        (("k.foo.s0", "v.foo.s0", "kv.zstd.s0"), [("kv.zstd.s0",)]),
        ((), []),
    ],
)
def test_an_offer_is_a_pair_of_one_codec_or_one_kv_track(
    listed: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    """KVCS-3.2-5, KVCS-3.2-2: never two codecs in one offer, unknown codecs passed over."""
    found = offers(segment(*listed), P0)
    assert expected == [tuple(map(str, tracks)) for tracks in found]


def test_the_preferred_codec_comes_first() -> None:
    """KVCS-3.2-3: of several encodings the consumer takes the one that it prefers."""
    found = offers(segment("k.raw.s0", "v.raw.s0", "kv.zstd.s0"), P0, ("zstd", "raw"))
    assert ["kv.zstd.s0"] == [str(track) for track in found[0]]
