"""What the command line asks for, made into a run: a new one, or the rest of an earlier one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvcs_conformance.campaign import Campaign
from kvcs_conformance.cases.load import Case
from kvcs_conformance.cases.select import Selection
from kvcs_conformance.casework import Orders
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.nodes.cast import main_roles
from kvcs_conformance.remote import Remote
from kvcs_conformance.report.results import read
from kvcs_conformance.resume import cases_of, entries_that_stand, must_agree
from kvcs_conformance.runner import LIMIT
from kvcs_conformance.sides import ROLES, sides_named, sides_of


@dataclass(frozen=True)
class Wanted:
    """A run as asked for; None and empty are what the command line leaves open."""

    selection: Selection = field(default_factory=Selection)
    link: str | None = None
    seed: int | None = None
    mutants: tuple[str, ...] = ()
    repeat: int | None = None
    vary_seed: bool = False
    lacks: tuple[str, ...] = ()
    remote: Remote | None = None
    limit: float | None = LIMIT
    out: Path | None = None
    quic_qlog: bool = False


def plan(wanted: Wanted, cases: Iterable[Case], catalogue: Catalogue) -> Campaign:
    """A new run; raises UsageError for what does not go together."""
    loaded = tuple(cases)
    sides = sides_of(wanted.mutants, wanted.remote)
    selection = wanted.selection
    if wanted.remote is not None and not selection:
        selection = Selection(roles=("relay",))
    elif wanted.mutants and not selection:
        named = tuple(case.id for case in loaded if set(wanted.mutants) & set(case.killed_by))
        selection = Selection(named)
    if wanted.vary_seed and (wanted.repeat or 1) < 2:
        raise UsageError("--vary-seed varies nothing without --repeat")
    link = _link(wanted)
    _check_qlog(wanted, link, wanted.out)
    orders = Orders(
        catalogue,
        link=link,
        seed=wanted.seed or 0,
        sides=sides,
        out=wanted.out,
        repeat=wanted.repeat or 1,
        vary_seed=wanted.vary_seed,
        lacks=frozenset(_features(wanted.lacks, loaded)),
        limit=wanted.limit,
        quic_qlog=wanted.quic_qlog,
    )
    chosen = selection.of(loaded)
    playing = {role for case in chosen for role in main_roles(case.sut, case.scenario)}
    for role in sides.foreign if chosen else ():
        if role not in playing:
            raise UsageError(f"in none of these cases is there a {role} to be {sides.names[role]}")
    return Campaign(chosen, orders, {})


def resumed(folder: Path, wanted: Wanted, cases: Iterable[Case], catalogue: Catalogue) -> Campaign:
    """The rest of the run in `folder`; raises UsageError when anything that is asked for differs
    from what that run had."""
    loaded = tuple(cases)
    result = read(folder)
    chosen = cases_of(result, loaded, catalogue, folder)
    had = Remote.of(result["remote"]) if "remote" in result else None
    sides = sides_named(result["peers"], had)
    asked = sides_of(wanted.mutants)
    given: dict[str, tuple[Any, Any]] = {
        "--link": (wanted.link, result["link"]),
        "--seed": (wanted.seed, result["seed"]),
        "--repeat": (wanted.repeat, result.get("repeat", 1)),
        "--vary-seed": (wanted.vary_seed or None, result.get("vary_seed", False)),
        "--relay": (wanted.remote and wanted.remote.url, had and had.url),
        "--lacks": (sorted(wanted.lacks) or None, result.get("lacks", [])),
    }
    for role in ROLES if wanted.mutants else ():
        given[f"as its {role}"] = (getattr(asked, role), getattr(sides, role))
    must_agree(folder, result, given)
    if wanted.out not in (None, folder):
        raise UsageError(f"--resume completes the result in {folder}: leave out --out")
    if wanted.selection and wanted.selection.of(loaded) != chosen:
        raise UsageError(f"the run in {folder} was about other cases: leave out the selection")
    _check_qlog(wanted, result["link"], folder)
    orders = Orders(
        catalogue,
        link=result["link"],
        seed=result["seed"],
        sides=sides,
        out=folder,
        repeat=result.get("repeat", 1),
        vary_seed=result.get("vary_seed", False),
        lacks=frozenset(result.get("lacks", ())),
        limit=wanted.limit,
        quic_qlog=wanted.quic_qlog,
    )
    return Campaign(chosen, orders, entries_that_stand(folder, result, chosen))


def _link(wanted: Wanted) -> str:
    if wanted.remote is None:
        return wanted.link or "memory"
    if wanted.link == "memory":
        raise UsageError("a relay that runs somewhere is reached by QUIC: leave out --link memory")
    return "quic"


def _check_qlog(wanted: Wanted, link: str, out: Path | None) -> None:
    if wanted.quic_qlog and link != "quic":
        raise UsageError("--quic-qlog is about --link quic: on memory there is no QUIC")
    if wanted.quic_qlog and out is None:
        raise UsageError("--quic-qlog is kept with the evidence: say where, with --out")


def _features(lacks: Iterable[str], cases: tuple[Case, ...]) -> Iterable[str]:
    known = sorted({feature for case in cases for feature in case.needs})
    for feature in lacks:
        if feature not in known:
            told = f"there is {', '.join(known)}" if known else "no case needs any"
            raise UsageError(f"no case needs a feature {feature!r}; {told}")
        yield feature
