"""Publishers whose fill and subscription do not meet, or who change what they published."""

from __future__ import annotations

from dataclasses import replace

from kvcs.publisher import Publisher
from moqt.origin import LocalTrack
from moqt.session import Request
from moqt.tracks import TrackStore
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object

from kvcs_conformance.joining import repeat_live, stop_fill_short
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


@mutant(
    "publisher/fill-stops-short",
    requires=("KVCS-7.2-3", "MOQT-R115", "MOQT-R138"),
    reasons=(Reason.OBJECT_MISSING,),
)
class FillStopsShort(Publisher):
    """A fill ends with the Group before the current one."""

    def _serve(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        stop_fill_short(request, track.largest if track else None)
        super()._serve(request)


@mutant(
    "publisher/fill-repeats-live",
    requires=("KVCS-7.2-3", "MOQT-R115", "MOQT-R138"),
    reasons=(Reason.OBJECT_DUPLICATE,),
)
class FillRepeatsLive(Publisher):
    """What the fill brings of the current Group comes by the subscription too."""

    def _serve(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        if track is None:
            super()._serve(request)
        else:
            repeat_live(request, track.store, super()._serve)


class _Correcting(LocalTrack):
    """A track that replaces one block's payload when it ends."""

    def finish(self, code: int = 0x2, reason: str = "") -> None:
        if self.done is None:
            corrected = TrackStore(complete=True)
            for item in tuple(self.store):
                corrected.add(_corrected(item))
            if self.largest is not None:
                corrected.published(self.largest)
            self.store = corrected
        super().finish(code, reason)


def _corrected(item: Object) -> Object:
    if item.location != Location(1, 1) or not item.payload:
        return item
    return replace(item, payload=bytes(item.payload[:-1]) + b"\x00")


@mutant(
    "publisher/corrects-in-place",
    requires=("KVCS-3.4-4", "KVCS-6-7", "MOQT-R003"),
    reasons=(Reason.OBJECT_CHANGED,),
)
class CorrectsInPlace(Publisher):
    """A block found wrong is replaced at its Location instead of in a new publication."""

    def add_track(
        self, track: FullTrackName, *, properties: bytes = b"", default_priority: int | None = None
    ) -> LocalTrack:
        local = self.tracks[track] = _Correcting(track, properties, default_priority)
        return local
