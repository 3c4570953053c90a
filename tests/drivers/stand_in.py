"""A session that only records what its driver tells it, and an endpoint that keeps them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from moqt.session.transport import Transport
from moqt.wire.messages import SetupOptions


@dataclass(frozen=True)
class StandInDraft:
    """The one attribute of a Draft that a driver reads."""

    alpn: str = "moqt-22"


@dataclass(frozen=True)
class StandInConfig:
    """The attributes of a SessionConfig that a driver reads."""

    draft: Any = field(default_factory=StandInDraft)
    setup: SetupOptions = field(default_factory=SetupOptions)


@dataclass
class StandInSession:
    """Every call of the driver becomes an event (name, *arguments); `hooks` hear of each."""

    hooks: ClassVar[list[Callable[[], None]]] = []

    is_client: bool
    transport: Transport
    config: Any
    url: str | None = None
    alpn: str = ""
    now: float = 0.0
    timer: float | None = None
    closed: bool = False
    events: deque[tuple[Any, ...]] = field(default_factory=deque)
    told: list[tuple[Any, ...]] = field(default_factory=list)
    received: dict[int, bytearray] = field(default_factory=dict)
    pieces: dict[int, list[int]] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    writable_calls: int = 0
    unsent: dict[int, memoryview] = field(default_factory=dict)
    reset_on_stop: int | None = None

    def _tell(self, now: float, *event: Any) -> None:
        self.now = now
        self.events.append(event)
        self.told.append(event)
        for hook in self.hooks:
            hook()

    def start(self, now: float) -> None:
        self._tell(now, "start")

    def advance(self, now: float) -> None:
        assert now >= self.now
        self.now = now

    def stream_data(self, stream_id: int, data: bytes, fin: bool, now: float) -> None:
        assert stream_id not in self.finished
        self.received.setdefault(stream_id, bytearray()).extend(data)
        self.pieces.setdefault(stream_id, []).append(len(data))
        if fin:
            self.finished.add(stream_id)
        self._tell(now, "data", stream_id, bytes(data), fin)

    def stream_reset(self, stream_id: int, code: int, now: float) -> None:
        self._tell(now, "reset", stream_id, code)

    def stop_sending_received(self, stream_id: int, code: int, now: float) -> None:
        self._tell(now, "stop", stream_id, code)
        if self.reset_on_stop is not None:
            self.transport.reset(stream_id, self.reset_on_stop)

    def datagram(self, data: bytes, now: float) -> None:
        self._tell(now, "datagram", bytes(data))

    def connection_closed(self, code: int | None, reason: str, by_peer: bool, now: float) -> None:
        self.closed = True
        self._tell(now, "closed", code, reason, by_peer)

    def writable(self, now: float) -> None:
        self.now = now
        self.writable_calls += 1
        for stream_id in list(self.unsent):
            self._write(stream_id)
        for hook in self.hooks:
            hook()

    def send_all(self, stream_id: int, data: bytes) -> None:
        """Write `data` and FIN as far as there is room, the rest when there is more."""
        self.unsent[stream_id] = memoryview(data)
        self._write(stream_id)

    def _write(self, stream_id: int) -> None:
        rest = self.unsent[stream_id]
        while rest and (room := self.transport.room(stream_id)):
            piece = rest[: min(room, 16384)]
            rest = rest[len(piece) :]
            self.transport.send(stream_id, piece, not rest)
        self.unsent[stream_id] = rest
        if not rest:
            del self.unsent[stream_id]

    def next_timer(self) -> float | None:
        return self.timer

    def handle_timer(self, now: float) -> None:
        self.timer = None
        self._tell(now, "timer")

    def next_event(self) -> tuple[Any, ...] | None:
        return self.events.popleft() if self.events else None

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """What the driver told under one name."""
        return [event for event in self.told if event[0] == name]


class StandInEndpoint:
    """Keeps the sessions that were opened to it and every event with its time."""

    def __init__(self) -> None:
        self.host: Any = None
        self.sessions: list[StandInSession] = []
        self.events: list[tuple[float, StandInSession, tuple[Any, ...]]] = []
        self.timer: float | None = None
        self.timers: list[float] = []

    def attach(self, host: Any) -> None:
        self.host = host

    def session_opened(self, session: Any, now: float) -> None:
        self.sessions.append(session)

    def handle_event(self, session: Any, event: Any, now: float) -> None:
        self.events.append((now, session, event))

    def next_timer(self) -> float | None:
        return self.timer

    def handle_timer(self, now: float) -> None:
        self.timer = None
        self.timers.append(now)


FACTORY: Any = StandInSession
"""A session factory for drivers, which take real sessions only."""


def stand_in_config(**changes: Any) -> Any:
    """A StandInConfig where a driver takes SessionConfig."""
    return StandInConfig(**changes)
