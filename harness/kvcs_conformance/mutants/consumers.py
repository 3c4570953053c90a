"""Consumers that skip a check, ask wrongly, or mix what must not be mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kvcs.consumer import Consumer, ConsumeRequest
from kvcs.consumer.assembly import SegmentAssembly
from kvcs.consumer.manifests import ManifestLog
from kvcs.consumer.routes import Publications, PublicationView, Route
from kvcs.cose import read_sign1
from kvcs.descriptor import Descriptor
from kvcs.errors import Defect
from kvcs.identity import KvspP0
from kvcs.manifest import Manifest, Segment
from kvcs.names import MANIFEST, MANIFEST_COSE, DataTrack, KvcsNamespace, ManifestTrack
from kvcs.payload import HEADER_OCTETS, Octets, decode_header
from moqt.wire.filters import FROM_START, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_USED = (Reason.USED_BAD_OBJECT,)
_SHAPE = (Reason.REQUEST_SHAPE,)


class _Skipping(Consumer):
    """A consumer that does not see the defects named in `blind_to`."""

    blind_to: frozenset[str] = frozenset()

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        return [defect for defect in found if defect.name not in self.blind_to]


@mutant(
    "consumer/skips-digest",
    requires=("KVCS-4-22", "KVCS-4-23", "KVCS-7.4-1", "KVCS-7.4-2"),
    reasons=_USED,
)
class SkipsDigest(_Skipping):
    """Data Digest is not compared with Data."""

    blind_to = frozenset({"digest-mismatch"})


@mutant("consumer/skips-layer-check", requires=("KVCS-4-19", "KVCS-4-23"), reasons=_USED)
class SkipsLayerCheck(_Skipping):
    """Layer is not compared with the Group ID."""

    blind_to = frozenset({"layer-mismatch"})


@mutant("consumer/skips-block-check", requires=("KVCS-4-20", "KVCS-4-23"), reasons=_USED)
class SkipsBlockCheck(_Skipping):
    """Block Index is not compared with the Object ID."""

    blind_to = frozenset({"block-index-mismatch"})


@mutant("consumer/skips-magic-and-version", requires=("KVCS-4-18", "KVCS-4-23"), reasons=_USED)
class SkipsMagicAndVersion(_Skipping):
    """Neither Magic nor Version is looked at."""

    blind_to = frozenset({"magic", "version"})


@mutant("consumer/skips-length-check", requires=("KVCS-4-21", "KVCS-4-23"), reasons=_USED)
class SkipsLengthCheck(_Skipping):
    """Data is what follows the header, however long; the digest of a wrong length passes too."""

    blind_to = frozenset({"length-mismatch", "raw-length-mismatch"})

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if len(item.payload) < HEADER_OCTETS:
            return found
        wrong = len(item.payload) - HEADER_OCTETS != decode_header(item.payload).data_length
        return [defect for defect in found if not (wrong and defect.name == "digest-mismatch")]


@mutant("consumer/refuses-flags", requires=("KVCS-4-7",), reasons=(Reason.DROPPED_GOOD_OBJECT,))
class RefusesFlags(Consumer):
    """An Object with a flag set is discarded."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if len(item.payload) >= HEADER_OCTETS and decode_header(item.payload).flags:
            found.append(Defect("component-unknown", "KVCS-4-7", "a flag is set", "octets 6..7"))
        return found


@mutant(
    "consumer/drops-whole-layer", requires=("KVCS-4-23",), reasons=(Reason.DROPPED_GOOD_OBJECT,)
)
class DropsWholeLayer(Consumer):
    """After one bad Object the rest of its Group is discarded too."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._bad: dict[tuple[DataTrack, int], list[Defect]] = {}

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if found:
            self._bad[track, item.location.group] = found
        return self._bad.get((track, item.location.group), found)


@mutant(
    "consumer/mixes-any-publications",
    requires=("KVCS-7.4-3",),
    reasons=(Reason.MIXED_PUBLICATIONS,),
)
class MixesAnyPublications(Consumer):
    """Publications are combined whether they are deterministic or not."""

    def may_combine(self, first: Manifest | None, second: Manifest | None) -> bool:
        return first is not None and second is not None


@mutant(
    "consumer/asks-plain-manifest-first",
    requires=("KVCS-7.2-4", "KVCS-7.2-5"),
    reasons=(Reason.REQUEST_ORDER,),
)
class AsksPlainManifestFirst(Consumer):
    """The unsigned manifest is tried before the signed one."""

    def manifest_tracks(self) -> Sequence[ManifestTrack]:
        return (MANIFEST, MANIFEST_COSE)


@mutant(
    "consumer/falls-back-to-plain-manifest",
    requires=("KVCS-7.2-5",),
    reasons=(Reason.REQUEST_ORDER,),
)
class FallsBackToPlainManifest(Consumer):
    """Without manifest.cose the unsigned manifest is asked for even if authenticity is required."""

    def manifest_tracks(self) -> Sequence[ManifestTrack]:
        return (MANIFEST_COSE, MANIFEST)


@mutant(
    "consumer/skips-compat-check",
    requires=("KVCS-5-17",),
    reasons=(Reason.USED_BAD_PUBLICATION,),
)
class SkipsCompatCheck(Consumer):
    """Any descriptor counts as having the Compatibility ID that was asked for."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        right = request.profile.compat_id(request.descriptor)

        class Gullible(KvspP0):
            def compat_id(self, descriptor: Descriptor) -> bytes:
                return right

        super().__init__(replace(request, profile=Gullible()), *arguments)


@mutant("consumer/joins-without-fill", requires=("KVCS-7.2-2",), reasons=_SHAPE)
class JoinsWithoutFill(Consumer):
    """Data tracks are subscribed to without FILL_PARAMETERS."""

    def live_parameters(self, track: DataTrack, first: Location) -> Parameters:
        return replace(super().live_parameters(track, first), fill=None)


@mutant("consumer/joins-from-start", requires=("KVCS-7.2-1",), reasons=_SHAPE)
class JoinsFromStart(Consumer):
    """The subscription starts at {0,0} instead of at the Next Object."""

    def live_parameters(self, track: DataTrack, first: Location) -> Parameters:
        return replace(super().live_parameters(track, first), location_filter=FROM_START)


@mutant("consumer/fetches-everything", requires=("KVCS-7.3-1",), reasons=_SHAPE)
class FetchesEverything(Consumer):
    """Whatever the layers, all of the track is fetched."""

    def layers_parameters(self, route: Route, part: SegmentAssembly) -> Parameters:
        everything = LocationFilter(LocationFilterType.ABSOLUTE_START, 0, 0)
        return replace(super().layers_parameters(route, part), location_filter=everything)


@mutant("consumer/omits-group-order", requires=("KVCS-7.3-2",), reasons=_SHAPE)
class OmitsGroupOrder(Consumer):
    """FETCH does not say GROUP_ORDER Ascending."""

    def layers_parameters(self, route: Route, part: SegmentAssembly) -> Parameters:
        return replace(super().layers_parameters(route, part), group_order=None)


@mutant("consumer/skips-listed-digest", requires=("KVCS-10-5",), reasons=_USED)
class SkipsListedDigest(_Skipping):
    """An Object that is right in itself is used though the signed manifest lists another digest."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if not self.request.authentic:
            return found
        return [defect for defect in found if defect.name != "listed-digest-mismatch"]


class _BlindLog(ManifestLog):
    def _text(self, track: ManifestTrack, octets: Octets) -> Octets:
        if track is MANIFEST_COSE:
            return read_sign1(octets).payload
        return super()._text(track, octets)


class _BlindPublications(Publications):
    def add(self, namespace: KvcsNamespace, *, vouched: bool) -> PublicationView:
        view = super().add(namespace, vouched=vouched)
        view.log.__class__ = _BlindLog
        return view


@mutant(
    "consumer/skips-signature",
    requires=("KVCS-5-13", "KVCS-10-4"),
    reasons=(Reason.USED_BAD_PUBLICATION,),
)
class SkipsSignature(Consumer):
    """The signature of a manifest is not verified."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        super().__init__(request, *arguments)
        self.publications = _BlindPublications(request, self.keys)


@mutant(
    "consumer/probes-shortest-first",
    requires=("KVCS-7.1-1", "KVCS-7.1-4"),
    reasons=(*_SHAPE, Reason.REQUEST_ORDER, Reason.NAMESPACE_SHAPE, Reason.WRONG_REUSE),
)
class ProbesShortestFirst(Consumer):
    """The anchors are probed from the shortest prefix up."""

    def anchors(self) -> Sequence[tuple[int, bytes]]:
        return list(reversed(super().anchors()))
