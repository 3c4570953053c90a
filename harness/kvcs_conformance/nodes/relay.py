"""A relay of the reference, or a mutant of it."""

from __future__ import annotations

from kvcs.authorization import scope_policy
from moqt.relay import Relay, RelayConfig

from kvcs_conformance.scenario import Scenario

TOKENS: dict[str, bytes | None] = {
    "scope": b"token of the scope",
    "other-scope": b"token of another scope",
    "none": None,
}
"""The bearer tokens that a scenario's nodes carry, by the word that names them."""


def relay_node(scenario: Scenario, relay_class: type[Relay] = Relay) -> Relay:
    """A relay that asks for scope tokens when the scenario says so."""
    if not scenario.values.get("tokens-required"):
        return relay_class(RelayConfig())
    policy = scope_policy(
        {
            b"token of the scope": [scenario.scope_id],
            b"token of another scope": [scenario.other_scope_id],
        }
    )
    return relay_class(RelayConfig(authorise=policy))
