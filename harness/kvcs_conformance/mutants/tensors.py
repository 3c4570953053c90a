"""Publishers that carry other sections than those that were computed, or carry them late."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kvcs.names import Component, DataTrack, TrackName
from kvcs.payload import Octets
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

if TYPE_CHECKING:
    from kvcs.publisher import PublicationSpec, Publisher

_TENSORS = (Reason.TENSORS,)


class _Sections(Publication, ABC):
    def put_layer(
        self, segment: int, layer: int, sections: Mapping[Component, Sequence[Octets]]
    ) -> None:
        k, v = ([bytes(one) for one in sections[kind]] for kind in (Component.K, Component.V))
        k, v = self.altered(k, v)
        super().put_layer(segment, layer, {Component.K: k, Component.V: v})

    @abstractmethod
    def altered(self, k: list[bytes], v: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """The sections of all blocks of a layer that go out instead."""


@mutant(
    "publisher/swaps-octets-of-elements",
    requires=("KVCS-4-15", "KVCS-4-16", "KVCS-4-17"),
    reasons=_TENSORS,
)
class SwapsOctetsOfElements(_Sections):
    """Elements go out with their octets in the other order."""

    def altered(self, k: list[bytes], v: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        def swapped(section: bytes) -> bytes:
            octets = bytearray(section)
            octets[::2], octets[1::2] = section[1::2], section[::2]
            return bytes(octets)

        return [swapped(one) for one in k], [swapped(one) for one in v]


@mutant(
    "publisher/heads-before-tokens",
    requires=("KVCS-4-15", "KVCS-4-16", "KVCS-4-17"),
    reasons=_TENSORS,
)
class HeadsBeforeTokens(_Sections):
    """Sections are laid out head by head although the descriptor says token by token."""

    def altered(self, k: list[bytes], v: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        heads, tokens = int(self.spec.descriptor["kv_heads"]), self.spec.block_tokens

        def turned(section: bytes) -> bytes:
            size = len(section) // (heads * tokens)
            rows = [section[at : at + size] for at in range(0, len(section), size)]
            return b"".join(rows[t * heads + h] for h in range(heads) for t in range(tokens))

        return [turned(one) for one in k], [turned(one) for one in v]


@mutant(
    "publisher/pairs-v-of-next-block",
    requires=("KVCS-4-15", "KVCS-4-16", "KVCS-4-17"),
    reasons=_TENSORS,
)
class PairsVOfNextBlock(_Sections):
    """The v Object of a block carries the V section of the next one."""

    def altered(self, k: list[bytes], v: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        return k, [*v[1:], *v[:1]]


@mutant(
    "publisher/codes-deltas",
    requires=("KVCS-3.3-4", "KVCS-4-15", "KVCS-4-16", "KVCS-4-17"),
    reasons=_TENSORS,
)
class CodesDeltas(_Sections):
    """A block's Data is its difference to the block before, so that none stands by itself."""

    def altered(self, k: list[bytes], v: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        def deltas(sections: list[bytes]) -> list[bytes]:
            before = bytes(len(sections[0]))
            found = []
            for section in sections:
                found.append(bytes(a ^ b for a, b in zip(section, before, strict=True)))
                before = section
            return found

        return deltas(k), deltas(v)


@mutant(
    "publisher/joins-v-before-k",
    requires=("KVCS-4-16", "KVCS-4-17"),
    reasons=(Reason.TENSORS, Reason.PAYLOAD_DIGEST),
)
class JoinsVBeforeK(Publication):
    """Data of a kv Object is the V section followed by the K section."""

    def _encode(self, track: DataTrack, sections: Mapping[Component, Octets]) -> Octets:
        if track.component is Component.KV and Component.KV not in sections:
            joint = bytes(sections[Component.V]) + bytes(sections[Component.K])
            return self.spec.profile.encode(track.codec, joint)
        return super()._encode(track, sections)


@mutant(
    "publisher/sends-half-precision",
    requires=("KVCS-4-15", "KVCS-4-16", "KVCS-4-17", "KVCS-9-1", "KVCS-A-2"),
    reasons=(*_TENSORS, Reason.PAYLOAD_LENGTH, Reason.PAYLOAD_DIGEST, Reason.PAYLOAD_FIELD),
)
class SendsHalfPrecision(Publication):
    """Raw Data has one octet per element, the more significant one."""

    def _encode(self, track: DataTrack, sections: Mapping[Component, Octets]) -> Octets:
        data = super()._encode(track, sections)
        return bytes(data)[1::2] if track.codec == "raw" else data


@mutant(
    "publisher/replicates-heads",
    requires=("KVCS-4-15", "KVCS-4-16", "KVCS-4-17", "KVCS-9-1", "KVCS-A-2"),
    reasons=(*_TENSORS, Reason.PAYLOAD_LENGTH, Reason.PAYLOAD_DIGEST, Reason.PAYLOAD_FIELD),
)
class ReplicatesHeads(Publication):
    """Raw Data holds every head twice, as the tensor-parallel ranks of the producer have them."""

    def _encode(self, track: DataTrack, sections: Mapping[Component, Octets]) -> Octets:
        data = bytes(super()._encode(track, sections))
        size = 2 * int(self.spec.descriptor["head_dim"])
        heads = [data[at : at + size] for at in range(0, len(data), size)]
        return b"".join(head * 2 for head in heads) if track.codec == "raw" else data


@mutant(
    "publisher/encodes-half-of-layers",
    requires=("KVCS-3.2-4",),
    reasons=(Reason.OBJECT_MISSING,),
)
class EncodesHalfOfLayers(Publication):
    """A compressed track holds the first half of the layers; for the others there is raw."""

    def publish(self, track: TrackName, item: Object) -> None:
        late = item.location.group >= self.spec.layers // 2
        if isinstance(track, DataTrack) and track.codec != "raw" and late and item.payload:
            return
        super().publish(track, item)


@mutant("publisher/breaks-its-promise", requires=("KVCS-5-14",), reasons=(Reason.OBJECT_CHANGED,))
class BreaksItsPromise(_Sections):
    """A later publication differs in a bit, although the manifest says deterministic."""

    def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
        super().__init__(publisher, spec)
        self._noise = len(publisher.publications) % 2 if spec.deterministic else 0

    def altered(self, k: list[bytes], v: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        return [bytes([k[0][0] ^ self._noise]) + k[0][1:], *k[1:]], v


@mutant(
    "publisher/publishes-at-the-end",
    requires=("KVCS-6-6", "KVCS-5-10"),
    reasons=(Reason.ORDER_LATE, Reason.MANIFEST_VERSIONS),
)
class PublishesAtTheEnd(Publication):
    """Layers are kept until the last one is computed, and go out then."""

    def __init__(self, publisher: Publisher, spec: PublicationSpec) -> None:
        self._kept: list[tuple[int, int, Mapping[Component, Sequence[Octets]]]] = []
        super().__init__(publisher, spec)

    def put_layer(
        self, segment: int, layer: int, sections: Mapping[Component, Sequence[Octets]]
    ) -> None:
        self._kept.append((segment, layer, sections))
        if layer + 1 == self.spec.layers:
            kept, self._kept = self._kept, []
            for values in kept:
                super().put_layer(*values)


@mutant(
    "publisher/appends-pass-to-segment-0",
    requires=("KVCS-3.3-3", "KVCS-3.4-1", "KVCS-4-9"),
    reasons=(Reason.OBJECT_UNEXPECTED, Reason.ORDER_OBJECTS, Reason.PAYLOAD_FIELD),
)
class AppendsPassToSegment0(Publication):
    """A later pass goes on in the tracks of segment 0, as further Objects of its Groups."""

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and track.segment > 0:
            group, block = item.location
            if group < self.spec.layers:
                block += self.segments[track.segment].first_block
            item = replace(item, location=Location(group, block))
            track = replace(track, segment=0)
        super().publish(track, item)

    def end_group(self, part: SegmentProduction, track: DataTrack, layer: int) -> None:
        if self._is_last(part.number):
            super().end_group(part, track, layer)

    def end_track(self, track: DataTrack) -> None:
        if self._is_last(track.segment):
            super().end_track(track)

    def _is_last(self, segment: int) -> bool:
        part = self.segments[segment]
        return part.first_block + part.blocks == len(self.keys)
