"""Consumers that forgive what MOQT does not, or end requests otherwise than it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from kvcs.consumer import Consumer, ConsumeRequest
from kvcs.consumer.carriers import LATER, Carrier
from kvcs.consumer.restore import Restore
from kvcs.consumer.routes import Route
from kvcs.consumer.supply import Supply
from kvcs.errors import Defect
from kvcs.manifest import Segment
from kvcs.names import DataTrack
from kvcs.payload import Octets
from moqt.session import Request, RequestKind, Session, SessionConfig
from moqt.session.events import Via
from moqt.wire.errors import RemoteProtocolError, StreamError
from moqt.wire.messages import RequestError
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs_conformance.mutants.consumer_checks import Remembering
from kvcs_conformance.mutants.consumer_recovery import Supplied
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.nodes.protocol_faults import MANDATORY
from kvcs_conformance.verdicts import Reason


class _Sessions(Consumer):
    """A consumer whose sessions are of another class."""

    session_class: type[Session] = Session

    def __init__(
        self, request: ConsumeRequest, report: Any = None, config: SessionConfig | None = None
    ) -> None:
        config = replace(config or SessionConfig(), session_class=self.session_class)
        super().__init__(request, report, config)


class _Forgiving(Session):
    def fail(self, error: RemoteProtocolError) -> None:
        return


@mutant(
    "consumer/closes-for-nothing",
    requires=("MOQT-R148", "MOQT-R150", "MOQT-R197"),
    reasons=(Reason.CLOSE_ABSENT,),
)
class ClosesForNothing(_Sessions):
    """No session is closed, whatever rule the relay breaks."""

    session_class = _Forgiving


class _Clinging(Session):
    def cancel(self, request: Request, code: int = StreamError.CANCELLED) -> None:
        if request.kind is not RequestKind.FETCH:
            super().cancel(request, code)


@mutant("consumer/leaves-fetches-open", requires=("MOQT-R146",), reasons=(Reason.END_WRONG,))
class LeavesFetchesOpen(_Sessions):
    """A FETCH that is no longer wanted is not cancelled."""

    session_class = _Clinging


@mutant(
    "consumer/passes-over-mandatory-property",
    requires=("MOQT-R179",),
    reasons=(Reason.END_WRONG, Reason.WRONG_REUSE),
)
class PassesOverMandatoryProperty(Consumer):
    """A Mandatory Track Property that is unknown is passed over like any other."""

    def __init__(
        self, request: ConsumeRequest, report: Any = None, config: SessionConfig | None = None
    ) -> None:
        understood = frozenset({MANDATORY})
        config = replace(config or SessionConfig(), understood_properties=understood)
        super().__init__(request, report, config)


class _Impatient(Supply):
    def _note_refusal(self, route: Route, error: RequestError | None) -> None:
        return

    def _count_against(
        self, route: Route, track: DataTrack, location: Location, reason: str
    ) -> None:
        if reason != LATER:
            route.refused(track, location)


@mutant("consumer/asks-again-at-once", requires=("MOQT-R073",), reasons=(Reason.REQUEST_ORDER,))
class AsksAgainAtOnce(Supplied):
    """The Retry Interval of a refusal is not kept."""

    supply_class = _Impatient


Store = dict[tuple[DataTrack, Location], tuple[bytes, Octets]]


class _Storing(Restore):
    stored: Store
    foreign: set[tuple[DataTrack, Location]]

    def receive(self, carrier: Carrier, item: Object, via: Via) -> None:
        place = (carrier.track, item.location)
        publication = carrier.route.publication.id
        other, payload = self.stored.setdefault(place, (publication, item.payload))
        if other != publication:
            self.foreign.add(place)
            item = replace(item, payload=bytes(payload))
        super().receive(carrier, item, via)


@mutant(
    "consumer/stores-by-place",
    requires=("KVCS-7.4-3",),
    reasons=(Reason.TENSORS, Reason.WRONG_REUSE, Reason.DROPPED_GOOD_OBJECT),
)
class StoresByPlace(Remembering):
    """The local store has one place per track and Location, whatever the publication."""

    _stores: ClassVar[WeakKeyDictionary[Any, Store]] = WeakKeyDictionary()

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.foreign: set[tuple[DataTrack, Location]] = set()

    def check(self) -> None:
        if self._restore is not None and not isinstance(self._restore, _Storing):
            restore = self._restore
            restore.__class__ = _Storing
            assert isinstance(restore, _Storing)
            restore.stored = self._stores.setdefault(self.process, {})
            restore.foreign = self.foreign
        super().check()

    def verify_object(self, segment: Segment, track: DataTrack, item: Object) -> list[Defect]:
        found = super().verify_object(segment, track, item)
        if (track, item.location) not in self.foreign:
            return found
        return [defect for defect in found if defect.name != "listed-digest-mismatch"]
