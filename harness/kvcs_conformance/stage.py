"""One run of one case: the nodes are put up, the steps are taken, what was seen is evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moqt.session import SessionConfig
from moqt.wire.drafts import DRAFT_22

from kvcs_conformance.cases.load import Case
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.evidence.reports import MALFORMED
from kvcs_conformance.evidence.wait import came
from kvcs_conformance.network import Link
from kvcs_conformance.nodes.cast import Part, cast
from kvcs_conformance.nodes.consumer import ConsumerNode
from kvcs_conformance.nodes.node import Node
from kvcs_conformance.nodes.origin import OriginNode
from kvcs_conformance.nodes.publisher import PublisherNode
from kvcs_conformance.nodes.relay import RelayNode
from kvcs_conformance.nodes.scripted import ScriptedNode
from kvcs_conformance.peers import Peers
from kvcs_conformance.scenario import Scenario, seconds
from kvcs_conformance.sides import REFERENCE, ROLES

NODES: dict[str, type[Node]] = {
    "publisher": PublisherNode,
    "origin": OriginNode,
    "relay": RelayNode,
    "consumer": ConsumerNode,
    "scripted": ScriptedNode,
}


class Stage:
    """The nodes of one run on one link."""

    def __init__(
        self, case: Case, scenario: Mapping[str, Any], link: Link, seed: int, peers: Peers
    ) -> None:
        self.case = case
        self.link = link
        self.peers = peers
        self.scenario = Scenario(scenario, seed)
        self.parts: dict[str, Part] = cast(case.sut, scenario)
        self.recorders = {name: Recorder(name, link.now) for name in self.parts}
        self.nodes: dict[str, Node] = {}
        self._addresses: dict[str, str] = {}
        self._steps: list[dict[str, Any]] = []
        for name, part in self.parts.items():
            self.nodes[name] = NODES[part.kind](name, part, self, self.recorders[name])

    def put_up(self) -> None:
        """Start every node; SetupFailed when one of ours does not come up."""
        for node in self.nodes.values():
            node.put_up()
        for node in self.nodes.values():
            node.await_ready()

    # What nodes ask for.

    def config(self, name: str) -> SessionConfig:
        return SessionConfig(
            draft=DRAFT_22,
            trace=self.recorders[name].trace,
            session_class=self.peers.sessions.get(name),
        )

    def address(self, name: str, by: str) -> str:
        return self.link.url(name, by, self._addresses[name])

    def listens(self, name: str, url: str) -> None:
        self._addresses[name] = url

    def node(self, name: str) -> Node:
        return self.nodes[name]

    def namespace(self) -> tuple[bytes, ...]:
        listener = self.nodes["consumer"]
        if self.case.sut == "publisher" and isinstance(listener, ScriptedNode):
            return listener.announced[0]
        return self.nodes["publisher"].namespaces()[0]

    def tampers(self, name: str) -> list[Mapping[str, Any]]:
        return [entry for entry in self.scenario.values.get("tamper", []) if _by(entry) == name]

    # Steps.

    def play(self) -> None:
        """Take the steps in order; a wait in vain ends the run."""
        for i, step in enumerate(self.case.steps):
            ((subject, body),) = step.items()
            entry = {"step": i + 1, "what": subject, "at": self.link.now(), "outcome": "done"}
            self._steps.append(entry)
            if subject == "expect":
                within = seconds(body.get("within", "5s"))
                if not self._expect(body, within):
                    if body.get("probe"):
                        self._fence({"at": body.get("at", "consumer")}, i)
                    entry |= {"outcome": "timeout", "waited": f"{within:g} s for {body['event']}"}
                    return
            elif subject == "fence":
                if not self._fence(body, i):
                    entry |= {"outcome": "timeout", "waited": "for the answer of a fence"}
                    return
            elif subject == "network":
                self._network(body)
            else:
                label = body.get("as", f"step-{i + 1}")
                self.nodes[subject].play(next(iter(body)), body, label)

    def _network(self, body: Mapping[str, Any]) -> None:
        if "restart" not in body:
            self.link.fault(body)
            return
        name = body["restart"]
        self.link.note("restarted", node=name)
        self.nodes[name].put_up()
        for node in self.nodes.values():
            if name in node.part.to:
                node.connect_again(name)

    def _expect(self, body: Mapping[str, Any], within: float) -> bool:
        at = body.get("at", "consumer")
        log = (self.link.recorder if at == "network" else self.recorders[at]).records
        length, answer = -1, False

        def holds() -> bool:
            nonlocal length, answer
            if len(log) != length:
                length, answer = len(log), came(log, body)
            return answer

        return self.link.wait(holds, within)

    def _fence(self, body: Mapping[str, Any], index: int) -> bool:
        name = body.get("at", "consumer")
        node = self.nodes[name]
        assert isinstance(node, ScriptedNode)
        label = f"fence-{index + 1}"
        self.link.act(name, lambda: node.probe(label))
        passed = self._expect(
            {"event": "answered", "at": name, "of": label}, seconds(body.get("within", "5s"))
        )
        if passed:
            self.recorders[name].trace("kvcs:fence", {"label": label})
        return passed

    # Evidence.

    def _drafts(self) -> list[str]:
        """The ALPNs that the sessions of our own nodes have negotiated."""
        sessions = [session for node in self.nodes.values() for session in node.sessions()]
        return sorted({session.alpn for session in sessions if session.alpn})

    def _odd_report(self) -> Mapping[str, str] | None:
        """The first report that cannot be read: what a peer did not report then proves nothing."""
        for name, recorder in self.recorders.items():
            for record in recorder.records:
                if record.name == MALFORMED:
                    text = f"{name} sent a malformed report: {record.data['why']}"
                    return {"kind": "report", "text": text}
        return None

    def evidence(self, trouble: Mapping[str, str] | None) -> Evidence:
        """Everything that a judge may look at."""
        drafts = self._drafts()
        if trouble is None and set(drafts) - {DRAFT_22.alpn}:
            text = f"{', '.join(drafts)} was negotiated, not {DRAFT_22.alpn}"
            trouble = {"kind": "version", "text": text}
        trouble = trouble or self._odd_report()
        logs = {name: tuple(recorder.records) for name, recorder in self.recorders.items()}
        if self.link.recorder.records:
            logs[self.link.recorder.node] = tuple(self.link.recorder.records)
        facts = {
            "schema": 1,
            "case": self.case.id,
            "sut": self.case.sut,
            "link": self.link.name,
            "seed": self.scenario.seed,
            "profile": "kvsp-p0",
            "peers": {role: self.peers.names.get(role, REFERENCE) for role in ROLES},
            "scenario": dict(self.scenario.values),
            "nodes": {
                name: {
                    "kind": part.kind,
                    "token": part.token,
                    "under_test": part.under_test,
                    "listens": part.listens,
                }
                for name, part in self.parts.items()
            },
            "publications": {
                name: {"namespace": [field.hex() for field in namespace]}
                for name, node in self.nodes.items()
                for namespace in node.namespaces()[-1:]
            },
            "producer": self.scenario.producer,
            "retention_ms": self.scenario.retention_ms,
            "layer_digests": [
                self.scenario.layer_digest(layer) for layer in range(self.scenario.layers)
            ],
            "steps": self._steps,
            "trouble": trouble,
            "observed": {"alpn": drafts, "transport": self.link.name},
            "records": {name: len(log) for name, log in logs.items()},
        }
        return Evidence(
            facts,
            logs,
            {name: node.request for name, node in self.nodes.items() if node.request is not None},
            {
                name: tuple(recorder.reports)
                for name, recorder in self.recorders.items()
                if recorder.reports
            },
            self.link.keylog(),
        )


def _by(entry: Mapping[str, Any]) -> str:
    """The publisher that an entry of `tamper` is about."""
    (value,) = entry.values()
    return str(value.get("by", "publisher"))
