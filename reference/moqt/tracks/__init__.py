"""Knowledge of Tracks: stored Objects, ranges, and reading them (MOQT-22 §7.1, §12)."""

from moqt.tracks.budget import CacheBudget, Entry
from moqt.tracks.groups import MalformedTrack
from moqt.tracks.intervals import IntervalSet
from moqt.tracks.known import Known
from moqt.tracks.store import TrackStore

__all__ = ["CacheBudget", "Entry", "IntervalSet", "Known", "MalformedTrack", "TrackStore"]
