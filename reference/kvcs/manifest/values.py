"""A version of the manifest as a value, and its JSON text (KVCS 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kvcs.descriptor import Descriptor
from kvcs.errors import Defect, ManifestError
from kvcs.names import DataTrack

Groups: TypeAlias = tuple[tuple[bytes, ...], ...]
"""Data Digests, 32 octets each: per completed Group in Group order, per Object in Object order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One contiguous range of complete blocks (KVCS 5).

    `blocks` counts from `first_block`, the absolute index of the segment's Object 0.
    `block_keys_sha256` has 32 octets. `object_digests` holds only tracks that the entry lists; it
    is None when the entry has no such member.
    """

    segment: int
    first_block: int
    blocks: int
    block_keys_sha256: bytes
    tracks: tuple[DataTrack, ...]
    complete: bool
    object_digests: Mapping[DataTrack, Groups] | None = None

    def digest(self, track: DataTrack, group: int, object_id: int) -> bytes | None:
        """The listed Data Digest of one Object, or None while it is not listed (KVCS-10-5)."""
        groups = (self.object_digests or {}).get(track, ())
        if group >= len(groups) or object_id >= len(groups[group]):
            return None
        return groups[group][object_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One version of the manifest (KVCS 5); `compat` is the Compatibility Descriptor as parsed."""

    compat: Descriptor
    layers: int
    block_tokens: int
    deterministic: bool
    segments: tuple[Segment, ...]
    remarks: tuple[Defect, ...] = field(default=(), compare=False)
    """What was left aside while reading: entries that a later version may understand."""

    def segment(self, number: int) -> Segment | None:
        """The segment of that number, or None."""
        return next((item for item in self.segments if item.segment == number), None)


def encode_manifest(manifest: Manifest) -> bytes:
    """The JSON text of a manifest in UTF-8; equal manifests give equal octets (KVCS 5)."""
    document = {
        "kvcs": 1,
        "compat": manifest.compat,
        "layers": manifest.layers,
        "block_tokens": manifest.block_tokens,
        "deterministic": manifest.deterministic,
        "segments": [_segment_json(item) for item in manifest.segments],
    }
    try:
        text = json.dumps(
            document, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        return text.encode()
    except (TypeError, ValueError) as error:
        raise ManifestError(f"the Compatibility Descriptor is not JSON: {error}") from None


def _segment_json(segment: Segment) -> dict[str, object]:
    entry: dict[str, object] = {
        "segment": segment.segment,
        "first_block": segment.first_block,
        "blocks": segment.blocks,
        "block_keys_sha256": segment.block_keys_sha256.hex(),
        "tracks": [str(track) for track in segment.tracks],
        "complete": segment.complete,
    }
    if segment.object_digests is not None:
        entry["object_digests"] = {
            str(track): [[digest.hex() for digest in group] for group in groups]
            for track, groups in segment.object_digests.items()
        }
    return entry
