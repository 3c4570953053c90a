"""A node that does what a case's steps say, on `moqt.session` alone, and keeps all it sees.

It stands for the far side of a publisher or relay under test. It decides nothing: it opens the
requests that it is told to, accepts a PUBLISH_NAMESPACE, and records answers, Objects and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvcs.authorization import bearer
from moqt.session import Request, Session
from moqt.session import events as ev
from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName
from moqt.wire.tokens import Token

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.node import PATIENCE, Node, Setting, why_closed
from kvcs_conformance.nodes.scripted.attempts import Attempt
from kvcs_conformance.nodes.scripted.raw import RawSession
from kvcs_conformance.nodes.scripted.steps import STEPS

if TYPE_CHECKING:
    from moqt.endpoint import Host
    from moqt.session.events import Event

_TRACK_ENDED = 0x2


class ScriptedNode(Node):
    """An Endpoint under the control of steps; its token goes with every request."""

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self.session: Session | None = None
        self.ready = False
        self.announced: list[tuple[bytes, ...]] = []
        self.tokens: tuple[Token, ...] = (bearer(self.token),) if self.token else ()
        self._requests: dict[Request, tuple[str, str]] = {}
        self._attempts: dict[Session, Attempt] = {}
        self._shared: list[Attempt] = []
        self._updates: dict[int, tuple[str, str]] = {}

    # The node.

    def put_up(self) -> None:
        config = self.setting.config(self.name)
        if not self.part.to:
            if any("attempt" in step.get(self.name, ()) for step in self.setting.case.steps):
                config = replace(config, session_class=RawSession)
            self.setting.listens(self.name, self.link.serve(self.name, self, config))
            return
        self.link.client(self.name, self)
        (url,) = (self.setting.address(to, self.name) for to in self.part.to)

        def connect() -> None:
            self.session = self._host.connect(url, config)

        self.link.act(self.name, connect)

    def await_ready(self) -> None:
        if not self.link.wait(lambda: self.ready, PATIENCE):
            closed = why_closed(self.recorder.records)
            raise SetupFailed(f"{self.name} got no session within {PATIENCE:g} s{closed}")

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        if not self.part.to and not self.link.wait(lambda: bool(self.announced), PATIENCE):
            raise SetupFailed("the publisher announced no namespace")
        self.link.act(self.name, lambda: STEPS[word](self, label, body))

    def sessions(self) -> Iterable[Session]:
        return (self.session,) if self.session is not None else ()

    # The Endpoint.

    def attach(self, host: Host) -> None:
        self._host = host

    def session_opened(self, session: Session, now: float) -> None:
        self.session = session

    def next_timer(self) -> float | None:
        return None

    def handle_timer(self, now: float) -> None:
        return None

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """Record what happened; answer a PUBLISH_NAMESPACE."""
        if session in self._attempts:
            self._attempts[session].handle(event)
            return
        match event:
            case ev.SetupReceived():
                self.ready = True
                self.recorder.trace("kvcs:session", {"alpn": session.alpn})
            case ev.RequestReceived(request=request):
                self._requested(session, request)
            case ev.RequestAccepted(request=request, response=response):
                self._answered(request, response)
            case ev.RequestFailed(request=request, error=error, code=code):
                self._answered(request, error or {"type": "Reset", "code": code})
            case ev.NamespaceReceived(request=request, namespace=namespace):
                self._keep("kvcs:namespace", request, namespace=namespace)
            case ev.NamespaceEnded(request=request, namespace=namespace):
                self._keep("kvcs:namespace-ended", request, namespace=namespace)
            case ev.StreamEnded(request=request, stream=stream):
                if stream.via is ev.Via.FETCH:
                    self._keep("kvcs:delivered", request, complete=event.complete, code=event.code)
            case ev.SubscriptionEnded(request=request, message=message, complete=complete):
                whole = complete and message.status_code == _TRACK_ENDED
                self._keep("kvcs:track-ended", request, complete=whole, code=message.status_code)
            case ev.TrackMalformed(request=request, reason=reason):
                self._keep("kvcs:track-malformed", request, reason=reason)
            case ev.UpdateAnswered(request=request, update_id=number, response=response):
                label, kind = self._updates.get(number, ("", ""))
                values = {"label": label, "kind": kind, "request": request.id, "update": number}
                self.recorder.trace("kvcs:update-answered", {**values, "response": response})
            case ev.SessionClosed(code=code, reason=reason, by_peer=by_peer):
                self.ready = False
                for attempt in self._shared:
                    attempt.handle(event)
                values = {"code": code, "reason": reason, "by_peer": by_peer}
                self.recorder.trace("kvcs:closed", values)
            case _:
                pass

    def _requested(self, session: Session, request: Request) -> None:
        if request.kind.name == "PUBLISH_NAMESPACE" and request.namespace is not None:
            self.announced.append(request.namespace)
            if self.scenario.values.get("refuse-announcements"):
                session.refuse(request, RequestErrorCode.UNAUTHORIZED, "the token is not enough")
            else:
                session.accept(request)
        else:
            session.refuse(request, RequestErrorCode.NOT_SUPPORTED, "it serves nothing")

    def _answered(self, request: Request, response: object) -> None:
        self._keep("kvcs:answered", request, response=response)
        octets = getattr(response, "track_properties", None)
        if octets is not None and request.track is not None:
            self._keep("kvcs:track-properties", request, properties=octets)

    def _keep(self, name: str, request: Request, **values: Any) -> None:
        label, track = self._requests.get(request, ("", ""))
        self.recorder.trace(name, {"label": label, "track": track, "request": request.id, **values})

    # What steps call.

    def ask(self, label: str, kind: str, track: str, act: Callable[[Session], Request]) -> None:
        """Open one request; the record `kvcs:asked` links its Request ID to the step's label."""
        if self.session is None or not self.ready:
            raise SetupFailed(f"{self.recorder.node} has no session")
        request = act(self.session)
        self._requests[request] = (label, track)
        self.recorder.trace(
            "kvcs:asked", {"label": label, "kind": kind, "track": track, "request": request.id}
        )

    def requests(self, label: str) -> list[Request]:
        """The requests that the step with this label opened."""
        return [request for request, (own, _) in self._requests.items() if own == label]

    def update(self, label: str, of: str, request: Request, parameters: Parameters) -> None:
        """REQUEST_UPDATE; `kvcs:updated` links its Request ID to the labels of the two steps."""
        number = request.session.update(request, parameters)
        self._updates[number] = (label, request.kind.name)
        values = {"label": label, "of": of, "request": request.id, "update": number}
        self.recorder.trace("kvcs:updated", {**values, "kind": request.kind.name})

    def attempt(self, label: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """Let each of them write what it says, all at once, each on a connection of its own."""
        chosen = list(entries)
        names = [entry["name"] for entry in chosen]
        self.recorder.trace("kvcs:attempts", {"label": label, "names": names})
        for entry in chosen:
            name, sends = entry["name"], entry["sends"]
            if not self.part.to:
                assert isinstance(self.session, RawSession)
                attempt = Attempt(self, label, name, sends, len(self._shared))
                self._shared.append(attempt)
                attempt.adopt(self.session)
                continue
            (to,) = self.part.to
            attempt = Attempt(self, label, name, sends, 0)
            url = self.setting.address(to, self.name)
            self._attempts[attempt.connect(self._host.connect, url)] = attempt

    def probe(self, label: str) -> None:
        """A harmless question whose answer proves that the peer has come this far."""
        name = FullTrackName((b"kvcs-conformance", b"fence"), b"nothing")
        parameters = Parameters()
        self.ask(label, "TRACK_STATUS", "", lambda session: session.track_status(name, parameters))
