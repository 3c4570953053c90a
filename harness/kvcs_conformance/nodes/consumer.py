"""A consumer of the reference, or a mutant of it, and what it reports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kvcs.authorization import bearer
from kvcs.consumer import Budgets, Consumer, ConsumeRequest, Mode
from kvcs.errors import KvcsError
from kvcs.identity import P0

from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.node import Node, Setting
from kvcs_conformance.nodes.request import peer_request
from kvcs_conformance.scenario import Scenario, seconds


def consume_request(
    scenario: Scenario, step: Mapping[str, Any], sources: Sequence[str], token: bytes | None
) -> ConsumeRequest:
    """What a `consume` step asks of the consumer under test."""
    budget = seconds(step.get("budget", "2s"))
    authentic = bool(step.get("authenticity", False))
    return ConsumeRequest(
        profile=P0,
        scope_key=scenario.scope_key,
        descriptor=scenario.descriptor,
        tokens=scenario.tokens,
        sources=tuple(sources),
        mode=Mode(step["consume"]),
        layers=tuple(step["layers"]) if "layers" in step else None,
        blocks=step.get("blocks"),
        authentic=authentic,
        producers={scenario.kid: scenario.signing_key.public_key()} if authentic else {},
        authorization=(bearer(token),) if token else (),
        budgets=Budgets(
            connect=budget, discovery=budget, manifest=budget, stall=budget / 4, recovery=budget
        ),
    )


class ConsumerNode(Node):
    """A consumer, which starts with its first step; each of its reports becomes a record `kvcs:…`.

    With the report `done` come records `kvcs:tensors`: SHA-256 over K then V of each block, per
    layer that the consumer hands out whole.
    """

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self._class = setting.peers.consumer if self.main else Consumer
        self._blocks = 0
        self.endpoint: Consumer | None = None

    def put_up(self) -> None:
        """A consumer starts with its first step."""

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        sources = [self.setting.address(to, self.name) for to in self.part.to]
        request = consume_request(self.scenario, body, sources, self.token)
        self.request = peer_request(self, "consumer", sources, body)
        self._blocks = self.scenario.total_blocks if request.blocks is None else request.blocks
        self.endpoint = self._class(request, self._report, self.setting.config(self.name))
        self.link.client(self.name, self.endpoint)

    def _report(self, event: dict[str, Any]) -> None:
        self.recorder.report(event)
        details = {key: value for key, value in event.items() if key not in ("event", "time")}
        if event["event"] == "done":
            self._hand_out()
        self.recorder.trace(f"kvcs:{event['event']}", details)

    def _hand_out(self) -> None:
        result = self.endpoint.result if self.endpoint is not None else None
        if result is None:
            return
        for layer in result.layers:
            if len(list(result.blocks(layer))) < self._blocks:
                continue
            digest = hashlib.sha256()
            try:
                for block in range(self._blocks):
                    for section in result.sections(layer, block):
                        digest.update(section)
            except KvcsError as error:
                self.recorder.trace("kvcs:no-tensors", {"layer": layer, "why": str(error)})
                continue
            self.recorder.trace("kvcs:tensors", {"layer": layer, "sha256": digest.hexdigest()})
