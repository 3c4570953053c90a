"""Peers that put the payload header together otherwise than the text's example shows."""

from __future__ import annotations

from dataclasses import replace

from kvcs.consumer import Consumer
from kvcs.errors import Defect
from kvcs.manifest import Segment
from kvcs.names import DataTrack, TrackName
from kvcs.publisher.publication import Publication
from moqt.wire.objects import Object

from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


def _swapped(payload: bytes) -> bytes:
    """Codec and Reserved in each other's place."""
    start = FIELDS["codec"].offset
    between = FIELDS["reserved"].offset
    end = FIELDS["data_length"].offset
    return b"".join((payload[:start], payload[between:end], payload[start:between], payload[end:]))


@mutant(
    "publisher/codec-behind-reserved",
    requires=("KVCS-A-2", "KVCS-4-1", "KVCS-4-12"),
    reasons=(Reason.PAYLOAD_FIELD,),
)
class CodecBehindReserved(Publication):
    """Reserved comes before Codec."""

    def publish(self, track: TrackName, item: Object) -> None:
        if isinstance(track, DataTrack) and item.payload:
            item = replace(item, payload=_swapped(bytes(item.payload)))
        super().publish(track, item)


@mutant(
    "consumer/refuses-small-data",
    requires=("KVCS-A-2", "KVCS-4-1"),
    reasons=(Reason.DROPPED_GOOD_OBJECT,),
)
class RefusesSmallData(Consumer):
    """A payload under 100 octets is taken for damaged, although header and digest are right."""

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if len(item.payload) < 100 and not found:
            found = [Defect("header-truncated", "KVCS-4-1", "too small", "payload")]
        return found
