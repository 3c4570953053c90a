"""The verified tensors of a restore, as sections (KVCS 4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moqt.wire.names import Location

from kvcs.consumer.assembly import SegmentAssembly
from kvcs.consumer.request import ConsumeRequest
from kvcs.consumer.restore import Restore
from kvcs.errors import InputError
from kvcs.identity import Sections
from kvcs.names import Component, DataTrack
from kvcs.payload import Octets, data_of


class Result:
    """What can be used; it grows while a restore is under way."""

    def __init__(self, restore: Restore) -> None:
        self._restore = restore
        request = restore.request
        self._profile = request.profile
        self._sizes: Sections = request.profile.sections(request.descriptor)

    @property
    def publication(self) -> bytes:
        """The Publication ID of the restore."""
        return self._restore.publication.id

    @property
    def reused_blocks(self) -> int:
        """Leading blocks that are verified in all wanted layers and all selected tracks."""
        return self._restore.assembly.reused_blocks

    @property
    def reused_tokens(self) -> int:
        """Tokens of those blocks."""
        return self._restore.assembly.reused_tokens

    @property
    def layers(self) -> range:
        """The wanted layers."""
        return self._restore.request.wanted_layers

    def blocks(self, layer: int) -> Iterator[int]:
        """Absolute indices of the blocks of a layer of which every selected track is verified."""
        for part in self._restore.assembly.segments.values():
            for block in range(part.blocks):
                if all(self._verified(part, track, layer, block) for track in part.tracks):
                    yield part.segment.first_block + block

    def sections(self, layer: int, block: int) -> tuple[Octets, Octets]:
        """The raw K and V sections of one block, by absolute index, decoded.

        Raises InputError when the block is not verified in that layer.
        """
        for part in self._restore.assembly.segments.values():
            index = block - part.segment.first_block
            if 0 <= index < part.blocks:
                return self._sections(part, layer, index)
        raise InputError(f"block {block} is in no segment that was retrieved")

    def _sections(self, part: SegmentAssembly, layer: int, index: int) -> tuple[Octets, Octets]:
        found: dict[Component, Octets] = {}
        for track in part.tracks:
            held = part.get(track, Location(layer, index))
            if held is None or not held.verified:
                raise InputError(f"{track} has no verified Object {layer}/{index}")
            found[track.component] = self._decode(track, data_of(held.payload))
        if Component.KV in found:
            both = memoryview(found[Component.KV])
            return both[: self._sizes.k_octets], both[self._sizes.k_octets :]
        return found[Component.K], found[Component.V]

    def _decode(self, track: DataTrack, data: Octets) -> Octets:
        sizes = {Component.K: self._sizes.k_octets, Component.V: self._sizes.v_octets}
        sizes[Component.KV] = sum(self._sizes)
        return self._profile.decode(track.codec, data, sizes[track.component])

    @staticmethod
    def _verified(part: SegmentAssembly, track: DataTrack, layer: int, block: int) -> bool:
        held = part.get(track, Location(layer, block))
        return held is not None and held.verified


def conclusion(
    request: ConsumeRequest, blocks: int, best: Restore | None, detail: str
) -> list[tuple[str, dict[str, Any]]]:
    """The last events of a restore: what is reused, what is to be computed, and `done`.

    `blocks` is how many complete blocks the prompt has. `recompute` names a range of tokens, and
    comes only when fewer blocks than wanted are reused; the tail under one block is always
    computed, and `done` says from where.
    """
    reused = 0 if best is None else best.assembly.reused_tokens
    wanted = min(blocks, request.blocks or blocks) * request.block_tokens
    prompt = len(request.tokens)
    publication = None if best is None else best.publication.id.hex()
    events: list[tuple[str, dict[str, Any]]] = [
        (
            "reused-tokens",
            {"tokens": reused, "prompt_tokens": prompt, "publication": publication},
        )
    ]
    if reused < wanted:
        events.append(("recompute", {"first_token": reused, "end_token": prompt}))
    events.append(
        (
            "done",
            {
                "outcome": "complete" if reused >= wanted else "recompute",
                "detail": detail,
                "reused_tokens": reused,
                "compute_from": reused,
                "prompt_tokens": prompt,
                "octets": 0 if best is None else best.octets,
            },
        )
    )
    return events
