"""The kill matrix: every case passes on the reference, every mutant fails a case for its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.judge import Assessment
from kvcs_conformance.judge.findings import Outcome
from kvcs_conformance.mutants import Mutant
from kvcs_conformance.runner import run_case
from kvcs_conformance.verdicts import Verdict

_KILLS = (Verdict.FAIL, Verdict.ADVISE)
_GOOD = (Verdict.PASS, Verdict.NOT_APPLICABLE)


def check_links(cases: Iterable[Case], mutants: Mapping[str, Mutant]) -> None:
    """Every case names mutants that exist and are of its role, every mutant is named by a case.

    Raises UsageError for the first that is not so.
    """
    named: set[str] = set()
    for case in cases:
        for name in case.killed_by:
            if name not in mutants:
                raise UsageError(f"{case.path}: no mutant {name!r} under `killed-by`")
            mutant = mutants[name]
            if mutant.role != case.sut or not set(mutant.requires) & set(case.requires):
                raise UsageError(
                    f"{case.path}: {name} breaks {', '.join(mutant.requires)} of a {mutant.role}, "
                    "which this case is not about"
                )
            named.add(name)
    if idle := sorted(mutants.keys() - named):
        raise UsageError(f"no case names the mutant {idle[0]!r} under `killed-by`")


def selftest(
    cases: Iterable[Case],
    mutants: Mapping[str, Mutant],
    catalogue: Catalogue,
    *,
    link: str,
    seed: int,
    reference: bool = True,
) -> dict[str, Any]:
    """Run the reference and all mutants over the cases of their roles; the kill matrix.

    `reference` False leaves out the run of the reference itself.
    """
    chosen = tuple(cases)
    shortfalls = {}
    for case in chosen if reference else ():
        assessment = run_case(case, catalogue, link=link, seed=seed).assessment
        if assessment.verdict not in _GOOD:
            shortfalls[case.id] = _told(assessment)
    rows = [
        _row(mutant, chosen, catalogue, link, seed)
        for mutant in sorted(mutants.values(), key=lambda mutant: mutant.id)
        if any(mutant.id in case.killed_by for case in chosen)
    ]
    verdicts = [row["verdict"] for row in rows]
    return {
        "schema": 1,
        "link": link,
        "seed": seed,
        "reference": shortfalls,
        "summary": {
            "total": len(rows),
            "killed": verdicts.count("killed"),
            "survived": verdicts.count("survived"),
            "stray": verdicts.count("stray"),
        },
        "mutants": rows,
    }


def _row(
    mutant: Mutant, cases: tuple[Case, ...], catalogue: Catalogue, link: str, seed: int
) -> dict[str, Any]:
    """One mutant over every case of its role.

    A case that names the mutant must fail it for one of the mutant's reasons. A case that cites
    none of the mutant's requirements must not fail it: that kill is stray.
    """
    killed: list[str] = []
    missed: list[str] = []
    stray: list[str] = []
    for case in cases:
        if case.sut != mutant.role:
            continue
        assessment = run_case(case, catalogue, link=link, seed=seed, peers=mutant.peers).assessment
        fails = assessment.verdict in _KILLS
        right = fails and _for_its_reason(mutant, assessment)
        if right:
            killed.append(case.id)
        elif fails:
            stray.append(f"{case.id}: {_told(assessment)}")
        if mutant.id in case.killed_by and not right:
            missed.append(f"{case.id}: {_told(assessment)}")
    verdict = "survived" if missed else "stray" if stray else "killed"
    return {
        "id": mutant.id,
        "role": mutant.role,
        "defect": mutant.defect,
        "expected": list(mutant.requires),
        "killed_by": killed,
        "missed_by": missed,
        "strays": stray,
        "verdict": verdict,
    }


def _for_its_reason(mutant: Mutant, assessment: Assessment) -> bool:
    """Whether a finding against one of the mutant's requirements has one of its reasons."""
    return any(
        finding.outcome is Outcome.CONTRADICTED
        and finding.reason in mutant.reasons
        and set(mutant.requires) & set(finding.requires)
        for finding in assessment.findings
    )


def _told(assessment: Assessment) -> str:
    decisive = assessment.decisive
    return f"{assessment.verdict.value}" + (f" ({decisive.text})" if decisive else "")
