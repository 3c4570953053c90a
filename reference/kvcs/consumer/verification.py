"""Every check of one Object, and the reason code under which it is discarded (KVCS 4, 10).

The checks that KVCS 4 demands come first, then the robustness checks of reading A6 (a right digest
under a wrong Token Start would corrupt the cache silently), then the digest that the manifest
lists. An Object that fails any of them is treated as missing (KVCS-4-23).
"""

from __future__ import annotations

from collections.abc import Mapping

from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs.descriptor import Descriptor
from kvcs.errors import CodecError, Defect, PayloadError
from kvcs.identity import KvspProfile
from kvcs.manifest import Segment
from kvcs.names import Component, DataTrack
from kvcs.payload import Expected, Octets, check_object, data_of, decode_header

REASONS: Mapping[str, str] = {
    "header-truncated": "payload.length",
    "magic": "payload.magic",
    "version": "payload.version",
    "layer-mismatch": "payload.layer-mismatch",
    "block-index-mismatch": "payload.block-mismatch",
    "length-mismatch": "payload.length",
    "digest-mismatch": "payload.digest-mismatch",
    "component-mismatch": "payload.component",
    "component-unknown": "payload.component",
    "token-start-mismatch": "payload.token-start",
    "token-count-mismatch": "payload.token-count",
    "codec-mismatch": "payload.codec",
    "raw-length-mismatch": "payload.raw-length",
    "codec-data": "payload.codec-data",
    "listed-digest-mismatch": "manifest.digest-mismatch",
}
"""Defect name to reason code; permanent."""


def reason_of(defect: Defect) -> str:
    """The reason code of a discarded Object."""
    return REASONS[defect.name]


class Verifier:
    """What Objects are checked against, for one descriptor."""

    def __init__(self, profile: KvspProfile, descriptor: Descriptor) -> None:
        k_octets, v_octets = profile.sections(descriptor)
        self._profile = profile
        self._block_tokens = int(descriptor["block_tokens"])
        self._octets = {
            Component.K: k_octets,
            Component.V: v_octets,
            Component.KV: k_octets + v_octets,
        }

    def defects(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        """Everything wrong with a Normal Object of `track`, the mandatory checks first."""
        try:
            header = decode_header(item.payload)
        except PayloadError as error:
            return list(error.defects)
        octets = self._octets[track.component]
        expected = Expected(
            component=track.component,
            codec=self._profile.codec_by_name(track.codec),
            token_start=(segment.first_block + item.location.object) * self._block_tokens,
            token_count=self._block_tokens,
            raw_octets=octets if track.codec == "raw" else None,
        )
        defects = check_object(header, item.payload, item.location, expected)
        if not defects and track.codec != "raw":
            try:
                self._profile.decode(track.codec, data_of(item.payload), octets)
            except CodecError as error:
                defects.append(
                    Defect("codec-data", "KVCS-4-12", error.reason, "Data", mandatory=False)
                )
        if not defects:
            defects += listed_digest(segment, track, item.location, item.payload)
        return defects


def listed_digest(
    segment: Segment, track: DataTrack, location: Location, payload: Octets
) -> list[Defect]:
    """The defect of an Object whose Data Digest is not the listed one (KVCS-10-5)."""
    listed = segment.digest(track, location.group, location.object)
    digest = decode_header(payload).digest
    if listed is None or listed == digest:
        return []
    what = f"the Data Digest is {digest.hex()}, the manifest lists {listed.hex()}"
    return [Defect("listed-digest-mismatch", "KVCS-10-5", what, "octets 36..67")]
