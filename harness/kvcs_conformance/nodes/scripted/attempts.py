"""Attempts: what a hostile (or merely unusual) peer writes, each on a connection of its own.

A node that listens has the one session that its peer opened: its attempts share that.

An attempt writes what its case says, octet by octet, then proves whether its session lives: it
asks TRACK_STATUS, and once more a while after the answer, so that a close that was only slower
than the first answer is still seen. Records in the node's log: `kvcs:attempts` (the step and the
names), `kvcs:wrote`, `kvcs:attempt-answer`, `kvcs:attempt-stream`, `kvcs:attempt-lives` and
`kvcs:attempt-closed`; what the session traces says `attempt`, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from moqt.session import Session
from moqt.session import events as ev
from moqt.wire.filters import (
    FROM_START,
    NEXT_OBJECT,
    LocationFilter,
    LocationFilterType,
)
from moqt.wire.messages import (
    FetchOk,
    Message,
    Parameters,
    RequestError,
    RequestMessage,
    RequestOk,
    SubscribeOk,
)
from moqt.wire.names import FullTrackName

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.nodes.node import TOKENS
from kvcs_conformance.nodes.scripted.notation import Written, octets, vi64
from kvcs_conformance.nodes.scripted.raw import RawSession

if TYPE_CHECKING:
    from moqt.session.events import Event

    from kvcs_conformance.nodes.scripted.node import ScriptedNode

PROBES = 2
FIRST_PROBE = 1000
"""Request ID of the first probe, beyond those that cases write down."""

GRACE = 0.1
"""Seconds between the answer to the first probe and the second one."""

ROOT = b"kvcs-attempt"
TRACK = b"t"

_LATE = LocationFilter(LocationFilterType.ABSOLUTE_START, 5, 0)

ANSWERS = (SubscribeOk, FetchOk, RequestOk, RequestError)

Send = Mapping[str, Any]


class Attempt:
    """One of them; `sends` are taken one after the other, some wait for the peer."""

    def __init__(
        self, node: ScriptedNode, label: str, name: str, sends: list[Send], number: int
    ) -> None:
        """`number`: which of the attempts of its session it is."""
        self._node = node
        self._label = label
        self._name = name
        self._sends = list(sends)
        self._values = values_of(node, name)
        self._number = number
        self._waiting = ""
        self._last: int | None = None
        self._peers: int | None = None
        self._answers: Counter[int] = Counter()
        self._wanted = 0
        self._dropped: set[int | None] = set()
        self._probes: list[int] = []
        self._over = False
        trace = node.setting.config(node.name).trace
        assert trace is not None
        self._trace: Callable[[str, dict[str, Any]], None] = trace
        self.session: RawSession | None = None

    def connect(self, connect: Callable[..., Session], url: str) -> RawSession:
        """Open the connection."""
        config = self._node.setting.config(self._node.name)
        config = replace(config, trace=self._tagged, session_class=RawSession)
        session = connect(url, config)
        assert isinstance(session, RawSession)
        self.session = session
        session.owner = self
        if self._sends and "setup" in self._sends[0]:
            session.setup = self._octets("setup", self._sends.pop(0)["setup"])
        return session

    def adopt(self, session: RawSession) -> None:
        """Begin on a session that there is already."""
        self.session = session
        self._go()

    def handle(self, event: Event) -> None:
        """One event of the session."""
        match event:
            case ev.SetupReceived():
                self._go()
            case ev.SessionClosed(code=code, reason=reason, by_peer=by_peer):
                self._over = True
                self._note("kvcs:attempt-closed", code=code, reason=reason, by_peer=by_peer)
            case _:
                pass

    # Writing.

    def _go(self) -> None:
        session = self.session
        assert session is not None
        while self._sends and not self._waiting and not self._over:
            ((word, body),) = self._sends.pop(0).items()
            if word in ("answered", "asked", "dropped"):
                self._wait(word, body)
            elif word == "downstream":
                self._downstream(body)
            else:
                self._write(session, word, self._octets(word, body))
        if not self._sends and not self._waiting and not self._probes and not self._over:
            self._probe()

    def _octets(self, word: str, notation: str) -> Written:
        written = octets(notation, self._values)
        self._note("kvcs:wrote", on=word, octets=written.octets, end=written.end)
        return written

    def _write(self, session: RawSession, word: str, written: Written) -> None:
        match word:
            case "request":
                self._last = self._opened(session.open(written, self))
            case "uni":
                self._opened(session.open(written))
            case "more":
                assert self._last is not None
                session.write(self._last, written)
            case "reply":
                assert self._peers is not None
                session.write(self._peers, written)
            case "control":
                session.write(session.control, written)
            case "datagram":
                session.transport.send_datagram(written.octets)

    def _opened(self, stream_id: int | None) -> int:
        if stream_id is None:
            raise SetupFailed(f"{self._name}: the peer grants no stream")
        return stream_id

    def _wait(self, word: str, count: int) -> None:
        self._wanted = count
        self._waiting = "" if self._has(word) else word

    def _has(self, word: str) -> bool:
        """Whether what is waited for came."""
        if word == "asked":
            return self._peers is not None
        if word == "dropped":
            return self._peers in self._dropped
        return self._last is not None and self._answers[self._last] >= self._wanted

    def _downstream(self, kind: str) -> None:
        """Let the node's own session ask for the attempt's Track."""
        track = FullTrackName((ROOT, self._name.encode()), TRACK)
        tokens = self._node.tokens
        asks = {
            "subscribe": ("SUBSCRIBE", Session.subscribe, NEXT_OBJECT),
            "fetch": ("FETCH", Session.fetch, FROM_START),
            "fetch-late": ("FETCH", Session.fetch, _LATE),
            "track-status": ("TRACK_STATUS", Session.track_status, None),
        }
        name, function, wanted = asks[kind]
        parameters = Parameters(authorization_tokens=tokens, location_filter=wanted)
        act = partial(function, track=track, parameters=parameters)
        self._node.ask(self._label, name, self._name, act)

    # Reading.

    def message(self, stream_id: int, message: Message) -> None:
        """See `Owner.message`."""
        assert self.session is not None
        ours = bool(stream_id & 1) != self.session.is_client
        if isinstance(message, RequestMessage) and not ours:
            self._peers = stream_id
            self._values["id"] = vi64(message.request_id)
            self._note("kvcs:attempt-asked", stream=stream_id, message=message)
            self._met("asked")
        else:
            self._answers[stream_id] += isinstance(message, ANSWERS)
            on = "probe" if stream_id in self._probes else "request"
            self._note("kvcs:attempt-answer", stream=stream_id, on=on, message=message)
            self._met("answered")
        if stream_id in self._probes:
            self._probed()

    def _met(self, word: str) -> None:
        if self._waiting == word and self._has(word):
            self._waiting = ""
            self._go()

    def ended(self, stream_id: int, how: str, code: int | None) -> None:
        """See `Owner.ended`."""
        on = "probe" if stream_id in self._probes else "request"
        if on == "request":
            self._note("kvcs:attempt-stream", stream=stream_id, how=how, code=code)
        if how != "fin":
            self._dropped.add(stream_id)
            self._met("dropped")

    # Probing.

    def _probe(self) -> None:
        if self._over or self.session is None:
            return
        number = FIRST_PROBE + 2 * (PROBES * self._number + len(self._probes))
        number += not self.session.is_client
        question = octets(
            "0d [$number 02 ('kvcs-conformance') ('fence') ('nothing') 00]",
            {"number": vi64(number)},
        )
        self._probes.append(self._opened(self.session.open(question, self)))

    def _probed(self) -> None:
        if len(self._probes) < PROBES:
            self._node.link.later(self._node.name, GRACE, self._probe)
        elif not self._over:
            self._over = True
            self._note("kvcs:attempt-lives")

    def _note(self, name: str, **values: Any) -> None:
        self._trace(name, {"label": self._label, "attempt": self._name, **values})

    def _tagged(self, name: str, values: dict[str, Any]) -> None:
        self._trace(name, {**values, "attempt": self._name})


def values_of(node: ScriptedNode, name: str) -> dict[str, bytes]:
    """What a case may name in the octets of an attempt."""
    namespace = node.setting.namespace()
    return {
        "namespace": _namespace(*namespace),
        "prefix": _namespace(*namespace[:4]),
        "scope": _namespace(*namespace[:2]),
        "mine": _namespace(ROOT, name.encode()),
        "token": TOKENS["scope"] or b"",
        "options": _options(node),
    }


def _namespace(*fields: bytes) -> bytes:
    """A Track Namespace: the number of fields, then each with its length (MOQT-22 §8.7)."""
    return vi64(len(fields)) + b"".join(vi64(len(field)) + field for field in fields)


def _options(node: ScriptedNode) -> bytes:
    """The Setup Options PATH and AUTHORITY that a client owes (MOQT-22 §9.1.1, §9.1.2)."""
    if not node.part.to:
        return b""
    (to,) = node.part.to
    authority, _, path = node.setting.address(to, node.name).removeprefix("moqt://").partition("/")
    known = {"path": b"/" + path.encode(), "authority": authority.encode()}
    return octets("01 ($path) 04 ($authority)", known).octets
