"""The two halves of a simulated stream."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class SendHalf:
    """What one end writes: `limit` is the peer's credit; `written` counts what is queued too."""

    limit: int
    written: int = 0
    sent: int = 0
    fin_written: bool = False
    ended: bool = False
    """FIN or RESET_STREAM is on its way; the half is dropped once that is acknowledged."""


@dataclass(slots=True)
class ReceiveHalf:
    """What one end reads: `granted` is the offset up to which the peer may send."""

    granted: int
    consumed: int = 0
    paused: bool = False
    held: deque[tuple[bytes, bool]] = field(default_factory=deque)
    granted_early: int = 0
    """Held octets that the connection counts as consumed."""


def is_unidirectional(stream_id: int) -> bool:
    """RFC 9000 §2.1: bit 1."""
    return bool(stream_id & 2)


def is_client_opened(stream_id: int) -> bool:
    """RFC 9000 §2.1: bit 0."""
    return not stream_id & 1
