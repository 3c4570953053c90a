"""A relay between scripted peers on the memory network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from moqt.drivers.memory import Network
from moqt.endpoint import Host
from moqt.origin import LocalTrack, Origin
from moqt.relay import Relay, RelayConfig
from moqt.session import Request, Session, SessionConfig
from moqt.session.events import (
    Event,
    NamespaceEnded,
    NamespaceReceived,
    ObjectReceived,
    PublishDoneReceived,
    RangeReceived,
    RequestAccepted,
    RequestFailed,
    RequestReceived,
    StreamEnded,
    Via,
)
from moqt.wire.errors import RequestRefused
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import FetchOk, Parameters, RequestError, SetupOptions, SubscribeOk
from moqt.wire.names import FullTrackName, Location, TrackNamespace
from moqt.wire.objects import Object, RangeKind
from moqt.wire.tokens import AliasType, Token

SESSION = SessionConfig(setup=SetupOptions(max_filter_ranges=16))
LAST = 2**64 - 1
SPACE: TrackNamespace = (b"live", b"room")
TRACK = FullTrackName(SPACE, b"video")

E = TypeVar("E", bound=Event)


def token(value: bytes) -> Token:
    """A Token by value, of type 0."""
    return Token(AliasType.USE_VALUE, token_type=0, value=value)


def absolute(start: tuple[int, int], end: tuple[int, int] | None = None) -> LocationFilter:
    """From `start`, to `end` inclusive if there is one; Object 2^64-1 is a whole Group."""
    if end is None:
        return LocationFilter(LocationFilterType.ABSOLUTE_START, *start)
    if end[1] == LAST:
        return LocationFilter(
            LocationFilterType.ABSOLUTE_START_GROUP_END, *start, end[0] - start[0]
        )
    return LocationFilter(LocationFilterType.ABSOLUTE_RANGE, *start, end[0] - start[0], end[1])


def make(group: int, number: int, payload: bytes | None = None, **fields: object) -> Object:
    """An Object of subgroup 0 whose payload names its Location."""
    octets = b"%d/%d" % (group, number) if payload is None else payload
    return Object(Location(group, number), 0, 128, octets, **fields)  # type: ignore[arg-type]


class Peer:
    """An endpoint that records every event; `answer` decides about requests."""

    def __init__(self, answer: Callable[[Request], None] | None = None) -> None:
        self.events: list[Event] = []
        self.sessions: list[Session] = []
        self.answer = answer
        self.host: Host | None = None

    def attach(self, host: Host) -> None:
        self.host = host

    def session_opened(self, session: Session, now: float) -> None:
        self.sessions.append(session)

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        self.events.append(event)
        if isinstance(event, RequestReceived) and self.answer is not None:
            self.answer(event.request)

    def next_timer(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None:
        """No timer here."""

    @property
    def session(self) -> Session:
        """The first session."""
        return self.sessions[0]

    def of(self, kind: type[E], request: Request | None = None) -> list[E]:
        """The events of one class, of one request."""
        return [
            event
            for event in self.events
            if isinstance(event, kind)
            and (request is None or getattr(event, "request", None) is request)
        ]

    def requests(self) -> list[Request]:
        """The requests that came."""
        return [event.request for event in self.of(RequestReceived)]

    def objects(self, request: Request, via: Via | None = None) -> list[tuple[int, int]]:
        """The Locations that came for a request, in order of arrival."""
        return [
            (event.object.location.group, event.object.location.object)
            for event in self.of(ObjectReceived, request)
            if via is None or event.stream.via is via
        ]

    def payloads(self, request: Request) -> dict[tuple[int, int], bytes]:
        """Payloads by Location."""
        return {
            (event.object.location.group, event.object.location.object): bytes(event.object.payload)
            for event in self.of(ObjectReceived, request)
        }

    def ok(self, request: Request) -> SubscribeOk | FetchOk | object | None:
        """The positive answer, None without one."""
        events = self.of(RequestAccepted, request)
        return events[0].response if events else None

    def error(self, request: Request) -> RequestError | None:
        """The negative answer, None without one."""
        events = self.of(RequestFailed, request)
        return events[0].error if events else None

    def ranges(self, request: Request) -> list[tuple[RangeKind, Location, Location]]:
        """End of Range markers."""
        return [(one.kind, one.start, one.end) for one in self.of(RangeReceived, request)]

    def ends(self, request: Request) -> list[int | None]:
        """How its data streams ended: None is FIN, else the reset code."""
        return [one.code for one in self.of(StreamEnded, request)]

    def done(self, request: Request) -> list[int]:
        """PUBLISH_DONE status codes."""
        return [one.message.status_code for one in self.of(PublishDoneReceived, request)]

    def namespaces(self, request: Request) -> list[tuple[str, TrackNamespace]]:
        """NAMESPACE as "+", its end as "-"."""
        return [
            ("+" if isinstance(event, NamespaceReceived) else "-", event.namespace)
            for event in self.events
            if isinstance(event, NamespaceReceived | NamespaceEnded) and event.request is request
        ]


class OpenOrigin(Origin):
    """An origin that counts what it is asked."""

    def __init__(self, **options: int) -> None:
        super().__init__(**options)
        self.asked: list[Request] = []
        self.refusal: RequestRefused | None = None

    def authorise(self, request: Request) -> None:
        self.asked.append(request)
        if self.refusal is not None:
            raise self.refusal

    def kinds(self) -> list[str]:
        """Names of the requests that came."""
        return [request.kind.name for request in self.asked]


class World:
    """One relay `relay`, and whoever connects to it."""

    def __init__(self, config: RelayConfig | None = None, session: SessionConfig = SESSION) -> None:
        self.net = Network(seed=1)
        self.session = session
        self.relay = Relay(config)
        self.net.listen("relay", self.relay, session)

    def peer(
        self,
        name: str,
        answer: Callable[[Request], None] | None = None,
        *,
        url: str = "moqt://relay/",
        config: SessionConfig | None = None,
    ) -> Peer:
        """A scripted peer with one session."""
        peer = Peer(answer)
        host = self.net.client(name, peer)
        peer.attach(host)
        peer.sessions.append(host.connect(url, config or self.session))
        self.settle()
        return peer

    def origin(
        self, name: str = "origin", *, url: str = "moqt://relay/", announce: bool = True
    ) -> OpenOrigin:
        """An origin that announced SPACE."""
        origin = OpenOrigin()
        self.net.client(name, origin)
        origin.connect(url, self.session)
        if announce:
            origin.announce(SPACE)
        self.settle()
        return origin

    def settle(self, seconds: float = 0.2) -> None:
        """Let `seconds` pass."""
        self.net.run(self.net.now + seconds)

    def subscribe(self, peer: Peer, track: FullTrackName = TRACK, **parameters: object) -> Request:
        """SUBSCRIBE from the next Object on, and let it be answered."""
        values = {"location_filter": NEXT_OBJECT, **parameters}
        request = peer.session.subscribe(track, Parameters(**values))  # type: ignore[arg-type]
        self.settle()
        return request

    def fetch(
        self,
        peer: Peer,
        start: tuple[int, int] = (0, 0),
        end: tuple[int, int] | None = None,
        track: FullTrackName = TRACK,
        **parameters: object,
    ) -> Request:
        """FETCH a range, and let it be answered."""
        values = {"location_filter": absolute(start, end), **parameters}
        request = peer.session.fetch(track, Parameters(**values))  # type: ignore[arg-type]
        self.settle()
        return request


def fill(track: LocalTrack, groups: range, objects: int = 3) -> None:
    """Publish whole Groups of `objects` Objects in one subgroup each."""
    for group in groups:
        for number in range(objects):
            track.publish(make(group, number), end_of_group=True)
        track.end_subgroup(group, 0)
