"""What a simulated link does to what is sent over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

PACKET = 1200
"""Octets that a link of limited bandwidth takes from a stream at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction between two nodes; times in seconds, sizes in octets.

    `jitter`: each piece is late by a seeded 0 .. jitter more, so streams overtake each other,
    never the octets of one stream. `bandwidth`: octets per second, None is unlimited; a narrow
    link takes the streams' octets in the order in which they were sent. `chunk`: least and most
    octets per piece delivered, None keeps the pieces as they were written.

    `pieces_lost` names pieces of streams by their number in this direction (from 0), as if the
    packets that carried them were lost: each comes `recovery` later, and with it what follows on
    its stream; other streams overtake it.

    `datagrams_lost` names datagrams by their number in this direction (from 0),
    `datagram_loss` is a probability, `max_datagram` the largest that fits.

    What the receiver grants the sender: `stream_window` and `connection_window` octets not yet
    consumed, `bidirectional_streams` and `unidirectional_streams` open at a time. `buffer`:
    octets that a sender holds before `room` is 0.
    """

    latency: float = 0.005
    jitter: float = 0.0
    bandwidth: float | None = None
    chunk: tuple[int, int] | None = None
    pieces_lost: frozenset[int] = frozenset()
    recovery: float = 0.1
    datagrams_lost: frozenset[int] = frozenset()
    datagram_loss: float = 0.0
    max_datagram: int = 1200
    stream_window: int = 1 << 20
    connection_window: int = 16 << 20
    bidirectional_streams: int = 1024
    unidirectional_streams: int = 2048
    buffer: int = 256 << 10

    def __post_init__(self) -> None:
        if self.latency < 0 or self.jitter < 0 or self.recovery < 0:
            raise ValueError("a link's latency, jitter and recovery are not negative")
        if self.bandwidth is not None and self.bandwidth <= 0:
            raise ValueError("a link's bandwidth is above 0, or None for unlimited")
        if self.chunk is not None and not 1 <= self.chunk[0] <= self.chunk[1]:
            raise ValueError("a link's chunk is (least, most) octets with 1 <= least <= most")

    def streams(self, unidirectional: bool) -> int:
        """How many streams of this kind may be open at a time."""
        return self.unidirectional_streams if unidirectional else self.bidirectional_streams


@dataclass(slots=True)
class Wire:
    """The state of one direction of one connection: when it is free, and its seeded chance."""

    link: Link
    random: Random
    free_at: float = 0.0
    latest_arrival: float = 0.0
    datagrams: int = 0
    pieces: int = 0
    stream_arrival: dict[int, float] = field(default_factory=dict)

    def piece_size(self) -> int | None:
        """How many octets the next piece may hold; None is any number."""
        if self.link.chunk is not None:
            return self.random.randint(*self.link.chunk)
        return None if self.link.bandwidth is None else PACKET

    def arrival(
        self, now: float, octets: int, stream_id: int | None = None, late: float = 0.0
    ) -> float:
        """When `octets` that leave now arrive; octets of one stream never overtake."""
        leaves = max(now, self.free_at)
        if self.link.bandwidth is not None:
            leaves += octets / self.link.bandwidth
            self.free_at = leaves
        at = leaves + self.link.latency + late
        if self.link.jitter:
            at += self.random.uniform(0.0, self.link.jitter)
        if stream_id is not None:
            at = max(at, self.stream_arrival.get(stream_id, 0.0))
            self.stream_arrival[stream_id] = at
        self.latest_arrival = max(self.latest_arrival, at)
        return at

    def loses_piece(self) -> bool:
        """Whether the piece of a stream that is sent now is lost; counts it."""
        number = self.pieces
        self.pieces += 1
        return number in self.link.pieces_lost

    def loses_datagram(self) -> bool:
        """Whether the datagram that is sent now is lost; counts it."""
        number = self.datagrams
        self.datagrams += 1
        if number in self.link.datagrams_lost:
            return True
        return self.link.datagram_loss > 0 and self.random.random() < self.link.datagram_loss
