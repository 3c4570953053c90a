"""The manifest: the example's shape, strict JSON, every rule of KVCS 5."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.errors import ManifestError
from kvcs.identity import P0
from kvcs.manifest import (
    Manifest,
    Segment,
    block_keys_match,
    block_keys_sha256,
    check_consistency,
    encode_manifest,
    parse_manifest,
)
from kvcs.names import Component, DataTrack, KvcsNamespace

from tests.kvcs import vectors as v

K0 = DataTrack(Component.K, "raw", 0)
V0 = DataTrack(Component.V, "raw", 0)
NAMESPACE = KvcsNamespace(
    v.EXAMPLE_SCOPE_ID, v.P0_COMPAT_ID, v.P0_KEYS[-1], v.EXAMPLE_PUBLICATION_ID
)


def example(change: Callable[[dict[str, Any]], object] = lambda _: None) -> bytes:
    """The JSON text of the example manifest after one change."""
    document = copy.deepcopy(v.EXAMPLE_MANIFEST)
    change(document)
    return json.dumps(document).encode()


def defects(octets: bytes) -> list[tuple[str, str]]:
    """Names and places of what is wrong with a text."""
    with pytest.raises(ManifestError) as caught:
        parse_manifest(octets)
    return [(defect.name, defect.where) for defect in caught.value.defects]


def p0_manifest(**changes: Any) -> Manifest:
    """A manifest of the profile's vectors: two layers, one segment of two blocks."""
    segment = Segment(
        segment=0,
        first_block=0,
        blocks=2,
        block_keys_sha256=v.P0_BLOCK_KEYS_SHA256,
        tracks=(K0, V0),
        complete=False,
        object_digests={K0: ((bytes(32), b"\x01" * 32),)},
    )
    members: dict[str, Any] = {
        "compat": v.p0_descriptor(),
        "layers": 2,
        "block_tokens": 4,
        "deterministic": False,
        "segments": (segment,),
    }
    return Manifest(**(members | changes))


def test_the_example_is_read() -> None:
    """Members and both entries of the example (KVCS-5-5, KVCS-5-6)."""
    manifest = parse_manifest(example())
    assert (32, 16, False) == (manifest.layers, manifest.block_tokens, manifest.deterministic)
    first, second = manifest.segments
    assert (0, 0, 64, True) == (first.segment, first.first_block, first.blocks, first.complete)
    assert (1, 64, 3, False) == (second.segment, second.first_block, second.blocks, second.complete)
    assert (K0, V0) == first.tracks
    assert b"\x11" * 32 == second.block_keys_sha256
    assert first is manifest.segment(0)
    assert manifest.segment(2) is None


def test_order_white_space_and_unknown_members_do_not_matter() -> None:
    """Members that we do not know are ignored, at every level (KVCS-5-3, KVCS-5-5)."""
    document = dict(reversed(v.EXAMPLE_MANIFEST.items())) | {"x-note": [1.5, None]}
    document["segments"] = [entry | {"y": {}} for entry in document["segments"]]
    text = json.dumps(document, indent=4).encode()
    assert parse_manifest(example()) == parse_manifest(text)


def test_writing_is_deterministic_and_read_back() -> None:
    """Equal manifests give equal octets, and the same value again (KVCS-5-3)."""
    manifest = p0_manifest()
    shuffled = p0_manifest(compat=dict(reversed(v.p0_descriptor().items())))
    assert encode_manifest(manifest) == encode_manifest(shuffled)
    assert manifest == parse_manifest(memoryview(encode_manifest(manifest)))


def test_written_members_are_the_texts() -> None:
    """The JSON has the member names and types of KVCS 5, digests by track name (A10)."""
    expected = {
        "kvcs": 1,
        "compat": v.p0_descriptor(),
        "layers": 2,
        "block_tokens": 4,
        "deterministic": False,
        "segments": [
            {
                "segment": 0,
                "first_block": 0,
                "blocks": 2,
                "block_keys_sha256": v.P0_BLOCK_KEYS_SHA256.hex(),
                "tracks": ["k.raw.s0", "v.raw.s0"],
                "complete": False,
                "object_digests": {"k.raw.s0": [["00" * 32, "01" * 32]]},
            }
        ],
    }
    assert expected == json.loads(encode_manifest(p0_manifest()))


def test_block_keys_digest_vector() -> None:
    """SHA-256 over the two raw keys of the profile's vectors (KVCS-5-7)."""
    assert v.P0_BLOCK_KEYS_SHA256 == block_keys_sha256(v.P0_KEYS)


def test_listed_digests_are_found_by_location() -> None:
    """Object (0, 1) of the k track is listed, the v track and layer 1 are not (KVCS-10-5)."""
    (segment,) = p0_manifest().segments
    assert b"\x01" * 32 == segment.digest(K0, 0, 1)
    assert segment.digest(K0, 0, 2) is None
    assert segment.digest(K0, 1, 0) is None
    assert segment.digest(V0, 0, 0) is None


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"", "not json"),
        (b"{", "not json"),
        (b"[]", "an array"),
        (b"null", "null"),
        (example() + b"{}", "extra data at octet"),
        (example() + b"\x00", "extra data"),
        (b"\xef\xbb\xbf" + example(), "byte order mark"),
        (b'{"kvcs": 1, "kvcs": 1}', "twice"),
        (b'{"a": {"b": 1, "\\u0062": 2}}', "twice"),
        (b'{"a": "\xff"}', "utf-8 at octet 7"),
        (b'{"a": "\xed\xa0\x80"}', "utf-8"),
        (b'{"a": "\\uD800"}', "surrogate"),
        (b'{"a": NaN}', "nan"),
        (b'{"a": -Infinity}', "infinity"),
        (b'{"a": 1e400}', "beyond a double"),
        (b'{"a": 9007199254740992}', "beyond 2^53-1"),
        (b'{"a": -9007199254740992}', "beyond 2^53-1"),
        (b'{"a": ' + b"1" * 5000 + b"}", "beyond 2^53-1"),
        (b'{"a": 01}', "not json"),
        (b'{"a": 1,}', "not json"),
        (b"{'a': 1}", "not json"),
        (b'{"a": "\n"}', "not json"),
        (b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}", "deeper"),
        (b"[" * 100_000, "deeper"),
    ],
)
def test_what_is_not_one_strict_json_object(octets: bytes, reason: str) -> None:
    """Duplicates, BOM, invalid UTF-8, trailing data, wild numbers, depth (KVCS-5-3)."""
    with pytest.raises(ManifestError) as caught:
        parse_manifest(octets)
    assert reason in str(caught.value).lower()
    assert {"KVCS-5-3"} == {defect.clause for defect in caught.value.defects}


@pytest.mark.parametrize("member", sorted(v.EXAMPLE_MANIFEST))
def test_each_top_level_member_is_required(member: str) -> None:
    """A missing member is named (KVCS-5-5)."""
    assert ("member-missing", f"$.{member}") in defects(example(lambda d: d.pop(member)))


@pytest.mark.parametrize("member", sorted(v.EXAMPLE_MANIFEST["segments"][0]))
def test_each_segment_member_is_required(member: str) -> None:
    """A missing member of an entry is named with its path (KVCS-5-6)."""
    found = defects(example(lambda d: d["segments"][1].pop(member)))
    assert ("member-missing", f"$.segments[1].{member}") in found


@pytest.mark.parametrize(
    ("member", "value", "defect"),
    [
        ("kvcs", 2, "manifest-version"),
        ("kvcs", "1", "member-type"),
        ("kvcs", True, "member-type"),
        ("kvcs", 1.0, "member-type"),
        ("compat", [], "member-type"),
        ("layers", 0, "member-range"),
        ("layers", None, "member-type"),
        ("block_tokens", -1, "member-range"),
        ("block_tokens", 2**32, "member-range"),
        ("deterministic", 0, "member-type"),
        ("segments", {}, "member-type"),
    ],
)
def test_top_level_types(member: str, value: object, defect: str) -> None:
    """A mistyped or impossible member is named (KVCS-5-5)."""
    found = defects(example(lambda d: d.update({member: value})))
    assert [(defect, f"$.{member}")] == found


@pytest.mark.parametrize(
    ("member", "value", "defect"),
    [
        ("segment", -1, "member-range"),
        ("segment", False, "member-type"),
        ("first_block", -1, "member-range"),
        ("blocks", -1, "member-range"),
        ("blocks", 2**33, "member-range"),
        ("blocks", "64", "member-type"),
        ("block_keys_sha256", "0" * 63, "block-keys-format"),
        ("block_keys_sha256", "0" * 62 + " 0", "block-keys-format"),
        ("block_keys_sha256", 0, "member-type"),
        ("tracks", "k.raw.s0", "member-type"),
        ("complete", "true", "member-type"),
        ("complete", 1, "member-type"),
    ],
)
def test_segment_types(member: str, value: object, defect: str) -> None:
    """A mistyped or impossible member of an entry is named (KVCS-5-6, KVCS-5-7)."""
    found = defects(example(lambda d: d["segments"][0].update({member: value})))
    assert (defect, f"$.segments[0].{member}") in found


@pytest.mark.parametrize(
    ("tracks", "defect"),
    [
        (["k.raw.s1"], "track-segment"),
        (["k.raw.s0", "k.raw.s0"], "track-twice"),
        ([1], "track-type"),
    ],
)
def test_wrong_tracks(tracks: list[object], defect: str) -> None:
    """A track of another segment, or one listed twice, is wrong (KVCS-5-6)."""
    found = defects(example(lambda d: d["segments"][0].update(tracks=tracks)))
    assert [defect] == [name for name, _ in found]


@pytest.mark.parametrize("name", ["K.raw.s0", "q.raw.s0", "k.raw.s00", "manifest", "\ud83d\ude00"])
def test_a_name_that_is_no_data_track_is_left_aside(name: str) -> None:
    """It costs its own entry only, and is remarked (KVCS-3.2-1, KVCS-12-4)."""
    text = example(lambda d: d["segments"][0]["tracks"].append(name))
    manifest = parse_manifest(text)
    assert (K0, V0) == manifest.segments[0].tracks
    assert [("track-unknown", "$.segments[0].tracks[2]", False)] == [
        (remark.name, remark.where, remark.mandatory) for remark in manifest.remarks
    ]


def test_an_unknown_codec_is_a_track_like_any_other() -> None:
    """Whether to select it is the consumer's business (KVCS-3.2-2)."""
    text = example(lambda d: d["segments"][0]["tracks"].append("k.foo.s0"))
    assert DataTrack(Component.K, "foo", 0) in parse_manifest(text).segments[0].tracks


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({1: {"first_block": 63}}, [("segment-gap", "$.segments[1].first_block")]),
        ({1: {"first_block": 65}}, [("segment-gap", "$.segments[1].first_block")]),
        ({0: {"first_block": 1, "blocks": 63}}, [("segment-gap", "$.segments[0].first_block")]),
        (
            {1: {"segment": 0, "tracks": ["k.raw.s0"]}},
            [("segment-order", "$.segments[1].segment")],
        ),
        (
            {0: {"segment": 2, "tracks": []}},
            [
                ("segment-order", "$.segments[0].segment"),
                ("segment-order", "$.segments[1].segment"),
            ],
        ),
    ],
)
def test_segments_follow_each_other(
    change: dict[int, dict[str, Any]], expected: list[tuple[str, str]]
) -> None:
    """Overlap, hole, a late start and duplicate numbers are wrong (KVCS-2-3)."""

    def apply(document: dict[str, Any]) -> None:
        for index, members in change.items():
            document["segments"][index].update(members)

    assert expected == defects(example(apply))


def _with_digests(digests: object, **members: Any) -> bytes:
    def change(document: dict[str, Any]) -> None:
        document["layers"] = 2
        document["segments"] = document["segments"][:1]
        document["segments"][0] |= {"blocks": 2, "complete": False, "object_digests": digests}
        document["segments"][0] |= members

    return example(change)


GROUP = ["ab" * 32, "CD" * 32]


def test_object_digests_are_read() -> None:
    """Track to Groups to Objects; hexadecimal in either case (KVCS-5-9, A10)."""
    text = _with_digests({"k.raw.s0": [GROUP, GROUP], "v.raw.s0": [GROUP]})
    (segment,) = parse_manifest(text).segments
    group = (b"\xab" * 32, b"\xcd" * 32)
    assert {K0: (group, group), V0: (group,)} == segment.object_digests


@pytest.mark.parametrize(
    ("digests", "defect", "where"),
    [
        ([], "digests-type", ""),
        ({"k.raw.s0": {}}, "digests-type", "['k.raw.s0']"),
        ({"k.raw.s0": ["ab" * 32]}, "digests-type", "['k.raw.s0'][0]"),
        ({"k.raw.s0": [GROUP[:1]]}, "digests-objects", "['k.raw.s0'][0]"),
        ({"k.raw.s0": [GROUP * 2]}, "digests-objects", "['k.raw.s0'][0]"),
        ({"k.raw.s0": [GROUP] * 3}, "digests-groups", "['k.raw.s0']"),
        ({"k.raw.s0": [["ab" * 32, "a" * 63]]}, "digests-format", "['k.raw.s0'][0][1]"),
        ({"k.raw.s0": [["ab" * 32, 0]]}, "digests-format", "['k.raw.s0'][0][1]"),
    ],
)
def test_defects_of_object_digests(digests: object, defect: str, where: str) -> None:
    """Wrong shape, short arrays, extra Groups and odd hexadecimal (KVCS-5-9)."""
    found = defects(_with_digests(digests))
    assert (defect, f"$.segments[0].object_digests{where}") in found


def test_a_complete_segment_lists_every_group() -> None:
    """With complete true, one element per layer is due (KVCS-5-9)."""
    found = defects(_with_digests({"k.raw.s0": [GROUP]}, complete=True))
    assert [("digests-groups", "$.segments[0].object_digests['k.raw.s0']")] == found


def test_partial_object_digests_are_remarked() -> None:
    """A track without digests, and digests without a track, cost nothing but a remark."""
    manifest = parse_manifest(_with_digests({"kv.x.s0": [GROUP]}))
    assert ["digests-track", "digests-absent", "digests-absent"] == [
        remark.name for remark in manifest.remarks
    ]
    assert {} == manifest.segments[0].object_digests


def test_a_consistent_manifest_has_no_defect() -> None:
    """Descriptor, layers, block size and keys agree (KVCS-5-16, KVCS-5-7, KVCS-2-1)."""
    assert [] == check_consistency(p0_manifest(), NAMESPACE, P0, v.P0_KEYS)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"compat": v.p0_descriptor(dtype="fp16")}, [("compat-id-mismatch", "$.compat")]),
        ({"compat": v.p0_descriptor(note=0.5)}, [("compat-id-mismatch", "$.compat")]),
        ({"layers": 3}, [("layers-mismatch", "$.layers")]),
        ({"block_tokens": 8}, [("block-tokens-mismatch", "$.block_tokens")]),
    ],
)
def test_inconsistency_with_the_namespace(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """A changed descriptor or count costs the publication (KVCS-5-17, KVCS-5-5, field case 19)."""
    found = check_consistency(p0_manifest(**changes), NAMESPACE, P0)
    assert expected == [(defect.name, defect.where) for defect in found]


def test_segments_of_other_tokens_are_found() -> None:
    """Keys of other tokens do not give the segment's digest, nor the Anchor Key (KVCS-5-7, A7)."""
    keys = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, [1, 2, 3, 4, 5, 6, 7, 9], 4)
    found = check_consistency(p0_manifest(), NAMESPACE, P0, keys)
    assert ["block-keys-mismatch", "anchor-key-mismatch"] == [defect.name for defect in found]


def test_a_publication_named_after_another_block_is_found() -> None:
    """The Anchor Key is the key of segment 0's last block, not one earlier (KVCS-2-1)."""
    short = KvcsNamespace(
        v.EXAMPLE_SCOPE_ID, v.P0_COMPAT_ID, v.P0_KEYS[0], v.EXAMPLE_PUBLICATION_ID
    )
    found = check_consistency(p0_manifest(), short, P0, v.P0_KEYS)
    assert ["anchor-key-mismatch"] == [defect.name for defect in found]


def test_a_chain_that_ends_early_confirms_nothing() -> None:
    """A consumer with fewer blocks cannot check the segment (KVCS-5-7)."""
    (segment,) = p0_manifest().segments
    assert block_keys_match(segment, v.P0_KEYS[:1]) is None
    assert block_keys_match(segment, v.P0_KEYS) is True
    assert block_keys_match(segment, v.P0_KEYS[::-1]) is False


def test_a_descriptor_that_is_not_json_is_refused_when_writing() -> None:
    """NaN or octets in the descriptor are a ManifestError."""
    for value in (float("nan"), b"x"):
        with pytest.raises(ManifestError, match="not JSON"):
            encode_manifest(p0_manifest(compat={"a": value}))


def test_the_size_is_bounded() -> None:
    """A text over the limit is refused before it is read."""
    with pytest.raises(ManifestError, match="over the limit"):
        parse_manifest(bytes(64 * 2**20 + 1))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**40) | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode()))
@settings(max_examples=150, deadline=None)
def test_any_octets_give_a_manifest_or_our_error(octets: bytes) -> None:
    """Arbitrary octets are refused with ManifestError."""
    with pytest.raises(ManifestError):
        parse_manifest(octets)


@given(
    st.sampled_from([None, *v.EXAMPLE_MANIFEST["segments"][0], "object_digests"]),
    st.sampled_from(sorted(v.EXAMPLE_MANIFEST)),
    json_values,
)
@settings(max_examples=150, deadline=None)
def test_any_member_value_gives_a_manifest_or_our_error(
    in_segment: str | None, at_top: str, value: Any
) -> None:
    """Arbitrary values in any member are read, and written again, or refused with ours."""

    def change(document: dict[str, Any]) -> None:
        if in_segment is None:
            document[at_top] = value
        else:
            document["segments"][0][in_segment] = value

    with contextlib.suppress(ManifestError):
        manifest = parse_manifest(example(change))
        assert manifest == parse_manifest(encode_manifest(manifest))
