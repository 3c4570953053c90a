"""Who plays the main roles, by name: values that can be written down and handed to a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvcs_conformance.errors import UsageError

if TYPE_CHECKING:
    from kvcs_conformance.peers import Peers

ROLES = ("publisher", "relay", "consumer")
REFERENCE = "reference"


@dataclass(frozen=True)
class Sides:
    """The peer in each role: `reference`, or the name of a known-bad peer."""

    publisher: str = REFERENCE
    relay: str = REFERENCE
    consumer: str = REFERENCE

    @property
    def names(self) -> dict[str, str]:
        """The name by role, for the result."""
        return {role: getattr(self, role) for role in ROLES}

    @property
    def foreign(self) -> tuple[str, ...]:
        """The roles that something else than the reference plays."""
        return tuple(role for role, name in self.names.items() if name != REFERENCE)

    def with_reference(self, role: str) -> Sides:
        """The same, with the reference in one role."""
        return replace(self, **{role: REFERENCE})

    def peers(self) -> Peers:
        """The implementations; raises UsageError for a name that nobody has."""
        from kvcs_conformance.peers import Peers

        if not self.foreign:
            return Peers()
        from kvcs_conformance.mutants import find_mutant

        made = {role: find_mutant(getattr(self, role)).peers for role in self.foreign}
        classes = {role: getattr(peers, role) for role, peers in made.items()}
        return Peers(**classes, name=" + ".join(peers.name for peers in made.values()))


def sides_of(mutants: Iterable[str]) -> Sides:
    """The sides with these known-bad peers in their roles; UsageError for two in one role."""
    from kvcs_conformance.mutants import find_mutant

    found: dict[str, str] = {}
    for name in mutants:
        role = find_mutant(name).role
        if found.setdefault(role, name) != name:
            raise UsageError(f"{found[role]} and {name} are both a {role}: a case has one")
    return Sides(**found)


def sides_named(names: Mapping[str, str]) -> Sides:
    """The sides of an earlier result."""
    return Sides(**{role: names[role] for role in ROLES})
