"""The consumer's sources: connecting them, and when there is something to ask (KVCS 7)."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

from moqt.endpoint import Host
from moqt.session import Session, SessionConfig
from moqt.wire.errors import SessionError

from kvcs.consumer.request import ConsumeRequest
from kvcs.consumer.routes import Source, SourceState
from kvcs.consumer.timers import Timers

MAX_MOVES = 4
"""GOAWAYs that a consumer follows; a source that moves on and on is no source."""


class Watcher(Protocol):
    """Who asks the sources."""

    request: ConsumeRequest
    timers: Timers
    now: float

    def sources_up(self) -> None:
        """All are up or down, or the first has waited long enough for the others. Once."""

    def source_ready(self, source: Source) -> None:
        """A source came up after that."""

    def source_failed(self, source: Source) -> None:
        """A source is gone, with everything on it."""

    def emit(self, event: str, **details: Any) -> None:
        """Report."""


class Sources:
    """One session per source, opened at once."""

    def __init__(self, watcher: Watcher, config: SessionConfig) -> None:
        self._watcher = watcher
        self._config = config
        self._host: Host | None = None
        self._all: list[Source] = []
        self._moves = 0
        self._up = False

    def connect(self, host: Host) -> None:
        """Open all sessions; ValueError for a source that is not a moqt URI."""
        self._host = host
        for url in self._watcher.request.sources:
            self._open(url)

    def move(self, source: Source, uri: bytes) -> None:
        """GOAWAY: ask no more there, and open a session where the source says (MOQT-22 §6.4)."""
        if source.leaving or self._host is None:
            return
        source.leaving = True
        self._moves += 1
        if self._moves > MAX_MOVES:
            return
        try:
            self._open(uri.decode() if uri else source.url)
        except ValueError:
            self._watcher.emit("source-failed", source=ascii(uri), detail="not a moqt URI")

    def _open(self, url: str) -> None:
        assert self._host is not None
        source = Source(url, self._host.connect(url, self._config))
        self._all.append(source)
        at = self._watcher.now + self._watcher.request.budgets.connect
        self._watcher.timers.set(("connect", len(self._all)), at, partial(self._late, source))

    @property
    def ready(self) -> list[Source]:
        """Those that can be asked, in order of preference."""
        return [source for source in self._all if source.ready]

    @property
    def connecting(self) -> bool:
        """Whether one may still come up."""
        return any(source.state is SourceState.CONNECTING for source in self._all)

    def of(self, session: Session) -> Source | None:
        """The source behind a session."""
        return next((source for source in self._all if source.session is session), None)

    def up(self, source: Source) -> None:
        """Its SETUP came."""
        source.state = SourceState.READY
        self._watcher.emit("source-ready", source=source.url)
        if self._up:
            self._watcher.source_ready(source)
        else:
            self._decide()

    def closed(self, source: Source, reason: str) -> None:
        """Its session ended, or will not come."""
        if source.state is SourceState.FAILED:
            return
        source.state = SourceState.FAILED
        self._watcher.emit("source-failed", source=source.url, detail=reason)
        if self._up:
            self._watcher.source_failed(source)
        else:
            self._decide()

    def close(self) -> None:
        """Close all sessions."""
        for source in self._all:
            if source.state is not SourceState.FAILED:
                source.session.close(SessionError.NO_ERROR, "done")

    def _decide(self) -> None:
        if not self.connecting:
            self._start()
        elif self.ready and "grace" not in self._watcher.timers:
            at = self._watcher.now + self._watcher.request.budgets.probe
            self._watcher.timers.set("grace", at, self._start)

    def _start(self) -> None:
        if not self._up:
            self._up = True
            self._watcher.timers.cancel("grace")
            self._watcher.sources_up()

    def _late(self, source: Source) -> None:
        if source.state is SourceState.CONNECTING:
            source.session.close(SessionError.NO_ERROR, "no SETUP in time")
            self.closed(source, "no SETUP in time")
