"""Who plays the main roles, by name: values that can be written down and handed to a process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvcs_conformance.errors import UsageError
from kvcs_conformance.remote import Remote

if TYPE_CHECKING:
    from kvcs_conformance.peers import Peers

ROLES = ("publisher", "relay", "consumer")
REFERENCE = "reference"


@dataclass(frozen=True)
class Sides:
    """The peer in each role: `reference`, the name of a known-bad peer, or, for the relay, the URL
    of `remote`, which runs already."""

    publisher: str = REFERENCE
    relay: str = REFERENCE
    consumer: str = REFERENCE
    remote: Remote | None = None

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
        remote = None if role == "relay" else self.remote
        return replace(self, **{role: REFERENCE}, remote=remote)

    def peers(self) -> Peers:
        """The implementations; raises UsageError for a name that nobody has."""
        from kvcs_conformance.peers import Peers

        bad = [role for role in self.foreign if role != "relay" or self.remote is None]
        if not bad:
            return Peers(remote=self.remote, names=self.names)
        from kvcs_conformance.mutants import find_mutant

        made = {role: find_mutant(getattr(self, role)).peers for role in bad}
        classes = {role: getattr(peers, role) for role, peers in made.items()}
        sessions = {role: peers.sessions[role] for role, peers in made.items() if peers.sessions}
        return Peers(**classes, sessions=sessions, remote=self.remote, names=self.names)


def sides_of(mutants: Iterable[str], remote: Remote | None = None) -> Sides:
    """The sides with these known-bad peers in their roles; UsageError for two in one role."""
    found: dict[str, str] = {} if remote is None else {"relay": remote.url}
    if mutants:
        from kvcs_conformance.mutants import find_mutant

        for name in mutants:
            role = find_mutant(name).role
            if found.setdefault(role, name) != name:
                raise UsageError(f"{found[role]} and {name} are both a {role}: a case has one")
    return Sides(**found, remote=remote)


def sides_named(names: Mapping[str, str], remote: Remote | None) -> Sides:
    """The sides of an earlier result."""
    return Sides(**{role: names[role] for role in ROLES}, remote=remote)
