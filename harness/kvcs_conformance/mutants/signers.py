"""Publishers that sign wrongly, or sign too little."""

from __future__ import annotations

from dataclasses import replace

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kvcs.cose import sign
from kvcs.manifest import Manifest, encode_manifest
from kvcs.names import MANIFEST
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_SIGNATURE = (Reason.MANIFEST_SIGNATURE,)


@mutant("publisher/signs-with-unknown-key", requires=("KVCS-5-11",), reasons=_SIGNATURE)
class SignsWithUnknownKey(Publication):
    """The manifest is signed with a key that is not the producer's, under the producer's kid."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        signer = self.spec.signer
        if signer is None:
            return super().manifest_octets(manifest)
        stranger = Ed25519PrivateKey.from_private_bytes(bytes(32))
        return sign(encode_manifest(manifest), stranger, signer.kid, signer.algorithm)


@mutant("publisher/omits-kid", requires=("KVCS-5-12",), reasons=_SIGNATURE)
class OmitsKid(Publication):
    """The signed manifest does not say which key signed it."""

    def manifest_octets(self, manifest: Manifest) -> bytes:
        signer = self.spec.signer
        if signer is None:
            return super().manifest_octets(manifest)
        text = encode_manifest(manifest)
        whole = sign(text, signer.key, signer.kid, signer.algorithm, protected_kid=False)
        tagged = cbor2.loads(whole)
        protected, _, payload, signature = tagged.value
        return cbor2.dumps(cbor2.CBORTag(tagged.tag, [protected, {}, payload, signature]))


@mutant(
    "publisher/signs-without-digests", requires=("KVCS-10-3",), reasons=(Reason.MANIFEST_SHAPE,)
)
class SignsWithoutDigests(Publication):
    """The signed manifest has no object_digests."""

    def manifest_for(self) -> Manifest:
        manifest = super().manifest_for()
        if self.spec.signer is None:
            return manifest
        bare = tuple(replace(segment, object_digests=None) for segment in manifest.segments)
        return replace(manifest, segments=bare)


@mutant("publisher/offers-both-manifests", requires=("KVCS-5-2",), reasons=(Reason.REQUEST_CODE,))
class OffersBothManifests(Publication):
    """Beside the signed manifest there is an unsigned one."""

    def open_segment(
        self, first_block: int | None = None, blocks: int | None = None
    ) -> SegmentProduction:
        part = super().open_segment(first_block, blocks)
        if self.spec.signer is not None and MANIFEST not in self._tracks:
            self._add_track(MANIFEST)
            text = encode_manifest(self.manifest_for())
            self.publish(MANIFEST, Object(Location(0, 0), 0, 0, text))
        return part
