"""Coverage: which requirement is judged for which role by which case, and proven by which mutant.

An entry is counted by (entry, role): a case speaks for the role that it puts under test. A mutant
proves an entry when it breaks it and a case that cites it kills it. `cased` and `proven` counts of
an entry as a whole need every role for which it is testable; what is `planned` is testable, not
yet cased.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import TESTABLE, Catalogue, Requirement, Standing
from kvcs_conformance.errors import UsageError
from kvcs_conformance.fieldcases import FieldCase
from kvcs_conformance.golden import golden_path, read_golden
from kvcs_conformance.mutants.registry import Mutant
from kvcs_conformance.verdicts import Level

Kills = Mapping[str, Iterable[str]]


class Status(StrEnum):
    """How far an entry is covered; the worst of its roles is that of the entry."""

    UNCLASSIFIED = "unclassified"
    OPEN = "open"
    PLANNED = "planned"
    CASED = "cased"
    PROVEN = "proven"
    OUTSIDE = "outside"
    UNTESTABLE = "untestable"


GAPS = (Status.UNCLASSIFIED, Status.OPEN, Status.CASED)
_WORST_FIRST = tuple(Status)


@dataclass(frozen=True, slots=True)
class Pair:
    """One entry for one role."""

    role: str
    standing: Standing
    why: str | None
    cases: tuple[str, ...]
    mutants: tuple[str, ...]

    @property
    def status(self) -> Status:
        """The classification, and of what is judged how far it is covered."""
        if self.standing is not Standing.JUDGED:
            return Status(self.standing.value)
        if not self.cases:
            return Status.OPEN
        return Status.PROVEN if self.mutants else Status.CASED


@dataclass(frozen=True, slots=True)
class Entry:
    """One requirement with its roles."""

    requirement: Requirement
    pairs: tuple[Pair, ...]

    @property
    def status(self) -> Status:
        """The worst status of its roles."""
        return min((pair.status for pair in self.pairs), key=_WORST_FIRST.index)


def coverage(
    catalogue: Catalogue,
    cases: Iterable[Case],
    mutants: Mapping[str, Mutant],
    field_cases: Iterable[FieldCase] = (),
    *,
    kills: Kills | None = None,
    role: str | None = None,
) -> dict[str, Any]:
    """The content of `coverage.json`, for all roles or for `role` alone.

    `kills` are the cases that kill each mutant; without it a mutant counts as killed by the cases
    that name it.
    """
    written = tuple(cases)
    entries = [
        entry
        for requirement in catalogue.requirements.values()
        if (entry := _entry(requirement, written, mutants, kills, role)).pairs
    ]
    roles = dict.fromkeys(pair.role for entry in entries for pair in entry.pairs)
    return {
        "catalogue": {source.name: source.revision for source in catalogue.sources},
        **_counts(entries),
        "by_level": _by_level(entries),
        "by_role": {name: _counts(_only(entries, name)) for name in roles},
        "by_catalogue": {
            source.name: {**_counts(own), "by_level": _by_level(own)}
            for source in catalogue.sources
            if (
                own := [
                    e for e in entries if e.requirement.id.startswith(f"{source.name.upper()}-")
                ]
            )
        },
        "field": _field(written, field_cases, role),
        "gaps": [
            {"id": entry.requirement.id, "role": pair.role, "status": pair.status.value}
            for entry in entries
            for pair in entry.pairs
            if pair.status in GAPS
        ],
        "misplaced": misplaced(catalogue, written),
        "entries": [_as_json(entry) for entry in entries],
    }


def misplaced(catalogue: Catalogue, cases: Iterable[Case]) -> list[str]:
    """Cases that cite what the catalogue says no case can judge for that role."""
    return [
        f"{case.id} cites {name}, which is {standing} for the {case.sut}"
        for case in cases
        for name in case.requires
        if (standing := catalogue[name].standing(case.sut)) is not Standing.JUDGED
    ]


def read_kills(path: Path | None = None) -> Kills | None:
    """Which cases kill which mutant by the committed matrix; None when there is none yet."""
    path = path or golden_path()
    matrix = read_golden(path)
    if matrix is None:
        return None
    try:
        return {row["id"]: tuple(row["killed_by"]) for row in matrix["mutants"]}
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a kill matrix: {error!r} is missing or wrong") from error


def _entry(
    requirement: Requirement,
    cases: tuple[Case, ...],
    mutants: Mapping[str, Mutant],
    kills: Kills | None,
    role: str | None,
) -> Entry:
    citing = [case for case in cases if requirement.id in case.requires]
    pairs = []
    for name in requirement.roles:
        if role not in (None, name):
            continue
        own = [case for case in citing if case.sut == name]
        proofs = {
            mutant
            for case in own
            for mutant in case.killed_by
            if mutant in mutants
            and requirement.id in mutants[mutant].requires
            and (kills is None or case.id in kills.get(mutant, ()))
        }
        pairs.append(
            Pair(
                name,
                requirement.standing(name),
                requirement.why(name),
                tuple(case.id for case in own),
                tuple(sorted(proofs)),
            )
        )
    return Entry(requirement, tuple(pairs))


def _only(entries: Iterable[Entry], role: str) -> list[Entry]:
    """The entries that bind `role`, as if they bound nobody else."""
    return [
        Entry(entry.requirement, (pair,))
        for entry in entries
        for pair in entry.pairs
        if pair.role == role
    ]


def _counts(entries: Iterable[Entry]) -> dict[str, int]:
    counts = dict.fromkeys(
        ("total", "classified", "testable", "planned", "cased", "with_killed_mutant"), 0
    )
    for entry in entries:
        testable = [pair for pair in entry.pairs if pair.standing in TESTABLE]
        counts["total"] += 1
        counts["classified"] += entry.status is not Status.UNCLASSIFIED
        counts["testable"] += bool(testable)
        counts["planned"] += any(pair.status is Status.PLANNED for pair in testable)
        covered = {pair.status for pair in testable}
        counts["cased"] += bool(testable) and covered <= {Status.CASED, Status.PROVEN}
        counts["with_killed_mutant"] += covered == {Status.PROVEN}
    return counts


def _by_level(entries: list[Entry]) -> dict[str, dict[str, int]]:
    return {
        level.value: _counts(own)
        for level in Level
        if (own := [entry for entry in entries if entry.requirement.level is level])
    }


def _field(
    cases: tuple[Case, ...], field_cases: Iterable[FieldCase], role: str | None
) -> dict[str, Any]:
    rows = []
    for field_case in field_cases:
        own = [case for case in cases if field_case.number in case.field]
        wanted = [name for name in field_case.roles if role in (None, name)]
        missing = [name for name in wanted if all(case.sut != name for case in own)]
        if wanted:
            rows.append(
                {
                    "id": field_case.id,
                    "roles": wanted,
                    "cases": [case.id for case in own if case.sut in wanted],
                    "missing": missing,
                }
            )
    return {
        "total": len(rows),
        "cased": sum(not row["missing"] for row in rows),
        "entries": rows,
    }


def _as_json(entry: Entry) -> dict[str, Any]:
    reasons = {pair.role: pair.why for pair in entry.pairs if pair.why is not None}
    if len(set(reasons.values())) == 1 and len(reasons) == len(entry.pairs):
        why: str | None = next(iter(reasons.values()))
    else:
        why = " ".join(f"{role}: {reason}" for role, reason in reasons.items()) or None
    return {
        "id": entry.requirement.id,
        "level": entry.requirement.level.value,
        "roles": [pair.role for pair in entry.pairs],
        "status": entry.status.value,
        "why": why,
        "cases": sorted(name for pair in entry.pairs for name in pair.cases),
        "mutants": sorted(name for pair in entry.pairs for name in pair.mutants),
        "by_role": {
            pair.role: {
                "status": pair.status.value,
                "why": pair.why,
                "cases": list(pair.cases),
                "mutants": list(pair.mutants),
            }
            for pair in entry.pairs
        },
    }
