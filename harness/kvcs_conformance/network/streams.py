"""Interfering with single streams, inside a node of ours: held back, reset, delayed, not read.

On the way between two nodes QUIC's packets are encrypted, so nothing there knows streams. What a
case does to streams is done between the session and the driver of a node that is ours: the same
code on every link. The session does not notice: it believes that everything went out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from moqt.session import Session, SessionConfig, Transport
from moqt.wire.errors import StreamError
from moqt.wire.names import FullTrackName

from kvcs_conformance.network.base import Action

if TYPE_CHECKING:
    from kvcs_conformance.evidence.record import Recorder

ROOM = 1 << 20
"""What a stream that was reset behind the session's back seems to take, so that it goes on."""

DELAYS = (0.0, 0.015, 0.03, 0.045)
"""Seconds by which a stream may be late where streams are reordered."""

FLIGHT = 0.05
"""Seconds that octets get to arrive before the RESET_STREAM that would drop them."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Which streams to a peer are meant: of a track, of one layer or all; `fin`: only their ends,
    not their octets."""

    to: str
    track: str | None
    layer: int | None
    fin: bool = False

    def have(self, peer: str, stream: Outgoing) -> bool:
        """Whether a stream is among them."""
        return (
            self.to == peer
            and self.track in (None, stream.track)
            and self.layer in (None, stream.layer)
        )


@dataclass(slots=True)
class Outgoing:
    """A data stream that a node sends: what it carries, and what became of it."""

    track: str
    layer: int | None
    held: list[tuple[bytes, bool]] = field(default_factory=list)
    holds: bool = False
    passed: int = 0
    begun: bool = False
    overtaken: int = 0
    dead: bool = False


class Interference:
    """What is done to the streams of one node; `later` runs an action at the node after a time."""

    def __init__(
        self,
        node: str,
        recorder: Recorder,
        later: Callable[[float, Action], None],
        peer_of: Callable[[Any], str],
        reorders: Callable[[str], bool],
        seed: int,
    ) -> None:
        self.node = node
        self.later = later
        self.peer_of = peer_of
        self.reorders = reorders
        self.held: list[Streams] = []
        self.resets: list[tuple[Streams, int, int]] = []
        self.reading = True
        self._recorder = recorder
        self._sessions: list[MeddledSession] = []
        self._seed = seed

    def make_session(self, is_client: bool, transport: Transport, config: SessionConfig) -> Session:
        """The session factory of the node's driver."""
        chance = Random(f"{self._seed}/streams/{self.node}/{len(self._sessions)}")
        session_class: type[MeddledSession] = MeddledSession
        if config.session_class is not None:
            session_class = type("MeddledSession", (MeddledSession, config.session_class), {})
        session = session_class(self, is_client, transport, config, chance)
        self._sessions.append(session)
        return session

    def note(self, what: str, **details: Any) -> None:
        """Keep what was done, in the log of the network."""
        self._recorder.trace(f"network:{what}", details)

    # What steps ask for; called at the node.

    def hold(self, streams: Streams) -> None:
        """Hold back from now on."""
        self.held.append(streams)

    def release(self, streams: Streams) -> None:
        """Let go what a `hold` of the same streams kept."""
        self.held = [entry for entry in self.held if entry != streams]
        for session in self._sessions:
            session.sending.let_go()

    def reset(self, streams: Streams, at: int, code: int) -> None:
        """Reset the next stream of these once `at` octets of it went out."""
        self.resets.append((streams, at, code))

    def stop_reading(self) -> None:
        """Take no octet of a data stream any more, and grant no credit."""
        self.reading = False

    def read(self) -> None:
        """Take what waited, and go on."""
        self.reading = True
        for session in self._sessions:
            session.read_on()


class MeddledTransport:
    """A Transport before the driver's own."""

    def __init__(self, faults: Interference, below: Transport, chance: Random) -> None:
        self._faults = faults
        self._below = below
        self._chance = chance
        self._streams: dict[int, Outgoing] = {}
        self._out_of_streams = False

    # Named by the trace before the octets come.

    def carries(self, stream_id: int, values: Mapping[str, Any]) -> None:
        """A stream's track and Group; those of a fetch are of all layers."""
        if stream_id in self._streams or not isinstance(values.get("track"), FullTrackName):
            return
        layer = values["group"] if values.get("via") == "subscription" else None
        stream = Outgoing(values["track"].name.decode("ascii", "backslashreplace"), layer)
        self._streams[stream_id] = stream
        faults = self._faults
        if faults.reorders(self.peer):
            delay = self._chance.choice(DELAYS)
            if delay:
                stream.holds = True
                faults.later(delay, lambda: self._due(stream_id, stream))

    @property
    def peer(self) -> str:
        """The node at the other end."""
        return self._faults.peer_of(self._below)

    # The Transport.

    def open_stream(self, *, unidirectional: bool) -> int | None:
        stream_id = self._below.open_stream(unidirectional=unidirectional)
        if (stream_id is None) is not self._out_of_streams and unidirectional:
            self._out_of_streams = stream_id is None
            if self._out_of_streams:
                self._faults.note("no-stream-left", **{"from": self._faults.node, "to": self.peer})
        return stream_id

    def send(self, stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            self._below.send(stream_id, data, fin)
        elif stream.dead:
            return
        elif stream.holds or stream.held or self._is_held(stream):
            self._keep(stream_id, stream, bytes(data), fin)
        elif fin and self._is_held(stream, fin=True):
            if data:
                self._pass(stream_id, stream, data, False)
            self._keep(stream_id, stream, b"", True)
        else:
            self._pass(stream_id, stream, data, fin)

    def room(self, stream_id: int) -> int:
        stream = self._streams.get(stream_id)
        return ROOM if stream is not None and stream.dead else self._below.room(stream_id)

    def reset(self, stream_id: int, code: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.dead = True
            stream.held.clear()
        self._below.reset(stream_id, code)

    def stop_sending(self, stream_id: int, code: int) -> None:
        self._below.stop_sending(stream_id, code)

    def pause(self, stream_id: int) -> None:
        self._below.pause(stream_id)

    def resume(self, stream_id: int) -> None:
        self._below.resume(stream_id)

    def all_acknowledged(self, stream_id: int) -> bool:
        stream = self._streams.get(stream_id)
        if stream is not None and stream.held:
            return False
        return self._below.all_acknowledged(stream_id)

    def send_datagram(self, data: bytes) -> bool:
        return self._below.send_datagram(data)

    def close(self, code: int, reason: str) -> None:
        self._below.close(code, reason)

    # Faults.

    def let_go(self) -> None:
        """Send what nothing holds back any more."""
        for stream_id, stream in list(self._streams.items()):
            held = self._is_held(stream) or self._is_held(stream, fin=True)
            if stream.held and not stream.holds and not held:
                self._note("released", stream_id, stream)
                self._send_held(stream_id, stream)

    def _keep(self, stream_id: int, stream: Outgoing, data: bytes, fin: bool) -> None:
        if not stream.held and not stream.holds:
            self._note("held", stream_id, stream, fin_only=fin and not data)
        stream.held.append((data, fin))

    def _due(self, stream_id: int, stream: Outgoing) -> None:
        """The delay of a stream is over."""
        stream.holds = False
        if not stream.held or self._is_held(stream):
            return
        if stream.overtaken:
            self._note("overtaken", stream_id, stream, by=stream.overtaken)
        self._send_held(stream_id, stream)

    def _send_held(self, stream_id: int, stream: Outgoing) -> None:
        waiting, stream.held = stream.held, []
        for data, fin in waiting:
            if not stream.dead:
                self._pass(stream_id, stream, data, fin)

    def _pass(self, stream_id: int, stream: Outgoing, data: bytes | memoryview, fin: bool) -> None:
        if not stream.begun:
            stream.begun = True
            for number, other in self._streams.items():
                if number < stream_id and other.held:
                    other.overtaken += 1
        rule = next((r for r in self._faults.resets if r[0].have(self.peer, stream)), None)
        if rule is not None and stream.passed + len(data) >= rule[1]:
            self._faults.resets.remove(rule)
            self._cut(stream_id, stream, data, rule[1], rule[2])
            return
        stream.passed += len(data)
        self._below.send(stream_id, data, fin)

    def _cut(
        self, stream_id: int, stream: Outgoing, data: bytes | memoryview, at: int, code: int
    ) -> None:
        """Reset the stream `at` octets from its beginning."""
        stream.dead = True
        if left := max(at - stream.passed, 0):
            self._below.send(stream_id, data[:left])
        stream.passed += left

        def reset() -> None:
            self._note("reset", stream_id, stream, at=stream.passed, code=code)
            self._below.reset(stream_id, code)

        self._faults.later(FLIGHT, reset)

    def _is_held(self, stream: Outgoing, *, fin: bool = False) -> bool:
        return any(
            streams.fin is fin and streams.have(self.peer, stream) for streams in self._faults.held
        )

    def _note(self, what: str, stream_id: int, stream: Outgoing, **more: Any) -> None:
        details = {"stream": stream_id, "track": stream.track, "layer": stream.layer, **more}
        self._faults.note(what, **{"from": self._faults.node, "to": self.peer}, **details)


class MeddledSession(Session):
    """A Session whose streams can be interfered with on both sides."""

    def __init__(
        self,
        faults: Interference,
        is_client: bool,
        transport: Transport,
        config: SessionConfig,
        chance: Random,
    ) -> None:
        self.sending = MeddledTransport(faults, transport, chance)
        self._faults = faults
        self._waiting: dict[int, tuple[bytes, bool]] = {}
        self._control_streams: set[int] = set()
        trace = config.trace

        def watch(name: str, values: dict[str, object]) -> None:
            stream: Any = values.get("stream")
            if name == "moqt:object_sent" and stream is not None:
                self.sending.carries(stream, values)
            elif name == "moqt:stream_accepted" and values["kind"] == "control":
                self._control_streams.add(stream)
            if trace is not None:
                trace(name, values)

        super().__init__(is_client, self.sending, replace(config, trace=watch))

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        """See `Session.stream_data`; data streams wait while the node does not read."""
        unidirectional = bool(stream_id & 2)
        if self._faults.reading or not unidirectional or stream_id in self._control_streams:
            super().stream_data(stream_id, data, fin, now)
            return
        known = self._waiting.get(stream_id)
        if known is None:
            self._faults.note("not-read", node=self._faults.node, stream=stream_id)
            self.sending.pause(stream_id)
        before = known[0] if known else b""
        self._waiting[stream_id] = (before + bytes(data), fin)

    def stream_reset(self, stream_id: int, code: int, now: float) -> None:
        """See `Session.stream_reset`."""
        self._waiting.pop(stream_id, None)
        super().stream_reset(stream_id, code, now)

    def read_on(self) -> None:
        """Take what waited."""
        waiting, self._waiting = self._waiting, {}
        for stream_id, (data, fin) in waiting.items():
            super().stream_data(stream_id, data, fin, self.now)
            self.sending.resume(stream_id)


CODE = int(StreamError.INTERNAL_ERROR)
"""What a reset says unless the case says otherwise."""
