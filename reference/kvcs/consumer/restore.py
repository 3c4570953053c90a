"""One restore from one publication: what arrives is verified, counted, reported (KVCS 4, 5, 7).

Nothing is counted before it is verified, and with producer authenticity nothing is verified before
a signed manifest lists its digest (KVCS-10-5). A publication that contradicts itself is discarded
with everything that came from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from moqt.session.events import Via
from moqt.wire.messages import RequestError
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus

from kvcs.consumer.assembly import Arrival, Assembly, SegmentAssembly, same_content
from kvcs.consumer.carriers import Carrier, LiveCarrier
from kvcs.consumer.reports import defect_details, object_details, place
from kvcs.consumer.request import ConsumeRequest, Mode
from kvcs.consumer.routes import PublicationView
from kvcs.consumer.supply import EVERYTHING, Asker, Supply
from kvcs.consumer.verification import listed_digest, reason_of
from kvcs.errors import Defect
from kvcs.manifest import Segment
from kvcs.names import DataTrack


class Owner(Asker, Protocol):
    """The consumer, as a restore sees it."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        """What is wrong with a Normal Object."""

    def select(self, segment: Segment) -> tuple[DataTrack, ...] | None:
        """The tracks to ask for, None when there is no complete offer."""

    def discard(self, publication: PublicationView, reason: str, detail: str) -> None:
        """The publication contradicts itself."""


class Restore:
    """The wanted segments of one publication, and what there is of them."""

    def __init__(self, owner: Owner, publication: PublicationView, wanted_blocks: int) -> None:
        self.owner = owner
        self.publication = publication
        self.assembly = Assembly(owner.request.block_tokens)
        self.supply = Supply(owner, self, publication)
        self.octets = 0
        self.last_progress = owner.now
        self._wanted_blocks = wanted_blocks
        self._waiting: set[int] = set()
        self._unusable: set[int] = set()
        self._announced: set[tuple[int, int]] = set()
        self._complete: set[DataTrack] = set()
        self._unlisted: dict[DataTrack, set[Location]] = {}
        self._ended: dict[DataTrack, set[str]] = {}

    @property
    def now(self) -> float:
        """The time."""
        return self.owner.now

    @property
    def request(self) -> ConsumeRequest:
        """What the consumer was asked for."""
        return self.owner.request

    # The manifest

    def manifest_changed(self) -> None:
        """A version of one of the publications was verified: open, extend, compare."""
        for segment in self.publication.log.usable_segments(vouched=self.publication.vouched):
            if segment.first_block >= self._wanted_blocks:
                break
            part = self.assembly.segments.get(segment.segment)
            if part is None:
                if not self._open(segment):
                    break
            else:
                part.segment = segment
                self._extend(part)
        self._compare_held()
        self.owner.check()

    def _open(self, segment: Segment) -> bool:
        """Start a segment's retrieval; False when its tracks are no use to us."""
        tracks = self.owner.select(segment)
        if tracks is None:
            if segment.segment not in self._unusable:
                self._unusable.add(segment.segment)
                self._emit("segment-unusable", segment=segment.segment, reason="no-complete-offer")
            return False
        if self.request.mode is Mode.COMPLETED and not segment.complete:
            self._waiting.add(segment.segment)
            return False
        self._waiting.discard(segment.segment)
        blocks = min(segment.blocks, self._wanted_blocks - segment.first_block)
        part = self.assembly.open(segment, tracks, self.request.wanted_layers, blocks)
        for publication in self.supply.publications:
            part.admit(publication.id)
        self._emit(
            "segment",
            segment=segment.segment,
            first_block=segment.first_block,
            blocks=blocks,
            tracks=[str(track) for track in tracks],
        )
        for track in tracks:
            self._unlisted[track] = set()
            self._ended[track] = set()
        self._extend(part)
        for track in tracks:
            self.supply.begin(part, track)
        return True

    def _extend(self, part: SegmentAssembly) -> None:
        """What a manifest lists exists, so it can be asked for."""
        for entry in self._entries(part):
            for track in part.tracks:
                groups = len((entry.object_digests or {}).get(track, ()))
                if entry.complete:
                    self.supply.advance(track, EVERYTHING)
                elif groups:
                    self.supply.advance(track, Location(groups - 1, entry.blocks))
        for track in part.tracks:
            self._check_complete(part, track)

    def _entries(self, part: SegmentAssembly) -> list[Segment]:
        """The segment as each of the combined publications describes it."""
        found = [self._entry(view, part) for view in self.supply.publications]
        return [entry for entry in found if entry is not None]

    @staticmethod
    def _entry(view: PublicationView, part: SegmentAssembly) -> Segment | None:
        return view.log.current.segment(part.segment.segment) if view.log.current else None

    def admit(self, other: PublicationView) -> bool:
        """Let a second publication fill what is missing; the mixing rule has been applied."""
        for part in self.assembly.segments.values():
            twin = self._entry(other, part)
            if (
                twin is None
                or not same_content(twin, part.segment)
                or not set(part.tracks) <= set(twin.tracks)
            ):
                return False
        for part in self.assembly.segments.values():
            part.admit(other.id)
        self.supply.publications.append(other)
        self._emit("combining", with_publication=other.id.hex())
        self.supply.retry()
        return True

    def forget(self, publication: PublicationView) -> None:
        """A combined publication was discarded: nothing of it stays."""
        self.supply.publications.remove(publication)
        for part in self.assembly.segments.values():
            part.publications.discard(publication.id)
            for track in part.tracks:
                gone = [
                    at
                    for at, entry in part.held(track).items()
                    if entry.publication == publication.id
                ]
                for location in gone:
                    part.drop(track, location)
                self.supply.lost(self.supply.mains[track], gone, "publication.discarded")

    # Objects

    def receive(self, carrier: Carrier, item: Object, via: Via) -> None:
        """One Normal Object: checked, compared, counted."""
        part, track, location = carrier.part, carrier.track, item.location
        self.octets += len(item.payload)
        repeated = location in carrier.delivered
        carrier.delivered.add(location)
        if not part.wants(track, location):
            self._excess(carrier, item, via)
            return
        self.supply.advance(track, location)
        held = part.get(track, location)
        if held is not None and held.payload == item.payload:
            if repeated:
                self._object("object-duplicate", carrier, item, via, reason="object.duplicate")
            return
        defects = self.owner.verify_object(self._described(carrier), track, item)
        if held is not None and (repeated or not defects):
            self._conflict(carrier, item, via, held.publication)
            return
        if defects:
            self._object("object-discarded", carrier, item, via, **defect_details(defects))
            if held is None:
                self.supply.lost(carrier, [location], reason_of(defects[0]))
            return
        self._accept(carrier, item, via)

    def _accept(self, carrier: Carrier, item: Object, via: Via) -> None:
        part, track, location = carrier.part, carrier.track, item.location
        listed = self._described(carrier).digest(track, *location)
        verified = listed is not None or not self.request.authentic
        publication = carrier.route.publication.id
        arrival = part.add(track, location, item.payload, publication, verified=verified)
        if arrival is Arrival.FOREIGN:
            self._object("object-discarded", carrier, item, via, reason="mixing.not-deterministic")
            return
        if listed is None:
            self._unlisted[track].add(location)
        self.last_progress = self.now
        self.supply.arrived(track, location)
        name = "object-accepted" if verified else "object-held"
        self._object(name, carrier, item, via)
        if verified:
            self._usable(part, location.group)
        self._check_complete(part, track)
        if part.whole:
            self.owner.check()

    def _described(self, carrier: Carrier) -> Segment:
        """The segment as the publication that sends it describes it."""
        return self._entry(carrier.route.publication, carrier.part) or carrier.part.segment

    def _excess(self, carrier: Carrier, item: Object, via: Via) -> None:
        group, block = item.location
        if group >= self.request.layer_count or block >= carrier.part.segment.blocks:
            self._object("object-discarded", carrier, item, via, reason="object.out-of-range")
        else:
            self._object("object-excess", carrier, item, via)

    def _conflict(self, carrier: Carrier, item: Object, via: Via, holder: bytes) -> None:
        """Two right payloads for one Location."""
        if holder != carrier.route.publication.id:
            self._object("object-discarded", carrier, item, via, reason="mixing.not-deterministic")
            return
        self._object("object-discarded", carrier, item, via, reason="object.conflict")
        detail = f"two payloads for {carrier.track} {tuple(item.location)}"
        self.owner.discard(carrier.route.publication, "object.conflict", detail)

    def _compare_held(self) -> None:
        """Objects that came before their digest was listed (KVCS-10-5)."""
        for part in self.assembly.segments.values():
            for track in part.tracks:
                for location in sorted(self._unlisted[track]):
                    self._compare(part, track, location)

    def _compare(self, part: SegmentAssembly, track: DataTrack, location: Location) -> None:
        held = part.get(track, location)
        if held is None:
            self._unlisted[track].discard(location)
            return
        entry = next(
            (
                found
                for view in self.supply.publications
                if view.id == held.publication and (found := self._entry(view, part)) is not None
            ),
            part.segment,
        )
        if entry.digest(track, *location) is None:
            return
        self._unlisted[track].discard(location)
        defects = listed_digest(entry, track, location, held.payload)
        details = place(track, location, held.publication, len(held.payload))
        if defects:
            part.drop(track, location)
            self._announced.discard((part.segment.segment, location.group))
            reason = reason_of(defects[0])
            self.owner.emit("object-discarded", reason=reason, **details)
            main = self.supply.mains[track]
            self.supply.lost(main, [location], reason)
        elif not held.verified:
            part.confirm(track, location)
            self.last_progress = self.now
            self.owner.emit("object-accepted", **details)
            self._usable(part, location.group)
            self._check_complete(part, track)

    def _usable(self, part: SegmentAssembly, layer: int) -> None:
        spot = (part.segment.segment, layer)
        if part.usable(layer) and spot not in self._announced:
            self._announced.add(spot)
            self._emit("layer-usable", segment=spot[0], layer=layer, blocks=part.blocks)

    # Marks and ends

    def marked(self, carrier: Carrier, item: Object) -> None:
        """End of Group and End of Track (readings A2: {L, 0}, or {L-1, n} in its place)."""
        part, location = carrier.part, item.location
        layers, blocks = self.request.layer_count, part.segment.blocks
        if item.status is ObjectStatus.END_OF_GROUP:
            if location.object != blocks:
                self._misplaced(carrier, item)
            self.supply.advance(carrier.track, location)
            return
        if location not in (Location(layers, 0), Location(layers - 1, blocks)):
            self._misplaced(carrier, item)
        self._ended[carrier.track].add("end-of-track")
        self.supply.advance(carrier.track, EVERYTHING)
        self._check_complete(part, carrier.track)

    def _misplaced(self, carrier: Carrier, item: Object) -> None:
        mark, location = item.status.name.lower().replace("_", "-"), list(item.location)
        self._emit("mark-misplaced", track=str(carrier.track), mark=mark, location=location)

    def carrier_progress(self, carrier: Carrier) -> None:
        """A fill ended, or the subscription."""
        if isinstance(carrier, LiveCarrier):
            self._ended[carrier.track] |= carrier.ended
            if carrier.ended:
                self.supply.advance(carrier.track, EVERYTHING)
            elif carrier.largest is not None:
                self.supply.advance(carrier.track, carrier.largest)
        self._check_complete(carrier.part, carrier.track)

    def lost(self, carrier: Carrier, locations: Iterable[Location], reason: str) -> None:
        """Handed on: the supply decides."""
        missing = list(locations)
        if missing:
            self._emit(
                "objects-lost",
                track=str(carrier.track),
                source=carrier.route.source.url,
                reason=reason,
                first=list(missing[0]),
                objects=len(missing),
            )
            self.supply.lost(carrier, missing, reason)

    def carrier_over(self, carrier: Carrier, reason: str, error: RequestError | None) -> None:
        """The supply decides what comes next; a FETCH that gave everything ends its track."""
        self.supply.carrier_over(carrier, reason, error)
        self._check_complete(carrier.part, carrier.track)

    def malformed(self, carrier: Carrier, reason: str) -> None:
        """The session found two Objects at one Location, or an Object behind an end."""
        self.owner.discard(carrier.route.publication, "object.conflict", reason)

    def _check_complete(self, part: SegmentAssembly, track: DataTrack) -> None:
        """KVCS-7.2-7: (a), (b) or (c), and no hole.

        Manifests list no Groups: those of a complete segment are its layers (reading A17).
        """
        main = self.supply.mains.get(track)
        if track in self._complete or main is None or not part.arrived(track):
            return
        by = set(self._ended[track])
        if isinstance(main, LiveCarrier):
            if main.filled and any(entry.complete for entry in self._entries(part)):
                by.add("manifest")
        elif main.over:
            by.add("fetch")
        if by:
            self._complete.add(track)
            self._emit("track-complete", track=str(track), by=sorted(by))
            self.owner.check()

    # What the consumer asks

    @property
    def whole(self) -> bool:
        """Whether everything known to be wanted is verified."""
        parts = self.assembly.segments.values()
        return bool(parts) and not self._waiting and all(part.whole for part in parts)

    @property
    def covers_all(self) -> bool:
        """Whether no further segment could add anything."""
        return self.assembly.reused_blocks >= self._wanted_blocks

    @property
    def tracks_complete(self) -> bool:
        """Whether each track was seen to its end; partial retrievals have none to wait for."""
        for part in self.assembly.segments.values():
            partial = (
                part.blocks < part.segment.blocks or len(part.layers) < self.request.layer_count
            )
            if not partial and not self._complete.issuperset(part.tracks):
                return False
        return True

    @property
    def waits_for_manifest(self) -> bool:
        """Whether a further version may bring something to use."""
        held = any(
            not entry.verified
            for part in self.assembly.segments.values()
            for track in part.tracks
            for entry in part.held(track).values()
        )
        return held or bool(self._waiting) or not (self.assembly.segments or self._unusable)

    @property
    def waits_for_completion(self) -> bool:
        """Whether a segment is still in production that is wanted only when it is complete."""
        return bool(self._waiting)

    def close(self) -> None:
        """Nothing more is wanted."""
        self.supply.close()

    # Reports

    def _emit(self, event: str, **details: Any) -> None:
        self.owner.emit(event, publication=self.publication.id.hex(), **details)

    def _object(self, event: str, carrier: Carrier, item: Object, via: Via, **details: Any) -> None:
        self.owner.emit(event, **object_details(carrier, item, via), **details)
