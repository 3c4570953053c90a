"""A session that writes octets as it is told to, and reads whatever is answered.

Control stream, SETUP and data streams are as in any Session. A request stream that somebody owns is
not: who breaks a rule there must not be kept from it, nor be told that an answer is out of place.
"""

from __future__ import annotations

from typing import Any, Protocol

from moqt.session import Session, SessionConfig, Transport
from moqt.wire.codec import MessageReader
from moqt.wire.errors import RemoteProtocolError
from moqt.wire.messages import Message

from kvcs_conformance.nodes.scripted.notation import Written

ABANDONED = 0x1
"""The stream code of a reset that a case asks for: CANCELLED (MOQT-22 §12.5)."""


class Owner(Protocol):
    """Who opened a request stream, or wants all of them."""

    def message(self, stream_id: int, message: Message) -> None:
        """What came on it."""

    def ended(self, stream_id: int, how: str, code: int | None) -> None:
        """How the peer ended it: `fin`, `reset` or `stop`."""


class RawSession(Session):
    """A Session some of whose request streams, or all, are somebody's own affair."""

    def __init__(self, is_client: bool, transport: Transport, config: SessionConfig) -> None:
        super().__init__(is_client, transport, config)
        self.transport = transport
        self.setup: Written | None = None
        """What stands on the control stream in place of SETUP."""
        self.owner: Owner | None = None
        """The owner of all request streams that have no other one."""
        self._owners: dict[int, Owner] = {}
        self._readers: dict[int, MessageReader] = {}
        self._note = config.trace or (lambda name, values: None)

    # What the node does.

    def open(self, written: Written, owner: Owner | None = None) -> int | None:
        """A new request stream of this owner, or a unidirectional one of nobody's, with these
        octets; None while the peer grants none."""
        stream_id = self.transport.open_stream(unidirectional=owner is None)
        if stream_id is not None:
            if owner is not None:
                self._owners[stream_id] = owner
            self.write(stream_id, written)
        return stream_id

    def write(self, stream_id: int, written: Written) -> None:
        """Append octets to a stream of either side's."""
        if written.octets or written.end == "fin":
            self.transport.send(stream_id, written.octets, written.end == "fin")
        if written.end == "reset":
            self.transport.reset(stream_id, ABANDONED)

    @property
    def control(self) -> int:
        """Our control stream."""
        stream_id = self._control.stream_id
        assert stream_id is not None
        return stream_id

    # What the driver calls.

    def start(self, now: float) -> None:
        """See `Session.start`."""
        if self.setup is None:
            super().start(now)
            return
        self.advance(now)
        self._control._ours = self.open(self.setup)

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        """See `Session.stream_data`."""
        owner = self._owner_of(stream_id)
        if owner is None:
            super().stream_data(stream_id, data, fin, now)
            return
        self.advance(now)
        reader = self._readers.get(stream_id)
        if reader is None:
            reader = self._readers[stream_id] = MessageReader(self.config.draft)
        reader.feed(data)
        try:
            while (found := reader.next()) is not None:
                message, raw = found
                values: dict[str, Any] = {"stream": stream_id, "message": message, "raw": raw}
                self._note("moqt:message_received", values)
                owner.message(stream_id, message)
        except RemoteProtocolError as error:
            values = {"stream": stream_id, "why": error.reason, "raw": bytes(data)}
            self._note("kvcs:unreadable", values)
        if fin:
            self._note("moqt:fin_received", {"stream": stream_id})
            owner.ended(stream_id, "fin", None)

    def stream_reset(self, stream_id: int, code: int, now: float) -> None:
        """See `Session.stream_reset`."""
        owner = self._owner_of(stream_id)
        if owner is None:
            super().stream_reset(stream_id, code, now)
            return
        self.advance(now)
        self._note("moqt:reset_received", {"stream": stream_id, "code": code})
        owner.ended(stream_id, "reset", code)

    def stop_sending_received(self, stream_id: int, code: int, now: float) -> None:
        """See `Session.stop_sending_received`."""
        owner = self._owner_of(stream_id) or self.owner
        if owner is None:
            super().stop_sending_received(stream_id, code, now)
            return
        self.advance(now)
        self._note("moqt:stop_received", {"stream": stream_id, "code": code})
        owner.ended(stream_id, "stop", code)

    def _owner_of(self, stream_id: int) -> Owner | None:
        """Who gets what comes on a request stream; nobody but the Session for other streams."""
        return None if stream_id & 2 else self._owners.get(stream_id, self.owner)
