"""A publisher of the reference (or a mutant of it) that produces as the steps say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvcs.authorization import bearer
from kvcs.publisher import Publisher
from kvcs.publisher.publication import Publication

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.network import Link
from kvcs_conformance.nodes.tamper import tampering
from kvcs_conformance.scenario import Scenario

SEGMENT = 0


class PublisherNode:
    """A Publisher, its one publication, and the pace at which layers are computed."""

    def __init__(
        self,
        name: str,
        scenario: Scenario,
        recorder: Recorder,
        link: Link,
        *,
        token: bytes | None,
        publisher_class: type[Publisher] = Publisher,
        tampers: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self.name = name
        self._scenario = scenario
        self._recorder = recorder
        self._link = link
        self._next_layer = 0
        self._free_at = 0.0
        self.endpoint = publisher_class(
            tokens=(bearer(token),) if token else (), report=self._report
        )
        self.endpoint.publication_class = tampering(publisher_class.publication_class, tampers)
        self.publication: Publication | None = None

    def open(self) -> None:
        """Announce the publication and add segment 0; nothing is produced yet."""
        self.publication = self.endpoint.open(self._scenario.publication(self.name))
        self.publication.open_segment()

    @property
    def namespace(self) -> tuple[bytes, ...]:
        if self.publication is None:
            raise SetupFailed(f"{self.name} has no publication")
        return self.publication.namespace.fields

    def publish(self, layers: int | None) -> None:
        """Produce so many more layers, or all and complete; each takes the scenario's time."""
        if self.publication is None:
            raise SetupFailed(f"{self.name} has no publication")
        last = self._scenario.layers
        end = last if layers is None else min(self._next_layer + layers, last)
        at = max(self._link.now(), self._free_at)
        for layer in range(self._next_layer, end):
            at += self._scenario.layer_time
            self._link.later(self.name, at - self._link.now(), self._layer(layer))
        self._next_layer, self._free_at = end, at
        if layers is None:
            self._link.later(self.name, at - self._link.now() + 0.001, self._complete)

    def stop(self, reason: str) -> None:
        """End the publication as after an error."""
        if self.publication is not None:
            self.publication.stop(reason)

    def _layer(self, layer: int) -> Any:
        def put() -> None:
            assert self.publication is not None
            self.publication.put_layer(SEGMENT, layer, self._scenario.sections(layer))

        return put

    def _complete(self) -> None:
        assert self.publication is not None
        self.publication.complete_segment(SEGMENT)

    def _report(self, event: dict[str, Any]) -> None:
        details = {key: value for key, value in event.items() if key != "event"}
        self._recorder.trace(f"kvcs:{event['event']}", details)
