"""What the end of a connection needs of the network around it, and what it tells about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moqt.drivers.memory.clock import Timer

if TYPE_CHECKING:
    from moqt.drivers.memory.connection import End


@dataclass(frozen=True, slots=True)
class ConnectionEvent:
    """What happened on a connection, as an observer sees it.

    `kind`: "connecting", "established", "refused", "closed", "lost", or one of "data", "reset",
    "stop", "datagram" with the suffix "-sent", "-received" or (data, datagrams) "-lost".
    """

    time: float
    connection: int
    node: str
    peer: str
    kind: str
    stream_id: int | None = None
    data: bytes = b""
    fin: bool = False
    code: int | None = None
    reason: str = ""


class Carrier(Protocol):
    """What an end needs of the network around it."""

    @property
    def now(self) -> float:
        """Seconds of virtual time."""

    def carry(self, at: float, sender: End, action: Callable[[], None], *, droppable: bool) -> None:
        """Run `action` at the peer's node at a time; a partition delays it, or drops it."""

    def call_at(self, at: float, end: End, action: Callable[[], None]) -> Timer:
        """Run `action` at the node of `end` itself."""

    def observe(self, event: ConnectionEvent) -> None:
        """Tell the observer."""

    @property
    def observed(self) -> bool:
        """Whether anybody observes."""
