"""A publisher of the reference (or a mutant of it) that produces as the steps say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kvcs.authorization import bearer
from kvcs.publisher import Publisher
from kvcs.publisher.publication import Publication

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.node import PATIENCE, Node, Setting
from kvcs_conformance.nodes.tamper import tampering

if TYPE_CHECKING:
    from moqt.session import Session

SEGMENT = 0


class PublisherNode(Node):
    """A Publisher, its one publication, and the pace at which layers are computed."""

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self._next_layer = 0
        self._free_at = 0.0
        publisher_class = setting.peers.publisher if self.main else Publisher
        self.endpoint = publisher_class(
            tokens=(bearer(self.token),) if self.token else (), report=self._report
        )
        self.endpoint.publication_class = tampering(
            publisher_class.publication_class, setting.tampers(name)
        )
        self.publication: Publication | None = None

    def put_up(self) -> None:
        self.request = {
            **self.scenario.as_json(),
            "publication_id": self.scenario.publication_id(self.name).hex(),
        }
        self.link.client(self.name, self.endpoint)
        urls = [self.setting.address(to, self.name) for to in self.part.to]

        def start() -> None:
            self.open()
            for url in urls:
                self.endpoint.connect(url, self.setting.config(self.name))

        self.link.act(self.name, start)

    def connect_again(self, to: str) -> None:
        url = self.setting.address(to, self.name)
        config = self.setting.config(self.name)
        self.link.act(self.name, lambda: self.endpoint.connect(url, config))

    def await_ready(self) -> None:
        if self.setting.case.sut == "publisher":
            return
        log = self.recorder.records
        accepted = self.link.wait(
            lambda: any(record.name == "kvcs:announce-accepted" for record in log), PATIENCE
        )
        if not accepted:
            raise SetupFailed(f"the relay did not accept the announcement of {self.name}")

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        if word == "publish":
            layers = None if body["publish"] == "all" else int(body["publish"])
            self.link.act(self.name, lambda: self.publish(layers))
        else:
            self.link.act(self.name, lambda: self.stop(body["stop"]))

    def sessions(self) -> Iterable[Session]:
        return self.endpoint.sessions

    def namespaces(self) -> tuple[tuple[bytes, ...], ...]:
        return (self.publication.namespace.fields,) if self.publication is not None else ()

    def open(self) -> None:
        """Announce the publication and add segment 0; nothing is produced yet."""
        self.publication = self.endpoint.open(self.scenario.publication(self.name))
        self.publication.open_segment()

    def publish(self, layers: int | None) -> None:
        """Produce so many more layers, or all and complete; each takes the scenario's time."""
        if self.publication is None:
            raise SetupFailed(f"{self.name} has no publication")
        last = self.scenario.layers
        end = last if layers is None else min(self._next_layer + layers, last)
        at = max(self.link.now(), self._free_at)
        for layer in range(self._next_layer, end):
            at += self.scenario.layer_time
            self.link.later(self.name, at - self.link.now(), self._layer(layer))
        self._next_layer, self._free_at = end, at
        if layers is None:
            self.link.later(self.name, at - self.link.now() + 0.001, self._complete)

    def stop(self, reason: str) -> None:
        """End the publication as after an error."""
        if self.publication is not None:
            self.publication.stop(reason)

    def _layer(self, layer: int) -> Any:
        def put() -> None:
            assert self.publication is not None
            self.publication.put_layer(SEGMENT, layer, self.scenario.sections(layer))

        return put

    def _complete(self) -> None:
        assert self.publication is not None
        self.publication.complete_segment(SEGMENT)

    def _report(self, event: dict[str, Any]) -> None:
        details = {key: value for key, value in event.items() if key != "event"}
        self.recorder.trace(f"kvcs:{event['event']}", details)
