"""Consumers that give up, wait without bound, or believe too much of how a retrieval ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kvcs.consumer import Budgets, Consumer, ConsumeRequest
from kvcs.consumer.assembly import SegmentAssembly
from kvcs.consumer.carriers import Carrier, LiveCarrier
from kvcs.consumer.feed import ManifestFeed
from kvcs.consumer.parameters import layers_parameters
from kvcs.consumer.restore import Restore
from kvcs.consumer.routes import Route
from kvcs.consumer.supply import Supply
from kvcs.names import DataTrack
from moqt.session import RequestKind, Session, SessionConfig
from moqt.session.events import (
    Event,
    RequestAccepted,
    RequestFailed,
    SetupReceived,
    SubscriptionEnded,
)
from moqt.wire.errors import RequestErrorCode, SessionError
from moqt.wire.messages import Parameters, RequestError
from moqt.wire.names import Location

from kvcs_conformance.mutants.consumer_checks import Watching
from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

_SHAPE = (Reason.REQUEST_SHAPE,)
_LONG = 1e6


class _Resigned(Supply):
    """A supply that asks nobody for what was lost."""

    def _repair(self, track: DataTrack, locations: list[Location]) -> None:
        return


class Supplied(Consumer):
    """A consumer whose restores have a supply of another class."""

    supply_class: type[Supply] = Supply

    def check(self) -> None:
        if self._restore is not None:
            self._restore.supply.__class__ = self.supply_class
        super().check()


@mutant(
    "consumer/asks-once",
    requires=("KVCS-7.4-4",),
    reasons=(Reason.NOT_RECOVERED, Reason.DROPPED_GOOD_OBJECT, Reason.WRONG_REUSE),
)
class AsksOnce(Supplied):
    """What is missing is not asked for again."""

    supply_class = _Resigned


@mutant("consumer/waits-without-bound", requires=("KVCS-7.4-5",), reasons=(Reason.WAITED,))
class WaitsWithoutBound(Consumer):
    """Every wait takes as long as it takes."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        budgets = Budgets(
            probe=request.budgets.probe,
            **dict.fromkeys(
                (
                    "connect",
                    "discovery",
                    "manifest",
                    "stall",
                    "recovery",
                    "completion",
                    "total",
                ),
                _LONG,
            ),
        )
        super().__init__(replace(request, budgets=budgets), *arguments)


@mutant(
    "consumer/probes-without-bound",
    requires=("KVCS-7.1-4", "KVCS-7.4-5"),
    reasons=(Reason.WAITED, Reason.REQUEST_ORDER),
)
class ProbesWithoutBound(Consumer):
    """A prefix that nobody announces is waited for."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        budgets = replace(request.budgets, probe=_LONG, discovery=_LONG)
        super().__init__(replace(request, budgets=budgets), *arguments)


@mutant("consumer/waits-for-fetch-ok", requires=("KVCS-7.4-5",), reasons=(Reason.WAITED,))
class WaitsForFetchOk(WaitsWithoutBound):
    """Nothing of a FETCH is looked at before its FETCH_OK, however long that takes."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._answered: set[int] = set()

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        request = getattr(event, "request", None)
        if request is not None and request.ours and request.kind is RequestKind.FETCH:
            if isinstance(event, RequestAccepted | RequestFailed):
                self._answered.add(request.id)
            if request.id not in self._answered:
                return
        super().handle_event(session, event, now)


class _Ending(Consumer):
    """A consumer that knows fewer ends of a track."""

    needs = ""

    def _check_whole(self, restore: Restore) -> None:
        seen = [ended for ended in restore._ended.values() if self.needs in ended]
        if len(seen) == len(restore._ended):
            super()._check_whole(restore)
        elif "completion" not in self.timers:
            bound = self.now + self.request.budgets.completion
            self.timers.set("completion", bound, self._finish_whole)


@mutant("consumer/needs-end-of-track", requires=("KVCS-7.2-7",), reasons=(Reason.WAITED,))
class NeedsEndOfTrack(_Ending):
    """A track is complete with its End of Track only."""

    needs = "end-of-track"


@mutant("consumer/needs-publish-done", requires=("KVCS-7.2-7",), reasons=(Reason.WAITED,))
class NeedsPublishDone(_Ending):
    """A track is complete with its PUBLISH_DONE only."""

    needs = "publish-done"


@mutant(
    "consumer/takes-done-as-proof",
    requires=("KVCS-7.2-7", "KVCS-7.4-2"),
    reasons=(Reason.USED_BAD_OBJECT, Reason.NOT_RECOVERED),
)
class TakesDoneAsProof(Watching):
    """After PUBLISH_DONE every layer of which no Object was bad counts as received in the end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._proven = False

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SubscriptionEnded):
            self._proven |= isinstance(event.request.context, LiveCarrier)
        super().handle_event(session, event, now)

    def told(self, event: str, details: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        told = super().told(event, details)
        if event == "reused-tokens" and self._proven and details["publication"] is not None:
            for layer in sorted({*self.request.wanted_layers} - self.bad - self.usable):
                publication = details["publication"]
                more = {"segment": 0, "layer": layer, "blocks": len(self.keys)}
                told.insert(0, ("layer-usable", {"publication": publication, **more}))
        return told


class _Content(_Resigned):
    """A supply that takes the end of a subscription for the end of its track."""

    def carrier_over(self, carrier: Carrier, reason: str, error: RequestError | None) -> None:
        super().carrier_over(carrier, reason, error)
        self._orphans.clear()


@mutant(
    "consumer/takes-any-end-as-the-end",
    requires=("KVCS-7.2-7", "KVCS-7.4-4"),
    reasons=(Reason.NOT_RECOVERED, Reason.DROPPED_GOOD_OBJECT),
)
class TakesAnyEndAsTheEnd(Supplied):
    """PUBLISH_DONE ends a track whatever its code says."""

    supply_class = _Content


@mutant(
    "consumer/falls-back-on-any-refusal",
    requires=("KVCS-7.2-5",),
    reasons=(Reason.REQUEST_ORDER,),
)
class FallsBackOnAnyRefusal(Consumer):
    """Any refusal of manifest.cose counts as its absence."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        match event:
            case RequestFailed(request=request, error=RequestError() as error) if isinstance(
                request.context, ManifestFeed
            ):
                error = replace(error, code=RequestErrorCode.DOES_NOT_EXIST)
                event = replace(event, error=error)
            case _:
                pass
        super().handle_event(session, event, now)


@mutant("consumer/never-filters", requires=("KVCS-7.3-4",), reasons=_SHAPE)
class NeverFilters(Consumer):
    """The first blocks are fetched without OBJECTID_FILTER, whatever the peer takes."""

    def layers_parameters(self, route: Route, part: SegmentAssembly) -> Parameters:
        return layers_parameters(self.request, part.layers, None)


@mutant("consumer/always-filters", requires=("KVCS-7.3-4", "MOQT-R036"), reasons=_SHAPE)
class AlwaysFilters(Consumer):
    """OBJECTID_FILTER is sent to a peer that announced no filters."""

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        if isinstance(event, SetupReceived) and session.peer_setup is not None:
            session._core.peer_setup = replace(session.peer_setup, max_filter_ranges=16)
        super().handle_event(session, event, now)


@mutant("consumer/uses-excess-blocks", requires=("KVCS-7.3-5",), reasons=(Reason.WRONG_REUSE,))
class UsesExcessBlocks(Consumer):
    """Blocks behind those that are wanted are used as well."""

    def __init__(self, request: ConsumeRequest, *arguments: Any) -> None:
        super().__init__(replace(request, blocks=None), *arguments)


@mutant(
    "consumer/drops-early-objects",
    requires=("KVCS-7.2-3", "MOQT-R138"),
    reasons=(Reason.OBJECT_DUPLICATE, Reason.DROPPED_GOOD_OBJECT),
)
class DropsEarlyObjects(Consumer):
    """Objects that come before SUBSCRIBE_OK are dropped."""

    def __init__(
        self, request: ConsumeRequest, report: Any = None, config: SessionConfig | None = None
    ) -> None:
        config = replace(config or SessionConfig(), early_data_budget=0)
        super().__init__(request, report, config)


@mutant(
    "consumer/closes-when-flooded",
    requires=("KVCS-7.2-3",),
    reasons=(Reason.DROPPED_GOOD_OBJECT,),
)
class ClosesWhenFlooded(Consumer):
    """A session on which much comes for an unknown Track Alias is closed."""

    def __init__(
        self, request: ConsumeRequest, report: Any = None, config: SessionConfig | None = None
    ) -> None:
        class Touchy(Session):
            came: dict[int, int]

            def stream_data(
                self, stream_id: int, data: bytes | memoryview, fin: bool, now: float
            ) -> None:
                super().stream_data(stream_id, data, fin, now)
                self.came = getattr(self, "came", {})
                self.came[stream_id] = self.came.get(stream_id, 0) + len(data)
                if self.came[stream_id] > 1 << 18:
                    self.close(SessionError.INTERNAL_ERROR, "too much")

        config = replace(config or SessionConfig(), session_class=Touchy)
        super().__init__(request, report, config)


@mutant(
    "consumer/keeps-first-payload",
    requires=("MOQT-R180",),
    reasons=(Reason.USED_BAD_PUBLICATION,),
)
class KeepsFirstPayload(Consumer):
    """When two payloads come for one Location, the first is kept and nothing said."""

    def discard(self, publication: Any, reason: str, detail: str) -> None:
        if reason != "object.conflict":
            super().discard(publication, reason, detail)
