"""One run of one case: the nodes are put up, the steps are taken, what was seen is evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvcs.consumer import Consumer
from kvcs.publisher import Publisher
from moqt.relay import Relay
from moqt.session import SessionConfig
from moqt.wire.drafts import DRAFT_22

from kvcs_conformance.cases.load import Case
from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.evidence.wait import came
from kvcs_conformance.network import Link
from kvcs_conformance.nodes.cast import Part, cast
from kvcs_conformance.nodes.consumer import ConsumerNode, consume_request
from kvcs_conformance.nodes.publisher import PublisherNode
from kvcs_conformance.nodes.relay import TOKENS, relay_node
from kvcs_conformance.nodes.scripted import ScriptedNode
from kvcs_conformance.scenario import Scenario, seconds

if TYPE_CHECKING:
    from moqt.endpoint import Endpoint

_PATIENCE = 5.0


@dataclass(frozen=True)
class Peers:
    """Which implementation plays each role; a mutant is a subclass of the reference's."""

    publisher: type[Publisher] = Publisher
    relay: type[Relay] = Relay
    consumer: type[Consumer] = Consumer
    name: str = "reference"


class Stage:
    """The nodes of one run on one link."""

    def __init__(
        self, case: Case, scenario: Mapping[str, Any], link: Link, seed: int, peers: Peers
    ) -> None:
        self.case = case
        self.link = link
        self.scenario = Scenario(scenario, seed)
        self.parts: dict[str, Part] = cast(case.sut, scenario)
        self.recorders = {name: Recorder(name, link.now) for name in self.parts}
        self._peers = peers
        self._tampers: list[dict[str, Any]] = list(scenario.get("tamper", []))
        self._publishers: dict[str, PublisherNode] = {}
        self._scripted: dict[str, ScriptedNode] = {}
        self._relay: Relay | None = None
        self._served: dict[str, str] = {}
        self._steps: list[dict[str, Any]] = []
        self._requests: dict[str, Any] = {}

    # Putting up.

    def put_up(self) -> None:
        """Start every node; SetupFailed when one of ours does not come up."""
        builders: dict[str, Callable[[str, Part], None]] = {
            "scripted": self._put_scripted,
            "publisher": self._put_publisher,
            "relay": self._put_relay,
            "consumer": self._put_consumer,
        }
        for name, part in self.parts.items():
            builders[part.kind](name, part)
        for name, node in self._scripted.items():
            if not self.link.wait(lambda node=node: node.ready, _PATIENCE):  # type: ignore[misc]
                raise SetupFailed(f"{name} got no session within {_PATIENCE:g} s")
        if self.case.sut != "publisher":
            self._await_announcements()

    def _await_announcements(self) -> None:
        for name in self._publishers:
            log = self.recorders[name].records
            accepted = self.link.wait(
                lambda log=log: any(r.name == "kvcs:announce-accepted" for r in log),  # type: ignore[misc]
                _PATIENCE,
            )
            if not accepted:
                raise SetupFailed(f"the relay did not accept the announcement of {name}")

    def _config(self, name: str) -> SessionConfig:
        return SessionConfig(draft=DRAFT_22, trace=self.recorders[name].trace)

    def _serve(self, name: str, endpoint: Endpoint) -> None:
        self._served[name] = self.link.serve(name, endpoint, self._config(name))

    def _put_scripted(self, name: str, part: Part) -> None:
        from kvcs.authorization import bearer

        token = TOKENS[part.token]
        node = ScriptedNode(self.recorders[name], (bearer(token),) if token else ())
        self._scripted[name] = node
        if self.case.sut == "publisher":
            self._serve(name, node)
        else:
            self.link.client(name, node)
            self.link.act(name, lambda: node.connect(self._served["relay"], self._config(name)))

    def _put_publisher(self, name: str, part: Part) -> None:
        node = PublisherNode(
            name,
            self.scenario,
            self.recorders[name],
            self.link,
            token=TOKENS[part.token],
            publisher_class=self._peers.publisher if part.under_test else Publisher,
            tampers=[entry for entry in self._tampers if _by(entry) == name],
        )
        self._publishers[name] = node
        self._requests[name] = {
            **self.scenario.as_json(),
            "publication_id": self.scenario.publication_id(name).hex(),
        }
        self.link.client(name, node.endpoint)
        url = self._served["consumer" if self.case.sut == "publisher" else "relay"]

        def start() -> None:
            node.open()
            node.endpoint.connect(url, self._config(name))

        self.link.act(name, start)

    def _put_relay(self, name: str, part: Part) -> None:
        relay_class = self._peers.relay if part.under_test else Relay
        self._relay = relay_node(self.scenario, relay_class)
        self._serve(name, self._relay)

    def _put_consumer(self, name: str, part: Part) -> None:
        """A consumer starts with its first step."""

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
                    entry |= {"outcome": "timeout", "waited": f"{within:g} s for {body['event']}"}
                    return
            elif subject == "fence":
                if not self._fence(body, i):
                    entry |= {"outcome": "timeout", "waited": "for the answer of a fence"}
                    return
            else:
                self._act(subject, body, i)

    def _expect(self, body: Mapping[str, Any], within: float) -> bool:
        log = self.recorders[body.get("at", "consumer")].records
        length, answer = -1, False

        def holds() -> bool:
            nonlocal length, answer
            if len(log) != length:
                length, answer = len(log), came(log, body)
            return answer

        return self.link.wait(holds, within)

    def _fence(self, body: Mapping[str, Any], index: int) -> bool:
        name = body.get("at", "consumer")
        label = f"fence-{index + 1}"
        self.link.act(name, lambda: self._scripted[name].probe(label))
        passed = self._expect(
            {"event": "answered", "at": name, "of": label}, seconds(body.get("within", "5s"))
        )
        if passed:
            self.recorders[name].trace("kvcs:fence", {"label": label})
        return passed

    def _act(self, name: str, body: Mapping[str, Any], index: int) -> None:
        word = next(iter(body))
        label = body.get("as", f"step-{index + 1}")
        if name in self._publishers:
            node = self._publishers[name]
            if word == "publish":
                layers = None if body["publish"] == "all" else int(body["publish"])
                self.link.act(name, lambda: node.publish(layers))
            else:
                self.link.act(name, lambda: node.stop(body["stop"]))
        elif name in self._scripted:
            scripted = self._scripted[name]
            self._await_namespace()
            self.link.act(name, lambda: self._scripted_step(scripted, word, body, label))
        else:
            self._consume(name, body)

    def _await_namespace(self) -> None:
        """A scripted node that a publisher connects to learns the namespace from it."""
        if self.case.sut != "publisher":
            return
        listener = self._scripted["consumer"]
        if not self.link.wait(lambda: bool(listener.announced), _PATIENCE):
            raise SetupFailed("the publisher announced no namespace")

    def namespace(self) -> tuple[bytes, ...]:
        """The namespace of the publication that the steps are about."""
        if self.case.sut == "publisher":
            return self._scripted["consumer"].announced[0]
        return self._publishers["publisher"].namespace

    def _scripted_step(
        self, node: ScriptedNode, word: str, body: Mapping[str, Any], label: str
    ) -> None:
        namespace = self.namespace()
        if word == "subscribe":
            for track in body["subscribe"]:
                node.subscribe(label, namespace, track, body["from"])
        elif word == "fetch":
            for track in body["fetch"]:
                node.fetch(label, namespace, track, *body["layers"])
        elif word == "track-status":
            for track in body["track-status"]:
                node.track_status(label, namespace, track)
        elif word == "subscribe-namespace":
            node.subscribe_namespace(label, _prefix(namespace, body["subscribe-namespace"]))
        else:
            another = self.scenario.publication_id("another publisher")
            node.publish_namespace(label, (*namespace[:4], another))

    def _consume(self, name: str, body: Mapping[str, Any]) -> None:
        sources = [self._served["relay"]]
        request = consume_request(self.scenario, body, sources, TOKENS[self.parts[name].token])
        self._requests[name] = {**self.scenario.as_json(), **body, "sources": sources}
        node = ConsumerNode(self.scenario, self.recorders[name], self._peers.consumer, request)
        self.link.client(name, node.endpoint)

    # Evidence.

    def _drafts(self) -> list[str]:
        """The ALPNs that the sessions of our own nodes have negotiated."""
        endpoints: list[Publisher | Relay] = [node.endpoint for node in self._publishers.values()]
        if self._relay is not None:
            endpoints.append(self._relay)
        sessions = [session for endpoint in endpoints for session in endpoint.sessions]
        sessions += [node.session for node in self._scripted.values() if node.session]
        return sorted({session.alpn for session in sessions if session.alpn})

    def evidence(self, trouble: Mapping[str, str] | None) -> Evidence:
        """Everything that a judge may look at."""
        drafts = self._drafts()
        if trouble is None and set(drafts) - {DRAFT_22.alpn}:
            text = f"{', '.join(drafts)} was negotiated, not {DRAFT_22.alpn}"
            trouble = {"kind": "version", "text": text}
        logs = {name: tuple(recorder.records) for name, recorder in self.recorders.items()}
        facts = {
            "schema": 1,
            "case": self.case.id,
            "sut": self.case.sut,
            "link": self.link.name,
            "seed": self.scenario.seed,
            "profile": "kvsp-p0",
            "peers": {self.case.sut: self._peers.name},
            "scenario": dict(self.scenario.values),
            "nodes": {
                name: {"kind": part.kind, "token": part.token, "under_test": part.under_test}
                for name, part in self.parts.items()
            },
            "publications": {
                name: {"namespace": [field.hex() for field in node.namespace]}
                for name, node in self._publishers.items()
                if node.publication is not None
            },
            "requests": self._requests,
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
        return Evidence(facts, logs)


def _by(entry: Mapping[str, Any]) -> str:
    """The publisher that an entry of `tamper` is about."""
    (value,) = entry.values()
    return str(value.get("by", "publisher"))


def _prefix(namespace: tuple[bytes, ...], word: int | str) -> tuple[bytes, ...]:
    """The prefix that a `subscribe-namespace` step asks for."""
    version, scope = namespace[:2]
    if isinstance(word, int):
        return namespace[:word]
    if word == "scope-cut":
        return (version, scope[:-1])
    if word == "scope-other":
        return (version, scope[:-1] + bytes([scope[-1] ^ 0x01]))
    return (version + scope[:1], scope[1:])
