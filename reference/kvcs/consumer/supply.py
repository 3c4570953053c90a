"""Who brings which Object: main retrievals, what they lost, and repairs (KVCS 7.4).

Every wanted track has one main carrier. What it loses is known to exist, or not yet: only
Locations up to the track's frontier are asked for again, by FETCH, first where nobody refused
them yet. A Location that a route refused twice marks that route as failed. When no route is left,
or the recovery budget is spent, what is lost is given up: those tokens are recomputed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import Parameters, RequestError
from moqt.wire.names import Location

from kvcs.consumer.assembly import SegmentAssembly
from kvcs.consumer.carriers import LATER, START, Carrier, FetchCarrier, LiveCarrier, Receiver
from kvcs.consumer.ranges import LocationRange, ranges
from kvcs.consumer.request import ConsumeRequest, Mode
from kvcs.consumer.routes import PublicationView, Route, Source
from kvcs.consumer.timers import Timers
from kvcs.names import DataTrack

MAX_REPAIRS = 4
"""Concurrent repair FETCHes per route: a publisher may limit them (KVCS-10-11)."""

REPAIR_DELAY = 0.01
"""Seconds in which losses gather, so that neighbours share one FETCH."""

RETRY_SHARE = 0.1
"""Share of the recovery budget before a route that failed to give something is asked again."""

NEVER = frozenset(
    {
        RequestErrorCode.UNAUTHORIZED,
        RequestErrorCode.NOT_SUPPORTED,
        RequestErrorCode.MALFORMED_AUTH_TOKEN,
        RequestErrorCode.EXPIRED_AUTH_TOKEN,
        RequestErrorCode.MALFORMED_TRACK,
        RequestErrorCode.GOING_AWAY,
    }
)
"""Refusals after which the same route is not asked again."""

EVERYTHING = Location(2**64 - 1, 0)


class Asker(Protocol):
    """Who shapes the requests, and is told when a restore comes to a stop."""

    request: ConsumeRequest
    timers: Timers

    @property
    def now(self) -> float:
        """The time."""

    def live_parameters(self, track: DataTrack, first: Location) -> Parameters:
        """For a SUBSCRIBE."""

    def layers_parameters(self, route: Route, part: SegmentAssembly) -> Parameters:
        """For a FETCH of whole layers."""

    def range_parameters(self, span: LocationRange) -> Parameters:
        """For a FETCH of missing Objects."""

    def check(self) -> None:
        """Something changed that may end the restore."""

    def emit(self, event: str, **details: Any) -> None:
        """Report."""


class Supply:
    """All carriers of one restore."""

    def __init__(self, asker: Asker, receiver: Receiver, publication: PublicationView) -> None:
        self._asker = asker
        self._receiver = receiver
        self.publications = [publication]
        self.mains: dict[DataTrack, Carrier] = {}
        self.repairs: list[Carrier] = []
        self._parts: dict[DataTrack, SegmentAssembly] = {}
        self._frontier: dict[DataTrack, Location] = {}
        self._advanced: dict[DataTrack, float] = {}
        self._lost: dict[DataTrack, dict[Location, str]] = {}
        self._given_up: dict[DataTrack, set[Location]] = {}
        self._orphans: dict[DataTrack, SegmentAssembly] = {}
        self._recovering_since: float | None = None
        self._closed = False
        self.spent = False

    # State

    @property
    def carriers(self) -> list[Carrier]:
        """All that are under way."""
        return [item for item in (*self.mains.values(), *self.repairs) if not item.over]

    @property
    def working(self) -> bool:
        """Whether something may still bring an Object, or is about to be planned."""
        return bool(self.carriers) or "repair" in self._asker.timers

    @property
    def recovering(self) -> bool:
        """Whether something is lost and the recovery budget is running."""
        return self._recovering_since is not None

    def _routes(self) -> list[Route]:
        return [route for item in self.publications for route in item.usable_routes()]

    def due(self, track: DataTrack, location: Location) -> bool:
        """Whether the Object is known to exist."""
        return location <= self._frontier.get(track, Location(-1, 0))

    def advance(self, track: DataTrack, location: Location) -> None:
        """Everything of the track up to `location` exists."""
        if not self.due(track, location):
            self._frontier[track] = location
            self._advanced[track] = self._asker.now
            if self._lost.get(track):
                self._schedule()

    # Main retrievals

    def begin(self, part: SegmentAssembly, track: DataTrack) -> None:
        """Retrieve a track of a segment."""
        self._parts[track] = part
        self._lost.setdefault(track, {})
        self._given_up.setdefault(track, set())
        self._orphans[track] = part
        self._plan()

    def _start_main(self, part: SegmentAssembly, track: DataTrack) -> bool:
        """Start over where the fewest starts were made; False when there is no route."""
        routes = [route for route in self._routes() if route.starts[track] < 2]
        if not routes:
            return False
        route = min(routes, key=lambda item: item.starts[track])
        route.starts[track] += 1
        asker = self._asker
        carrier: Carrier
        if asker.request.mode is Mode.LIVE:
            first = next(part.missing(track), START)
            if track not in self.mains:
                first = START
            parameters = asker.live_parameters(track, first)
            carrier = LiveCarrier(self._receiver, route, part, track, parameters, first)
        else:
            layers = part.layers
            span = LocationRange(
                Location(layers.start, 0), Location(layers.stop - 1, max(part.blocks - 1, 0))
            )
            parameters = asker.layers_parameters(route, part)
            carrier = FetchCarrier(self._receiver, route, part, track, parameters, span)
        self.mains[track] = carrier
        for at in [at for at in self._lost[track] if at in carrier.span]:
            del self._lost[track][at]
        carrier.start()
        self._watch()
        return True

    # What carriers hand back

    def lost(self, carrier: Carrier, locations: Iterable[Location], reason: str) -> None:
        """These will not come from `carrier`; those that exist count against its route."""
        track = carrier.track
        found = self._lost[track]
        spans = self._repairing(track, carrier)
        for location in locations:
            if location in self._given_up[track] or any(location in span for span in spans):
                continue
            if location not in found and self.due(track, location):
                self._count_against(carrier.route, track, location, reason)
            found[location] = reason
        if found:
            self._schedule()

    def _count_against(
        self, route: Route, track: DataTrack, location: Location, reason: str
    ) -> None:
        pause = RETRY_SHARE * self._asker.request.budgets.recovery
        route.not_before = max(route.not_before, self._asker.now + pause)
        if reason != LATER:
            route.refused(track, location)

    def carrier_over(self, carrier: Carrier, reason: str, error: RequestError | None) -> None:
        """A main of a track that goes on needs a successor; a repair leaves its losses."""
        self._note_refusal(carrier.route, error)
        self._asker.emit(
            "retrieval-ended",
            publication=carrier.route.publication.id.hex(),
            source=carrier.route.source.url,
            track=str(carrier.track),
            reason=reason,
            code=None if error is None else error.code,
        )
        if carrier in self.repairs:
            self.repairs.remove(carrier)
        elif carrier.live and not self.due(carrier.track, EVERYTHING):
            self._orphans[carrier.track] = carrier.part
        self._schedule()

    def _note_refusal(self, route: Route, error: RequestError | None) -> None:
        if error is None:
            return
        if error.code in NEVER:
            route.failed = route.failed or "request-refused"
        elif error.retry_interval:
            route.not_before = self._asker.now + (error.retry_interval - 1) / 1000

    def arrived(self, track: DataTrack, location: Location) -> None:
        """An Object came after all."""
        if self._lost[track].pop(location, None) is not None and not self._wanted_back():
            self._recovered()

    # Repair

    def _schedule(self) -> None:
        self._plan_at(self._asker.now + REPAIR_DELAY)

    def _plan_at(self, at: float) -> None:
        """Plan again at that time, if nothing is to be planned earlier."""
        planned = self._asker.timers.when("repair")
        if planned is None or planned > at:
            self._asker.timers.set("repair", at, self._plan)

    def _wanted_back(self) -> dict[DataTrack, list[Location]]:
        """Lost Locations that exist and that no repair is bringing."""
        found: dict[DataTrack, list[Location]] = {}
        for track, lost in self._lost.items():
            due = [at for at in lost if self.due(track, at)]
            if due:
                found[track] = due
        return found

    def _plan(self) -> None:
        """Start what can be started for orphans and for what is lost."""
        if self._closed:
            return
        for track, part in list(self._orphans.items()):
            if self._start_main(part, track):
                del self._orphans[track]
        wanted = self._wanted_back()
        if wanted or self._orphans:
            self._recover_from(self._asker.now)
        for track, locations in wanted.items():
            self._repair(track, locations)
        self._asker.check()

    def _repair(self, track: DataTrack, locations: list[Location]) -> None:
        part = self._parts[track]
        by_route: dict[Route, list[Location]] = {}
        for location in locations:
            route = self._route_for(track, location)
            if route is not None:
                by_route.setdefault(route, []).append(location)
        for route, chosen in by_route.items():
            if route.not_before > self._asker.now:
                self._plan_at(route.not_before)
                continue
            for span in ranges(chosen, part.blocks):
                if sum(1 for item in self.repairs if item.route is route) >= MAX_REPAIRS:
                    break
                self._start_repair(route, part, track, span)

    def _route_for(self, track: DataTrack, location: Location) -> Route | None:
        """Where it was refused least often; among equals, where one may ask first."""
        return min(
            self._routes(),
            key=lambda route: (route.refusals[track, location], route.not_before),
            default=None,
        )

    def _start_repair(
        self, route: Route, part: SegmentAssembly, track: DataTrack, span: LocationRange
    ) -> None:
        parameters = self._asker.range_parameters(span)
        carrier = FetchCarrier(self._receiver, route, part, track, parameters, span)
        for location in [at for at in self._lost[track] if at in span]:
            del self._lost[track][location]
        self.repairs.append(carrier)
        self._asker.emit(
            "repair",
            publication=route.publication.id.hex(),
            source=route.source.url,
            track=str(track),
            start=list(span.start),
            end=list(span.end),
        )
        carrier.start()
        self._watch()

    def retry(self) -> None:
        """There are new routes: plan again."""
        self._schedule()

    # Time

    def _recover_from(self, since: float) -> None:
        if self._recovering_since is None:
            self._recovering_since = since
            deadline = since + self._asker.request.budgets.recovery
            self._asker.timers.set("recovery", deadline, self.give_up)

    def _recovered(self) -> None:
        if not self.repairs and not self._orphans:
            self._recovering_since = None
            self._asker.timers.cancel("recovery")

    def settle(self) -> None:
        """Called after each change: recovery is over when nothing is lost any more."""
        if not self._wanted_back():
            self._recovered()

    def _watch(self) -> None:
        timers = self._asker.timers
        if "stall" not in timers:
            at = self._asker.now + self._asker.request.budgets.stall
            timers.set("stall", at, self._look_for_stalls)

    def _still_since(self, carrier: Carrier) -> float:
        """Since when it does not move: a main has nothing to bring before it is produced."""
        moved = carrier.last_progress
        return max(moved, self._advanced.get(carrier.track, moved)) if carrier.live else moved

    def _look_for_stalls(self) -> None:
        now, stall = self._asker.now, self._asker.request.budgets.stall
        for carrier in self.carriers:
            since = self._still_since(carrier)
            if now - since < stall:
                continue
            if not carrier.live:
                self._recover_from(since)
                carrier.cancel()
                self.lost(carrier, carrier.outstanding(), "stall")
                self.carrier_over(carrier, "stall", None)
                continue
            overdue = self._overdue(carrier)
            if overdue:
                self._recover_from(since)
                self.lost(carrier, overdue, "stall")
        carriers = self.carriers
        if carriers:
            soonest = min(map(self._still_since, carriers)) + stall
            self._asker.timers.set("stall", max(soonest, now + stall / 4), self._look_for_stalls)

    def _repairing(self, track: DataTrack, but: Carrier) -> list[LocationRange]:
        """What other repairs are bringing of a track."""
        return [item.span for item in self.repairs if item.track == track and item is not but]

    def _overdue(self, carrier: Carrier) -> list[Location]:
        """What a main is still to bring although it exists, and nobody else was asked for."""
        frontier = self._frontier.get(carrier.track)
        if frontier is None:
            return []
        known = self._lost[carrier.track]
        spans = self._repairing(carrier.track, carrier)
        return [
            at
            for at in carrier.outstanding(LocationRange(START, frontier))
            if at not in known and not any(at in span for span in spans)
        ]

    def give_up(self) -> None:
        """The recovery budget is spent: no more of what is lost, nor of what does not move."""
        self._recovering_since = None
        self.spent = True
        now, stall = self._asker.now, self._asker.request.budgets.stall
        for track, lost in self._lost.items():
            self._given_up[track].update(lost)
            lost.clear()
        self._orphans.clear()
        for carrier in self.carriers:
            still = now - self._still_since(carrier) >= stall
            if carrier in self.repairs or (still and self._overdue(carrier)):
                self._given_up[carrier.track].update(carrier.outstanding())
                carrier.cancel()
        self.repairs.clear()
        self._asker.check()

    def source_closed(self, source: Source) -> None:
        """A session ended: so did everything on it."""
        for carrier in self.carriers:
            if carrier.route.source is source:
                carrier.end("session.closed")

    def close(self) -> None:
        """The restore is over: cancel what is under way."""
        self._closed = True
        for carrier in self.carriers:
            carrier.cancel()
        for name in ("repair", "recovery", "stall"):
            self._asker.timers.cancel(name)
