"""Publishers that announce without authorization, or go on when they are refused."""

from __future__ import annotations

from collections.abc import Sequence

from kvcs.manifest import encode_manifest
from kvcs.names import MANIFEST_COSE
from kvcs.publisher import Publisher
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.names import Location, TrackNamespace
from moqt.wire.objects import Object
from moqt.wire.tokens import Token

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


@mutant("publisher/announces-without-token", requires=("KVCS-6-1",), reasons=(Reason.AUTH_ABSENT,))
class AnnouncesWithoutToken(Publisher):
    """PUBLISH_NAMESPACE has no AUTHORIZATION TOKEN."""

    def announce(self, namespace: TrackNamespace, tokens: Sequence[Token] = ()) -> None:
        super().announce(namespace)


@mutant(
    "publisher/publishes-unauthorized", requires=("KVCS-6-1",), reasons=(Reason.OBJECT_UNEXPECTED,)
)
class PublishesUnauthorized(Publication):
    """A publication whose announcement was refused is produced and served all the same."""

    def refuse(self, reason: str) -> None:
        return


@mutant("publisher/offers-cose-unsigned", requires=("KVCS-5-2",), reasons=(Reason.REQUEST_CODE,))
class OffersCoseUnsigned(Publication):
    """Beside an unsigned manifest there is a track manifest.cose with the same JSON."""

    def open_segment(
        self, first_block: int | None = None, blocks: int | None = None
    ) -> SegmentProduction:
        part = super().open_segment(first_block, blocks)
        if self.spec.signer is None and MANIFEST_COSE not in self._tracks:
            self._add_track(MANIFEST_COSE)
            text = encode_manifest(self.manifest_for())
            self.publish(MANIFEST_COSE, Object(Location(0, 0), 0, 0, text))
        return part
