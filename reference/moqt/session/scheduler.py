"""Which Object octets go next (MOQT-22 §5.1.2).

An outlet is one thing that writes Objects: a subgroup stream, the datagrams of a subscription, a
fetch or fill stream. The outlets of one request form a lane. Between lanes the order is
Subscriber Priority, then Publisher Priority of the lane's first outlet, then fairness: the lane
that sent fewest octets. Within a lane the outlet's own `urgency` decides.

Both levels are heaps whose stale entries are skipped when they come up, so a decision costs the
logarithm of what waits, whatever the size of the Objects. Outlets that wait for stream credit are
kept apart: however many they are, they cost nothing while there is none.
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


_Place: TypeAlias = "tuple[Urgency, int, Outlet]"


class Lane:
    """The outlets of one request: those that can write, and those that need a stream first."""

    __slots__ = ("entry", "key", "open", "priority", "turn", "unopened")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.turn = 0
        self.open: list[_Place] = []
        self.unopened: list[_Place] = []
        self.key: tuple[int, int] | None = None
        self.entry = -1


class Outlet(ABC):
    """One writer of Objects.

    `entry` names its valid place in the lane, -1 for none. `started`: its first octets, the
    header, went out.
    """

    __slots__ = ("core", "entry", "gone", "lane", "started", "stream_id")

    def __init__(self, core: Core, lane: Lane) -> None:
        self.core = core
        self.lane = lane
        self.entry = -1
        self.gone = False
        self.started = False
        self.stream_id: int | None = None

    @property
    @abstractmethod
    def urgency(self) -> Urgency:
        """Where it stands among the outlets of its request."""

    @property
    @abstractmethod
    def has_work(self) -> bool:
        """Whether there is something to write now, be it only FIN."""

    @property
    def needs_stream(self) -> bool:
        """Whether it cannot write before `open`."""
        return self.stream_id is None

    @abstractmethod
    def open(self) -> bool:
        """Open its stream; False while the peer grants none."""

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
        self._without_credit: set[Lane] = set()
        self._credit = True
        self._numbers = count()
        self._virtual = 0

    def ready(self, outlet: Outlet) -> None:
        """`outlet` has work; no effect when that is known."""
        if outlet.entry < 0 and not outlet.gone:
            outlet.entry = next(self._numbers)
            self._place(outlet)
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
        self._credit = True
        parked, self._parked = self._parked, []
        for outlet in parked:
            if outlet.entry >= 0:
                self._place(outlet)
                self._enter(outlet.lane)
        waiting, self._without_credit = self._without_credit, set()
        for lane in waiting:
            self._enter(lane)
        lanes = self._lanes
        exhausted = False
        while lanes and not exhausted:
            _, _, _, number, lane = heappop(lanes)
            if number != lane.entry:
                continue
            lane.key = None
            heap = self._first(lane)
            if heap is not None:
                exhausted = not self._serve(heappop(heap)[2])
            self._enter(lane)

    def _serve(self, outlet: Outlet) -> bool:
        """Let it write; False when the connection has no room at all."""
        if not outlet.has_work:
            outlet.entry = -1
            return True
        if outlet.needs_stream and not outlet.open():
            self._credit = False
            self._place(outlet)
            return True
        room = outlet.room()
        if room <= 0 and not outlet.started:
            # A new stream has room of its own: it is the connection that has none.
            self._parked.append(outlet)
            return False
        written = outlet.write(min(room, QUANTUM))
        if room > 0:
            # Without room it was no turn: the others are not to be moved behind this lane.
            self._virtual = max(self._virtual, outlet.lane.turn)
            outlet.lane.turn += max(written, 1)
        if outlet.gone:
            return True
        if not outlet.has_work:
            outlet.entry = -1
        elif outlet.room() <= 0:
            self._parked.append(outlet)
        else:
            self._place(outlet)
        return True

    def _place(self, outlet: Outlet) -> None:
        lane = outlet.lane
        heap = lane.unopened if outlet.needs_stream else lane.open
        heappush(heap, (outlet.urgency, outlet.entry, outlet))

    def _first(self, lane: Lane) -> list[_Place] | None:
        """The heap with the lane's most urgent outlet that may write now."""
        best: list[_Place] | None = None
        for heap in (lane.open, lane.unopened):
            while heap and heap[0][1] != heap[0][2].entry:
                heappop(heap)
            if heap and (heap is lane.open or self._credit) and (not best or heap[0] < best[0]):
                best = heap
        if lane.unopened and not self._credit:
            self._without_credit.add(lane)
        return best

    def _enter(self, lane: Lane) -> None:
        """Put the lane where its first outlet belongs."""
        heap = self._first(lane)
        if heap is None:
            lane.entry, lane.key = -1, None
            return
        key = (lane.priority, heap[0][0][0])
        if key != lane.key:
            lane.key = key
            lane.turn = max(lane.turn, self._virtual)
            lane.entry = next(self._numbers)
            heappush(self._lanes, (*key, lane.turn, lane.entry, lane))
