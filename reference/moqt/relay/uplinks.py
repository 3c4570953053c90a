"""A relay's sessions to the relays above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from moqt.relay.config import RelayConfig
from moqt.session import Request, Session
from moqt.session.events import (
    Event,
    NamespaceEnded,
    NamespaceReceived,
    RequestCancelled,
    RequestFailed,
)
from moqt.session.timers import Timers
from moqt.tracks.answering import ask, cancel
from moqt.tracks.discovery import Discovery
from moqt.tracks.moving import Line
from moqt.wire.errors import RequestErrorCode, SessionError
from moqt.wire.messages import Parameters
from moqt.wire.names import TrackNamespace, is_prefix

if TYPE_CHECKING:
    from moqt.endpoint import Host

SETTLE = 1.0
"""Seconds after which a namespace that a wider prefix did not list again is taken as gone."""


class UplinkInterest:
    """Context of a SUBSCRIBE_NAMESPACE at an upstream relay, and the namespaces that it gave."""

    def __init__(self, uplinks: Uplinks, request: Request, prefix: TrackNamespace) -> None:
        self.uplinks = uplinks
        self.request = request
        self.prefix = prefix
        request.context = self
        self.namespaces: set[TrackNamespace] = set()
        self.inherited: set[TrackNamespace] = set()
        self.over = False

    def handle(self, event: Event) -> None:
        """One event of the request; some may still come when it was given up."""
        if self.over:
            return
        match event:
            case NamespaceReceived(namespace=namespace):
                if namespace in self.inherited:
                    self.inherited.discard(namespace)
                    self.namespaces.add(namespace)
                elif namespace not in self.namespaces:
                    self._add(namespace)
            case NamespaceEnded(namespace=namespace):
                if namespace in self.namespaces:
                    self.namespaces.discard(namespace)
                    self.uplinks.discovery.remove(namespace)
            case RequestFailed(error=error):
                overlap = error is not None and error.code == RequestErrorCode.PREFIX_OVERLAP
                self.uplinks.interest_lost(self, retry=overlap)
            case RequestCancelled():
                self.uplinks.interest_lost(self, retry=False)
            case _:
                pass

    def _add(self, namespace: TrackNamespace) -> None:
        session = self.request.session
        if self.uplinks.in_view[session] >= self.uplinks.config.max_upstream_namespaces:
            cancel(self.request)
            self.uplinks.interest_lost(self, retry=False)
            return
        self.uplinks.in_view[session] += 1
        self.namespaces.add(namespace)
        self.uplinks.discovery.add(namespace)

    def session_closed(self) -> None:
        """The session is gone, or the request was given up."""
        self.over = True
        self.drop(self.inherited | self.namespaces)

    def settle(self) -> None:
        """What the wider prefix did not list again is gone."""
        self.drop(self.inherited)

    def drop(self, namespaces: set[TrackNamespace]) -> None:
        """These namespaces are not there any more."""
        if namespaces:
            self.uplinks.in_view[self.request.session] -= len(namespaces)
        for namespace in sorted(namespaces):
            self.inherited.discard(namespace)
            self.namespaces.discard(namespace)
            self.uplinks.discovery.remove(namespace)


class Uplinks:
    """Keeps one session open to each upstream URL, and asks there what is asked here.

    `in_view` counts the namespaces that each session told of.
    """

    def __init__(
        self,
        config: RelayConfig,
        discovery: Discovery,
        timers: Timers,
        now: Callable[[], float],
    ) -> None:
        self.config = config
        self.discovery = discovery
        self._timers = timers
        self._now = now
        self._host: Host | None = None
        self._urls: dict[Session, str] = {}
        self._lines: dict[Session, Line] = {}
        self._ready: list[Session] = []
        self._leaving: set[Session] = set()
        self._asked: dict[Session, dict[TrackNamespace, UplinkInterest]] = {}
        self.in_view: Counter[Session] = Counter()

    def start(self, host: Host) -> None:
        """Connect to every upstream."""
        self._host = host
        for url in self.config.upstreams:
            self._open(url)

    def __contains__(self, session: Session) -> bool:
        return session in self._urls

    @property
    def usable(self) -> list[Session]:
        """Sessions that take new requests, the newest first."""
        return [one for one in reversed(self._ready) if one not in self._leaving]

    @property
    def leaving(self) -> set[Session]:
        """Sessions whose relay sent GOAWAY."""
        return self._leaving

    def ready(self, session: Session) -> None:
        """The upstream relay's SETUP came."""
        self._ready.append(session)
        self._asked[session] = {}
        self.update()

    def going_away(self, session: Session, uri: bytes) -> None:
        """GOAWAY: open the next session first, move over, then leave this one."""
        if session in self._leaving:
            return
        self._leaving.add(session)
        self._lines[session].leave(session, uri, self._urls[session])

    def close_if_idle(self, session: Session, *, in_use: bool) -> None:
        """Leave a session whose relay goes away once nothing depends on it."""
        if session in self._leaving and not in_use and self.usable:
            session.close(SessionError.NO_ERROR, "moved")

    def closed(self, session: Session) -> None:
        """The session is gone; open it again after a while."""
        url = self._urls.pop(session, None)
        if url is None:
            return
        del self._lines[session]
        if session in self._ready:
            self._ready.remove(session)
        moved = session in self._leaving
        self._leaving.discard(session)
        for interest in self._asked.pop(session, {}).values():
            interest.session_closed()
        del self.in_view[session]
        if not moved:
            due = self._now() + self.config.reconnect_delay
            self._timers.at(due, partial(self._open, url))

    def update(self) -> None:
        """Let the prefixes that we ask for upstream cover those that we are asked for here.

        A prefix that covers more than is wanted now stays: asking anew would lose sight of what
        is there.
        """
        for session in self.usable:
            wanted = {prefix for asker, prefix in self.discovery.asked if asker is not session}
            asked = self._asked[session]
            for prefix in sorted(wanted, key=len):
                if not any(is_prefix(one, prefix) for one in asked):
                    self._ask(session, asked, prefix)
            for interest in tuple(asked.values()):
                if not any(is_prefix(interest.prefix, prefix) for prefix in wanted):
                    del asked[interest.prefix]
                    cancel(interest.request)
                    interest.session_closed()

    def _ask(
        self, session: Session, asked: dict[TrackNamespace, UplinkInterest], prefix: TrackNamespace
    ) -> None:
        """Ask for a prefix; it takes over the namespaces of longer ones, which must go first."""
        if not session.takes_requests:
            return
        inherited: set[TrackNamespace] = set()
        for one in [one for one in asked.values() if is_prefix(prefix, one.prefix)]:
            inherited |= one.namespaces | one.inherited
            del asked[one.prefix]
            one.over = True
            cancel(one.request)
        parameters = Parameters(authorization_tokens=self.config.upstream_tokens)
        request = ask(partial(session.subscribe_namespace, prefix, parameters))
        if request is not None:
            interest = asked[prefix] = UplinkInterest(self, request, prefix)
            interest.inherited = inherited
            self._timers.at(self._now() + SETTLE, interest.settle)

    def interest_lost(self, interest: UplinkInterest, *, retry: bool) -> None:
        """The upstream relay refused or ended a SUBSCRIBE_NAMESPACE of ours."""
        interest.session_closed()
        asked = self._asked.get(interest.request.session, {})
        if asked.get(interest.prefix) is interest and retry:
            # Our cancellation of a narrower prefix may still be on its way there.
            del asked[interest.prefix]
            self._timers.at(self._now() + self.config.reconnect_delay, self.update)

    def _open(self, url: str) -> None:
        def connect(at: str, line: Line) -> Session:
            assert self._host is not None
            session = self._host.connect(at, self.config.upstream_session)
            self._urls[session] = url
            self._lines[session] = line
            return session

        connect(url, Line(connect, self._timers, self._now, self.config.reconnect_delay))
