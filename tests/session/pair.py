"""Two sessions wired together in memory, and a raw peer that speaks octets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moqt.session import FetchState, Session, SessionConfig
from moqt.session.events import Event, RequestReceived
from moqt.session.fetching import FetchItem
from moqt.session.requests import Request
from moqt.wire.filters import NEXT_OBJECT
from moqt.wire.messages import Parameters, SetupOptions
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus

E = TypeVar("E")

TRACK = FullTrackName((b"live",), b"video")
OTHER = FullTrackName((b"live",), b"audio")
LIVE = Parameters(location_filter=NEXT_OBJECT)


@dataclass(frozen=True)
class Sent:
    """One call of the session on its transport."""

    name: str
    stream: int | None = None
    data: bytes = b""
    fin: bool = False
    code: int = 0


@dataclass
class WireTap:
    """A Transport that writes down what the session does; room and credit are test knobs."""

    is_client: bool
    calls: list[Sent] = field(default_factory=list)
    on_call: Callable[[Sent], None] | None = None
    credit: dict[bool, int] = field(default_factory=lambda: {True: 10**9, False: 10**9})
    window: int | None = None
    acknowledged: bool = True
    paused: set[int] = field(default_factory=set)
    resumed: list[int] = field(default_factory=list)
    datagram_room: bool = True
    closed: tuple[int, str] | None = None
    opened: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    ended: set[int] = field(default_factory=set)

    def _note(self, call: Sent) -> None:
        self.calls.append(call)
        if self.on_call is not None:
            self.on_call(call)

    def open_stream(self, *, unidirectional: bool) -> int | None:
        if self.credit[unidirectional] <= 0:
            return None
        self.credit[unidirectional] -= 1
        number = self.opened[unidirectional]
        self.opened[unidirectional] += 1
        return number * 4 + (not self.is_client) + 2 * unidirectional

    def send(self, stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        if stream_id in self.ended:
            return
        if fin:
            self.ended.add(stream_id)
        if self.window is not None and stream_id & 2 and len(data):
            self.window -= len(data)
        self._note(Sent("send", stream_id, bytes(data), fin))

    def room(self, stream_id: int) -> int:
        return 1 << 40 if self.window is None else max(0, self.window)

    def reset(self, stream_id: int, code: int) -> None:
        if stream_id not in self.ended:
            self.ended.add(stream_id)
            self._note(Sent("reset", stream_id, code=code))

    def stop_sending(self, stream_id: int, code: int) -> None:
        self._note(Sent("stop", stream_id, code=code))

    def pause(self, stream_id: int) -> None:
        self.paused.add(stream_id)

    def resume(self, stream_id: int) -> None:
        self.paused.discard(stream_id)
        self.resumed.append(stream_id)

    def all_acknowledged(self, stream_id: int) -> bool:
        return self.acknowledged

    def send_datagram(self, data: bytes) -> bool:
        if self.datagram_room:
            self._note(Sent("datagram", data=bytes(data)))
        return self.datagram_room

    def close(self, code: int, reason: str) -> None:
        if self.closed is None:
            self.closed = (code, reason)
            self._note(Sent("close", code=code))

    # What a test asks.

    def on_stream(self, stream_id: int) -> bytes:
        """All octets sent on a stream."""
        return b"".join(c.data for c in self.calls if c.name == "send" and c.stream == stream_id)

    def fin_on(self, stream_id: int) -> bool:
        """Whether FIN was sent on it."""
        return any(c.fin for c in self.calls if c.name == "send" and c.stream == stream_id)

    def codes(self, name: str) -> dict[int, int]:
        """Codes of `reset` or `stop` by stream."""
        return {c.stream: c.code for c in self.calls if c.name == name and c.stream is not None}

    def data_streams(self) -> list[int]:
        """Unidirectional streams with octets, besides control, in the order of first octets."""
        seen = [c.stream for c in self.calls if c.name == "send" and c.stream is not None]
        control = 3 if not self.is_client else 2
        return [s for s in dict.fromkeys(seen) if s & 2 and s != control]

    def datagrams(self) -> list[bytes]:
        """Datagrams that went out."""
        return [c.data for c in self.calls if c.name == "datagram"]


SETUP = SetupOptions(max_auth_token_cache_size=4096, max_filter_ranges=16)


def config(**changes: Any) -> SessionConfig:
    """A config with a token cache and filter ranges unless told otherwise."""
    return SessionConfig(**{"setup": SETUP, **changes})


class Pair:
    """A client and a server; `held` streams of either side wait until `let_go`."""

    def __init__(
        self,
        client: SessionConfig | None = None,
        server: SessionConfig | None = None,
        *,
        start: bool = True,
    ) -> None:
        self.now = 0.0
        self.taps = (WireTap(True), WireTap(False))
        self.client = Session(True, self.taps[0], client or config())
        self.server = Session(False, self.taps[1], server or config())
        self.sessions = (self.client, self.server)
        self.queues: tuple[deque[Sent], deque[Sent]] = (deque(), deque())
        self.held: Callable[[Sent], bool] | None = None
        self.waiting: list[tuple[int, Sent]] = []
        self.events: tuple[list[Event], list[Event]] = ([], [])
        for tap, queue in zip(self.taps, self.queues, strict=True):
            tap.on_call = queue.append
        if start:
            self.client.start(self.now)
            self.server.start(self.now)
            self.run()

    def run(self) -> None:
        """Carry calls to the other side until nothing moves."""
        moved = True
        while moved:
            moved = False
            for session in self.sessions:
                session.writable(self.now)
            for side in (0, 1):
                while self.queues[side]:
                    moved = True
                    self._carry(side, self.queues[side].popleft())
            for side in (0, 1):
                while (event := self.sessions[side].next_event()) is not None:
                    self.events[side].append(event)

    def _carry(self, side: int, call: Sent) -> None:
        if self.held is not None and self.held(call):
            self.waiting.append((side, call))
            return
        peer = self.sessions[1 - side]
        stream = call.stream if call.stream is not None else -1
        match call.name:
            case "send":
                peer.stream_data(stream, call.data, call.fin, self.now)
            case "reset":
                peer.stream_reset(stream, call.code, self.now)
            case "stop":
                peer.stop_sending_received(stream, call.code, self.now)
            case "datagram":
                peer.datagram(call.data, self.now)
            case "close":
                peer.connection_closed(call.code, "closed", True, self.now)

    def let_go(self) -> None:
        """Deliver what was held back."""
        self.held = None
        waiting, self.waiting = self.waiting, []
        for side, call in waiting:
            self._carry(side, call)
        self.run()

    def wait(self, seconds: float) -> None:
        """Let time pass; timers fire when they are due."""
        end = self.now + seconds
        while True:
            due = [t for s in self.sessions if (t := s.next_timer()) is not None and t <= end]
            if not due:
                break
            self.now = max(self.now, min(due))
            for session in self.sessions:
                session.handle_timer(self.now)
            self.run()
        self.now = end
        for session in self.sessions:
            session.advance(end)
        self.run()

    def seen(self, side: int, kind: type[E]) -> list[E]:
        """Events of one kind that a side (0 client, 1 server) got."""
        return [event for event in self.events[side] if isinstance(event, kind)]

    def one(self, side: int, kind: type[E]) -> E:
        """The only event of that kind."""
        (event,) = self.seen(side, kind)
        return event

    def request(self, side: int = 1) -> Request:
        """The latest request that a side received."""
        return self.seen(side, RequestReceived)[-1].request


class RawPeer:
    """A session under test, and a peer that is nothing but octets."""

    def __init__(
        self,
        *,
        session_is_client: bool = False,
        setup: str | None = "af000000",
        options: SetupOptions = SETUP,
        **changes: Any,
    ) -> None:
        """`setup`: what the peer sends; `options`: what the session's own SETUP says."""
        self.tap = WireTap(session_is_client)
        self.session = Session(session_is_client, self.tap, config(setup=options, **changes))
        self.now = 0.0
        self.session.start(self.now)
        self.bidi = 0 if not session_is_client else 1
        self.uni = 2 if not session_is_client else 3
        self.control = self.uni
        self.uni += 4
        self.events: list[Event] = []
        if setup is not None:
            self.send(self.control, setup)

    def send(self, stream: int, octets: str | bytes, fin: bool = False) -> int:
        """Octets (hex text or bytes) on a stream."""
        data = bytes.fromhex(octets) if isinstance(octets, str) else octets
        self.session.stream_data(stream, data, fin, self.now)
        self.take()
        return stream

    def request(self, octets: str | bytes, fin: bool = False) -> int:
        """Octets on a new request stream."""
        stream = self.bidi
        self.bidi += 4
        return self.send(stream, octets, fin)

    def stream(self, octets: str | bytes, fin: bool = False) -> int:
        """Octets on a new unidirectional stream."""
        stream = self.uni
        self.uni += 4
        return self.send(stream, octets, fin)

    def take(self) -> None:
        """Flush, and collect events."""
        self.session.writable(self.now)
        while (event := self.session.next_event()) is not None:
            self.events.append(event)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (due := self.session.next_timer()) is not None and due <= end:
            self.now = max(self.now, due)
            self.session.handle_timer(self.now)
        self.now = end
        self.session.advance(end)
        self.take()

    @property
    def code(self) -> int | None:
        """With what the session closed, None while it lives."""
        return None if self.tap.closed is None else self.tap.closed[0]

    def seen(self, kind: type[E]) -> list[E]:
        """Events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]


class ListSource:
    """A FetchSource over a list; `FetchState.WAIT` in it waits once."""

    def __init__(self, items: Iterable[FetchItem]) -> None:
        self.items = deque(items)
        self.asked = 0

    def next_item(self) -> FetchItem:
        self.asked += 1
        return self.items.popleft() if self.items else FetchState.END


def obj(
    group: int,
    object_id: int,
    payload: bytes = b"x",
    *,
    subgroup: int | None = 0,
    priority: int = 128,
    status: ObjectStatus = ObjectStatus.NORMAL,
    properties: bytes = b"",
) -> Object:
    """An Object in short."""
    return Object(Location(group, object_id), subgroup, priority, payload, status, properties)


def subscribed(
    pair: Pair, parameters: Parameters = LIVE, largest: Location | None = None, **changes: Any
) -> tuple[Request, Request]:
    """A SUBSCRIBE of the client that the server accepted: (ours at the client, at the server)."""
    ours = pair.client.subscribe(TRACK, parameters)
    pair.run()
    theirs = pair.request()
    pair.server.accept_subscribe(theirs, largest=largest, **changes)
    pair.run()
    return ours, theirs
