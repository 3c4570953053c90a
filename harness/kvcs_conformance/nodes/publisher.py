"""A publisher of the reference (or a mutant of it) that produces as the steps say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from kvcs.authorization import bearer
from kvcs.errors import KvcsError
from kvcs.publisher import Publisher

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.node import PATIENCE, Node, Setting, why_closed
from kvcs_conformance.nodes.production import Production
from kvcs_conformance.nodes.request import peer_request
from kvcs_conformance.nodes.tamper import tampering
from kvcs_conformance.nodes.tamper_manifest import misstating
from kvcs_conformance.scenario import Scenario

if TYPE_CHECKING:
    from moqt.session import Session

_ACCEPTED, _CLOSED = "kvcs:announce-accepted", "moqt:session_closed"
FIRST = "first"
"""What steps call the publication that is there from the start."""


class PublisherNode(Node):
    """A Publisher and its publications by name: `first`, and those that steps open.

    What it was asked to publish stands in its request, in order; `kvcs:not-published` tells that
    it declined to.
    """

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self._starts = 0
        self._productions: dict[str, Production] = {}
        self.endpoint = self._make()

    def _make(self) -> Publisher:
        publisher_class = self.setting.peers.publisher if self.main else Publisher
        random = Random(f"{self.scenario.seed}/{self.name}/{self._starts}")
        self._starts += 1
        endpoint = publisher_class(
            tokens=(bearer(self.token),) if self.token else (),
            report=self._report,
            random=random.randbytes,
            max_fetches_per_session=self.scenario.values.get("fetch-limit"),
        )
        tampers = self.setting.tampers(self.name)
        endpoint.publication_class = misstating(
            tampering(publisher_class.publication_class, tampers), tampers
        )
        return endpoint

    def put_up(self) -> None:
        """Start it; when it was there before, as another process that knows nothing of it."""
        if self._starts > 1 or self._productions:
            self.endpoint = self._make()
            self._productions = {}
        self.link.client(self.name, self.endpoint)

        def start() -> None:
            self.open(FIRST, self.scenario)
            for to in self.part.to:
                self._connect(to)

        self.link.act(self.name, start)

    def connect_again(self, to: str) -> None:
        self.link.act(self.name, lambda: self._connect(to))

    def _connect(self, to: str) -> None:
        url = self.setting.address(to, self.name)
        self.endpoint.connect(url, self.setting.config(self.name))

    def await_ready(self) -> None:
        if self.setting.case.sut == "publisher":
            return
        log = self.recorder.records

        def count(name: str) -> int:
            return sum(record.name == name for record in log)

        def settled() -> bool:
            return count(_ACCEPTED) > 0 or count(_CLOSED) >= len(self.part.to)

        self.link.wait(settled, PATIENCE)
        if not count(_ACCEPTED):
            what = f"the relay did not accept the announcement of {self.name}"
            raise SetupFailed(what + why_closed(log))

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        if word == "open":
            values = {**self.scenario.values, **body.get("with", {})}
            scenario = Scenario(values, self.scenario.seed)
            self.link.act(self.name, lambda: self.open(body["open"], scenario))
            return
        if word == "restart":
            self.link.kill(self.name)
            self.put_up()
            return
        production = self._production(body.get("of"))
        if word == "publish":
            layers = None if body["publish"] == "all" else int(body["publish"])
            kept = self.recorder if self.part.under_test else None
            self.link.act(self.name, lambda: production.publish(layers, body.get("segment"), kept))
        elif word == "add-segment":
            self.link.act(self.name, lambda: production.add_segment(body["add-segment"]))
        else:
            self.link.act(self.name, lambda: production.publication.stop(body["stop"]))

    def sessions(self) -> Iterable[Session]:
        return self.endpoint.sessions

    def namespaces(self) -> tuple[tuple[bytes, ...], ...]:
        return tuple(
            production.publication.namespace.fields for production in self._productions.values()
        )

    def open(self, label: str, scenario: Scenario) -> None:
        """Announce a publication and add its segment 0; nothing is produced yet."""
        if self.request is None:
            urls = [self.setting.address(to, self.name) for to in self.part.to]
            self.request = peer_request(self, "publisher", urls, {"publications": []})
        token = self.token.hex() if self.token else ""
        asked = {"label": label, "token": token, **scenario.as_json()}
        self.recorder.trace("kvcs:asked-to-publish", asked)
        self.request["task"]["publications"].append(asked)
        try:
            spec = scenario.publication(self.endpoint.choose_publication_id())
            publication = self.endpoint.open(spec)
        except KvcsError as error:
            self.recorder.trace("kvcs:not-published", {"label": label, "why": str(error)})
            return
        fields = publication.namespace.fields
        opened: dict[str, Any] = {"label": label, "namespace": list(fields)}
        if self.setting.case.sut == "consumer":
            opened["layer_digests"] = scenario.block_digests()
        self.recorder.trace("kvcs:opened", opened)
        production = Production(self.name, publication, scenario, self.link)
        self._productions[label] = production
        production.open_first()

    def _production(self, label: str | None) -> Production:
        """The publication that a step names, by default the one opened last."""
        if not self._productions:
            raise SetupFailed(f"{self.name} has no publication")
        if label is None:
            return [*self._productions.values()][-1]
        if label not in self._productions:
            raise SetupFailed(f"{self.name} has no publication {label!r}")
        return self._productions[label]

    def _report(self, event: dict[str, Any]) -> None:
        if not self.recorder.report(event):
            return
        details = {key: value for key, value in event.items() if key != "event"}
        self.recorder.trace(f"kvcs:{event['event']}", details)
