"""Who plays the main roles of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvcs.consumer import Consumer
from kvcs.publisher import Publisher
from moqt.relay import Relay
from moqt.session import Session

from kvcs_conformance.remote import Remote


@dataclass(frozen=True)
class Peers:
    """Which implementation plays the nodes `publisher`, `relay` and `consumer` of every case.

    A mutant is a subclass of the reference's role, or of the Session that such a node runs: then
    it stands in `sessions` by its role. `remote` is a relay that runs already, in place of ours.
    `names` says by role what each is called; who is not named is the reference. Further nodes of
    a case are the reference's.
    """

    publisher: type[Publisher] = Publisher
    relay: type[Relay] = Relay
    consumer: type[Consumer] = Consumer
    sessions: Mapping[str, type[Session]] = field(default_factory=dict)
    remote: Remote | None = None
    names: Mapping[str, str] = field(default_factory=dict)
