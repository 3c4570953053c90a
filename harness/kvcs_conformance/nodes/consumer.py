"""A consumer of the reference, or a mutant of it, and what it reports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from kvcs.authorization import bearer
from kvcs.consumer import Budgets, Consumer, ConsumeRequest, Mode
from kvcs.errors import KvcsError
from kvcs.identity import P0
from moqt.session import SessionConfig

from kvcs_conformance.evidence.record import Recorder
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


class ConsumerNode:
    """One restore; each report becomes a record `kvcs:…`.

    With the report `done` come records `kvcs:tensors`: SHA-256 over K then V of each block, per
    layer that the consumer hands out whole.
    """

    def __init__(
        self,
        scenario: Scenario,
        recorder: Recorder,
        consumer_class: type[Consumer],
        request: ConsumeRequest,
    ) -> None:
        self._blocks = scenario.blocks if request.blocks is None else request.blocks
        self._recorder = recorder
        config = SessionConfig(trace=recorder.trace)
        self.endpoint = consumer_class(request, self._report, config)

    def _report(self, event: dict[str, Any]) -> None:
        details = {key: value for key, value in event.items() if key not in ("event", "time")}
        if event["event"] == "done":
            self._hand_out()
        self._recorder.trace(f"kvcs:{event['event']}", details)

    def _hand_out(self) -> None:
        result = self.endpoint.result
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
                self._recorder.trace("kvcs:no-tensors", {"layer": layer, "why": str(error)})
                continue
            self._recorder.trace("kvcs:tensors", {"layer": layer, "sha256": digest.hexdigest()})
