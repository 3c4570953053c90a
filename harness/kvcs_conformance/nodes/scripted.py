"""A node that does what a case's steps say, on `moqt.session` alone, and keeps all it sees.

It stands for the far side of a publisher or relay under test. It decides nothing: it opens the
requests that it is told to, accepts a PUBLISH_NAMESPACE, and records answers, Objects and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from moqt.session import Request, Session
from moqt.session import events as ev
from moqt.wire.errors import RequestErrorCode
from moqt.wire.filters import (
    FROM_START,
    NEXT_OBJECT,
    LocationFilter,
    LocationFilterType,
)
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName
from moqt.wire.tokens import Token

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.record import Recorder

if TYPE_CHECKING:
    from moqt.endpoint import Host
    from moqt.session.events import Event

_FILLS = {
    "start": Parameters(location_filter=FROM_START),
    "current": Parameters(location_filter=LocationFilter(LocationFilterType.RELATIVE_START, 1)),
}
_ASCENDING = 1
_TRACK_ENDED = 0x2


class ScriptedNode:
    """An Endpoint under the control of steps; `tokens` go with every request."""

    def __init__(self, recorder: Recorder, tokens: tuple[Token, ...] = ()) -> None:
        self.recorder = recorder
        self.session: Session | None = None
        self.ready = False
        self.announced: list[tuple[bytes, ...]] = []
        self._tokens = tokens
        self._requests: dict[Request, tuple[str, str]] = {}

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
            case ev.SessionClosed(code=code, reason=reason, by_peer=by_peer):
                self.ready = False
                values = {"code": code, "reason": reason, "by_peer": by_peer}
                self.recorder.trace("kvcs:closed", values)
            case _:
                pass

    def _requested(self, session: Session, request: Request) -> None:
        if request.kind.name == "PUBLISH_NAMESPACE" and request.namespace is not None:
            self.announced.append(request.namespace)
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

    def connect(self, url: str, config: Any) -> None:
        self.session = self._host.connect(url, config)

    def ask(self, label: str, kind: str, track: str, act: Callable[[Session], Request]) -> None:
        """Open one request; the record `kvcs:asked` links its Request ID to the step's label."""
        if self.session is None or not self.ready:
            raise SetupFailed(f"{self.recorder.node} has no session")
        request = act(self.session)
        self._requests[request] = (label, track)
        self.recorder.trace(
            "kvcs:asked", {"label": label, "kind": kind, "track": track, "request": request.id}
        )

    def subscribe(self, label: str, namespace: Sequence[bytes], track: str, start: str) -> None:
        parameters = Parameters(
            authorization_tokens=self._tokens,
            location_filter=NEXT_OBJECT,
            fill=_FILLS.get(start),
        )
        name = _name(namespace, track)
        self.ask(label, "SUBSCRIBE", track, lambda session: session.subscribe(name, parameters))

    def fetch(
        self, label: str, namespace: Sequence[bytes], track: str, first: int, last: int
    ) -> None:
        wanted = LocationFilter(LocationFilterType.ABSOLUTE_START_GROUP_END, first, 0, last - first)
        parameters = Parameters(
            authorization_tokens=self._tokens, location_filter=wanted, group_order=_ASCENDING
        )
        name = _name(namespace, track)
        self.ask(label, "FETCH", track, lambda session: session.fetch(name, parameters))

    def track_status(self, label: str, namespace: Sequence[bytes], track: str) -> None:
        parameters = Parameters(authorization_tokens=self._tokens)
        name = _name(namespace, track)
        self.ask(
            label, "TRACK_STATUS", track, lambda session: session.track_status(name, parameters)
        )

    def subscribe_namespace(self, label: str, prefix: Sequence[bytes]) -> None:
        parameters = Parameters(authorization_tokens=self._tokens)
        fields = tuple(prefix)
        self.ask(
            label,
            "SUBSCRIBE_NAMESPACE",
            "",
            lambda session: session.subscribe_namespace(fields, parameters),
        )

    def publish_namespace(self, label: str, namespace: Sequence[bytes]) -> None:
        parameters = Parameters(authorization_tokens=self._tokens)
        fields = tuple(namespace)
        self.ask(
            label,
            "PUBLISH_NAMESPACE",
            "",
            lambda session: session.publish_namespace(fields, parameters),
        )

    def probe(self, label: str) -> None:
        """A harmless question whose answer proves that the peer has come this far."""
        name = FullTrackName((b"kvcs-conformance", b"fence"), b"nothing")
        parameters = Parameters()
        self.ask(label, "TRACK_STATUS", "", lambda session: session.track_status(name, parameters))


def _name(namespace: Sequence[bytes], track: str) -> FullTrackName:
    return FullTrackName(tuple(namespace), track.encode())
