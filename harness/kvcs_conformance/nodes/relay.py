"""A relay of the reference, or a mutant of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvcs.authorization import bearer, scope_policy
from moqt.relay import Relay, RelayConfig

from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.faulty_relay import FaultyRelay, FaultySession
from kvcs_conformance.nodes.node import Node, Setting
from kvcs_conformance.nodes.protocol_faults import PROTOCOL_FAULTS
from kvcs_conformance.nodes.relay_faults import FAULTS, Fault
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
        remote = self.setting.peers.remote
        if remote is not None and self.main:
            self.setting.listens(self.name, remote.url)
            return
        upstreams = tuple(self.setting.address(to, self.name) for to in self.part.to)
        config = self.setting.config(self.name)
        config = replace(config, setup=replace(config.setup, **setup_options(self.scenario)))
        relay_config = RelayConfig(
            **relay_options(self.scenario),
            upstreams=upstreams,
            upstream_tokens=(bearer(self.token),) if self.token else (),
            upstream_session=config,
        )
        faults = self._faults()
        if faults:
            config = replace(config, session_class=FaultySession)
            self.endpoint = FaultyRelay(relay_config, faults)
        else:
            self.endpoint = self._class(relay_config)
        self.setting.listens(self.name, self.link.serve(self.name, self.endpoint, config))

    def _faults(self) -> list[Fault]:
        """What the scenario lets this relay do wrong."""
        entries = self.setting.scenario.values.get("relay-faults", ())
        return [
            (FAULTS | PROTOCOL_FAULTS)[word](value)
            for entry in entries
            for word, value in entry.items()
            if value.get("at", "relay") == self.name
        ]

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        raise AssertionError(f"a relay has no step {word!r}")

    def sessions(self) -> Iterable[Session]:
        return self.endpoint.sessions if self.endpoint is not None else ()


_ANNOUNCED = {
    "filter-ranges": "max_filter_ranges",
    "open-updates": "max_request_updates",
    "token-cache": "max_auth_token_cache_size",
}
_LIMITS = {
    "requests": "max_requests",
    "namespaces": "max_namespaces",
    "listed-namespaces": "max_listed_namespaces",
    "request-rate": "request_rate",
    "request-burst": "request_burst",
}


def setup_options(scenario: Scenario) -> dict[str, Any]:
    """What a scenario lets a relay announce in SETUP."""
    values = scenario.values
    return {name: values[key] for key, name in _ANNOUNCED.items() if key in values}


def relay_options(scenario: Scenario) -> dict[str, Any]:
    """What a scenario sets on a relay; it asks for scope tokens when it says so."""
    options: dict[str, Any] = {}
    if "cache" in scenario.values:
        options["cache_budget"] = scenario.values["cache"]
    for key, value in scenario.values.get("limits", {}).items():
        options[_LIMITS[key]] = value
    if scenario.values.get("tokens-required"):
        options["authorise"] = scope_policy(
            {
                b"token of the scope": [scenario.scope_id],
                b"token of another scope": [scenario.other_scope_id],
                b"token of the neighbour scope": [scenario.neighbour_scope_id],
            },
            readers={b"token of a reader of the scope": [scenario.scope_id]},
        )
    return options
