"""Consumers that take Objects for what they are not, or hand out what they did not get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from kvcs.consumer import Consumer, ConsumeRequest, Result
from kvcs.consumer.assembly import SegmentAssembly
from kvcs.consumer.carriers import Carrier
from kvcs.consumer.restore import Restore
from kvcs.errors import Defect
from kvcs.manifest import Segment
from kvcs.names import Component, DataTrack
from kvcs.payload import HEADER_OCTETS, Octets
from moqt.session import SessionConfig
from moqt.session.events import Via
from moqt.wire.objects import Object

from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_USED = (Reason.USED_BAD_OBJECT,)
_TENSORS = (Reason.TENSORS,)


def _turned(payload: Octets) -> bytes:
    """The payload with each integer of its header the other way round."""
    octets = bytearray(payload)
    for name, field in FIELDS.items():
        if name != "digest":
            span = slice(field.offset, field.offset + field.length)
            octets[span] = octets[span][::-1]
    return bytes(octets)


@mutant("consumer/reads-either-byte-order", requires=("KVCS-4-1", "KVCS-4-23"), reasons=_USED)
class ReadsEitherByteOrder(Consumer):
    """A header whose integers are little-endian is read all the same."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if found and len(item.payload) > HEADER_OCTETS:
            turned = replace(item, payload=_turned(item.payload))
            return super().verify_object(segment, track, turned)
        return found


@mutant("consumer/takes-cut-headers", requires=("KVCS-4-21", "KVCS-4-23"), reasons=_USED)
class TakesCutHeaders(Consumer):
    """A payload shorter than the header is taken for an Object without Data."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        return [defect for defect in found if defect.name != "header-truncated"]


class _HandingOut(Consumer):
    """A consumer whose results are of another class."""

    result_class: type[Result] = Result

    @property
    def result(self) -> Result | None:
        best = self._best()
        return None if best is None else self.result_class(best)


class _Swapped(Result):
    def _sections(self, part: SegmentAssembly, layer: int, index: int) -> tuple[Octets, Octets]:
        k, v = super()._sections(part, layer, index)
        return v, k


class _SwappedPair(_Swapped):
    def _sections(self, part: SegmentAssembly, layer: int, index: int) -> tuple[Octets, Octets]:
        k, v = super()._sections(part, layer, index)
        joint = any(track.component is Component.KV for track in part.tracks)
        return (v, k) if joint else (k, v)


class _SwappedJoint(_Swapped):
    def _sections(self, part: SegmentAssembly, layer: int, index: int) -> tuple[Octets, Octets]:
        k, v = super()._sections(part, layer, index)
        joint = any(track.component is Component.KV for track in part.tracks)
        return (k, v) if joint else (v, k)


@mutant("consumer/takes-k-for-v", requires=("KVCS-4-15", "KVCS-4-17"), reasons=_TENSORS)
class TakesKForV(_HandingOut):
    """The sections of the "k" and "v" tracks are handed out in each other's place."""

    result_class = _SwappedPair


@mutant("consumer/splits-joint-data-v-first", requires=("KVCS-4-16", "KVCS-4-17"), reasons=_TENSORS)
class SplitsJointDataVFirst(_HandingOut):
    """Data of a "kv" Object is taken for the V section followed by the K section."""

    result_class = _SwappedJoint


class _Shifted(Result):
    def _decode(self, track: DataTrack, data: Octets) -> Octets:
        octets = bytes(super()._decode(track, data))
        return octets[-4:] + octets[:-4]


@mutant(
    "consumer/takes-data-from-octet-64",
    requires=("KVCS-4-15", "KVCS-4-16", "KVCS-4-17"),
    reasons=_TENSORS,
)
class TakesDataFromOctet64(_HandingOut):
    """The section begins four octets before Data does."""

    result_class = _Shifted


@mutant(
    "consumer/forgets-first-block",
    requires=("KVCS-3.4-2",),
    reasons=(Reason.WRONG_REUSE, Reason.DROPPED_GOOD_OBJECT),
)
class ForgetsFirstBlock(Consumer):
    """The Object ID is taken for the absolute block index in every segment."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        return super().verify_object(replace(segment, first_block=0), track, item)


class Remembering(Consumer):
    """A consumer that keeps something from one restore of the process to the next."""

    _kept: ClassVar[WeakKeyDictionary[Any, set[Any]]] = WeakKeyDictionary()

    def __init__(
        self, request: ConsumeRequest, report: Any = None, config: SessionConfig | None = None
    ) -> None:
        super().__init__(request, report, config)
        self.process = getattr(config.trace, "__self__", self) if config else self
        self.kept = self._kept.setdefault(self.process, set())


@mutant("consumer/verifies-once", requires=("KVCS-4-22", "KVCS-4-23", "KVCS-7.4-1"), reasons=_USED)
class VerifiesOnce(Remembering):
    """What was verified once is not verified when it is read again."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        place = (segment.block_keys_sha256, track, item.location)
        if place in self.kept:
            return []
        found = super().verify_object(segment, track, item)
        if not found:
            self.kept.add(place)
        return found


@mutant(
    "consumer/stays-poisoned",
    requires=("KVCS-4-23",),
    reasons=(Reason.WRONG_REUSE, Reason.DROPPED_GOOD_OBJECT),
)
class StaysPoisoned(Remembering):
    """A place at which an Object was bad stays bad in every later restore."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        place = (track, item.location)
        if found:
            self.kept.add(place)
        elif place in self.kept and segment.complete:
            return [Defect("digest-mismatch", "KVCS-4-22", "it was bad before", "Data")]
        return found


class _Telling(Consumer):
    """A consumer that reports otherwise than it does."""

    def emit(self, event: str, **details: Any) -> None:
        for name, more in self.told(event, details):
            super().emit(name, **more)

    def told(self, event: str, details: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The reports that stand for this one."""
        return [(event, details)]


class Watching(_Telling):
    """A consumer that remembers what it reported of each layer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.bad: set[int] = set()
        self.usable: set[int] = set()
        self.keys_of: dict[int, int] = {}

    def told(self, event: str, details: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        if event == "object-discarded":
            self.bad.add(details["layer"])
        elif event == "layer-usable":
            self.usable.add(details["layer"])
        elif event == "object-accepted" and details["track"].startswith("k."):
            self.keys_of[details["layer"]] = self.keys_of.get(details["layer"], 0) + 1
        return [(event, details)]


@mutant("consumer/calls-layer-usable-with-k", requires=("KVCS-7.4-2",), reasons=_USED)
class CallsLayerUsableWithK(Watching):
    """A layer of which all keys came is called usable in the end, though values did not come."""

    def told(self, event: str, details: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        told = super().told(event, details)
        if event == "reused-tokens" and details["publication"] is not None:
            for layer, blocks in self.keys_of.items():
                if blocks == len(self.keys) and layer not in self.usable | self.bad:
                    publication = details["publication"]
                    more = {"segment": 0, "layer": layer, "blocks": blocks}
                    told.insert(0, ("layer-usable", {"publication": publication, **more}))
        return told


@mutant(
    "consumer/counts-all-tokens",
    requires=("KVCS-4-23",),
    reasons=(Reason.WRONG_REUSE,),
)
class CountsAllTokens(Watching):
    """Blocks of which an Object was discarded are reported as reused."""

    def told(self, event: str, details: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        if event == "reused-tokens" and details["publication"] is not None and self.bad:
            details = {**details, "tokens": details["prompt_tokens"]}
        return super().told(event, details)


@mutant("consumer/counts-partial-block", requires=("KVCS-2-1",), reasons=(Reason.WRONG_REUSE,))
class CountsPartialBlock(_Telling):
    """The tokens behind the last complete block are counted with it."""

    def told(self, event: str, details: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        whole = len(self.keys) * self.request.block_tokens
        partial = len(self.request.tokens) > whole
        if event == "reused-tokens" and partial and details["tokens"] == whole:
            details = {**details, "tokens": details["prompt_tokens"]}
        return [(event, details)]


class _Counting(Restore):
    def receive(self, carrier: Carrier, item: Object, via: Via) -> None:
        held = carrier.part.get(carrier.track, item.location)
        if held is not None and held.payload == item.payload:
            self._object("object-accepted", carrier, item, via)
        super().receive(carrier, item, via)


@mutant("consumer/counts-repeated", requires=("KVCS-7.2-3",), reasons=(Reason.COUNTED_TWICE,))
class CountsRepeated(Consumer):
    """An Object that comes a second time is accepted a second time."""

    def check(self) -> None:
        if self._restore is not None:
            self._restore.__class__ = _Counting
        super().check()
