"""Publishers that produce in a wrong order, or mark the ends wrongly."""

from __future__ import annotations

from dataclasses import replace

from kvcs.names import Component, DataTrack, TrackName
from kvcs.payload import Header, Octets
from kvcs.publisher import PublicationSpec, Publisher
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.origin import LocalTrack
from moqt.wire.errors import PublishDoneCode
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_ORDER = (Reason.ORDER_LAYERS, Reason.OBJECT_MISSING)
_DISORDER = ("KVCS-3.3-2", "KVCS-7.2-3", "MOQT-R115", "MOQT-R138")


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


@mutant(
    "publisher/omits-end-of-track",
    requires=("KVCS-3.3-8", "MOQT-R090"),
    reasons=(Reason.MARK_TRACK, Reason.LARGEST),
)
class OmitsEndOfTrack(Publication):
    """The track ends with PUBLISH_DONE alone."""

    def end_track(self, track: DataTrack) -> None:
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)


@mutant(
    "publisher/ends-track-a-group-late",
    requires=("KVCS-3.3-8", "MOQT-R090"),
    reasons=(Reason.MARK_TRACK, Reason.LARGEST),
)
class EndsTrackAGroupLate(Publication):
    """End of Track stands at {L+1, 0}, so that a Group seems to be missing."""

    def end_track(self, track: DataTrack) -> None:
        group = self.spec.layers + 1
        end = Object(Location(group, 0), 0, 128, b"", ObjectStatus.END_OF_TRACK)
        self.publish(track, end)
        self._tracks[track].end_subgroup(group, 0)
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)


@mutant(
    "publisher/subgroup-per-block",
    requires=("KVCS-3.3-5", "MOQT-R007", "MOQT-R116"),
    reasons=(Reason.OBJECT_SUBGROUP, Reason.STREAM_FLAG, Reason.STREAM_END),
)
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


@mutant(
    "publisher/groups-from-one",
    requires=("KVCS-3.2-4", "KVCS-3.3-1", "KVCS-4-8"),
    reasons=(Reason.OBJECT_UNEXPECTED, Reason.OBJECT_MISSING, Reason.PAYLOAD_FIELD),
)
class GroupsFromOne(Publication):
    """Group g of a kv track is layer g-1."""

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and track.component is Component.KV:
            group = item.location.group + 1
            location = Location(group, item.location.object)
            item = replace(item, location=location, priority=self.priority_of(group))
        super().publish(track, item)


@mutant(
    "publisher/swaps-blocks-of-layer",
    requires=("KVCS-3.3-6", "KVCS-3.4-1", "MOQT-R007", "MOQT-R164"),
    reasons=(Reason.ORDER_OBJECTS, Reason.STREAM_FLAG, Reason.STREAM_END),
)
class SwapsBlocksOfLayer(Publication):
    """Blocks 0 and 1 of layer 1 go out in the other order."""

    def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
        self._kept: dict[TrackName, Object] = {}
        super().__init__(publisher, spec)

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and item.location == (1, 0) and item.payload:
            self._kept[track] = item
            return
        super().publish(track, item)
        if track in self._kept and item.location == (1, 1):
            super().publish(track, self._kept.pop(track))


@mutant(
    "publisher/absolute-object-ids",
    requires=("KVCS-3.3-3", "KVCS-3.3-7", "KVCS-3.4-1", "KVCS-3.4-2", "KVCS-4-10"),
    reasons=(
        Reason.OBJECT_UNEXPECTED,
        Reason.ORDER_OBJECTS,
        Reason.MARK_GROUP,
        Reason.PAYLOAD_FIELD,
    ),
)
class AbsoluteObjectIds(Publication):
    """Object IDs, and Block Index with them, go on from segment to segment."""

    def publish(self, track: TrackName, item: Object) -> None:
        group, block = item.location
        if isinstance(track, DataTrack) and group < self.spec.layers:
            block += self.segments[track.segment].first_block
            item = replace(item, location=Location(group, block))
        super().publish(track, item)

    def header_for(
        self, part: SegmentProduction, track: DataTrack, layer: int, block: int, data: Octets
    ) -> Header:
        header = super().header_for(part, track, layer, block, data)
        return header._replace(block=part.first_block + block)


@mutant(
    "publisher/marks-group-late",
    requires=("KVCS-3.3-7", "MOQT-R116", "MOQT-R164"),
    reasons=(Reason.MARK_GROUP, Reason.STREAM_END),
)
class MarksGroupLate(Publication):
    """End of Group leaves room for one Object more."""

    def publish(self, track: TrackName, item: Object) -> None:
        if item.status is ObjectStatus.END_OF_GROUP:
            group, block = item.location
            item = replace(item, location=Location(group, block + 1))
        super().publish(track, item)


@mutant(
    "publisher/marks-last-group-as-track",
    requires=("KVCS-3.3-8", "MOQT-R006"),
    reasons=(Reason.MARK_TRACK, Reason.STREAM_SECOND),
)
class MarksLastGroupAsTrack(Publication):
    """End of Track stands behind the end of the last Group, in that Group."""

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        self.publish(track, self._object(layer, part.blocks, status=ObjectStatus.END_OF_GROUP))
        if layer + 1 < self.spec.layers:
            self._tracks[track].end_subgroup(layer, 0)

    def end_track(self, track: DataTrack) -> None:
        blocks = self.segments[track.segment].blocks
        group = self.spec.layers - 1
        end = self._object(group, blocks + 1, status=ObjectStatus.END_OF_TRACK)
        for sender in self._tracks[track].senders.values():
            sender.offer(end)
            sender.end_subgroup(group, 0)
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)


@mutant(
    "publisher/adds-a-group-behind-the-end",
    requires=("KVCS-3.3-8",),
    reasons=(Reason.MARK_TRACK,),
)
class AddsAGroupBehindTheEnd(Publication):
    """Behind End of Track one Group more goes out, with an Object in it."""

    def end_track(self, track: DataTrack) -> None:
        layers = self.spec.layers
        self.publish(track, self._object(layers, 0, status=ObjectStatus.END_OF_TRACK))
        self._tracks[track].end_subgroup(layers, 0)
        for sender in self._tracks[track].senders.values():
            sender.offer(self._object(layers + 1, 0, b"late"), first=True)
            sender.end_subgroup(layers + 1, 0)
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)


class _Unending(LocalTrack):
    """A track whose streams do not end with their Groups."""

    def end_subgroup(self, group: int, subgroup: int) -> None:
        self._open.pop((group, subgroup), None)


@mutant("publisher/loses-fin", requires=("MOQT-R164",), reasons=(Reason.STREAM_END,))
class LosesFin(Publisher):
    """The stream of a Group stays open after its last Object."""

    def add_track(
        self, track: FullTrackName, *, properties: bytes = b"", default_priority: int | None = None
    ) -> LocalTrack:
        local = self.tracks[track] = _Unending(track, properties, default_priority)
        return local


@mutant(
    "publisher/goes-on-after-error",
    requires=("KVCS-3.4-4",),
    reasons=(Reason.NOT_STOPPED,),
)
class GoesOnAfterError(Publication):
    """A publication in which an error was found stays announced, and its tracks open."""

    def stop(self, reason: str) -> None:
        return


@mutant(
    "publisher/ends-erroneous-as-whole",
    requires=("KVCS-3.4-4",),
    reasons=(Reason.NOT_STOPPED,),
)
class EndsErroneousAsWhole(Publication):
    """A publication in which an error was found ends as if it were whole: TRACK_ENDED."""

    def stop(self, reason: str) -> None:
        self.end()
