"""Fetch and fill streams as their publisher writes them (MOQT-22 §3.2, §3.4, §11.4)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

from moqt.session.core import Core
from moqt.session.events import StreamStopped, Via
from moqt.session.requests import Request
from moqt.session.scheduler import Lane, Outlet, Scheduler, Urgency
from moqt.wire.errors import StreamError
from moqt.wire.objects import FetchHeader, Object, RangeMarker
from moqt.wire.stream_encoder import FetchObjectEncoder, encode_fetch_header


class FetchState(Enum):
    """What a source says when it has no item."""

    WAIT = "ask again after FetchSender.wake"
    END = "the range is complete: FIN"


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """The source cannot go on: the stream is reset with `code`."""

    code: int = StreamError.INTERNAL_ERROR


FetchItem: TypeAlias = Object | RangeMarker | FetchState | FetchFailed


class FetchSource(Protocol):
    """Where the items of a range come from, in the order of the fetch."""

    def next_item(self) -> FetchItem:
        """The next item; asked for only when there is room to send it."""


@dataclass(frozen=True, slots=True)
class FailedSource:
    """The source of a range that cannot be served at all."""

    code: int

    def next_item(self) -> FetchFailed:
        """It never has one."""
        return FetchFailed(self.code)


class FetchSender(Outlet):
    """One fetch or fill stream.

    Items are pulled one by one, so that a range of any size holds the memory of one Object.
    `fill_rank`: 0 before and 1 after the subscription-delivered Objects of other groups.
    """

    __slots__ = (
        "_ascending",
        "_encoder",
        "_fill_rank",
        "_last",
        "_on_closed",
        "_pieces",
        "_priority",
        "_scheduler",
        "_source",
        "_waiting",
        "code",
        "request",
        "request_id",
        "via",
    )

    def __init__(
        self,
        core: Core,
        scheduler: Scheduler,
        lane: Lane,
        request: Request,
        request_id: int,
        source: FetchSource,
        on_closed: Callable[[FetchSender], None],
        *,
        via: Via,
        ascending: bool,
        fill_rank: int,
        default_priority: int,
    ) -> None:
        super().__init__(core, lane)
        self.request = request
        self.request_id = request_id
        self.via = via
        self.code: int | None = None
        self._scheduler = scheduler
        self._source = source
        self._on_closed = on_closed
        self._ascending = ascending
        self._fill_rank = fill_rank
        self._priority = default_priority
        self._last: Object | None = None
        self._waiting = False
        self._encoder = FetchObjectEncoder(ascending)
        header = encode_fetch_header(FetchHeader(request_id))
        self._pieces: deque[tuple[bytes | memoryview, Object | RangeMarker | None]] = deque(
            [(header, None)]
        )
        scheduler.ready(self)

    @property
    def urgency(self) -> Urgency:
        """That of the item in hand, or of the last one; the header, before all items, goes at once:
        only the source knows how urgent what follows is.
        """
        group = 0 if self._last is None else self._last.location.group
        rank = group if self._ascending else -group
        priority = self._priority if self.started else 0
        return (priority, self._fill_rank, rank, 0, self.request_id)

    @property
    def has_work(self) -> bool:
        """Whether octets wait or the source may have some."""
        return not self.gone and (bool(self._pieces) or not self._waiting)

    def wake(self) -> None:
        """The source answers again after WAIT."""
        if self._waiting and not self.gone:
            self._waiting = False
            self._scheduler.ready(self)

    def cancel(self, code: int = StreamError.CANCELLED) -> None:
        """Reset the stream; one that was not opened yet is opened first, so that the peer learns.

        (MOQT-22 §3.4.1). Without stream credit nothing is sent.
        """
        if self.gone:
            return
        if self.open():
            assert self.stream_id is not None
            if not self.started:
                self.started = True
                self.core.transport.send(self.stream_id, self._pieces[0][0])
            self.core.reset(self.stream_id, code)
        self._close(code)

    def drop(self, code: int) -> None:
        """Reset the stream if there is one; nobody waits for it any more."""
        if not self.gone:
            if self.stream_id is not None:
                self.core.reset(self.stream_id, code)
            self._close(code)

    def open(self) -> bool:
        """Open the stream if it is not open yet."""
        if self.stream_id is None:
            self.stream_id = self.core.transport.open_stream(unidirectional=True)
            if self.stream_id is not None:
                self.core.outlets[self.stream_id] = self
                self.core.note(
                    "moqt:stream_opened",
                    stream=self.stream_id,
                    kind="fetch",
                    header=FetchHeader(self.request_id),
                )
        return self.stream_id is not None

    def write(self, room: int) -> int:
        """Write what waits, then pull and write items, up to `room` octets.

        The header goes in one piece all the same: the peer may close for one that does not come.
        The first Object waits for its turn, which it has by its own priority.
        """
        stream_id = self.stream_id
        assert stream_id is not None
        transport = self.core.transport
        written = 0
        while written < room:
            if not self._pieces:
                first = self._last is None
                if not self._pull() or first:
                    break
            piece, item = self._pieces[0]
            left = room - written if self.started else max(room, len(piece))
            self.started = True
            if item is not None and self.core.trace is not None:
                self._note(stream_id, item)
            if len(piece) > left:
                view = memoryview(piece)
                transport.send(stream_id, view[:left])
                self._pieces[0] = (view[left:], None)
                return room
            transport.send(stream_id, piece)
            self._pieces.popleft()
            written += len(piece)
        return written

    def _pull(self) -> bool:
        """Get an item; False when there is none now or any more."""
        item = self._source.next_item()
        match item:
            case Object():
                self._last = item
                self._priority = item.priority
                self._pieces.append((self._encoder.encode(item), item))
                if item.payload:
                    self._pieces.append((item.payload, None))
                return True
            case RangeMarker():
                self._pieces.append((self._encoder.marker(item), item))
                return True
            case FetchFailed(code=code):
                self.cancel(code)
            case FetchState.WAIT:
                self._waiting = True
            case FetchState.END:
                assert self.stream_id is not None
                self.core.fin(self.stream_id)
                self._close(None)
        return False

    def _close(self, code: int | None) -> None:
        self.code = code
        self._pieces.clear()
        self._scheduler.withdraw(self)
        if self.stream_id is not None:
            self.core.outlets.pop(self.stream_id, None)
        self._on_closed(self)

    def stopped(self, code: int) -> None:
        """The peer does not want the stream; the request of a fill goes on."""
        if not self.gone and self.stream_id is not None:
            self.core.emit(StreamStopped(self.request, self.stream_id, code))
            self.drop(code)

    def _note(self, stream_id: int, item: Object | RangeMarker) -> None:
        name = "moqt:object_sent" if isinstance(item, Object) else "moqt:range_sent"
        self.core.note_item(name, self.request, stream_id, item, self.via)
