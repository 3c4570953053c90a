"""Relays that change, lose or misplace what they forward: fields of Objects, marks of streams."""

from __future__ import annotations

from dataclasses import replace

from moqt.relay import Relay
from moqt.relay.subscribers import Subscribers
from moqt.relay.track import RelayTrack
from moqt.relay.upstream import Upstream
from moqt.session import Session
from moqt.session.events import Event, ObjectReceived, StreamInfo
from moqt.wire.names import Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, decode_properties, encode_properties

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_GROUP_GAP = PropertyType.PRIOR_GROUP_ID_GAP
_OBJECT_GAP = PropertyType.PRIOR_OBJECT_ID_GAP
_KNOWN = frozenset(PropertyType)
_PROPERTY = (Reason.PROPERTY_CHANGED,)


def with_subscribers(subscribers: type[Subscribers]) -> type[RelayTrack]:
    """A Track whose subscriptions are served by this class."""
    return type("Track", (RelayTrack,), {"subscribers_class": subscribers})


class _Altering(Subscribers):
    """Forwards other Objects, or with other marks, than came."""

    def offer(self, item: Object, *, first: bool, end_of_group: bool, adjacent: bool) -> None:
        item, first, end_of_group, adjacent = self.altered(item, first, end_of_group, adjacent)
        super().offer(item, first=first, end_of_group=end_of_group, adjacent=adjacent)

    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        """What is offered instead."""
        return item, first, end_of_group, adjacent


class _CutsSubgroups(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        subgroup = None if item.subgroup is None else item.subgroup & 3
        return replace(item, subgroup=subgroup), first, end_of_group, adjacent


@mutant("relay/cuts-subgroup-ids", requires=("MOQT-R227",), reasons=(Reason.OBJECT_SUBGROUP,))
class CutsSubgroupIds(Relay):
    """Subgroup IDs go on with their low two bits only."""

    track_class = with_subscribers(_CutsSubgroups)


class _NoDatagrams(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        return replace(item, subgroup=item.subgroup or 0), first, end_of_group, adjacent


@mutant("relay/sends-datagrams-on-streams", requires=("MOQT-R004",), reasons=(Reason.OBJECT_MODE,))
class SendsDatagramsOnStreams(Relay):
    """What came in a datagram goes on in a subgroup."""

    track_class = with_subscribers(_NoDatagrams)


class _Merges(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        merged = dict(decode_properties(getattr(self, "merged", b"")))
        merged |= {
            kind: value for kind, value in decode_properties(item.properties) if kind not in _KNOWN
        }
        self.merged = encode_properties(merged.items())
        own = dict(decode_properties(item.properties))
        octets = encode_properties((merged | own).items())
        return replace(item, properties=octets), first, end_of_group, adjacent


@mutant("relay/merges-unknown-properties", requires=("MOQT-R178", "MOQT-R227"), reasons=_PROPERTY)
class MergesUnknownProperties(Relay):
    """An Object keeps the unknown properties of those before it."""

    track_class = with_subscribers(_Merges)


class _Rewriting(Relay):
    """A relay that changes properties before it keeps and forwards the Object."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, ObjectReceived) and event.object.properties:
            octets = self.rewritten(event.object.properties)
            event = replace(event, object=replace(event.object, properties=octets))
        super().handle_event(session, event, now)

    def rewritten(self, octets: bytes) -> bytes:
        """The octets that are kept and forwarded instead."""
        return octets


@mutant(
    "relay/reencodes-immutable",
    requires=("MOQT-R173", "MOQT-R174", "MOQT-R227"),
    reasons=_PROPERTY,
)
class ReencodesImmutable(_Rewriting):
    """Immutable Properties are written anew, in the shortest form."""

    def rewritten(self, octets: bytes) -> bytes:
        return encode_properties(
            (kind, encode_properties(decode_properties(value)))
            if kind == PropertyType.IMMUTABLE_PROPERTIES and isinstance(value, bytes)
            else (kind, value)
            for kind, value in decode_properties(octets)
        )


@mutant("relay/changes-group-gap", requires=("MOQT-R176", "MOQT-R227"), reasons=_PROPERTY)
class ChangesGroupGap(_Rewriting):
    """A PRIOR_GROUP_ID_GAP goes on with one Group less."""

    def rewritten(self, octets: bytes) -> bytes:
        return encode_properties(
            (kind, value - 1 if kind == _GROUP_GAP and isinstance(value, int) else value)
            for kind, value in decode_properties(octets)
        )


@mutant("relay/drops-object-gap", requires=("MOQT-R177", "MOQT-R227"), reasons=_PROPERTY)
class DropsObjectGap(_Rewriting):
    """A PRIOR_OBJECT_ID_GAP is left out of what is forwarded."""

    def rewritten(self, octets: bytes) -> bytes:
        return encode_properties(
            (kind, value) for kind, value in decode_properties(octets) if kind != _OBJECT_GAP
        )


class _DropsEmpty(RelayTrack):
    def received(
        self, upstream: Upstream, item: Object, previous: Location | None, info: StreamInfo
    ) -> None:
        if item.payload or item.status is not ObjectStatus.NORMAL:
            super().received(upstream, item, previous, info)


@mutant("relay/drops-what-is-no-block", requires=("KVCS-8-1",), reasons=(Reason.OBJECT_MISSING,))
class DropsWhatIsNoBlock(Relay):
    """An Object too short for a KVCS payload header is not forwarded."""

    track_class = _DropsEmpty


class _NoFirst(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        return item, False, end_of_group, adjacent


@mutant("relay/loses-first-object", requires=("MOQT-R008",), reasons=(Reason.STREAM_FLAG,))
class LosesFirstObject(Relay):
    """FIRST_OBJECT is never set."""

    track_class = with_subscribers(_NoFirst)


class _AlwaysFirst(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        return item, True, end_of_group, adjacent


@mutant("relay/claims-first-object", requires=("MOQT-R008",), reasons=(Reason.STREAM_FLAG,))
class ClaimsFirstObject(Relay):
    """FIRST_OBJECT is set on every stream."""

    track_class = with_subscribers(_AlwaysFirst)


class _NoEndOfGroup(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        return item, first, False, adjacent


@mutant("relay/drops-end-of-group-bit", requires=("MOQT-R227",), reasons=(Reason.STREAM_FLAG,))
class DropsEndOfGroupBit(Relay):
    """END_OF_GROUP is never set in a header."""

    track_class = with_subscribers(_NoEndOfGroup)


class _Leaping(_Altering):
    def altered(
        self, item: Object, first: bool, end_of_group: bool, adjacent: bool
    ) -> tuple[Object, bool, bool, bool]:
        return item, first, end_of_group, True


@mutant("relay/leaps-over-holes", requires=("MOQT-R167",), reasons=(Reason.STREAM_HOLE,))
class LeapsOverHoles(Relay):
    """A subgroup stream goes on with whatever Object comes next, over holes too."""

    track_class = with_subscribers(_Leaping)


class _FinAtHole(Subscribers):
    def offer(self, item: Object, *, first: bool, end_of_group: bool, adjacent: bool) -> None:
        place = item.location.group, item.subgroup
        last = getattr(self, "last", {})
        self.last = {**last, place: item.location.object}
        hole = place in last and item.location.object > last[place] + 1 and not adjacent
        if hole and item.subgroup is not None:
            for sender in self.senders.values():
                sender.end_subgroup(item.location.group, item.subgroup)
        super().offer(item, first=first, end_of_group=end_of_group, adjacent=adjacent)


@mutant(
    "relay/ends-stream-at-hole",
    requires=("MOQT-R168",),
    reasons=(Reason.STREAM_END, Reason.OBJECT_MISSING),
)
class EndsStreamAtHole(Relay):
    """At a hole a subgroup stream ends with FIN, as if the subgroup were whole."""

    track_class = with_subscribers(_FinAtHole)


class _DropsInside(Subscribers):
    def offer(self, item: Object, *, first: bool, end_of_group: bool, adjacent: bool) -> None:
        if item.location.object != 2 or not end_of_group:
            super().offer(item, first=first, end_of_group=end_of_group, adjacent=adjacent)


@mutant(
    "relay/drops-inside-streams",
    requires=("MOQT-R212",),
    reasons=(Reason.STREAM_HOLE, Reason.OBJECT_MISSING),
)
class DropsInsideStreams(Relay):
    """The third Object of a stream that ends its Group is left out."""

    track_class = with_subscribers(_DropsInside)


class _SplitsLong(Subscribers):
    def offer(self, item: Object, *, first: bool, end_of_group: bool, adjacent: bool) -> None:
        super().offer(item, first=first, end_of_group=end_of_group, adjacent=adjacent)
        if item.location.object == 2 and end_of_group and item.subgroup is not None:
            for sender in self.senders.values():
                sender.end_subgroup(item.location.group, item.subgroup)


@mutant(
    "relay/splits-subgroups",
    requires=("MOQT-R006",),
    reasons=(Reason.STREAM_SECOND,),
)
class SplitsSubgroups(Relay):
    """After three Objects a subgroup that ends its Group goes on in another stream."""

    track_class = with_subscribers(_SplitsLong)


class _ResetsWhole(RelayTrack):
    def subgroup_complete(
        self, upstream: Upstream, last: Location, subgroup: int, *, end_of_group: bool
    ) -> None:
        if end_of_group:
            self.subscribers.reset_subgroup(last.group, subgroup, 0)
        else:
            super().subgroup_complete(upstream, last, subgroup, end_of_group=end_of_group)


@mutant("relay/resets-whole-subgroups", requires=("MOQT-R164",), reasons=(Reason.STREAM_END,))
class ResetsWholeSubgroups(Relay):
    """The stream of a subgroup that ends its Group is reset behind its last Object."""

    track_class = _ResetsWhole


class _FinsBroken(RelayTrack):
    def subgroup_broken(self, group: int, subgroup: int, code: int | None) -> None:
        self.subscribers.end_subgroup(group, subgroup)


@mutant("relay/ends-broken-subgroups", requires=("MOQT-R165",), reasons=(Reason.STREAM_END,))
class EndsBrokenSubgroups(Relay):
    """A subgroup that the publisher reset ends with FIN."""

    track_class = _FinsBroken


class _OncePerSession(Subscribers):
    def offer(self, item: Object, *, first: bool, end_of_group: bool, adjacent: bool) -> None:
        kept = self.senders
        by_session = {request.session: request for request in reversed(list(kept))}
        self.senders = {request: kept[request] for request in by_session.values()}
        try:
            super().offer(item, first=first, end_of_group=end_of_group, adjacent=adjacent)
        finally:
            gone = by_session.keys() and [
                request for request in by_session.values() if request not in self.senders
            ]
            self.senders = {request: kept[request] for request in kept if request not in gone}


@mutant("relay/sends-once-per-session", requires=("MOQT-R114",), reasons=(Reason.OBJECT_MISSING,))
class SendsOncePerSession(Relay):
    """Of several subscriptions of a session to one track only the first gets Objects."""

    track_class = with_subscribers(_OncePerSession)
