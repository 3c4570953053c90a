"""Who takes part in a case, by the role under test and the scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """One node: what it is (`publisher`, `relay`, `consumer`, `scripted`), the scope token that
    it carries, and whether it is the peer under test."""

    kind: str
    token: str = "scope"
    under_test: bool = False


_CASTS: dict[str, dict[str, Part]] = {
    "publisher": {"consumer": Part("scripted"), "publisher": Part("publisher", under_test=True)},
    "relay": {
        "relay": Part("relay", under_test=True),
        "publisher": Part("publisher"),
        "consumer": Part("scripted"),
    },
    "consumer": {
        "relay": Part("relay"),
        "publisher": Part("publisher"),
        "consumer": Part("consumer", under_test=True),
    },
}


def cast(sut: str, scenario: Mapping[str, Any]) -> dict[str, Part]:
    """The nodes by name, in the order in which they start.

    A publisher under test connects to the scripted consumer, which listens. A relay stands
    between a publisher and scripted consumers. A consumer under test connects to a relay of ours,
    and so do the publishers. `scenario["nodes"]` adds more.
    """
    nodes = dict(_CASTS[sut])
    for name, more in scenario.get("nodes", {}).items():
        nodes[name] = Part(more["kind"], more.get("token", "scope"))
    if sut == "consumer":  # what it connects to comes first
        nodes["consumer"] = nodes.pop("consumer")
    return nodes
