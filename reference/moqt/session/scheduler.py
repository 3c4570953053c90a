"""Which Object octets go next (MOQT-22 §5.1.2).

An outlet is one thing that writes Objects: a subgroup stream, the datagrams of a subscription, a
fetch or fill stream. The outlets of one request form a lane. Between lanes the order is
Subscriber Priority, then Publisher Priority of the lane's first outlet, then fairness: the lane
that sent fewest octets. Within a lane the outlet's own `urgency` decides.

Both levels are heaps whose stale entries are skipped when they come up, so a decision costs the
logarithm of what waits, whatever the size of the Objects.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

from moqt.session.core import Core

QUANTUM = 1 << 16
"""Octets that an outlet may write before others are looked at again."""

Urgency: TypeAlias = tuple[int, int, int, int, int]
"""Publisher Priority, then the place inside the request; lower goes first."""


class Lane:
    """The outlets of one request."""

    __slots__ = ("entry", "key", "outlets", "priority", "turn")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.turn = 0
        self.outlets: list[tuple[Urgency, int, Outlet]] = []
        self.key: tuple[int, int] | None = None
        self.entry = -1


class Outlet(ABC):
    """One writer of Objects; `entry` names its valid place in the lane, -1 for none."""

    __slots__ = ("core", "entry", "gone", "lane", "stream_id")

    def __init__(self, core: Core, lane: Lane) -> None:
        self.core = core
        self.lane = lane
        self.entry = -1
        self.gone = False
        self.stream_id: int | None = None

    @property
    @abstractmethod
    def urgency(self) -> Urgency:
        """Where it stands among the outlets of its request."""

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether there is something to write now, be it only FIN."""

    @abstractmethod
    def open(self) -> bool:
        """Get what is needed to write; False while the peer grants no stream."""

    def room(self) -> int:
        """Octets that it may write now."""
        assert self.stream_id is not None
        return self.core.transport.room(self.stream_id)

    @abstractmethod
    def write(self, room: int) -> int:
        """Write at most `room` octets; the count of those written."""

    @abstractmethod
    def stopped(self, code: int) -> None:
        """The peer sent STOP_SENDING."""


class Scheduler:
    """Hands out the transport's room."""

    def __init__(self) -> None:
        self._lanes: list[tuple[int, int, int, int, Lane]] = []
        self._parked: list[Outlet] = []
        self._numbers = count()
        self._virtual = 0

    def ready(self, outlet: Outlet) -> None:
        """`outlet` has work; no effect when that is known."""
        if outlet.entry >= 0 or outlet.gone:
            return
        outlet.entry = number = next(self._numbers)
        heappush(outlet.lane.outlets, (outlet.urgency, number, outlet))
        self._enter(outlet.lane)

    def withdraw(self, outlet: Outlet) -> None:
        """`outlet` ended: it is never asked again."""
        outlet.entry = -1
        outlet.gone = True

    def reprioritise(self, lane: Lane, priority: int) -> None:
        """The Subscriber Priority of a request changed."""
        lane.priority = priority
        self._enter(lane)

    def pump(self) -> None:
        """Write while there are room and work, the most urgent first."""
        parked, self._parked = self._parked, []
        for outlet in parked:
            if outlet.entry >= 0:
                outlet.entry = -1
                self.ready(outlet)
        lanes = self._lanes
        while lanes:
            _, _, turn, number, lane = heappop(lanes)
            if number != lane.entry:
                continue
            lane.key = None
            first = self._take(lane)
            if first is not None:
                self._virtual = max(self._virtual, turn)
                self._serve(first)
            self._enter(lane)

    def _take(self, lane: Lane) -> Outlet | None:
        while lane.outlets:
            _, number, outlet = heappop(lane.outlets)
            if number == outlet.entry:
                return outlet
        return None

    def _serve(self, outlet: Outlet) -> None:
        if not outlet.has_work:
            outlet.entry = -1
            return
        if not outlet.open():
            self._parked.append(outlet)
            return
        outlet.lane.turn += max(outlet.write(min(outlet.room(), QUANTUM)), 1)
        if outlet.gone:
            return
        if outlet.has_work and outlet.room() <= 0:
            self._parked.append(outlet)
            return
        outlet.entry = -1
        if outlet.has_work:
            self.ready(outlet)

    def _enter(self, lane: Lane) -> None:
        """Put the lane where its first outlet belongs."""
        outlets = lane.outlets
        while outlets and outlets[0][1] != outlets[0][2].entry:
            heappop(outlets)
        if not outlets:
            lane.entry, lane.key = -1, None
            return
        key = (lane.priority, outlets[0][0][0])
        if key != lane.key:
            lane.key = key
            lane.turn = max(lane.turn, self._virtual)
            lane.entry = next(self._numbers)
            heappush(self._lanes, (*key, lane.turn, lane.entry, lane))
