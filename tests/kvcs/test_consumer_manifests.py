"""Versions of the manifest: verified, consistent, never going back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kvcs.consumer.manifests import ManifestLog, Refusal
from kvcs.cose import sign
from kvcs.identity import P0
from kvcs.manifest import Manifest, Segment, block_keys_sha256, encode_manifest
from kvcs.names import MANIFEST, MANIFEST_COSE, DataTrack, KvcsNamespace, parse_track_name

from tests.kvcs.caches import SCOPE_KEY, descriptor, keys

KEYS = keys(6)
NAMESPACE = KvcsNamespace(P0.scope_id(SCOPE_KEY), P0.compat_id(descriptor()), KEYS[1], b"p" * 16)
PRODUCER = Ed25519PrivateKey.from_private_bytes(bytes(32))
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)


def track(name: str) -> DataTrack:
    parsed = parse_track_name(name.encode())
    assert isinstance(parsed, DataTrack)
    return parsed


def segment(number: int, first: int, blocks: int, **changes: Any) -> Segment:
    whole = Segment(
        segment=number,
        first_block=first,
        blocks=blocks,
        block_keys_sha256=block_keys_sha256(KEYS[first : first + blocks]),
        tracks=(track(f"k.raw.s{number}"), track(f"v.raw.s{number}")),
        complete=False,
    )
    return replace(whole, **changes)


def manifest(*segments: Segment, **changes: Any) -> Manifest:
    whole = Manifest(
        compat=descriptor(), layers=4, block_tokens=4, deterministic=False, segments=segments
    )
    return replace(whole, **changes)


def log(*, authentic: bool = False, producers: bool = False) -> ManifestLog:
    known = {b"kid": PRODUCER.public_key()} if producers else {}
    return ManifestLog(NAMESPACE, P0, KEYS, known, authentic=authentic)


def test_the_highest_verified_version_counts() -> None:
    """KVCS-5-1: versions may overtake each other, and a refused one changes nothing."""
    versions = log()
    first, second = manifest(segment(0, 0, 2)), manifest(segment(0, 0, 2, complete=True))
    assert None is versions.offer(1, MANIFEST, encode_manifest(second))
    assert None is versions.offer(0, MANIFEST, encode_manifest(first))
    refusal = versions.offer(2, MANIFEST, b"[]")
    assert refusal is not None
    assert ("manifest.invalid", False) == (refusal.reason, refusal.fatal)
    assert (1, second) == (versions.version, versions.current)


def test_two_payloads_for_one_version_cost_the_publication() -> None:
    """KVCS-6-7: a Location has one payload; the same one again is harmless."""
    versions = log()
    octets = encode_manifest(manifest(segment(0, 0, 2)))
    assert [None, None] == [versions.offer(0, MANIFEST, octets) for _ in range(2)]
    refusal = versions.offer(0, MANIFEST, octets + b" ")
    assert refusal is not None
    assert ("object.conflict", True) == (refusal.reason, refusal.fatal)


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (manifest(segment(0, 0, 2), compat=descriptor(dtype="fp16")), "manifest.compat-mismatch"),
        (manifest(segment(0, 0, 2), layers=5), "manifest.inconsistent"),
        (manifest(segment(0, 0, 2), block_tokens=8), "manifest.inconsistent"),
        (
            manifest(segment(0, 0, 2, block_keys_sha256=bytes(32))),
            "manifest.block-keys",
        ),
        (manifest(segment(0, 0, 3)), "manifest.anchor-key"),
    ],
)
def test_a_manifest_that_contradicts_its_namespace_is_fatal(version: Manifest, reason: str) -> None:
    """KVCS-5-17, KVCS-5-5, KVCS-2-1, KVCS-5-7: such a publication is discarded."""
    versions = log()
    refusal = versions.offer(0, MANIFEST, encode_manifest(version))
    assert refusal is not None
    assert (reason, True) == (refusal.reason, refusal.fatal)
    assert None is versions.current


def test_reordered_members_keep_the_compatibility_id() -> None:
    """KVCS-5-17: member order and whitespace of the descriptor do not count."""
    document = json.loads(encode_manifest(manifest(segment(0, 0, 2))))
    document["compat"] = dict(reversed(document["compat"].items()))
    assert None is log().offer(0, MANIFEST, json.dumps(document, indent=2).encode())


DIGESTS = {track("k.raw.s0"): ((bytes(32), bytes(32)),)}


@pytest.mark.parametrize(
    "later",
    [
        manifest(),
        manifest(segment(0, 0, 2)),
        manifest(segment(0, 0, 2, object_digests=DIGESTS), deterministic=True),
        manifest(
            segment(
                0,
                0,
                2,
                object_digests={track("k.raw.s0"): ((bytes(32), bytes([1]) * 32),)},
            )
        ),
    ],
)
def test_a_later_version_takes_nothing_back(later: Manifest) -> None:
    """A8: an older version under a newer Group ID is refused, and the better one stays."""
    versions = log()
    best = manifest(segment(0, 0, 2, object_digests=DIGESTS))
    assert None is versions.offer(0, MANIFEST, encode_manifest(best))
    refusal = versions.offer(1, MANIFEST, encode_manifest(later))
    assert refusal is not None
    assert ("manifest.inconsistent", False) == (refusal.reason, refusal.fatal)
    assert best == versions.current


def test_authenticity_takes_a_signed_version_of_a_known_producer_only() -> None:
    """KVCS-10-4, KVCS-5-13: unsigned, or signed by a stranger, is as good as absent."""
    text = encode_manifest(manifest(segment(0, 0, 2)))
    versions = log(authentic=True, producers=True)
    refused = [
        versions.offer(0, MANIFEST, text),
        versions.offer(1, MANIFEST_COSE, sign(text, STRANGER, b"kid")),
        versions.offer(2, MANIFEST_COSE, sign(text, PRODUCER, b"other")),
    ]
    assert ["manifest.signature"] * 3 == [
        refusal.reason for refusal in refused if isinstance(refusal, Refusal)
    ]
    assert None is versions.offer(3, MANIFEST_COSE, sign(text, PRODUCER, b"kid"))
    assert 3 == versions.version


def test_without_any_key_a_signed_manifest_is_read_unverified() -> None:
    """KVCS-5-12: authenticity not required and nothing to verify with: it is a plain manifest."""
    text = encode_manifest(manifest(segment(0, 0, 2)))
    assert None is log().offer(0, MANIFEST_COSE, sign(text, STRANGER, b"kid"))


def test_segments_count_while_they_cover_our_tokens() -> None:
    """A7: another continuation, or one that we cannot confirm, ends the usable segments."""
    versions = log()
    other = segment(2, 4, 1, block_keys_sha256=bytes(32))
    version = manifest(segment(0, 0, 2), segment(1, 2, 2), other)
    assert None is versions.offer(0, MANIFEST, encode_manifest(version))
    assert [0, 1] == [item.segment for item in versions.usable_segments(vouched=False)]


@pytest.mark.parametrize(("vouched", "expected"), [(False, [0]), (True, [0, 1])])
def test_an_unconfirmed_segment_needs_an_index(vouched: bool, expected: list[int]) -> None:
    """KVCS-7.1-5: a segment that ends behind our tokens is taken when an index vouches for it."""
    versions = log()
    beyond = segment(1, 2, 9, block_keys_sha256=bytes(32))
    assert None is versions.offer(0, MANIFEST, encode_manifest(manifest(segment(0, 0, 2), beyond)))
    assert expected == [item.segment for item in versions.usable_segments(vouched=vouched)]
