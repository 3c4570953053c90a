"""One publication: its tracks, its manifest versions, its end (KVCS 3 to 6).

Every Object goes out in the call that hands over its block. The small methods under "what goes
out" are the only places that decide octets, order and marks, so that a subclass can change one of
them and leave the rest right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from moqt.wire.errors import PublishDoneCode
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, encode_properties

from kvcs.errors import ProfileError
from kvcs.manifest import Manifest, encode_manifest
from kvcs.names import MANIFEST, MANIFEST_COSE, Component, DataTrack, TrackName
from kvcs.payload import MAGIC, VERSION, Header, Octets, encode_header
from kvcs.publisher.production import ProductionError, SegmentProduction
from kvcs.publisher.spec import PublicationSpec

if TYPE_CHECKING:
    from moqt.origin import LocalTrack

    from kvcs.publisher.role import Publisher


class PublicationState(Enum):
    """RUNNING takes blocks; the others say why it takes none."""

    RUNNING = "running"
    REFUSED = "refused"
    STOPPED = "stopped"
    ENDED = "ended"


class Publication:
    """Made by `Publisher.open`; `namespace` is announced from then on (KVCS-6-1)."""

    def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
        """Raises ProductionError for a Publication ID that was used for this content before."""
        self.publisher = publisher
        self.spec = spec
        self.tokens = list(spec.tokens)
        self.keys = spec.block_keys(self.tokens)
        self.namespace = spec.namespace(self.keys)
        if self.namespace.fields in publisher.publications:
            raise ProductionError(
                f"Publication ID {spec.publication_id.hex()} was used before: "
                "each production takes a new one (KVCS 3.1)"
            )
        self.segments: dict[int, SegmentProduction] = {}
        self.version = -1
        self.state = PublicationState.RUNNING
        self._layers_since_version = 0
        self._sizes = spec.profile.sections(spec.descriptor)
        self._tracks: dict[TrackName, LocalTrack] = {}
        self._add_track(self.manifest_track)

    @property
    def manifest_track(self) -> TrackName:
        """The one manifest track there is (KVCS-5-2)."""
        return MANIFEST if self.spec.signer is None else MANIFEST_COSE

    # Production

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens to the context; their complete blocks can become segments."""
        self._check_running()
        self.tokens += tokens
        self.keys = self.spec.block_keys(self.tokens)

    def open_segment(
        self, first_block: int | None = None, blocks: int | None = None
    ) -> SegmentProduction:
        """Add the next segment, and publish the manifest that lists it (KVCS-5-15, KVCS-6-2).

        By default it starts where the one before ends, and covers the rest of the complete blocks;
        segment 0 covers what the Anchor Key says. It holds those blocks and no padding, which the
        text allows and gives no form (reading A16). Raises ProductionError for another range.
        """
        self._check_running()
        end = sum(part.blocks for part in self.segments.values())
        number = len(self.segments)
        if number == 0:
            covered = self.keys.index(self.namespace.anchor_key) + 1
        else:
            covered = len(self.keys) - end
        first_block = end if first_block is None else first_block
        blocks = covered if blocks is None else blocks
        right = blocks == covered if number == 0 else 1 <= blocks <= covered
        if first_block != end or not right:
            raise ProductionError(
                f"segment {number} starts at block {end} and covers "
                f"{'' if number == 0 else 'at most '}{covered} blocks, "
                f"not {blocks} from block {first_block}"
            )
        tracks = [DataTrack(kind, codec, number) for kind, codec in self.spec.encodings]
        part = SegmentProduction(
            number,
            first_block,
            self.keys[first_block : first_block + blocks],
            tracks,
            self.spec.layers,
        )
        self.segments[number] = part
        for track in tracks:
            self._add_track(track)
        self.publish_manifest()
        return part

    def put_layer(
        self, segment: int, layer: int, sections: Mapping[Component, Sequence[Octets]]
    ) -> None:
        """Publish the next layer: raw sections of each block, in block order.

        `sections` holds K and V, or KV (K followed by V) where there is no V section (A21).
        Raises ProductionError for a layer out of order, one published before, a wrong number of
        blocks or a section of a wrong size; what came before the wrong block is out then.
        """
        blocks = self._segment(segment).blocks
        for component, data in sections.items():
            if len(data) != blocks:
                raise ProductionError(
                    f"segment {segment} has {blocks} blocks, not the {len(data)} of {component}"
                )
        for block in range(blocks):
            self.put_block(
                segment, layer, block, {kind: sections[kind][block] for kind in sections}
            )

    def put_block(
        self, segment: int, layer: int, block: int, sections: Mapping[Component, Octets]
    ) -> None:
        """Publish the next block of the current layer, at once (KVCS-6-6)."""
        self._check_running()
        part = self._segment(segment)
        part.expect(layer, block)
        objects: list[tuple[DataTrack, Object]] = []
        digests = []
        for track in part.tracks:
            data = self._encode(track, sections)
            header = self.header_for(part, track, layer, block, data)
            digests.append(header.digest)
            payload = b"".join((encode_header(header), data))
            objects.append((track, self._object(layer, block, payload)))
        full = part.produced(digests)
        for track, item in self.order_of(objects):
            self.publish(track, item)
        if full:
            self._end_layer(part, layer)

    def complete_segment(self, segment: int) -> None:
        """End the segment's tracks, and publish the manifest that says so (KVCS-5-15)."""
        self._check_running()
        part = self._segment(segment)
        part.finish()
        for track in part.tracks:
            self.end_track(track)
        self.publish_manifest()
        self._report("segment-complete", segment=segment)

    # The end

    def stop(self, reason: str) -> None:
        """An error was found: no more of this publication (KVCS-3.4-4).

        Subscribers get PUBLISH_DONE INTERNAL_ERROR, the namespace is withdrawn, what relays have
        cached stays as it is. A corrected cache is another publication, under a new ID.
        """
        self._end(PublicationState.STOPPED, PublishDoneCode.INTERNAL_ERROR, reason)

    def end(self) -> None:
        """The retention is over: withdraw the namespace and end the manifest track (A4)."""
        self._end(PublicationState.ENDED, PublishDoneCode.TRACK_ENDED, "")

    def refuse(self, reason: str) -> None:
        """No relay takes the namespace: nothing more is published (KVCS-6-1)."""
        self._end(PublicationState.REFUSED, PublishDoneCode.UNAUTHORIZED, reason)

    def _end(self, state: PublicationState, code: PublishDoneCode, reason: str) -> None:
        if self.state is not PublicationState.RUNNING:
            return
        self.state = state
        ended = {track for part in self.segments.values() if part.complete for track in part.tracks}
        for name, track in self._tracks.items():
            if name not in ended:
                track.finish(code, reason)
        self.publisher.withdraw(self.namespace.fields)
        self._report(state.value, reason=reason)

    # What goes out

    def header_for(
        self, part: SegmentProduction, track: DataTrack, layer: int, block: int, data: Octets
    ) -> Header:
        """The payload header of one Object (KVCS 4)."""
        return Header(
            magic=MAGIC,
            version=VERSION,
            component=track.component,
            flags=0,
            layer=layer,
            block=block,
            token_start=(part.first_block + block) * self.spec.block_tokens,
            token_count=self.spec.block_tokens,
            codec=self.spec.profile.codec_by_name(track.codec),
            reserved=0,
            data_length=memoryview(data).nbytes,
            digest=sha256(data).digest(),
        )

    def priority_of(self, layer: int) -> int:
        """Publisher Priority of a Group: floor(128 g / L), 0 .. 128 (KVCS-3.4-5).

        The first Groups share priority 0 with the manifest; the manifest is written first, and
        nothing else favours it (reading A9).
        """
        return 128 * layer // self.spec.layers

    def track_properties(self, track: TrackName) -> bytes:
        """Track Properties: the retention, and never a delivery timeout (KVCS-6-3 to KVCS-6-5).

        No property 0x02 or 0x06 stands inside IMMUTABLE_PROPERTIES either, where Secure Objects
        would put its Key ID as 0x02 (reading A11).
        """
        if self.spec.max_cache_duration is None:
            return b""
        return encode_properties([(PropertyType.MAX_CACHE_DURATION, self.spec.max_cache_duration)])

    def order_of(
        self, objects: Sequence[tuple[DataTrack, Object]]
    ) -> Iterable[tuple[DataTrack, Object]]:
        """The order in which the Objects of one block go out."""
        return objects

    def publish(self, track: TrackName, item: Object) -> None:
        """Hand one Object to the track's subscribers and store."""
        self._tracks[track].publish(item)

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        """End of Group at {layer, blocks}, and the end of its only Subgroup (KVCS-3.3-7)."""
        self.publish(track, self._object(layer, part.blocks, status=ObjectStatus.END_OF_GROUP))
        self._tracks[track].end_subgroup(layer, 0)

    def end_track(self, track: DataTrack) -> None:
        """End of Track at {L, 0}, the one legal place (reading A2), then PUBLISH_DONE."""
        layers = self.spec.layers
        self.publish(track, self._object(layers, 0, status=ObjectStatus.END_OF_TRACK))
        self._tracks[track].end_subgroup(layers, 0)
        self._tracks[track].finish(PublishDoneCode.TRACK_ENDED)

    def manifest_due(self) -> bool:
        """Whether the layers completed since the last version ask for a new one (KVCS-5-10)."""
        return self._layers_since_version >= self.spec.manifest_interval

    def manifest_for(self) -> Manifest:
        """The manifest as of now (KVCS 5), with the descriptor in clear (reading A15)."""
        return Manifest(
            compat=self.spec.descriptor,
            layers=self.spec.layers,
            block_tokens=self.spec.block_tokens,
            deterministic=self.spec.deterministic,
            segments=tuple(
                part.entry(digests=self.spec.object_digests) for part in self.segments.values()
            ),
        )

    def manifest_octets(self, manifest: Manifest) -> bytes:
        """The payload of a version: JSON, or COSE_Sign1 around it."""
        text = encode_manifest(manifest)
        return text if self.spec.signer is None else self.spec.signer.sign(text)

    def publish_manifest(self) -> None:
        """The next version: Object 0 of the next Group, from Group 0 on (KVCS-5-1, reading A4)."""
        self._layers_since_version = 0
        self.version += 1
        octets = self.manifest_octets(self.manifest_for())
        self.publish(self.manifest_track, Object(Location(self.version, 0), 0, 0, octets))
        self._tracks[self.manifest_track].end_subgroup(self.version, 0)
        self._report("manifest-published", version=self.version, octets=len(octets))

    # Inside

    def _object(
        self,
        group: int,
        object_id: int,
        payload: bytes = b"",
        status: ObjectStatus = ObjectStatus.NORMAL,
    ) -> Object:
        return Object(Location(group, object_id), 0, self.priority_of(group), payload, status)

    def _encode(self, track: DataTrack, sections: Mapping[Component, Octets]) -> Octets:
        """Data of one Object from the raw sections that the caller has."""
        wanted = (
            [Component.K, Component.V] if track.component is Component.KV else [track.component]
        )
        if track.component is Component.KV and Component.KV in sections:
            wanted = [Component.KV]
        sizes = {Component.K: self._sizes.k_octets, Component.V: self._sizes.v_octets}
        sizes[Component.KV] = sum(self._sizes)
        for kind in wanted:
            if kind not in sections:
                raise ProductionError(f"{track} needs the section {kind.label}, which is missing")
            octets = memoryview(sections[kind]).nbytes
            if octets != sizes[kind]:
                raise ProductionError(
                    f"a {kind.label} section has {sizes[kind]} octets here, not {octets}"
                )
        if len(wanted) == 1:
            section = sections[wanted[0]]
        else:
            section = b"".join(sections[kind] for kind in wanted)
        try:
            return self.spec.profile.encode(track.codec, section)
        except ProfileError as error:
            raise ProductionError(f"{track}: {error.reason}") from error

    def _end_layer(self, part: SegmentProduction, layer: int) -> None:
        for track in part.tracks:
            self.end_group(part, track, layer)
        self._report("layer-published", segment=part.number, layer=layer, blocks=part.blocks)
        self._layers_since_version += 1
        if self.manifest_due():
            self.publish_manifest()

    def _segment(self, number: int) -> SegmentProduction:
        part = self.segments.get(number)
        if part is None:
            raise ProductionError(f"segment {number} is not open; there are {len(self.segments)}")
        return part

    def _add_track(self, track: TrackName) -> None:
        self._tracks[track] = self.publisher.add_track(
            FullTrackName(self.namespace.fields, track.octets),
            properties=self.track_properties(track),
            default_priority=0 if track is self.manifest_track else 128,
        )

    def _check_running(self) -> None:
        if self.state is not PublicationState.RUNNING:
            raise ProductionError(f"the publication is {self.state.value}, it takes nothing more")

    def _report(self, event: str, **details: Any) -> None:
        self.publisher.report_event(self, event, details)
