"""Relays that leak, lose, repeat or change what they carry."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from moqt.relay import Relay
from moqt.session import Request, RequestKind, Session
from moqt.session.events import Event, ObjectReceived
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters

from kvcs_conformance.joining import repeat_live, stop_fill_short
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

Kinds: TypeAlias = frozenset[RequestKind]

_LEAKED = (Reason.AUTH_LEAKED,)
_WHOLE_GROUPS = LocationFilterType.ABSOLUTE_START_GROUP_END


class _Negligent(Relay):
    """A relay that lets requests of the kinds `unasked` pass without asking its policy."""

    unasked: Kinds = frozenset()

    def authorise(self, request: Request) -> None:
        if request.kind not in self.unasked:
            super().authorise(request)


@mutant(
    "relay/serves-cache-before-asking",
    requires=("KVCS-8-4", "KVCS-10-9", "MOQT-R208"),
    reasons=_LEAKED,
)
class ServesCacheBeforeAsking(Relay):
    """A FETCH of a track that is in the cache is served without asking who wants it."""

    def authorise(self, request: Request) -> None:
        if request.kind is not RequestKind.FETCH or request.track not in self.tracks:
            super().authorise(request)


@mutant(
    "relay/authorises-fetch-only",
    requires=(
        *("KVCS-8-4", "KVCS-10-6", "KVCS-10-7", "KVCS-10-8", "MOQT-R104", "MOQT-R198"),
        *("MOQT-R208", "MOQT-R213", "MOQT-R231", "MOQT-R232"),
    ),
    reasons=(*_LEAKED, Reason.REQUEST_CODE),
)
class AuthorisesFetchOnly(_Negligent):
    """Only FETCH is authorised."""

    unasked = frozenset(RequestKind) - {RequestKind.FETCH}


@mutant(
    "relay/lists-namespaces-to-anyone",
    requires=("KVCS-8-4", "KVCS-10-7", "MOQT-R198"),
    reasons=_LEAKED,
)
class ListsNamespacesToAnyone(_Negligent):
    """SUBSCRIBE_NAMESPACE is not authorised."""

    unasked = frozenset({RequestKind.SUBSCRIBE_NAMESPACE})


@mutant(
    "relay/takes-any-announcement",
    requires=("KVCS-8-4", "KVCS-10-6", "MOQT-R213", "MOQT-R231", "MOQT-R232"),
    reasons=_LEAKED,
)
class TakesAnyAnnouncement(_Negligent):
    """PUBLISH_NAMESPACE is not authorised."""

    unasked = frozenset({RequestKind.PUBLISH_NAMESPACE})


@mutant(
    "relay/matches-octets-run-together",
    requires=("KVCS-3.1-7", "KVCS-7.1-2"),
    reasons=(Reason.NAMESPACE_LEAKED,),
)
class MatchesOctetsRunTogether(Relay):
    """A prefix matches when its octets, fields joined, begin those of the namespace."""

    def _subscribe_prefix(self, request: Request) -> None:
        super()._subscribe_prefix(request)
        prefix = request.namespace or ()
        for session in self.sessions:
            for announced in self._routes.of_session(session):
                namespace = announced.namespace or ()
                if namespace[: len(prefix)] != prefix and b"".join(namespace).startswith(
                    b"".join(prefix)
                ):
                    shown = (*prefix, *namespace[len(prefix) :])
                    request.session.namespace(request, shown)


@mutant(
    "relay/fill-stops-short",
    requires=("KVCS-7.2-3", "MOQT-R115", "MOQT-R138"),
    reasons=(Reason.OBJECT_MISSING,),
)
class FillStopsShort(Relay):
    """A fill ends with the Group before the current one."""

    def _dispatch(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        stop_fill_short(request, track.store.largest if track else None)
        super()._dispatch(request)


@mutant(
    "relay/fill-repeats-live",
    requires=("KVCS-7.2-3", "MOQT-R189"),
    reasons=(Reason.OBJECT_DUPLICATE, Reason.OBJECT_UNEXPECTED),
)
class FillRepeatsLive(Relay):
    """What the fill brings of the current Group comes by the subscription too."""

    def _dispatch(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        if track is None or not track.established:
            super()._dispatch(request)
        else:
            repeat_live(request, track.store, super()._dispatch)


class _Refetching(Relay):
    """A relay that serves another range than a FETCH asks for."""

    def _dispatch(self, request: Request) -> None:
        wanted = request.parameters.location_filter
        if request.kind is RequestKind.FETCH and wanted is not None:
            changed = self.served(request, wanted)
            request.parameters = replace(request.parameters, location_filter=changed)
        super()._dispatch(request)

    def served(self, request: Request, wanted: LocationFilter) -> LocationFilter:
        """The range that is served instead."""
        return wanted


@mutant("relay/serves-last-block-only", requires=("KVCS-8-2",), reasons=(Reason.OBJECT_MISSING,))
class ServesLastBlockOnly(_Refetching):
    """A FETCH of one whole Group from a cold cache gets the Group's last Object only."""

    def served(self, request: Request, wanted: LocationFilter) -> LocationFilter:
        track = self.tracks.get(request.track) if request.track else None
        cold = track is None or track.store.top is None
        if cold and wanted.type is _WHOLE_GROUPS and wanted.end_group_delta == 0:
            return replace(wanted, start_object=2)
        return wanted


@mutant(
    "relay/clamps-fetch-to-cache",
    requires=("KVCS-8-2", "MOQT-R081", "MOQT-R181", "MOQT-R228"),
    reasons=(Reason.OBJECT_MISSING, Reason.RANGE_UNMARKED, Reason.STREAM_END),
)
class ClampsFetchToCache(_Refetching):
    """A FETCH ends with the last Group that is in the cache."""

    def served(self, request: Request, wanted: LocationFilter) -> LocationFilter:
        track = self.tracks.get(request.track) if request.track else None
        top = track.store.top if track else None
        if top is None:
            return wanted
        last = min(wanted.start_group + wanted.end_group_delta, top.group)
        return replace(wanted, end_group_delta=last - wanted.start_group)


@mutant(
    "relay/never-caches",
    requires=("KVCS-8-2",),
    reasons=(Reason.UPSTREAM_REPEATED, Reason.REQUEST_REFUSED),
)
class NeverCaches(Relay):
    """Every FETCH goes to the publisher."""

    def _dispatch(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        if request.kind is RequestKind.FETCH and track is not None:
            track.store.clear()
        super()._dispatch(request)


class _Changing(Relay):
    """A relay that changes what it receives before it keeps and forwards it."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived):
            event = self.changed(event)
        super().handle_event(session, event, now)

    def changed(self, event: ObjectReceived) -> ObjectReceived:
        """The event with another Object."""
        return event


@mutant(
    "relay/changes-payload",
    requires=("KVCS-8-2", "KVCS-8-3", "MOQT-R203", "MOQT-R227"),
    reasons=(Reason.OBJECT_CHANGED,),
)
class ChangesPayload(_Changing):
    """The last octet of every payload is set to zero."""

    def changed(self, event: ObjectReceived) -> ObjectReceived:
        if not event.object.payload:
            return event
        payload = bytes(event.object.payload[:-1]) + b"\x00"
        return replace(event, object=replace(event.object, payload=payload))


@mutant(
    "relay/overwrites-priority",
    requires=("KVCS-8-2", "KVCS-8-3", "MOQT-R205", "MOQT-R227"),
    reasons=(Reason.OBJECT_CHANGED, Reason.PRIORITY),
)
class OverwritesPriority(_Changing):
    """Every Object goes on with the default priority 128."""

    def changed(self, event: ObjectReceived) -> ObjectReceived:
        return replace(event, object=replace(event.object, priority=128))


@mutant(
    "relay/subscribes-upstream-for-each",
    requires=("KVCS-8-2", "MOQT-R218"),
    reasons=(Reason.UPSTREAM_REPEATED,),
)
class SubscribesUpstreamForEach(Relay):
    """Every SUBSCRIBE is repeated upstream, whether the track is subscribed to or not."""

    def _dispatch(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        if request.kind is RequestKind.SUBSCRIBE and track is not None and track.established:
            for session in track.upstreams:
                session.subscribe(track.name, Parameters())
        super()._dispatch(request)
