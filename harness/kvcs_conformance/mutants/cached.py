"""Relays whose cache mixes, forgets, keeps too long or invents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar

from moqt.relay import Relay
from moqt.relay.track import RelayTrack
from moqt.session import Request, RequestKind, Session
from moqt.session.events import Event, ObjectReceived, RangeReceived
from moqt.tracks import TrackStore
from moqt.tracks.budget import Entry
from moqt.tracks.known import Reader
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, RangeKind

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason


def with_store(store: type[TrackStore]) -> type[RelayTrack]:
    """A Track that keeps its Objects in this class."""
    return type("Track", (RelayTrack,), {"store_class": store})


class _SharesTracks(Relay):
    """A relay that takes some Tracks for one."""

    def _track(self, request: Request) -> RelayTrack:
        assert request.track is not None
        key = self.key(request.track)
        known = next((name for name in self.tracks if self.key(name) == key), None)
        if known is None:
            return super()._track(request)
        return self.tracks[known]

    def key(self, track: FullTrackName) -> object:
        """What it takes for the name of a Track."""
        return track


_MIXED = (Reason.OBJECT_CHANGED, Reason.OBJECT_MISSING, Reason.OBJECT_UNEXPECTED)


@mutant("relay/keys-cache-without-publication", requires=("KVCS-8-2", "KVCS-8-3"), reasons=_MIXED)
class KeysCacheWithoutPublication(_SharesTracks):
    """The cache knows a Track by its name and the first four namespace fields."""

    def key(self, track: FullTrackName) -> object:
        return track.namespace[:4], track.name


@mutant(
    "relay/keys-cache-without-track-name",
    requires=("KVCS-8-2", "MOQT-R141", "MOQT-R217"),
    reasons=_MIXED,
)
class KeysCacheWithoutTrackName(Relay):
    """A FETCH of a Track of which nothing is cached is served from another Track of its
    namespace."""

    def _track(self, request: Request) -> RelayTrack:
        own = super()._track(request)
        if request.kind is RequestKind.FETCH and own.store.top is None:
            for name, track in self.tracks.items():
                if name.namespace == own.name.namespace and track.store.top is not None:
                    return track
        return own


class _NoProperties(TrackStore):
    def add(self, item: Object, readers: Iterable[Reader] = ()) -> bool:
        return super().add(replace(item, properties=b""), readers)


@mutant(
    "relay/caches-without-properties",
    requires=("MOQT-R174", "MOQT-R178"),
    reasons=(Reason.PROPERTY_CHANGED,),
)
class CachesWithoutProperties(Relay):
    """Objects are cached without their properties."""

    track_class = with_store(_NoProperties)


class _NoPriority(TrackStore):
    def add(self, item: Object, readers: Iterable[Reader] = ()) -> bool:
        return super().add(replace(item, priority=128), readers)


@mutant(
    "relay/caches-without-priority",
    requires=("MOQT-R205", "MOQT-R003", "KVCS-8-2", "KVCS-8-3"),
    reasons=(Reason.PRIORITY, Reason.OBJECT_CHANGED),
)
class CachesWithoutPriority(Relay):
    """Objects come from the cache with the default priority."""

    track_class = with_store(_NoPriority)


@mutant(
    "relay/changes-on-second-fetch",
    requires=("MOQT-R003", "KVCS-8-2", "KVCS-8-3"),
    reasons=(Reason.OBJECT_CHANGED,),
)
class ChangesOnSecondFetch(Relay):
    """From the second FETCH of a Track on, what is cached has another last octet."""

    def _dispatch(self, request: Request) -> None:
        if request.kind is RequestKind.FETCH and request.track in self.tracks:
            store = self.tracks[request.track].store
            if getattr(store, "fetched", False):
                for item in tuple(store):
                    entry = store.entry((item.location.group << 64) + item.location.object)
                    if entry is not None and item.payload:
                        payload = bytes(item.payload[:-1]) + b"\x00"
                        entry.object = replace(item, payload=payload)
            store.fetched = True  # type: ignore[attr-defined]
        super()._dispatch(request)


class _EvictedIsAbsent(TrackStore):
    def evict(self, entry: Entry) -> None:
        super().evict(entry)
        self.absent(entry.object.location, entry.object.location)


@mutant(
    "relay/takes-evicted-for-absent",
    requires=("KVCS-8-2", "MOQT-R170"),
    reasons=(Reason.OBJECT_MISSING,),
)
class TakesEvictedForAbsent(Relay):
    """What was evicted from the cache does not exist any more."""

    track_class = with_store(_EvictedIsAbsent)


class _NeverExpires(RelayTrack):
    def learn_properties(self, properties: bytes) -> None:
        super().learn_properties(properties)
        self.store.max_cache_duration = None


_EXPIRED = (Reason.OBJECT_EXPIRED,)


@mutant("relay/serves-expired", requires=("KVCS-8-5", "MOQT-R170"), reasons=_EXPIRED)
class ServesExpired(Relay):
    """MAX_CACHE_DURATION is passed on and not honoured."""

    track_class = _NeverExpires


class _HitExtends(TrackStore):
    def entry(self, key: int) -> Entry | None:
        entry = super().entry(key)
        if entry is not None:
            entry.began = self._clock()
        return entry


@mutant("relay/extends-expiry-on-hit", requires=("KVCS-8-5", "MOQT-R170"), reasons=_EXPIRED)
class ExtendsExpiryOnHit(Relay):
    """The time of an Object in the cache begins anew with each use."""

    track_class = with_store(_HitExtends)


class _FromBirth(TrackStore):
    def add(self, item: Object, readers: Iterable[Reader] = ()) -> bool:
        self.born = getattr(self, "born", self._clock())
        self._arriving[(item.location.group << 64) + item.location.object] = self.born
        return super().add(item, readers)


@mutant(
    "relay/counts-expiry-for-whole-tracks",
    requires=("KVCS-8-2",),
    reasons=(Reason.UPSTREAM_REPEATED,),
)
class CountsExpiryForWholeTracks(Relay):
    """MAX_CACHE_DURATION counts from the first Object of the Track for all of them."""

    track_class = with_store(_FromBirth)


class _Renaming(Relay):
    """A relay that hears End of Range otherwise than it was said."""

    heard: ClassVar[Mapping[RangeKind, RangeKind]]

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, RangeReceived):
            event = replace(event, kind=self.heard.get(event.kind, event.kind))
        super().handle_event(session, event, now)


@mutant("relay/takes-unknown-for-absent", requires=("MOQT-R144",), reasons=(Reason.RANGE_UNMARKED,))
class TakesUnknownForAbsent(_Renaming):
    """What a publisher says it does not know is taken as not existing."""

    heard: ClassVar = {RangeKind.UNKNOWN: RangeKind.NON_EXISTENT}


class _NothingAbsent(TrackStore):
    def absent(self, start: Location, end: Location) -> None:
        pass


@mutant(
    "relay/takes-absent-for-unknown",
    requires=("KVCS-8-2", "MOQT-R144", "MOQT-R204"),
    reasons=(Reason.RANGE_UNMARKED, Reason.OBJECT_MISSING, Reason.OBJECT_UNEXPECTED),
)
class TakesAbsentForUnknown(Relay):
    """A gap in what a publisher sends says nothing: what is not there may still come."""

    track_class = with_store(_NothingAbsent)


class _ForgetsAbsence(TrackStore):
    def add(self, item: Object, readers: Iterable[Reader] = ()) -> bool:
        self._absent.clear()
        return super().add(item, readers)


@mutant(
    "relay/forwards-what-does-not-exist",
    requires=("MOQT-R204",),
    reasons=(Reason.OBJECT_UNEXPECTED,),
)
class ForwardsWhatDoesNotExist(Relay):
    """An Object that a publisher had said not to exist is taken all the same."""

    track_class = with_store(_ForgetsAbsence)


@mutant("relay/changes-later-segments", requires=("KVCS-8-3",), reasons=(Reason.OBJECT_CHANGED,))
class ChangesLaterSegments(Relay):
    """The last octet of each Object is lost, but for the manifest and the tracks of segment 0."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived) and event.object.payload:
            track = event.request.track
            if track is not None and b"." in track.name and not track.name.endswith(b".s0"):
                payload = bytes(event.object.payload[:-1]) + b"\x00"
                event = replace(event, object=replace(event.object, payload=payload))
        super().handle_event(session, event, now)


@mutant(
    "relay/keeps-first-manifest",
    requires=("KVCS-8-1", "KVCS-8-3"),
    reasons=(Reason.OBJECT_MISSING,),
)
class KeepsFirstManifest(Relay):
    """Of a manifest the version of Group 0 is carried, and none that follows."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        later = isinstance(event, ObjectReceived) and event.object.location.group > 0
        track = event.request.track if isinstance(event, ObjectReceived) else None
        if not (later and track is not None and track.name.startswith(b"manifest")):
            super().handle_event(session, event, now)
