"""Who plays the main roles of a run."""

from __future__ import annotations

from dataclasses import dataclass

from kvcs.consumer import Consumer
from kvcs.publisher import Publisher
from moqt.relay import Relay
from moqt.session import Session


@dataclass(frozen=True)
class Peers:
    """Which implementation plays the nodes `publisher`, `relay` and `consumer` of every case.

    A mutant is a subclass of the reference's role; `session` is what the node under test runs its
    sessions with. Further nodes of a case are the reference's.
    """

    publisher: type[Publisher] = Publisher
    relay: type[Relay] = Relay
    consumer: type[Consumer] = Consumer
    name: str = "reference"
    session: type[Session] | None = None
