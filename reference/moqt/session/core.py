"""What all parts of one session share: the transport, the time, the events, the end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from moqt.session.config import SessionConfig
from moqt.session.events import Event, SessionClosed, Via
from moqt.session.requests import Request, RequestIds
from moqt.session.timers import Timers
from moqt.session.transport import Transport
from moqt.wire.codec import encode_message
from moqt.wire.errors import LocalProtocolError, SessionError
from moqt.wire.messages import Message, SetupOptions
from moqt.wire.objects import Object, RangeMarker

if TYPE_CHECKING:
    from moqt.session.scheduler import Outlet
    from moqt.session.session import Session


class Core:
    """The common ground of a session's parts."""

    def __init__(
        self, session: Session, is_client: bool, transport: Transport, config: SessionConfig
    ) -> None:
        self.session = session
        self.is_client = is_client
        self.transport = transport
        self.config = config
        self.draft = config.draft
        self.trace = config.trace
        self.now = 0.0
        self.closed = False
        self.peer_setup: SetupOptions | None = None
        self.events: deque[Event] = deque()
        self.timers = Timers()
        self.ids = RequestIds(is_client)
        self.outlets: dict[int, Outlet] = {}
        """Data streams that we write, by stream ID."""
        self.open_fills = 0
        """Fills that we serve, or are to serve once the peer grants a stream."""

    def later(self, delay: float) -> float:
        """The time `delay` seconds from now."""
        return self.now + delay

    def encode(self, message: Message) -> bytes:
        """The frame of a message as this session writes it; LocalProtocolError if it cannot."""
        return encode_message(message, self.draft, fill_count=self.config.fill_count)

    def write(self, stream_id: int, message: Message, frame: bytes, *, fin: bool = False) -> None:
        """Send a control message."""
        self.transport.send(stream_id, frame, fin)
        self.note("moqt:message_sent", stream=stream_id, message=message, raw=frame)
        if fin:
            self.note("moqt:fin_sent", stream=stream_id)

    def fin(self, stream_id: int) -> None:
        """End our direction of a stream."""
        self.transport.send(stream_id, b"", True)
        self.note("moqt:fin_sent", stream=stream_id)

    def reset(self, stream_id: int, code: int) -> None:
        """Abandon our direction of a stream."""
        self.transport.reset(stream_id, code)
        self.note("moqt:reset_sent", stream=stream_id, code=code)

    def stop(self, stream_id: int, code: int) -> None:
        """Ask the peer to abandon its direction of a stream."""
        self.transport.stop_sending(stream_id, code)
        self.note("moqt:stop_sent", stream=stream_id, code=code)

    def note(self, name: str, **data: Any) -> None:
        """Tell the trace, if there is one."""
        if self.trace is not None:
            self.trace(name, data)

    def note_item(
        self,
        name: str,
        request: Request,
        stream_id: int | None,
        item: Object | RangeMarker,
        via: Via,
    ) -> None:
        """Tell the trace of an Object or range that was sent or received."""
        if self.trace is None:
            return
        data: dict[str, Any] = {
            "stream": stream_id,
            "request": request.id,
            "track": request.track,
            "via": via.value,
        }
        if isinstance(item, Object):
            data |= {
                "group": item.location.group,
                "object": item.location.object,
                "subgroup": item.subgroup,
                "priority": item.priority,
                "status": item.status,
                "properties": item.properties,
                "payload": item.payload,
            }
        else:
            data |= {"kind": item.kind, "end": item.end}
        self.trace(name, data)

    def emit(self, event: Event) -> None:
        """Queue an event for the application."""
        if not self.closed:
            self.events.append(event)

    def require_open(self) -> None:
        """Raise LocalProtocolError once the session is closed."""
        if self.closed:
            raise LocalProtocolError("the session is closed")

    def close(self, code: int, reason: str) -> None:
        """Close the connection; the session's last event follows."""
        if not self.closed:
            # QUIC carries the reason in one packet.
            self.transport.close(code, reason[:200])
            self.ended(code, reason, by_peer=False)

    def ended(self, code: int | None, reason: str, *, by_peer: bool) -> None:
        """The connection is gone."""
        if self.closed:
            return
        self.emit(SessionClosed(code, reason, by_peer))
        self.closed = True
        self.timers.clear()
        self.note("moqt:session_closed", code=code, reason=reason, by_peer=by_peer)

    def control_timeout(self) -> None:
        """A control message stayed incomplete for too long."""
        self.close(
            SessionError.CONTROL_MESSAGE_TIMEOUT,
            f"a control message was incomplete for {self.config.control_message_timeout:g} s",
        )
