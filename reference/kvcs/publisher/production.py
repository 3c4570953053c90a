"""The order of production of one segment, as a cursor that refuses everything else (KVCS 3.3).

Layers ascend, blocks ascend within a layer, every Location is produced once: that is what makes
Group IDs grow with time and Objects immutable (KVCS-3.3-2, KVCS-3.4-4, KVCS-6-7).
"""

from __future__ import annotations

from collections.abc import Sequence

from kvcs.errors import KvcsError
from kvcs.manifest import Groups, Segment, block_keys_sha256
from kvcs.names import DataTrack


class ProductionError(KvcsError):
    """The caller would break the order or the immutability of a publication; nothing was sent."""


class SegmentProduction:
    """Where the production of one segment stands.

    `layer` and `block` are the next to come; the segment is produced when `layer` reaches L.
    """

    def __init__(
        self,
        number: int,
        first_block: int,
        keys: Sequence[bytes],
        tracks: Sequence[DataTrack],
        layers: int,
    ) -> None:
        self.number = number
        self.first_block = first_block
        self.blocks = len(keys)
        self.tracks = tuple(tracks)
        self.layers = layers
        self.layer = 0
        self.block = 0
        self.complete = False
        self._keys_sha256 = block_keys_sha256(keys)
        self._done: dict[DataTrack, list[tuple[bytes, ...]]] = {track: [] for track in tracks}
        self._open: dict[DataTrack, list[bytes]] = {track: [] for track in tracks}

    def expect(self, layer: int, block: int) -> None:
        """Check that {layer, block} is the next to produce; ProductionError says what is."""
        if self.complete or self.layer == self.layers:
            raise ProductionError(f"segment {self.number} has all its {self.layers} layers")
        if (layer, block) == (self.layer, self.block):
            return
        if (layer, block) < (self.layer, self.block):
            raise ProductionError(
                f"layer {layer} block {block} of segment {self.number} is published already; "
                "Objects never change: stop and start a publication with a new Publication ID"
            )
        raise ProductionError(
            f"segment {self.number} continues with layer {self.layer} block {self.block}, "
            f"not with layer {layer} block {block}"
        )

    def produced(self, digests: Sequence[bytes]) -> bool:
        """The expected block went out, with one Data Digest per track; True: its layer is full."""
        for track, digest in zip(self.tracks, digests, strict=True):
            self._open[track].append(digest)
        self.block += 1
        if self.block < self.blocks:
            return False
        for track in self.tracks:
            self._done[track].append(tuple(self._open[track]))
            self._open[track] = []
        self.layer, self.block = self.layer + 1, 0
        return True

    def finish(self) -> None:
        """The segment becomes complete; ProductionError while layers are outstanding."""
        if self.complete:
            raise ProductionError(f"segment {self.number} is complete already")
        if self.layer < self.layers:
            raise ProductionError(
                f"segment {self.number} is not complete: {self.layer} of {self.layers} layers"
            )
        self.complete = True

    def entry(self, *, digests: bool) -> Segment:
        """The segment's entry in the manifest as of now (KVCS-5-6, KVCS-5-9)."""
        listed: dict[DataTrack, Groups] | None = None
        if digests:
            listed = {track: tuple(groups) for track, groups in self._done.items()}
        return Segment(
            segment=self.number,
            first_block=self.first_block,
            blocks=self.blocks,
            block_keys_sha256=self._keys_sha256,
            tracks=self.tracks,
            complete=self.complete,
            object_digests=listed,
        )
