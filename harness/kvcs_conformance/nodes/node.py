"""What every node of a run is to the stage, and what the stage is to a node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from kvcs_conformance.cases.load import Case
from kvcs_conformance.evidence.read import Record
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.network import Link
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.peers import Peers
from kvcs_conformance.scenario import Scenario

if TYPE_CHECKING:
    from moqt.session import Session, SessionConfig

PATIENCE = 5.0
"""Seconds that our own nodes may take to come up."""

TOKENS: dict[str, bytes | None] = {
    "scope": b"token of the scope",
    "other-scope": b"token of another scope",
    "neighbour-scope": b"token of the neighbour scope",
    "reader": b"token of a reader of the scope",
    "garbled": b"\x00 no token of any scope",
    "none": None,
}
"""The bearer tokens that a scenario's nodes carry, by the word that names them."""


def why_closed(log: Iterable[Record]) -> str:
    """What the last session of a node's log was closed for, to be said behind what was awaited."""
    closed = [record.data for record in log if record.name == "moqt:session_closed"]
    return f": its session was closed: {closed[-1]['reason']}" if closed else ""


class Setting(Protocol):
    """What a node may ask of the stage that it stands on."""

    case: Case
    link: Link
    peers: Peers
    scenario: Scenario

    def config(self, name: str) -> SessionConfig:
        """How the sessions of a node are set up: their events go into its log."""

    def address(self, name: str, by: str) -> str:
        """The URL by which the node `by` reaches a node that listens."""

    def listens(self, name: str, url: str) -> None:
        """Tell the others where a node listens."""

    def node(self, name: str) -> Node:
        """Another node."""

    def namespace(self) -> tuple[bytes, ...]:
        """The namespace of the publication that the steps are about."""

    def tampers(self, name: str) -> list[Mapping[str, Any]]:
        """What the case alters in what this publisher sends."""


class Node(ABC):
    """One node of a run; `put_up` in the order of the cast, then `await_ready`, then steps."""

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        self.name = name
        self.part = part
        self.setting = setting
        self.recorder = recorder
        values = {**setting.scenario.values, **part.scenario}
        self.scenario = Scenario(values, setting.scenario.seed)
        self.request: dict[str, Any] | None = None
        """What a peer in this place was handed, as evidence."""

    @property
    def link(self) -> Link:
        return self.setting.link

    @property
    def token(self) -> bytes | None:
        return TOKENS[self.part.token]

    @property
    def main(self) -> bool:
        """Whether one of the `Peers` plays it."""
        return self.name == self.part.kind

    @abstractmethod
    def put_up(self) -> None:
        """Start it: let it listen, or connect."""

    def await_ready(self) -> None:
        """Wait until steps can begin; SetupFailed when one of ours does not come up."""
        return

    def connect_again(self, to: str) -> None:
        """A node that it was connected to is back."""
        return

    @abstractmethod
    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        """Take one step."""

    def sessions(self) -> Iterable[Session]:
        """The sessions of a node of ours, for what was negotiated on them."""
        return ()

    def namespaces(self) -> tuple[tuple[bytes, ...], ...]:
        """The namespaces of what it has published."""
        return ()
