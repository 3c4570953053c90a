"""What has arrived of a cache and what of it is verified, Location by Location (KVCS 7.4).

One `SegmentAssembly` per segment keeps the Objects of the selected tracks; an `Assembly` counts
over all of them. Nothing here knows how an Object came or whether its payload is right: the caller
says both. Three rules are kept here because everything else relies on them: an Object counts once
(KVCS-7.2-3), a segment takes Objects of one publication unless another was admitted (KVCS-7.4-3),
and Objects outside what is wanted are never counted (KVCS-7.3-5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from moqt.wire.names import Location

from kvcs.manifest import Manifest, Segment
from kvcs.names import DataTrack
from kvcs.payload import Octets


class Arrival(Enum):
    """What an Object is to the assembly."""

    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    EXCESS = "excess"
    FOREIGN = "foreign"


@dataclass(slots=True)
class Held:
    """One Object's payload, the Publication ID it came from, and whether it may be used."""

    payload: Octets
    publication: bytes
    verified: bool


def may_combine(first: Manifest | None, second: Manifest | None) -> bool:
    """Whether Objects of two publications may stand in one segment (KVCS-7.4-3).

    Both manifests must have been received and verified, and both must state that any publication
    of the same content is bit-identical; their descriptors must then be the same too.
    """
    if first is None or second is None:
        return False
    return first.deterministic and second.deterministic and first.compat == second.compat


def same_content(first: Segment, second: Segment) -> bool:
    """Whether two publications mean the same blocks by these segment entries (KVCS-5-7)."""
    return (first.first_block, first.blocks, first.block_keys_sha256) == (
        second.first_block,
        second.blocks,
        second.block_keys_sha256,
    )


class SegmentAssembly:
    """The wanted Objects of one segment.

    `layers` are the wanted Group IDs, `blocks` how many leading Objects of each Group are wanted;
    both are the same for each of `tracks`.
    """

    def __init__(
        self, segment: Segment, tracks: Sequence[DataTrack], layers: range, blocks: int
    ) -> None:
        self.segment = segment
        self.tracks = tuple(tracks)
        self.layers = layers
        self.blocks = blocks
        self.publications: set[bytes] = set()
        self._held: dict[DataTrack, dict[Location, Held]] = {track: {} for track in tracks}
        self._verified_of_layer = dict.fromkeys(layers, 0)
        self._verified_of_block = [0] * blocks
        self._verified = 0

    def wants(self, track: DataTrack, location: Location) -> bool:
        """Whether the Object at `location` of `track` is among the wanted ones."""
        return (
            track in self._held and location.group in self.layers and location.object < self.blocks
        )

    def admit(self, publication: bytes) -> None:
        """Let Objects of a publication in; the caller has applied the mixing rule."""
        self.publications.add(publication)

    def add(
        self,
        track: DataTrack,
        location: Location,
        payload: Octets,
        publication: bytes,
        *,
        verified: bool,
    ) -> Arrival:
        """Keep one Object; anything but NEW changes nothing.

        `verified` False keeps it aside until `confirm`: it is not missing, and not usable.
        """
        if not self.wants(track, location):
            return Arrival.EXCESS
        if publication not in self.publications:
            return Arrival.FOREIGN
        present = self._held[track].get(location)
        if present is not None:
            return Arrival.DUPLICATE if present.payload == payload else Arrival.CONFLICT
        self._held[track][location] = Held(payload, publication, verified)
        if verified:
            self._count(location, 1)
        return Arrival.NEW

    def confirm(self, track: DataTrack, location: Location) -> None:
        """The Object kept aside is verified now."""
        held = self._held[track][location]
        if not held.verified:
            held.verified = True
            self._count(location, 1)

    def drop(self, track: DataTrack, location: Location) -> None:
        """The Object turned out to be wrong: it is missing again."""
        held = self._held[track].pop(location, None)
        if held is not None and held.verified:
            self._count(location, -1)

    def _count(self, location: Location, step: int) -> None:
        self._verified_of_layer[location.group] += step
        self._verified_of_block[location.object] += step
        self._verified += step

    def get(self, track: DataTrack, location: Location) -> Held | None:
        """What is kept at a Location."""
        return self._held[track].get(location)

    def held(self, track: DataTrack) -> Mapping[Location, Held]:
        """Everything kept of one track, verified or not."""
        return self._held[track]

    def arrived(self, track: DataTrack) -> bool:
        """Whether every wanted Object of one track is kept, verified or not."""
        return len(self._held[track]) == len(self.layers) * self.blocks

    def missing(self, track: DataTrack, groups: range | None = None) -> Iterator[Location]:
        """The wanted Locations of one track that have not arrived, ascending."""
        present = self._held[track]
        for group in self.layers if groups is None else groups:
            for block in range(self.blocks):
                location = Location(group, block)
                if location not in present:
                    yield location

    def usable(self, layer: int) -> bool:
        """Whether every wanted Object of a layer is verified in all tracks (KVCS-7.4-2)."""
        return self._verified_of_layer[layer] == self.blocks * len(self.tracks)

    @property
    def whole(self) -> bool:
        """Whether every wanted layer is usable."""
        return self._verified == len(self.layers) * self.blocks * len(self.tracks)

    @property
    def leading_blocks(self) -> int:
        """Leading blocks that are verified in all wanted layers and all tracks."""
        full = len(self.layers) * len(self.tracks)
        for block, count in enumerate(self._verified_of_block):
            if count != full:
                return block
        return self.blocks


class Assembly:
    """All segments of one restore, by segment number."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.segments: dict[int, SegmentAssembly] = {}

    def open(
        self, segment: Segment, tracks: Sequence[DataTrack], layers: range, blocks: int
    ) -> SegmentAssembly:
        """A new, empty assembly for a segment; what there was of it is forgotten."""
        opened = SegmentAssembly(segment, tracks, layers, blocks)
        self.segments[segment.segment] = opened
        return opened

    @property
    def reused_blocks(self) -> int:
        """Leading blocks of the context that are verified, over the segments in order."""
        reused = 0
        for number in sorted(self.segments):
            part = self.segments[number]
            if part.segment.first_block != reused:
                break
            reused += part.leading_blocks
            if part.leading_blocks < part.segment.blocks:
                break
        return reused

    @property
    def reused_tokens(self) -> int:
        """What an inference engine need not compute again."""
        return self.reused_blocks * self.block_tokens
