"""One request stream: what went over it in both directions, and how it ends (MOQT-22 §6.4.2)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from moqt.session.core import Core
from moqt.session.fetching import FetchSender
from moqt.session.requests import Request, RequestState
from moqt.session.states import Side
from moqt.session.subscription import Subscription
from moqt.session.timers import Timer
from moqt.session.tokens import TokenUse
from moqt.wire.codec import MessageReader
from moqt.wire.errors import RequestRefused
from moqt.wire.messages import Message, RequestError, RequestUpdate
from moqt.wire.names import TrackNamespace


@dataclass(slots=True)
class SentUpdate:
    """An update of ours that has no answer yet."""

    message: RequestUpdate
    tokens: TokenUse
    loosens: bool
    """Whether it changes filters: until the answer, Objects may match the old or the new ones."""


@dataclass(slots=True)
class ReceivedUpdate:
    """An update of the peer's that has no answer yet; `refusal` if we refuse it ourselves."""

    message: RequestUpdate
    refusal: RequestRefused | None = None
    shown: bool = False
    """Whether the application knows of it."""


@dataclass(eq=False, slots=True)
class RequestStream:
    """A request stream; `request` is None until the peer's first message came.

    `said_last`: the peer sent its last message, only FIN may follow. `aborted`: we reset our
    direction and asked the peer to reset its own; what still comes is dropped.
    """

    core: Core
    ours: bool
    reader: MessageReader
    stream_id: int | None = None
    request: Request | None = None
    outbox: list[tuple[Message, bytes, bool]] = field(default_factory=list)
    held: bytearray = field(default_factory=bytearray)
    held_fin: bool = False
    fin_sent: bool = False
    fin_received: bool = False
    reset_received: bool = False
    said_last: bool = False
    aborted: bool = False
    tokens: TokenUse = field(default_factory=TokenUse)
    sent_updates: deque[SentUpdate] = field(default_factory=deque)
    received_updates: deque[ReceivedUpdate] = field(default_factory=deque)
    update_error: RequestError | None = None
    goaway_sent: bool = False
    goaway_received: bool = False
    subscription: Subscription | None = None
    fetch: FetchSender | None = None
    alias: int | None = None
    """The Track Alias that we gave to the subscription."""
    announced: set[TrackNamespace] = field(default_factory=set)
    patience: Timer | None = None

    @property
    def our_side(self) -> Side:
        """Which side we are."""
        return Side.OPENER if self.ours else Side.RESPONDER

    @property
    def over(self) -> bool:
        """Whether both directions ended."""
        ours = self.fin_sent or self.aborted
        return ours and (self.fin_received or self.reset_received)

    @property
    def live(self) -> bool:
        """Whether there is a request that did not end."""
        return self.request is not None and self.request.state is not RequestState.TERMINATED

    def send(self, message: Message, *, fin: bool = False) -> None:
        """Send a message; LocalProtocolError, and nothing sent, when it cannot be encoded."""
        self.put(message, self.core.encode(message), fin=fin)

    def put(self, message: Message, frame: bytes, *, fin: bool = False) -> None:
        """Send a message whose frame is known, or keep it until there is a stream."""
        if self.fin_sent or self.aborted:
            return
        self.fin_sent = fin
        if self.stream_id is None:
            self.outbox.append((message, frame, fin))
        else:
            self.core.write(self.stream_id, message, frame, fin=fin)

    def opened(self, stream_id: int) -> None:
        """The transport gave us a stream: send what waits."""
        self.stream_id = stream_id
        if self.request is not None:
            self.request.stream_id = stream_id
        self.core.note("moqt:stream_opened", stream=stream_id, kind="request", header=None)
        for message, frame, fin in self.outbox:
            self.core.write(stream_id, message, frame, fin=fin)
        self.outbox.clear()

    def finish(self) -> None:
        """FIN: no more messages from us."""
        if not self.fin_sent and not self.aborted and self.stream_id is not None:
            self.fin_sent = True
            self.core.fin(self.stream_id)

    def abort(self, code: int) -> None:
        """Cancel: reset our direction if it is open, ask the peer to reset its own if open."""
        if self.aborted:
            return
        self.aborted = True
        self.outbox.clear()
        self.be_patient(False)
        if self.stream_id is None:
            self.reset_received = True
            return
        if not self.fin_sent:
            self.core.reset(self.stream_id, code)
        if not self.fin_received and not self.reset_received:
            self.core.stop(self.stream_id, code)

    def be_patient(self, incomplete: bool) -> None:
        """Watch the time while a message is incomplete."""
        if not incomplete:
            if self.patience is not None:
                self.patience.cancel()
        elif self.patience is None or not self.patience.live:
            core = self.core
            self.patience = core.timers.at(
                core.later(core.config.control_message_timeout), core.control_timeout
            )
