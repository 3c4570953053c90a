"""How a program runs a role over QUIC: start, watch, stop on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click
from moqt.drivers.quic import DriverError, QuicHost, QuicOptions, write_throwaway_certificate
from moqt.endpoint import Endpoint, Host
from moqt.session import Request, Session, SessionConfig
from moqt.session.events import Event, RequestReceived, SessionClosed
from moqt.wire.errors import SessionError
from moqt.wire.messages import SetupOptions

from kvcs.errors import InputError
from kvcs.programs.options import Events

GRACE_S = 2.0
"""How long peers may take to leave after GOAWAY."""

MAX_FILTER_RANGES = 16
"""Ranges that one subscription or fetch may filter by, such as `kvcs consume --blocks` does."""

MAX_REQUEST_UPDATES = 16
"""Updates of one request that may wait for their answers."""


def implementation() -> bytes:
    """MOQT_IMPLEMENTATION: our name, and our version where the package is installed."""
    try:
        return f"kvcs/{version('kvcs-conformance')}".encode()
    except PackageNotFoundError:
        return b"kvcs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connectivity:
    """The transport options of a program, as given."""

    datagram_size: int = 1200
    anonymous: bool = False
    ca: Path | None = None
    insecure: bool = False
    keylog: Path | None = None
    qlog: Path | None = None

    def session(self) -> SessionConfig:
        """What our sessions say of themselves, and the limits that they keep."""
        return SessionConfig(
            setup=SetupOptions(
                max_filter_ranges=MAX_FILTER_RANGES,
                max_request_updates=MAX_REQUEST_UPDATES,
                implementation=None if self.anonymous else implementation(),
            )
        )

    def host(self, endpoint: Endpoint) -> QuicHost:
        """A QUIC driver for `endpoint`; InputError for files that cannot be used."""
        options = QuicOptions(
            datagram_size=self.datagram_size,
            ca_file=self.ca,
            insecure=self.insecure,
            keylog_file=self.keylog,
            qlog_dir=self.qlog,
        )
        try:
            if self.qlog is not None:
                self.qlog.mkdir(parents=True, exist_ok=True)
            return QuicHost(endpoint, options)
        except OSError as error:
            raise InputError(f"cannot write to {self.qlog}: {error.strerror}") from None
        except DriverError as error:
            raise InputError(str(error)) from None


class Watched:
    """A role whose sessions are known and whose session events are told.

    It stands between role and driver, as the Endpoint of the one and the Host of the other.
    With `complain`, the person at the terminal is told why a session that we opened has failed,
    once as long as it is for the same reason.
    """

    def __init__(self, role: Endpoint, tell: Events, *, complain: bool = False) -> None:
        self.role = role
        self.sessions: set[Session] = set()
        self.closed = asyncio.Event()
        """Set whenever a session has ended; whoever waits for the next one clears it."""
        self.leaving = False
        self._tell = tell
        self._host: Host | None = None
        self._last: SessionClosed | None = None
        self._complain = complain
        self._failed: dict[str | None, SessionClosed] = {}

    def attach(self, host: Host) -> None:
        """Called by the driver."""
        self._host = host
        self.role.attach(self)

    def connect(self, url: str, config: SessionConfig) -> Session:
        """See `Host.connect`."""
        assert self._host is not None
        session = self._host.connect(url, config)
        self.sessions.add(session)
        return session

    def now(self) -> float:
        """See `Host.now`."""
        assert self._host is not None
        return self._host.now()

    def session_opened(self, session: Session, now: float) -> None:
        """See `Endpoint.session_opened`; who comes while we leave is sent away."""
        self.sessions.add(session)
        self._tell({"event": "session-opened", "time": now})
        self.role.session_opened(session, now)
        if self.leaving:
            session.close(SessionError.NO_ERROR, "going away")

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """See `Endpoint.handle_event`."""
        match event:
            case RequestReceived(request):
                self._tell({"event": "request", "time": now, **_described(request)})
            case SessionClosed(code, reason, by_peer):
                self.sessions.discard(session)
                if by_peer or code != SessionError.NO_ERROR:
                    self._fail(session, event)
                details = {"code": code, "reason": reason, "by_peer": by_peer}
                self._tell({"event": "session-closed", "time": now, **details})
                self.closed.set()
        self.role.handle_event(session, event, now)

    def _fail(self, session: Session, event: SessionClosed) -> None:
        before = self._failed.get(session.url) if session.peer_setup is None else None
        self._last = self._failed[session.url] = event
        words = closing_words(event)
        if self._complain and session.is_client and (not before or closing_words(before) != words):
            say(f"{session.url}: {words}; trying again")

    def next_timer(self) -> float | None:
        """See `Endpoint.next_timer`."""
        return self.role.next_timer()

    def handle_timer(self, now: float) -> None:
        """See `Endpoint.handle_timer`."""
        self.role.handle_timer(now)

    @property
    def last_words(self) -> str:
        """Why the last session that we did not end ourselves is over."""
        return "no session" if self._last is None else closing_words(self._last)

    def check_reached(self, *urls: str) -> None:
        """Raise InputError with the first reason when the sessions to all of `urls` failed."""
        if all(url in self._failed for url in urls):
            raise InputError(f"{urls[0]}: {closing_words(self._failed[urls[0]])}")

    def check_open(self, url: str) -> None:
        """Raise InputError with the reason when no session is left."""
        if not self.sessions and self._last is not None:
            raise InputError(f"{url}: {self.last_words}")


def closing_words(event: SessionClosed) -> str:
    """Why a session ended, for a person."""
    reason = event.reason or "no reason given"
    if event.code is None:
        return reason
    who = "the peer closed the session" if event.by_peer else "the session was closed"
    try:
        name = SessionError(event.code).name
    except ValueError:
        name = f"0x{event.code:x}"
    return f"{who} with {name}: {reason}"


def _described(request: Request) -> dict[str, Any]:
    namespace = request.namespace if request.track is None else request.track.namespace
    described = {
        "kind": request.kind.name,
        "namespace": [field.hex() for field in namespace or ()],
    }
    if request.track is not None:
        described["name"] = request.track.name.decode("ascii", "backslashreplace")
    return described


def run(main: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> None:
    """Run `main` until it returns its exit code; SIGTERM and SIGINT set the event it is given."""

    async def supervised() -> int:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        return await main(stop)

    code = asyncio.run(supervised())
    if code:
        raise click.exceptions.Exit(code)


async def until(*events: asyncio.Event, timeout: float | None = None) -> None:
    """Wait until one of the events is set, or the seconds are over."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        if waiting:
            await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(timeout or 0)
    finally:
        for task in waiting:
            task.cancel()


async def leave(watched: Watched, host: QuicHost) -> None:
    """Graceful stop: GOAWAY on every session, time for the peers to go, then close."""
    watched.leaving = True
    for session in tuple(watched.sessions):
        if session.peer_setup is not None:
            session.goaway()
    host.wake()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            while watched.sessions:
                watched.closed.clear()
                await watched.closed.wait()
    await host.close()


@contextlib.contextmanager
def certificate(cert: Path | None, key: Path | None) -> Iterator[tuple[Path, Path]]:
    """The two files that were given, or a throw-away pair that is gone afterwards."""
    if cert is not None and key is not None:
        yield cert, key
        return
    with tempfile.TemporaryDirectory(prefix="kvcs-") as folder:
        made = Path(folder, "cert.pem"), Path(folder, "key.pem")
        write_throwaway_certificate(*made)
        yield made


def say(line: str) -> None:
    """One line for the person at the terminal, on standard error."""
    click.echo(line, err=True)
