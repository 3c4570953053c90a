"""What a subscription writes Objects to: subgroup streams and datagrams (MOQT-22 §11.2, §11.3)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from moqt.session.scheduler import QUANTUM, Outlet, Urgency
from moqt.session.timers import Timer
from moqt.wire.datagrams import encode_datagram
from moqt.wire.errors import LocalProtocolError, StreamError
from moqt.wire.objects import Object, ObjectDatagram, SubgroupHeader
from moqt.wire.stream_encoder import SubgroupObjectEncoder, encode_subgroup_header

if TYPE_CHECKING:
    from moqt.session.publication import SubscriptionSender

_Piece: TypeAlias = tuple["bytes | memoryview", Object | None, float]
"""Octets, the Object that begins with them, and when that Object was offered."""


class SubgroupOutlet(Outlet):
    """One subgroup stream of a subscription.

    Octets wait here as the application's own buffers; the stream is opened when its first octet
    may go. `last` is the ID of the last Object taken; `holed`: one behind it was left out.
    """

    __slots__ = (
        "_acknowledgement",
        "_encoder",
        "_expiry",
        "_header_size",
        "_pieces",
        "_sender",
        "_unfinished",
        "_urgency",
        "backlog",
        "ending",
        "header",
        "holed",
        "last",
        "object_timeout",
        "priority",
        "subgroup_timeout",
    )

    def __init__(
        self,
        sender: SubscriptionSender,
        first: Object,
        header: SubgroupHeader,
        object_timeout: float | None,
        subgroup_timeout: float | None,
    ) -> None:
        """Times in seconds, None for no limit; LocalProtocolError if `first` cannot be sent."""
        super().__init__(sender.core, sender.lane)
        assert header.subgroup is not None
        self._sender = sender
        self.header = header
        self.priority = first.priority
        self.object_timeout = object_timeout
        self.subgroup_timeout = subgroup_timeout
        self.backlog = 0
        self.ending = False
        self.holed = False
        self._unfinished = False
        self.last = -1
        self._urgency = (
            first.priority,
            0,
            sender.group_rank(header.group),
            2,
            header.subgroup,
        )
        self._encoder = SubgroupObjectEncoder(header)
        self._pieces: deque[_Piece] = deque()
        self._expiry: Timer | None = None
        self._acknowledgement: Timer | None = None
        head = encode_subgroup_header(header)
        self._header_size = len(head)
        self._queue(head + self._encode(first), first)

    @property
    def key(self) -> tuple[int, int]:
        """Group ID and Subgroup ID."""
        assert self.header.subgroup is not None
        return self.header.group, self.header.subgroup

    @property
    def urgency(self) -> Urgency:
        """Lower goes first."""
        return self._urgency

    @property
    def has_work(self) -> bool:
        """Whether octets, FIN or a reset wait."""
        return bool(self._pieces) or self.ending or self._unfinished

    def add(self, item: Object) -> None:
        """Queue the Object that follows; LocalProtocolError if it cannot follow here."""
        self._queue(self._encode(item), item)

    def _encode(self, item: Object) -> bytes:
        if item.priority != self.priority:
            raise LocalProtocolError(
                f"Object {tuple(item.location)} has priority {item.priority}, "
                f"its subgroup {self.priority}"
            )
        return self._encoder.encode(item)

    def _queue(self, head: bytes, item: Object) -> None:
        now = self.core.now
        self.last = item.location.object
        size = len(head) + len(item.payload)
        self._pieces.append((head, item, now))
        if item.payload:
            self._pieces.append((item.payload, None, now))
        self.backlog += size
        self._sender.backlog += size
        self._sender.scheduler.ready(self)
        if self.object_timeout is not None and (self._expiry is None or not self._expiry.live):
            self._expiry = self.core.timers.at(now + self.object_timeout, self._expire)

    def end(self) -> None:
        """FIN once everything is written: all Objects of the subgroup are known."""
        if not self.ending:
            self.ending = True
            self._sender.scheduler.ready(self)
            if self.subgroup_timeout is not None:
                self._acknowledgement = self.core.timers.at(
                    self.core.later(self.subgroup_timeout), self._unacknowledged
                )

    def end_unfinished(self) -> None:
        """Reset once everything is written: the subgroup has Objects that do not come here."""
        self._unfinished = True
        self._sender.scheduler.ready(self)

    def open(self) -> bool:
        """Open the stream if it is not open yet."""
        if self.stream_id is None:
            self.stream_id = self._sender.open_stream(self, "subgroup", self.header)
        return self.stream_id is not None

    def write(self, room: int) -> int:
        """Write what waits, in order, up to `room` octets.

        The stream's header goes in one piece all the same: its end might have to wait for long
        behind more urgent streams, and the peer may close for a header that does not come.
        """
        stream_id = self.stream_id
        assert stream_id is not None
        transport = self.core.transport
        pieces = self._pieces
        written = 0
        while pieces:
            piece, item, offered = pieces[0]
            if self._too_old(offered):
                self._expire()
                return written
            left = room - written
            if left <= 0:
                break
            if not self.started:
                self.started = True
                self._sender.streams_opened += 1
                left = max(left, self._header_size)
            if item is not None and self.core.trace is not None:
                self._sender.note_sent(stream_id, item)
            if len(piece) > left:
                view = memoryview(piece)
                transport.send(stream_id, view[:left])
                pieces[0] = (view[left:], None, offered)
                written += left
                break
            pieces.popleft()
            written += len(piece)
            fin = self.ending and not pieces
            transport.send(stream_id, piece, fin)
            if fin:
                self._finished(written)
                return written
        if written:
            self._progress(written)
        if self.ending and not pieces:
            transport.send(stream_id, b"", True)
            self._finished(0)
        elif self._unfinished and not pieces:
            self.abandon(StreamError.CANCELLED, reopen=True)
        return written

    def _progress(self, written: int) -> None:
        self.backlog -= written
        self._sender.progress(written)

    def _finished(self, written: int) -> None:
        self._progress(written)
        self.core.note("moqt:fin_sent", stream=self.stream_id)
        self._cancel_expiry()
        self._sender.closed(self, reopen=False)

    def _too_old(self, offered: float) -> bool:
        return self.object_timeout is not None and self.core.now >= offered + self.object_timeout

    def _expire(self) -> None:
        """The Object at the head became too old: the subgroup ends here (MOQT-22 §5.2)."""
        if not self._pieces or self.gone:
            return
        offered = self._pieces[0][2]
        if self._too_old(offered):
            self.abandon(StreamError.DELIVERY_TIMEOUT, reopen=False)
        elif self.object_timeout is not None:
            self._expiry = self.core.timers.at(offered + self.object_timeout, self._expire)

    def _unacknowledged(self) -> None:
        if self.stream_id is None or not self.gone:
            self.abandon(StreamError.DELIVERY_TIMEOUT, reopen=False)
        elif not self.core.transport.all_acknowledged(self.stream_id):
            self.core.reset(self.stream_id, StreamError.DELIVERY_TIMEOUT)

    def stopped(self, code: int) -> None:
        """The subscriber does not want this subgroup (MOQT-22 §11.3.2)."""
        if self.stream_id is not None:
            self._sender.stream_stopped(self.stream_id, code)
        self.abandon(code, reopen=False)

    def abandon(self, code: int, *, reopen: bool) -> None:
        """Reset the stream, or forget it when it was never opened.

        `reopen`: whether later Objects of the subgroup may go on a new stream.
        """
        if self.gone:
            return
        self._pieces.clear()
        self._sender.backlog -= self.backlog
        self.backlog = 0
        self._cancel_expiry()
        if self._acknowledgement is not None:
            self._acknowledgement.cancel()
        if self.stream_id is not None:
            self.core.reset(self.stream_id, code)
        self._sender.closed(self, reopen=reopen, abandoned=True)

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()


class DatagramOutlet(Outlet):
    """The datagrams of a subscription; what does not fit or waited too long is dropped."""

    __slots__ = ("_queue", "_sender")

    def __init__(self, sender: SubscriptionSender) -> None:
        super().__init__(sender.core, sender.lane)
        self._sender = sender
        self._queue: deque[tuple[Object, bytes, float | None]] = deque()

    @property
    def urgency(self) -> Urgency:
        """That of the oldest datagram: before the subgroups of its group, by Object ID."""
        item = self._queue[0][0]
        return (
            item.priority,
            0,
            self._sender.group_rank(item.location.group),
            1,
            item.location.object,
        )

    @property
    def has_work(self) -> bool:
        """Whether datagrams wait."""
        return bool(self._queue)

    @property
    def needs_stream(self) -> bool:
        """Datagrams need none."""
        return False

    def open(self) -> bool:
        """There is nothing to open."""
        return True

    def room(self) -> int:
        """The transport says no by dropping."""
        return QUANTUM

    def add(self, item: Object, *, end_of_group: bool, timeout: float | None) -> None:
        """Queue an Object; `timeout` in seconds."""
        octets = encode_datagram(
            ObjectDatagram(
                self._sender.alias,
                item.location.group,
                item.location.object,
                self._sender.priority_field(item.priority),
                bytes(item.payload),
                item.status,
                item.properties,
                end_of_group,
            )
        )
        expires = None if timeout is None else self.core.later(timeout)
        self._queue.append((item, octets, expires))
        self._sender.backlog += len(octets)
        self._sender.scheduler.ready(self)

    def write(self, room: int) -> int:
        """Send datagrams until `room` octets are used or none is left."""
        written = 0
        while self._queue and written < room:
            item, octets, expires = self._queue.popleft()
            written += len(octets)
            if expires is not None and self.core.now >= expires:
                continue
            sent = self.core.transport.send_datagram(octets)
            if self.core.trace is not None:
                name = "moqt:datagram_sent" if sent else "moqt:datagram_dropped"
                self.core.note(name, raw=octets)
                if sent:
                    self._sender.note_sent(None, item)
        self._sender.progress(written)
        if not self._queue:
            self._sender.datagrams_gone()
        return written

    def clear(self) -> None:
        """Drop everything."""
        self._sender.backlog -= sum(len(octets) for _, octets, _ in self._queue)
        self._queue.clear()

    def stopped(self, code: int) -> None:
        """Datagrams have no STOP_SENDING."""
