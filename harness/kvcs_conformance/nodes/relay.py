"""A relay of the reference, or a mutant of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvcs.authorization import bearer, scope_policy
from moqt.relay import Relay, RelayConfig

from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.node import Node, Setting
from kvcs_conformance.scenario import Scenario

if TYPE_CHECKING:
    from moqt.session import Session


class RelayNode(Node):
    """A relay that listens, and is downstream of the relays that it is connected `to`."""

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self._class = setting.peers.relay if self.main else Relay
        self.endpoint: Relay | None = None

    def put_up(self) -> None:
        upstreams = tuple(self.setting.address(to, self.name) for to in self.part.to)
        config = self.setting.config(self.name)
        ranges = self.scenario.values.get("filter-ranges")
        if ranges is not None:
            config = replace(config, setup=replace(config.setup, max_filter_ranges=ranges))
        self.endpoint = self._class(
            RelayConfig(
                **relay_options(self.scenario),
                upstreams=upstreams,
                upstream_tokens=(bearer(self.token),) if self.token else (),
                upstream_session=config,
            )
        )
        self.setting.listens(self.name, self.link.serve(self.name, self.endpoint, config))

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        raise AssertionError(f"a relay has no step {word!r}")

    def sessions(self) -> Iterable[Session]:
        return self.endpoint.sessions if self.endpoint is not None else ()


def relay_options(scenario: Scenario) -> dict[str, Any]:
    """What a scenario sets on a relay; it asks for scope tokens when it says so."""
    options: dict[str, Any] = {}
    if "cache" in scenario.values:
        options["cache_budget"] = scenario.values["cache"]
    if scenario.values.get("tokens-required"):
        options["authorise"] = scope_policy(
            {
                b"token of the scope": [scenario.scope_id],
                b"token of another scope": [scenario.other_scope_id],
            }
        )
    return options
