"""What a session needs of the connection below it: QUIC's semantics, no I/O at the call."""

from __future__ import annotations

from typing import Protocol


class Transport(Protocol):
    """One QUIC connection (or a simulated one) as a session writes to it.

    Stream IDs follow RFC 9000: bit 0 set is server-opened, bit 1 set is unidirectional. Calls
    never block and never raise for a stream or connection that has ended: they do nothing then.
    """

    def open_stream(self, *, unidirectional: bool) -> int | None:
        """A new stream's ID, or None while the peer grants no stream of this kind."""

    def send(self, stream_id: int, data: bytes | memoryview, fin: bool = False) -> None:
        """Append octets to a stream; a caller that is bulky asks `room` first."""

    def room(self, stream_id: int) -> int:
        """Octets that the stream and the connection take now without excess buffering.

        Bounded by the peer's flow control and by the driver's send buffer. 0 means: wait for
        `Session.writable`.
        """

    def reset(self, stream_id: int, code: int) -> None:
        """RESET_STREAM on our sending direction; unsent octets are dropped.

        Octets that were sent may be lost with it, a header too: there is no RESET_STREAM_AT
        (MOQT-22 §11.3.2).
        """

    def stop_sending(self, stream_id: int, code: int) -> None:
        """STOP_SENDING on the direction that we receive."""

    def pause(self, stream_id: int) -> None:
        """Hold back received octets of this stream and its flow control credit."""

    def resume(self, stream_id: int) -> None:
        """Deliver what `pause` held back and grant credit again."""

    def all_acknowledged(self, stream_id: int) -> bool:
        """Whether the peer acknowledged everything sent on the stream, FIN included."""

    def send_datagram(self, data: bytes) -> bool:
        """Send a datagram; False when it is too large or there is no room (it is dropped)."""

    def close(self, code: int, reason: str) -> None:
        """Close the connection with an application error code, after what was sent before."""
