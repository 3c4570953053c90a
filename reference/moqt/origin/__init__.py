"""The original publisher's role: Tracks that are served from memory."""

from moqt.origin.origin import Origin
from moqt.origin.track import LocalTrack

__all__ = ["LocalTrack", "Origin"]
