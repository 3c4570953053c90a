"""The table of mutants: what is wrong with each, and which failure must show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import cleandoc
from typing import TypeVar

from kvcs.consumer import Consumer
from kvcs.publisher import Publisher
from kvcs.publisher.publication import Publication
from moqt.relay import Relay
from moqt.session import Session

from kvcs_conformance.errors import UsageError
from kvcs_conformance.peers import Peers
from kvcs_conformance.verdicts import Reason

Role = TypeVar("Role", bound=type)


@dataclass(frozen=True)
class Mutant:
    """One known-bad peer. `requires` are the requirements that it breaks: only cases that cite
    one of them may fail it, and only for one of `reasons`."""

    id: str
    role: str
    defect: str
    requires: tuple[str, ...]
    reasons: frozenset[Reason]
    peers: Peers


MUTANTS: dict[str, Mutant] = {}


def find_mutant(name: str) -> Mutant:
    """The known-bad peer of this name; raises UsageError when there is none."""
    if name not in MUTANTS:
        near = get_close_matches(name, MUTANTS, n=3) or sorted(MUTANTS)[:3]
        raise UsageError(f"no known-bad peer is called {name!r}; there is {', '.join(near)}")
    return MUTANTS[name]


def mutant(
    name: str, *, requires: tuple[str, ...], reasons: tuple[Reason, ...]
) -> Callable[[Role], Role]:
    """Enter a class into the table: a Publication, Publisher, Relay, Consumer or Session with one
    defect, which its docstring tells."""

    def enter(role: Role) -> Role:
        defect = " ".join(cleandoc(role.__doc__ or "").split())
        peers = _peers(name, role)
        MUTANTS[name] = Mutant(
            name, name.split("/")[0], defect, requires, frozenset(reasons), peers
        )
        return role

    return enter


def _peers(name: str, role: type) -> Peers:
    part = name.split("/")[0]
    names = {part: name}
    if issubclass(role, Session):
        return Peers(names=names, sessions={part: role})
    if issubclass(role, Publication):
        publisher = type(role.__name__, (Publisher,), {"publication_class": role})
        return Peers(names=names, publisher=publisher)
    if issubclass(role, Publisher):
        return Peers(names=names, publisher=role)
    if issubclass(role, Relay):
        session = getattr(role, "session_class", None)
        return Peers(names=names, relay=role, sessions={part: session} if session else {})
    assert issubclass(role, Consumer), role
    return Peers(names=names, consumer=role)
