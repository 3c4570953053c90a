"""One publication of a publisher node, and the pace at which its layers are computed."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kvcs.names import Component
from kvcs.publisher import PublicationState
from kvcs.publisher.publication import Publication

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.scenario import Scenario

if TYPE_CHECKING:
    from kvcs_conformance.evidence.record import Recorder
    from kvcs_conformance.network import Link

_AFTER = 0.001
"""Seconds from the last layer of a segment to its completion."""


class Production:
    """Publishes the segments of one scenario, one thing after the other, a layer per layer time.

    What was asked before goes first; the calls return at once. A publication that was stopped
    takes nothing more.
    """

    def __init__(self, name: str, publication: Publication, scenario: Scenario, link: Link) -> None:
        self.publication = publication
        self.scenario = scenario
        self._name = name
        self._link = link
        self._next_layer: dict[int, int] = {}
        self._completing: set[int] = set()
        self._actions: deque[Callable[[], None]] = deque()
        self._free_at = 0.0

    def open_first(self) -> None:
        """Let the publication list segment 0, at once: the manifest then precedes all data."""
        self._next_layer[0] = 0
        self._open(self.scenario.span(0))

    def add_segment(self, segment: int) -> None:
        """Let the publication list the next segment; nothing of it is produced yet."""
        self._next_layer[segment] = 0
        span = self.scenario.span(segment)
        self._then(0.0, lambda: self._open(span))

    def publish(self, layers: int | None, segment: int | None, recorder: Recorder | None) -> None:
        """Produce so many more layers of a segment, or all and complete it.

        The segment is by default the first that is not whole; it is added when it is not there.
        `recorder` keeps what is handed over, as records `kvcs:handed`.
        """
        number = self._current() if segment is None else segment
        if number > len(self.scenario.appended):
            raise SetupFailed(f"the publication has no segment {number} to be published")
        if number not in self._next_layer:
            self.add_segment(number)
        first, last = self._next_layer[number], self.scenario.layers
        end = last if layers is None else min(first + layers, last)
        for layer in range(first, end):
            self._then(self.scenario.layer_time, self._layer(number, layer, recorder))
            if self.scenario.block_time is not None:
                for block in range(len(self.scenario.span(number))):
                    self._then(self.scenario.block_time, self._block(number, layer, block))
        self._next_layer[number] = end
        if layers is None:
            self._completing.add(number)
            self._then(_AFTER, lambda: self.publication.complete_segment(number))

    def _current(self) -> int:
        return next(
            number for number in range(len(self._completing) + 1) if number not in self._completing
        )

    def _open(self, span: range) -> None:
        self.publication.open_segment(span.start, len(span))

    def _layer(self, segment: int, layer: int, recorder: Recorder | None) -> Callable[[], None]:
        def put() -> None:
            sections = self.scenario.sections(layer, segment)
            if recorder is not None:
                recorder.trace("kvcs:handed", self._handed(segment, layer, sections))
            if self.scenario.block_time is None:
                self.publication.put_layer(segment, layer, sections)

        return put

    def _block(self, segment: int, layer: int, block: int) -> Callable[[], None]:
        def put() -> None:
            sections = self.scenario.sections(layer, segment)
            one = {kind: sections[kind][block] for kind in sections}
            self.publication.put_block(segment, layer, block, one)

        return put

    def _handed(
        self, segment: int, layer: int, sections: dict[Component, list[bytes]]
    ) -> dict[str, object]:
        k, v = sections[Component.K], sections[Component.V]
        joint = [key + value for key, value in zip(k, v, strict=True)]
        digests = {
            name: [hashlib.sha256(data).hexdigest() for data in parts]
            for name, parts in (("k", k), ("v", v), ("kv", joint))
        }
        return {
            "publication_id": self.publication.spec.publication_id,
            "segment": segment,
            "layer": layer,
            "octets": len(k[0]),
            **digests,
        }

    def _then(self, delay: float, action: Callable[[], None]) -> None:
        now = self._link.now()
        self._free_at = max(now, self._free_at) + delay
        self._actions.append(action)
        self._link.later(self._name, self._free_at - now, self._act)

    def _act(self) -> None:
        """What was asked first: timers a millisecond apart may come out of order."""
        action = self._actions.popleft()
        if self.publication.state is PublicationState.RUNNING:
            action()
