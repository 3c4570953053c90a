"""Who takes part in a case, by the role under test and the scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Part:
    """One node: what it is (`publisher`, `relay`, `consumer`, `scripted`), the scope token that
    it carries, the nodes that it connects to, what it has otherwise than the scenario, and
    whether it is the peer under test."""

    kind: str
    token: str = "scope"
    to: tuple[str, ...] = ()
    scenario: Mapping[str, Any] = field(default_factory=dict)
    under_test: bool = False

    @property
    def listens(self) -> bool:
        """Whether others connect to it."""
        return self.kind == "relay" or not self.to


_RELAY = ("relay",)
_CASTS: dict[str, dict[str, Part]] = {
    "publisher": {
        "consumer": Part("scripted"),
        "publisher": Part("publisher", to=("consumer",), under_test=True),
    },
    "relay": {
        "relay": Part("relay", under_test=True),
        "publisher": Part("publisher", to=_RELAY),
        "consumer": Part("scripted", to=_RELAY),
    },
    "consumer": {
        "relay": Part("relay"),
        "publisher": Part("publisher", to=_RELAY),
        "consumer": Part("consumer", to=_RELAY, under_test=True),
    },
}


def cast(sut: str, scenario: Mapping[str, Any]) -> dict[str, Part]:
    """The nodes by name, in the order in which they start.

    A publisher under test connects to the scripted consumer, which listens, or to all that it is
    said to connect `to`. A relay stands
    between a publisher and scripted consumers. A consumer under test connects to a relay of ours,
    and so do the publishers. `scenario["nodes"]` adds more, or says more of one of these; what
    listens starts before what connects, and consumers start last.
    """
    nodes = dict(_CASTS[sut])
    default = ("consumer",) if sut == "publisher" else _RELAY
    added = scenario.get("nodes", {})
    heard = added.get("publisher", {}).get("to", ()) if sut == "publisher" else ()
    for name, more in added.items():
        listens = more["kind"] == "relay" or name in heard
        to = more.get("to", () if listens else default)
        nodes[name] = Part(
            more["kind"],
            more.get("token", "scope"),
            (to,) if isinstance(to, str) else tuple(to),
            more.get("scenario", {}),
            nodes[name].under_test if name in nodes else False,
        )
    return dict(sorted(nodes.items(), key=lambda item: _rank(item[1])))


def main_roles(sut: str, scenario: Mapping[str, Any]) -> tuple[str, ...]:
    """The roles that peers play in a case: `publisher`, `relay`, `consumer`, where they are not
    scripted."""
    return tuple(name for name, part in cast(sut, scenario).items() if part.kind == name)


def _rank(part: Part) -> int:
    """Relays first, the one behind another after it (as declared), consumers last."""
    return 0 if part.listens else 2 if part.kind == "consumer" else 1
