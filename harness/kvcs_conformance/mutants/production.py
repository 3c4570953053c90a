"""Publishers that produce in a wrong order, or mark the ends wrongly."""

from __future__ import annotations

from dataclasses import replace

from kvcs.names import DataTrack, TrackName
from kvcs.publisher import PublicationSpec, Publisher
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.errors import PublishDoneCode
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_ORDER = (Reason.ORDER_LAYERS, Reason.OBJECT_MISSING)
_DISORDER = ("KVCS-3.3-2", "KVCS-7.2-3")


class _Holding(Publication):
    """Holds back Objects of layer 0, and its ends, until layer 1 is out and layer 2 begins."""

    def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
        self._held: list[tuple[TrackName, Object]] | None = []
        super().__init__(publisher, spec)

    def holds(self, item: Object) -> bool:
        """Whether this Object of layer 0 waits."""
        return True

    def publish(self, track: TrackName, item: Object) -> None:
        if not isinstance(track, DataTrack) or self._held is None:
            super().publish(track, item)
        elif item.location.group == 0 and self.holds(item):
            self._held.append((track, item))
        else:
            if item.location.group == 2:
                self._release()
            super().publish(track, item)

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        if layer > 0 or self._held is None:
            super().end_group(part, track, layer)

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for track, item in held:
            self.publish(track, item)
        part = self.segments[0]
        for track in part.tracks:
            self.end_group(part, track, 0)


@mutant("publisher/swaps-adjacent-layers", requires=_DISORDER, reasons=_ORDER)
class SwapsAdjacentLayers(_Holding):
    """Layer 0 goes out behind layer 1."""


@mutant("publisher/interleaves-layers", requires=_DISORDER, reasons=_ORDER)
class InterleavesLayers(_Holding):
    """The last block of layer 0 goes out behind layer 1."""

    def holds(self, item: Object) -> bool:
        return item.location.object == self.segments[0].blocks - 1


@mutant("publisher/omits-end-of-group", requires=("KVCS-3.3-7",), reasons=(Reason.MARK_GROUP,))
class OmitsEndOfGroup(Publication):
    """No Group ends with an End of Group Object; its stream just ends."""

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        self._tracks[track].end_subgroup(layer, 0)


@mutant("publisher/omits-end-of-track", requires=("KVCS-3.3-8",), reasons=(Reason.MARK_TRACK,))
class OmitsEndOfTrack(Publication):
    """The track ends with PUBLISH_DONE alone."""

    def end_track(self, track: DataTrack) -> None:
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)


@mutant("publisher/ends-track-a-group-late", requires=("KVCS-3.3-8",), reasons=(Reason.MARK_TRACK,))
class EndsTrackAGroupLate(Publication):
    """End of Track stands at {L+1, 0}, so that a Group seems to be missing."""

    def end_track(self, track: DataTrack) -> None:
        group = self.spec.layers + 1
        end = Object(Location(group, 0), 0, 128, b"", ObjectStatus.END_OF_TRACK)
        self.publish(track, end)
        self._tracks[track].end_subgroup(group, 0)
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)


@mutant("publisher/subgroup-per-block", requires=("KVCS-3.3-5",), reasons=(Reason.OBJECT_SUBGROUP,))
class SubgroupPerBlock(Publication):
    """Every Object of a Group is in a Subgroup of its own."""

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and item.location.group < self.spec.layers:
            item = replace(item, subgroup=item.location.object)
        super().publish(track, item)

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        super().end_group(part, track, layer)
        for block in range(1, part.blocks + 1):
            self._tracks[track].end_subgroup(layer, block)


@mutant("publisher/constant-priority", requires=("KVCS-3.4-5",), reasons=(Reason.PRIORITY,))
class ConstantPriority(Publication):
    """All layers have priority 128."""

    def priority_of(self, layer: int) -> int:
        return 128


@mutant("publisher/manifest-default-priority", requires=("KVCS-3.4-6",), reasons=(Reason.PRIORITY,))
class ManifestDefaultPriority(Publication):
    """The manifest has the default priority 128."""

    def publish(self, track: TrackName, item: Object) -> None:
        if not isinstance(track, DataTrack):
            item = replace(item, priority=128)
        super().publish(track, item)
