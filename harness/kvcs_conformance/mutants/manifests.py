"""Publishers whose manifests say something wrong, or say it at the wrong time."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

from kvcs.manifest import Manifest, encode_manifest
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_SHAPE = (Reason.MANIFEST_SHAPE,)
_SEGMENTS = (Reason.MANIFEST_SEGMENTS,)
_VERSIONS = (Reason.MANIFEST_VERSIONS,)
_NAME = (Reason.TRACK_NAME,)


class _Edited(Publication):
    """The JSON of the manifest is altered before it goes out, signed if there is a signer."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        value = json.loads(encode_manifest(manifest))
        self.edit(value)
        for entry in value.get("segments", []):
            self.edit_segment(entry)
        text = json.dumps(value, separators=(",", ":")).encode()
        return text if self.spec.signer is None else self.spec.signer.sign(text)

    def edit(self, value: dict[str, Any]) -> None:
        """Alter the whole of it."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        """Alter one segment's entry."""


@mutant("publisher/manifest-in-array", requires=("KVCS-5-3",), reasons=_SHAPE)
class ManifestInArray(Publication):
    """The manifest is an array with the object in it."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        text = encode_manifest(manifest)
        return super().manifest_octets(manifest) if self.spec.signer else b"[" + text + b"]"


@mutant("publisher/manifest-with-mark", requires=("KVCS-5-3",), reasons=_SHAPE)
class ManifestWithMark(Publication):
    """The manifest begins with a byte order mark."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        octets = super().manifest_octets(manifest)
        return octets if self.spec.signer else b"\xef\xbb\xbf" + octets


@mutant(
    "publisher/puts-json-on-cose",
    requires=("KVCS-5-4", "KVCS-10-3"),
    reasons=(Reason.MANIFEST_SIGNATURE,),
)
class PutsJsonOnCose(Publication):
    """What is published as manifest.cose is the bare JSON."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        return encode_manifest(manifest)


@mutant("publisher/omits-deterministic", requires=("KVCS-5-5",), reasons=_SHAPE)
class OmitsDeterministic(_Edited):
    """The manifest has no member "deterministic"."""

    def edit(self, value: dict[str, Any]) -> None:
        del value["deterministic"]


@mutant("publisher/manifest-version-two", requires=("KVCS-5-5",), reasons=_SHAPE)
class ManifestVersionTwo(_Edited):
    """The member "kvcs" is 2."""

    def edit(self, value: dict[str, Any]) -> None:
        value["kvcs"] = 2


@mutant(
    "publisher/counts-layers-from-zero",
    requires=("KVCS-5-5",),
    reasons=(Reason.MANIFEST_INCONSISTENT,),
)
class CountsLayersFromZero(_Edited):
    """The member "layers" is the last layer's index."""

    def edit(self, value: dict[str, Any]) -> None:
        value["layers"] -= 1


@mutant("publisher/complete-as-number", requires=("KVCS-5-6",), reasons=_SHAPE)
class CompleteAsNumber(_Edited):
    """Whether a segment is complete is 0 or 1."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["complete"] = int(entry["complete"])


@mutant("publisher/omits-digests", requires=("KVCS-5-8",), reasons=_SHAPE)
class OmitsDigests(Publication):
    """An unsigned manifest has no object_digests."""

    def manifest_for(self) -> Manifest:
        manifest = super().manifest_for()
        if self.spec.signer is not None:
            return manifest
        bare = tuple(replace(segment, object_digests=None) for segment in manifest.segments)
        return replace(manifest, segments=bare)


@mutant("publisher/hashes-hex-keys", requires=("KVCS-5-7",), reasons=_SEGMENTS)
class HashesHexKeys(_Edited):
    """block_keys_sha256 is over the keys in hex."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        first = entry["first_block"]
        keys = self.keys[first : first + entry["blocks"]]
        text = "".join(key.hex() for key in keys)
        entry["block_keys_sha256"] = hashlib.sha256(text.encode()).hexdigest()


@mutant("publisher/hashes-keys-of-prompt", requires=("KVCS-5-7",), reasons=_SEGMENTS)
class HashesKeysOfPrompt(_Edited):
    """block_keys_sha256 of a segment is over all keys up to its end."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        keys = self.keys[: entry["first_block"] + entry["blocks"]]
        entry["block_keys_sha256"] = hashlib.sha256(b"".join(keys)).hexdigest()


@mutant("publisher/segments-begin-at-zero", requires=("KVCS-2-3",), reasons=_SEGMENTS)
class SegmentsBeginAtZero(_Edited):
    """first_block is 0 for every segment."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["first_block"] = 0


@mutant("publisher/names-tracks-with-zero", requires=("KVCS-3.2-1",), reasons=_NAME)
class NamesTracksWithZero(_Edited):
    """Listed track names have two digits for the segment."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["tracks"] = [name.replace(".s", ".s0") for name in entry["tracks"]]


@mutant("publisher/lists-manifest-as-track", requires=("KVCS-12-4",), reasons=_NAME)
class ListsManifestAsTrack(_Edited):
    """The manifest stands among the tracks of each segment."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["tracks"] = [*entry["tracks"], "manifest"]


@mutant("publisher/lists-unknown-codec", requires=("KVCS-3.2-2",), reasons=_NAME)
class ListsUnknownCodec(_Edited):
    """A track of a codec of its own, which nobody registered, is listed beside the others."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["tracks"] = [*entry["tracks"], f"kv.squeeze.s{entry['segment']}"]


@mutant("publisher/lists-tracks-of-segment-0", requires=("KVCS-5-6",), reasons=_NAME)
class ListsTracksOfSegment0(_Edited):
    """Every segment lists the tracks of segment 0."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["tracks"] = [f"{name.rpartition('.s')[0]}.s0" for name in entry["tracks"]]


@mutant(
    "publisher/lists-model-in-codec",
    requires=("KVCS-3.2-2", "KVCS-11-3"),
    reasons=(*_NAME, Reason.NAMESPACE_LEAKED),
)
class ListsModelInCodec(_Edited):
    """A track's codec is named after the model."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["tracks"] = [*entry["tracks"], f"kv.tiny-gqa.s{entry['segment']}"]


@mutant("publisher/never-complete", requires=("KVCS-5-15",), reasons=_VERSIONS)
class NeverComplete(_Edited):
    """No version says that a segment is complete."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["complete"] = False


@mutant("publisher/lists-segment-when-whole", requires=("KVCS-5-15",), reasons=_VERSIONS)
class ListsSegmentWhenWhole(Publication):
    """A segment after the first is listed once it is complete, not when it is added."""

    def open_segment(
        self, first_block: int | None = None, blocks: int | None = None
    ) -> SegmentProduction:
        if not self.segments:
            return super().open_segment(first_block, blocks)
        self._adding = True
        try:
            return super().open_segment(first_block, blocks)
        finally:
            self._adding = False

    def publish_manifest(self) -> None:
        if not getattr(self, "_adding", False):
            super().publish_manifest()

    def manifest_for(self) -> Manifest:
        manifest = super().manifest_for()
        kept = [entry for entry in manifest.segments if entry.complete or entry.segment == 0]
        return replace(manifest, segments=tuple(kept))


@mutant(
    "publisher/lists-last-segment-digests-alone",
    requires=("KVCS-3.4-4", "KVCS-5-8", "KVCS-5-9", "KVCS-10-3"),
    reasons=(Reason.OBJECT_CHANGED, *_SHAPE),
)
class ListsLastSegmentDigestsAlone(_Edited):
    """Only the segment that was added last has object_digests."""

    def edit(self, value: dict[str, Any]) -> None:
        for entry in value["segments"][:-1]:
            entry.pop("object_digests", None)


@mutant("publisher/manifest-not-a-number", requires=("KVCS-5-3",), reasons=_SHAPE)
class ManifestNotANumber(_Edited):
    """A member that nobody knows holds NaN, which some readers of JSON take."""

    def edit(self, value: dict[str, Any]) -> None:
        value["load"] = math.nan


@mutant("publisher/calls-segment-complete-early", requires=("KVCS-5-15",), reasons=_VERSIONS)
class CallsSegmentCompleteEarly(_Edited):
    """Every version but the first calls its segments complete, whatever is still to come."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        entry["complete"] = entry["complete"] or self.version > 0


@mutant(
    "publisher/lists-early-digests-wrongly",
    requires=("KVCS-5-9",),
    reasons=(Reason.MANIFEST_INCONSISTENT,),
)
class ListsEarlyDigestsWrongly(_Edited):
    """Until a segment is complete, zeros stand in the place of its digests."""

    def edit_segment(self, entry: dict[str, Any]) -> None:
        if not entry["complete"] and "object_digests" in entry:
            entry["object_digests"] = {
                track: [["00" * 32 for _ in group] for group in groups]
                for track, groups in entry["object_digests"].items()
            }


@mutant(
    "publisher/adds-octets-to-cose",
    requires=("KVCS-5-4",),
    reasons=(Reason.MANIFEST_SIGNATURE,),
)
class AddsOctetsToCose(Publication):
    """An octet follows the COSE_Sign1 that is published as manifest.cose."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        octets = super().manifest_octets(manifest)
        return octets + b"\x00" if self.spec.signer else octets
