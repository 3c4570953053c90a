"""What the link between the nodes of a run is, whatever carries it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from moqt.endpoint import Endpoint
    from moqt.session import SessionConfig

    from kvcs_conformance.evidence.record import Recorder

Action: TypeAlias = Callable[[], None]


class Link(Protocol):
    """What a stage needs of the network; all calls return when they are done.

    `recorder` is the log of the network itself: faults that were applied, and what they met.
    """

    name: str
    recorder: Recorder

    def now(self) -> float:
        """Seconds since the run began."""

    def serve(self, name: str, endpoint: Endpoint, config: SessionConfig) -> str:
        """Let an endpoint listen; its URL. A killed node's name listens at the same URL again."""

    def client(self, name: str, endpoint: Endpoint) -> None:
        """An endpoint that only connects."""

    def url(self, to: str, by: str, url: str) -> str:
        """The URL by which the node `by` reaches the node `to`, which listens at `url`."""

    def act(self, name: str, action: Action) -> None:
        """Let a node do something now, and let what it sent begin to move."""

    def later(self, name: str, delay: float, action: Action) -> None:
        """Let a node do something after `delay` seconds of the run's clock, if it still lives."""

    def wait(self, until: Callable[[], bool], within: float) -> bool:
        """Let time pass until the condition holds; False when it does not within the time."""

    def note(self, what: str, **details: Any) -> None:
        """Keep something that was done, as a record `network:what`."""

    def fault(self, step: Mapping[str, Any]) -> None:
        """Do what a `network` step says; all but `restart`, which needs who builds nodes."""

    def kill(self, name: str) -> None:
        """The node is gone without a word."""

    def keylog(self) -> str:
        """The TLS secrets of all connections so far, in the NSS format; empty without TLS."""

    @property
    def certificate(self) -> Path | None:
        """Whom a peer must trust to connect to nodes that listen here; None without TLS."""

    def close(self) -> None:
        """End all that the run began."""
