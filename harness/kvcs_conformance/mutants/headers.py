"""Publishers whose payloads have one field of the header, or their extent, wrong."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from kvcs.names import Component, DataTrack, TrackName
from kvcs.payload import Header, Octets
from kvcs.publisher.production import SegmentProduction
from kvcs.publisher.publication import Publication
from moqt.wire.objects import Object

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_FIELD = (Reason.PAYLOAD_FIELD,)
_LENGTH = (Reason.PAYLOAD_LENGTH, Reason.PAYLOAD_FIELD)


class _Header(Publication, ABC):
    def header_for(
        self, part: SegmentProduction, track: DataTrack, layer: int, block: int, data: Octets
    ) -> Header:
        return self.wrong(super().header_for(part, track, layer, block, data), part)

    @abstractmethod
    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        """The header that goes out."""


@mutant("publisher/other-magic", requires=("KVCS-4-2", "KVCS-A-2"), reasons=_FIELD)
class OtherMagic(_Header):
    """Magic is "KVO2"."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(magic=b"KVO2")


@mutant("publisher/version-zero", requires=("KVCS-4-3", "KVCS-A-2"), reasons=_FIELD)
class VersionZero(_Header):
    """Version counts from 0."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(version=0)


@mutant("publisher/component-unknown", requires=("KVCS-4-4", "KVCS-A-2"), reasons=_FIELD)
class ComponentUnknown(_Header):
    """Component is the ASCII letter of the component."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(component=header.component + 0x6A)


@mutant("publisher/component-always-k", requires=("KVCS-4-5",), reasons=_FIELD)
class ComponentAlwaysK(_Header):
    """Component is 1 on every track."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(component=Component.K)


@mutant("publisher/sets-flags", requires=("KVCS-4-6", "KVCS-A-2"), reasons=_FIELD)
class SetsFlags(_Header):
    """Flags has a bit set."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(flags=0x8000)


@mutant("publisher/absolute-block-index", requires=("KVCS-4-9",), reasons=_FIELD)
class AbsoluteBlockIndex(_Header):
    """Block Index goes on from segment to segment, while the Object IDs begin anew."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(block=part.first_block + header.block)


@mutant("publisher/token-start-in-segment", requires=("KVCS-3.4-2", "KVCS-4-10"), reasons=_FIELD)
class TokenStartInSegment(_Header):
    """Token Start is relative to the segment."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(token_start=header.block * self.spec.block_tokens)


@mutant("publisher/token-count-of-segment", requires=("KVCS-4-11", "KVCS-A-2"), reasons=_FIELD)
class TokenCountOfSegment(_Header):
    """Token Count counts the tokens of the segment."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(token_count=(part.blocks + 1) * self.spec.block_tokens)


@mutant("publisher/codec-zero", requires=("KVCS-4-12", "KVCS-A-2"), reasons=_FIELD)
class CodecZero(_Header):
    """Codec counts from 0, so that raw is the reserved value."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(codec=header.codec - 1)


@mutant("publisher/length-with-header", requires=("KVCS-4-13", "KVCS-A-2"), reasons=_LENGTH)
class LengthWithHeader(_Header):
    """Data Length counts the header, too."""

    def wrong(self, header: Header, part: SegmentProduction) -> Header:
        return header._replace(data_length=header.data_length + 68)


@mutant(
    "publisher/two-payloads",
    requires=("KVCS-3.4-3", "KVCS-4-13", "KVCS-4-14", "KVCS-4-15", "KVCS-9-1"),
    reasons=(*_LENGTH, Reason.PAYLOAD_DIGEST, Reason.TENSORS),
)
class TwoPayloads(Publication):
    """Every Object holds its payload twice."""

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and item.payload:
            item = replace(item, payload=bytes(item.payload) * 2)
        super().publish(track, item)
