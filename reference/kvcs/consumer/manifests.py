"""The versions of one publication's manifest, and which one counts (KVCS 5, 7.2, 10).

Versions are the Groups of the manifest track; the highest verified one counts (KVCS-5-1). A later
version may only add to an earlier one: a signed manifest names neither its publication nor its
version, so an old one can be served again under a new Group ID (reading A8), and is refused here
when it takes something back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvcs.cose import PublicKey, read_sign1, verify
from kvcs.errors import Defect, ManifestError, SignatureError
from kvcs.identity import KvspProfile
from kvcs.manifest import (
    Manifest,
    Segment,
    block_keys_match,
    check_consistency,
    parse_manifest,
)
from kvcs.names import KvcsNamespace, ManifestTrack
from kvcs.payload import Octets


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a version was not taken; `fatal` means that the publication is discarded."""

    reason: str
    detail: str
    fatal: bool = False


class ManifestLog:
    """All versions seen of the manifest of one publication.

    `keys` are the consumer's own Block Keys from block 0. `producers` maps kid to public key;
    without `authentic`, a "manifest.cose" is read unverified when there is no key at all.
    """

    def __init__(
        self,
        namespace: KvcsNamespace,
        profile: KvspProfile,
        keys: Sequence[bytes],
        producers: Mapping[bytes, PublicKey],
        *,
        authentic: bool,
        external_aad: bytes = b"",
    ) -> None:
        self.current: Manifest | None = None
        self.version: int | None = None
        self._namespace = namespace
        self._profile = profile
        self._keys = keys
        self._producers = producers
        self._authentic = authentic
        self._external_aad = external_aad
        self._octets: dict[int, bytes] = {}

    def seen(self, version: int) -> bytes | None:
        """The octets that came before for this version."""
        return self._octets.get(version)

    def offer(self, version: int, track: ManifestTrack, octets: Octets) -> Refusal | None:
        """Take the payload of Object 0 of Group `version`; None when it is verified.

        It becomes `current` unless a higher version already is.
        """
        before = self._octets.get(version)
        if before is not None and before != octets:
            return Refusal("object.conflict", f"two payloads for version {version}", fatal=True)
        self._octets[version] = bytes(octets)
        try:
            manifest = parse_manifest(self._text(track, octets))
        except SignatureError as error:
            return Refusal("manifest.signature", error.reason)
        except ManifestError as error:
            return Refusal("manifest.invalid", error.reason)
        refusal = self._judge(manifest)
        if refusal is not None:
            return refusal
        if self.version is None or version > self.version:
            if self.current is not None:
                lost = taken_back(self.current, manifest)
                if lost is not None:
                    return Refusal("manifest.inconsistent", lost)
            self.current, self.version = manifest, version
        return None

    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        if track is ManifestTrack.MANIFEST:
            if self._authentic:
                raise SignatureError("producer authenticity is required, this one is not signed")
            return octets
        if self._producers or self._authentic:
            return verify(octets, self._producers, external_aad=self._external_aad)
        return read_sign1(octets).payload

    def _judge(self, manifest: Manifest) -> Refusal | None:
        """Consistency with namespace and tokens; every defect costs the whole publication.

        A later segment whose Block Keys are not ours is only another continuation of our prefix:
        `usable_segments` leaves it aside.
        """
        for defect in check_consistency(manifest, self._namespace, self._profile, self._keys):
            if defect.name == "block-keys-mismatch" and not _of_segment_0(defect):
                continue
            return Refusal(_reason(defect), str(defect), fatal=True)
        return None

    def usable_segments(self, *, vouched: bool) -> list[Segment]:
        """The leading segments of `current` that cover our tokens (KVCS-5-7, reading A7).

        A segment that ends behind our last complete block cannot be confirmed; it counts only
        when `vouched`, that is when an index named this publication for our own Block Keys.
        """
        found: list[Segment] = []
        for segment in self.current.segments if self.current else ():
            match = block_keys_match(segment, self._keys)
            if match is False or segment.first_block >= len(self._keys):
                break
            if match is None and not vouched:
                break
            found.append(segment)
        return found


def taken_back(old: Manifest, new: Manifest) -> str | None:
    """What the newer version no longer says, in one sentence; None when it only adds."""
    if (old.compat, old.deterministic) != (new.compat, new.deterministic):
        return "compat or deterministic changed"
    for before in old.segments:
        after = new.segment(before.segment)
        if after is None:
            return f"segment {before.segment} is gone"
        if (before.first_block, before.blocks, before.block_keys_sha256) != (
            after.first_block,
            after.blocks,
            after.block_keys_sha256,
        ):
            return f"segment {before.segment} covers other blocks"
        if before.complete and not after.complete:
            return f"segment {before.segment} is no longer complete"
        for track, groups in (before.object_digests or {}).items():
            if (after.object_digests or {}).get(track, ())[: len(groups)] != groups:
                return f"digests of {track} changed or are gone"
    return None


def _of_segment_0(defect: Defect) -> bool:
    return defect.where.startswith("$.segments[0]")


def _reason(defect: Defect) -> str:
    return {
        "compat-id-mismatch": "manifest.compat-mismatch",
        "block-keys-mismatch": "manifest.block-keys",
        "anchor-key-mismatch": "manifest.anchor-key",
    }.get(defect.name, "manifest.inconsistent")
