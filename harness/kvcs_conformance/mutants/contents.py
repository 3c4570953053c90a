"""Publishers whose payloads, properties, manifests or names are wrong."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from kvcs.manifest import Manifest
from kvcs.names import DataTrack, TrackName
from kvcs.payload import Header, Octets, encode_header
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.objects import Object
from moqt.wire.properties import encode_properties

from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_FORBIDDEN = (Reason.PROPERTY_FORBIDDEN,)
_FIELD = (Reason.PAYLOAD_FIELD,)


@mutant("publisher/sets-object-timeout", requires=("KVCS-6-3",), reasons=_FORBIDDEN)
class SetsObjectTimeout(Publication):
    """Data tracks have OBJECT_DELIVERY_TIMEOUT 2000 ms."""

    def track_properties(self, track: TrackName) -> bytes:
        return encode_properties([(0x02, 2000), (0x04, 60000)])


@mutant("publisher/sets-subgroup-timeout", requires=("KVCS-6-4",), reasons=_FORBIDDEN)
class SetsSubgroupTimeout(Publication):
    """Data tracks have SUBGROUP_DELIVERY_TIMEOUT 2000 ms."""

    def track_properties(self, track: TrackName) -> bytes:
        return encode_properties([(0x04, 60000), (0x06, 2000)])


@mutant("publisher/no-retention", requires=("KVCS-6-5",), reasons=(Reason.PROPERTY_ABSENT,))
class NoRetention(Publication):
    """Tracks have no MAX_CACHE_DURATION."""

    def track_properties(self, track: TrackName) -> bytes:
        return b""


@mutant(
    "publisher/digest-over-header",
    requires=("KVCS-4-14", "KVCS-4-17"),
    reasons=(Reason.PAYLOAD_DIGEST,),
)
class DigestOverHeader(Publication):
    """Data Digest covers the header (digest zeroed) and Data."""

    def header_for(
        self, part: SegmentProduction, track: DataTrack, layer: int, block: int, data: Octets
    ) -> Header:
        header = super().header_for(part, track, layer, block, data)
        blank = encode_header(header._replace(digest=bytes(32)))
        return header._replace(digest=sha256(blank + bytes(data)).digest())


@mutant(
    "publisher/little-endian-header", requires=("KVCS-4-1", "KVCS-4-11", "KVCS-A-2"), reasons=_FIELD
)
class LittleEndianHeader(Publication):
    """Layer, Block Index, Token Start and Token Count are little-endian."""

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and item.payload:
            payload = bytearray(item.payload)
            for name in ("layer", "block", "token_start", "token_count"):
                start, length = FIELDS[name]
                payload[start : start + length] = payload[start : start + length][::-1]
            item = replace(item, payload=bytes(payload))
        super().publish(track, item)


@mutant("publisher/layer-from-one", requires=("KVCS-4-8", "KVCS-A-2"), reasons=_FIELD)
class LayerFromOne(Publication):
    """The header counts layers from 1."""

    def header_for(
        self, part: SegmentProduction, track: DataTrack, layer: int, block: int, data: Octets
    ) -> Header:
        header = super().header_for(part, track, layer, block, data)
        return header._replace(layer=layer + 1)


@mutant("publisher/token-start-in-blocks", requires=("KVCS-4-10", "KVCS-A-2"), reasons=_FIELD)
class TokenStartInBlocks(Publication):
    """Token Start is the block's index instead of its first token's position."""

    def header_for(
        self, part: SegmentProduction, track: DataTrack, layer: int, block: int, data: Octets
    ) -> Header:
        header = super().header_for(part, track, layer, block, data)
        return header._replace(token_start=part.first_block + block)


@mutant("publisher/manifest-after-data", requires=("KVCS-6-2",), reasons=(Reason.ORDER_MANIFEST,))
class ManifestAfterData(Publication):
    """The first manifest comes when two layers are complete."""

    def publish_manifest(self) -> None:
        if self.segments[0].layer >= 2:
            super().publish_manifest()

    def manifest_due(self) -> bool:
        return super().manifest_due() or (self.version < 0 and self.segments[0].layer >= 2)


@mutant(
    "publisher/manifest-at-end-of-layer", requires=("KVCS-6-2",), reasons=(Reason.ORDER_MANIFEST,)
)
class ManifestAtEndOfLayer(Publication):
    """The first manifest comes behind the last Object of the first layer, before its end."""

    def publish_manifest(self) -> None:
        if self.version >= 0:
            super().publish_manifest()

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        if self.version < 0:
            super().publish_manifest()
        super().end_group(part, track, layer)


@mutant(
    "publisher/skips-manifest-version",
    requires=("KVCS-5-1",),
    reasons=(Reason.MANIFEST_VERSIONS,),
)
class SkipsManifestVersion(Publication):
    """The second manifest version is Group 2."""

    def publish_manifest(self) -> None:
        if self.version == 0:
            self.version += 1
        super().publish_manifest()


@mutant(
    "publisher/manifest-of-another-model",
    requires=("KVCS-5-16",),
    reasons=(Reason.MANIFEST_INCONSISTENT,),
)
class ManifestOfAnotherModel(Publication):
    """The manifest's descriptor says fp16 where the namespace was made from bf16."""

    def manifest_for(self) -> Manifest:
        manifest = super().manifest_for()
        return replace(manifest, compat={**manifest.compat, "dtype": "fp16"})


@mutant(
    "publisher/lists-digests-of-other-track",
    requires=("KVCS-5-9", "KVCS-10-3"),
    reasons=(Reason.MANIFEST_INCONSISTENT,),
)
class ListsDigestsOfOtherTrack(Publication):
    """object_digests gives the digests of k under v, and those of v under k."""

    def manifest_for(self) -> Manifest:
        manifest = super().manifest_for()
        segments = []
        for segment in manifest.segments:
            digests = segment.object_digests or {}
            names = list(digests)
            crossed = dict(zip(names, [digests[name] for name in reversed(names)], strict=True))
            segments.append(replace(segment, object_digests=crossed))
        return replace(manifest, segments=tuple(segments))


@mutant(
    "publisher/manifest-at-start-and-end-only",
    requires=("KVCS-5-10",),
    reasons=(Reason.MANIFEST_VERSIONS,),
)
class ManifestAtStartAndEndOnly(Publication):
    """No manifest version appears during production."""

    def manifest_due(self) -> bool:
        return False
