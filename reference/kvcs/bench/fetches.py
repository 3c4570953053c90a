"""How fast a relay answers small FETCHes: a round trip each, one after another and side by side."""

from __future__ import annotations

import asyncio
from typing import Any

from moqt.drivers.quic import QuicHost
from moqt.origin import Origin
from moqt.session import Session, SessionConfig
from moqt.session.events import Event, ObjectReceived, SetupReceived, StreamEnded
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object

from kvcs.bench.processes import Channel, clock
from kvcs.bench.relaying import options

TRACK = FullTrackName((b"bench",), b"small")
GROUPS = 64
SIDE_BY_SIDE = 16
PATIENCE_S = 120.0


async def origin(channel: Channel, settings: dict[str, Any]) -> None:
    """A Track of small Objects, one per Group."""

    class Source(Origin):
        def on_announced(self, session: Session, namespace: tuple[bytes, ...]) -> None:
            channel.tell("announced")

    role = Source()
    _host = QuicHost(role, options(settings))
    track = role.add_track(TRACK)
    for group in range(GROUPS):
        track.publish(Object(Location(group, 0), 0, 128, bytes(64)))
        track.end_subgroup(group, 0)
    role.announce(TRACK.namespace)
    role.connect(settings["url"], SessionConfig())
    await channel.answer_usage()


class Fetcher:
    """Endpoint that fetches `count` Objects, `side_by_side` at a time, over and over."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.done = asyncio.Event()
        self._session: Session | None = None
        self._left = 0
        self._open = 0
        self._received = 0

    def attach(self, host: Any) -> None:
        """Called by the driver."""

    def session_opened(self, session: Session, now: float) -> None:
        """Nobody connects to us."""

    def next_timer(self) -> float | None:
        """Nothing here waits for a time."""
        return None

    def handle_timer(self, now: float) -> None:
        """Nothing here waits for a time."""

    def begin(self, session: Session, count: int, side_by_side: int) -> None:
        """Ask for the first Objects; `done` is set when `count` have come."""
        self._session, self._left, self._received = session, count, 0
        self.done.clear()
        for _ in range(side_by_side):
            self._next()

    def _next(self) -> None:
        if self._left == 0 or self._session is None:
            if self._open == 0:
                self.done.set()
            return
        self._left -= 1
        self._open += 1
        group = self._left % GROUPS
        only = LocationFilter(LocationFilterType.ABSOLUTE_START_GROUP_END, group, 0, 0)
        self._session.fetch(TRACK, Parameters(location_filter=only))

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """A fetch stream that ends makes room for the next fetch."""
        match event:
            case SetupReceived():
                self.ready.set()
            case ObjectReceived():
                self._received += 1
            case StreamEnded():
                self._open -= 1
                self._next()


async def client(channel: Channel, settings: dict[str, Any]) -> None:
    """Round trips per second; the relay's cache is warm by then."""
    role = Fetcher()
    host = QuicHost(role, options(settings))
    session = host.connect(settings["url"], SessionConfig())
    async with asyncio.timeout(PATIENCE_S):
        await role.ready.wait()
        rates = []
        for count, side_by_side in (
            (GROUPS, 1),
            (settings["count"], 1),
            (settings["count"], SIDE_BY_SIDE),
        ):
            began = clock()
            role.begin(session, count, side_by_side)
            host.wake()
            await role.done.wait()
            rates.append(count / (clock() - began))
    channel.tell("rates", rates[1:])
    await channel.answer_usage()
