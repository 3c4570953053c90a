"""A consumer of the reference, or a mutant of it, and what it reports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kvcs.authorization import bearer
from kvcs.consumer import Budgets, Consumer, ConsumeRequest, Mode
from kvcs.cose import PublicKey
from kvcs.errors import KvcsError
from kvcs.identity import P0

from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.cose_forms import p256_key
from kvcs_conformance.nodes.node import Node, Setting
from kvcs_conformance.nodes.request import peer_request
from kvcs_conformance.scenario import Scenario, seconds


def consume_request(
    scenario: Scenario, step: Mapping[str, Any], sources: Sequence[str], token: bytes | None
) -> ConsumeRequest:
    """What a `consume` step asks of the consumer under test.

    Two producer keys are known to it: the one that signs, and one for ES256 under another kid.
    """
    budget = seconds(step.get("budget", "2s"))
    authentic = bool(step.get("authenticity", False))
    keys: dict[bytes, PublicKey] = {
        scenario.kid: scenario.signing_key.public_key(),
        scenario.kid[::-1]: p256_key(scenario.kid).public_key(),
    }
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
        producers=keys if authentic else {},
        authorization=(bearer(token),) if token else (),
        budgets=Budgets(
            connect=max(budget, 2.0),
            probe=min(1.0, budget / 2),
            discovery=2 * budget,
            manifest=budget / 2,
            stall=budget / 4,
            recovery=budget,
            completion=budget,
            append=seconds(step.get("awaits-segments", "0s")),
        ),
        salt=scenario.salt,
    )


class ConsumerNode(Node):
    """A consumer: each `consume` step is one restore, one after the other in the same process.

    `kvcs:restore` tells what it was to restore, by names that anyone with the scope key can
    compute. Each report becomes a record `kvcs:…` with the step's `label`. With the report `done`
    come records `kvcs:tensors`: per layer, of each leading block that the consumer hands out,
    SHA-256 over its K section and its V section, and the Publication ID that it came from.
    """

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self._class = setting.peers.consumer if self.main else Consumer
        self._endpoints: dict[str, Consumer] = {}

    def put_up(self) -> None:
        """A consumer starts with its first step."""

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        wanted = Scenario({**self.scenario.values, **body.get("wants", {})}, self.scenario.seed)
        sources = [self.setting.address(to, self.name) for to in self.part.to]
        request = consume_request(wanted, body, sources, self.token)
        self.request = peer_request(self, "consumer", sources, body)
        self._tell(request, label)
        report = partial(self._report, label)
        endpoint = self._class(request, report, self.setting.config(self.name))
        before = len(self._endpoints)
        self._endpoints[label] = endpoint
        self.link.client(f"{self.name}-{before + 1}" if before else self.name, endpoint)

    def _tell(self, request: ConsumeRequest, label: str) -> None:
        profile = request.profile
        details = {
            "label": label,
            "scope_id": profile.scope_id(request.scope_key),
            "compat_id": profile.compat_id(request.descriptor),
            "block_keys": request.block_keys(),
            "block_tokens": request.block_tokens,
            "prompt_tokens": len(request.tokens),
            "blocks": request.blocks,
            "layers": list(request.wanted_layers),
        }
        self.recorder.trace("kvcs:restore", details)

    def _report(self, label: str, event: dict[str, Any]) -> None:
        if not self.recorder.report(event):
            return
        details = {key: value for key, value in event.items() if key not in ("event", "time")}
        if event["event"] == "done":
            self._hand_out(label)
        self.recorder.trace(f"kvcs:{event['event']}", {**details, "label": label})

    def _hand_out(self, label: str) -> None:
        result = self._endpoints[label].result
        if result is None:
            return
        for layer in result.layers:
            digests = []
            details: dict[str, Any] = {
                "layer": layer,
                "publication": result.publication,
                "label": label,
            }
            try:
                for block in range(result.reused_blocks):
                    k, v = result.sections(layer, block)
                    digests.append(hashlib.sha256(bytes(k) + bytes(v)).hexdigest())
            except KvcsError as error:
                self.recorder.trace("kvcs:no-tensors", {**details, "why": str(error)})
                continue
            self.recorder.trace("kvcs:tensors", {**details, "sha256": digests})
