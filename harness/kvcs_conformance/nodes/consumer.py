"""A consumer of the reference, or a mutant of it, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvcs.authorization import bearer
from kvcs.consumer import Consumer
from kvcs.consumer.request import Budgets, ConsumeRequest, Mode
from kvcs.identity import P0

from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.scenario import Scenario, seconds


def consume_request(
    scenario: Scenario, step: Mapping[str, Any], sources: Sequence[str], token: bytes | None
) -> ConsumeRequest:
    """What a `consume` step asks of the consumer under test."""
    budget = seconds(step.get("budget", "2s"))
    signing = {scenario.kid: scenario.signing_key.public_key()}
    return ConsumeRequest(
        profile=P0,
        scope_key=scenario.scope_key,
        descriptor=scenario.descriptor,
        tokens=scenario.tokens,
        sources=tuple(sources),
        mode=Mode(step["consume"]),
        layers=tuple(step["layers"]) if "layers" in step else None,
        blocks=step.get("blocks"),
        authentic=bool(step.get("authenticity", False)),
        producers=signing if step.get("authenticity") else {},
        authorization=(bearer(token),) if token else (),
        budgets=Budgets(
            connect=budget, discovery=budget, manifest=budget, stall=budget / 4, recovery=budget
        ),
    )


class ConsumerNode:
    """Runs one restore and keeps each report as a record `kvcs:…`."""

    def __init__(
        self, scenario: Scenario, recorder: Recorder, consumer_class: type[Consumer] = Consumer
    ) -> None:
        self._scenario = scenario
        self._recorder = recorder
        self._consumer_class = consumer_class
