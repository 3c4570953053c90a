"""How a mutant of a publisher gives its tracks another class."""

from __future__ import annotations

from collections.abc import Callable

from kvcs.publisher import Publisher
from moqt.origin import LocalTrack
from moqt.wire.names import FullTrackName

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


class Tracks(Publisher):
    """A publisher whose tracks are of another class."""

    track_class: type[LocalTrack] = LocalTrack

    def add_track(
        self, track: FullTrackName, *, properties: bytes = b"", default_priority: int | None = None
    ) -> LocalTrack:
        local = self.track_class(track, properties, default_priority)
        self.tracks[track] = local
        return local


def publisher_of(track: type[LocalTrack]) -> type[Publisher]:
    """A publisher with tracks of this class, whose docstring tells the defect."""
    return type(track.__name__, (Tracks,), {"track_class": track, "__doc__": track.__doc__})


def track_mutant(
    name: str, *, requires: tuple[str, ...], reasons: tuple[Reason, ...]
) -> Callable[[type[LocalTrack]], type[LocalTrack]]:
    """Enter a publisher whose tracks have the defect."""

    def enter(track: type[LocalTrack]) -> type[LocalTrack]:
        mutant(name, requires=requires, reasons=reasons)(publisher_of(track))
        return track

    return enter
