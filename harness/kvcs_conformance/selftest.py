"""The kill matrix: every case passes on the reference, every mutant fails a case for its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.judge import Assessment
from kvcs_conformance.judge.findings import Outcome
from kvcs_conformance.mutants import Mutant
from kvcs_conformance.parallel import Lost, Unwatched, Watch, run_all
from kvcs_conformance.runner import LIMIT, run_case, run_for_failure
from kvcs_conformance.verdicts import FAILS, Verdict

_GOOD = (Verdict.PASS,)
_REFUSALS = ("LocalProtocolError", "ProductionError")


def check_links(
    cases: Iterable[Case], mutants: Mapping[str, Mutant], *, whole: bool = True
) -> None:
    """Every case names mutants that exist and are of its role; if these are all cases (`whole`),
    every mutant is named by one.

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
    if whole and (idle := sorted(mutants.keys() - named)):
        raise UsageError(f"no case names the mutant {idle[0]!r} under `killed-by`")


@dataclass(frozen=True)
class Bench:
    """What all trials of a self-test share; `limit` in seconds of real time."""

    catalogue: Catalogue
    cases: tuple[Case, ...]
    link: str
    seed: int
    limit: float = LIMIT

    def longest(self, trial: Trial) -> float:
        """Seconds of real time after which a trial has got stuck."""
        return 2 * self.limit + 10.0


@dataclass(frozen=True)
class Trial:
    """One case with one mutant, or with the reference where that is None."""

    mutant: str | None
    case: int


@dataclass(frozen=True)
class Seen:
    """What a trial showed: the verdict, whether a failure has the mutant's reason, in words, and
    the requirements found contradicted that the mutant does not break."""

    verdict: Verdict
    right: bool
    told: str
    charged: tuple[str, ...] = ()


def selftest(
    cases: Iterable[Case],
    mutants: Mapping[str, Mutant],
    catalogue: Catalogue,
    *,
    link: str,
    seed: int,
    reference: bool = True,
    workers: int = 1,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Run the reference and all mutants over the cases of their roles; the kill matrix.

    `reference` False leaves out the run of the reference itself. With more than one of `workers`
    the mutants are those of the table, by their ids. A case that is for the other link alone is
    run on that one, by the reference and by the mutants that it names.
    """
    bench = Bench(catalogue, tuple(cases), link, seed)
    trials = [*_trials(bench, mutants, reference)]
    function = _known if workers > 1 else partial(_try, mutants)
    seen: dict[Trial, Seen] = {}
    finished = run_all(
        function, bench, trials, workers=workers, limit=bench.longest, watch=watch or Unwatched()
    )
    with closing(finished):
        for index, found in finished:
            seen[trials[index]] = _lost(found.text) if isinstance(found, Lost) else found
    rows = [
        _row(mutant, bench, seen)
        for mutant in sorted(mutants.values(), key=lambda mutant: mutant.id)
        if any(mutant.id in case.killed_by for case in bench.cases)
    ]
    verdicts = [row["verdict"] for row in rows]
    return {
        "schema": 1,
        "link": link,
        "seed": seed,
        "reference": {
            bench.cases[trial.case].id: one.told
            for trial, one in sorted(seen.items(), key=lambda item: item[0].case)
            if trial.mutant is None and one.verdict not in _GOOD
        },
        "errors": sorted(
            f"{trial.mutant or 'reference'}: {bench.cases[trial.case].id}: {one.told}"
            for trial, one in seen.items()
            if one.verdict is Verdict.HARNESS_ERROR and not _broke_down(trial, one)
        ),
        "summary": {
            "total": len(rows),
            "killed": verdicts.count("killed"),
            "survived": verdicts.count("survived"),
            "stray": verdicts.count("stray"),
        },
        "mutants": rows,
    }


def name_trials(cases: Iterable[Case], mutants: Mapping[str, Mutant], link: str) -> list[str]:
    """The names of all trials, in their order."""
    bench = Bench(Catalogue("", "", "", {}), tuple(cases), link, 0)
    return [
        f"{bench.cases[trial.case].id} ({trial.mutant or 'reference'})"
        for trial in _trials(bench, mutants, True)
    ]


def _trials(bench: Bench, mutants: Mapping[str, Mutant], reference: bool) -> Iterator[Trial]:
    named = {name for case in bench.cases for name in case.killed_by}
    if reference:
        yield from (Trial(None, i) for i in range(len(bench.cases)))
    for name in sorted(named & mutants.keys()):
        for i, case in enumerate(bench.cases):
            if case.sut != mutants[name].role:
                continue
            if case.only_link in (None, bench.link) or name in case.killed_by:
                yield Trial(name, i)


def _known(bench: Bench, trial: Trial) -> Seen:
    from kvcs_conformance.mutants import MUTANTS

    return _try(MUTANTS, bench, trial)


def _try(mutants: Mapping[str, Mutant], bench: Bench, trial: Trial) -> Seen:
    case = bench.cases[trial.case]
    link = case.only_link or bench.link
    if trial.mutant is None:
        seen = run_case(
            case, bench.catalogue, link=link, seed=bench.seed, limit=bench.limit
        ).assessment
        return Seen(seen.verdict, False, _told(seen))
    mutant = mutants[trial.mutant]
    seen = run_for_failure(
        case,
        bench.catalogue,
        link=link,
        seed=bench.seed,
        peers=mutant.peers,
        limit=bench.limit,
    ).assessment
    right = seen.verdict in FAILS and _for_its_reason(mutant, seen)
    return Seen(seen.verdict, right, _told(seen), _charged_besides(mutant, seen))


def _broke_down(trial: Trial, seen: Seen) -> bool:
    """Whether a mutant asked its own library for what that does not do: nothing went out, and so
    it neither fails the case nor passes it."""
    return trial.mutant is not None and any(f"({name}: " in seen.told for name in _REFUSALS)


def _lost(why: str) -> Seen:
    return Seen(Verdict.HARNESS_ERROR, False, f"{Verdict.HARNESS_ERROR.value} ({why})")


def _row(mutant: Mutant, bench: Bench, seen: Mapping[Trial, Seen]) -> dict[str, Any]:
    """One mutant over every case of its role.

    A case that names the mutant must fail it for one of the mutant's reasons, and charge it with
    nothing that it does not break. A failure for another reason, or of a clause that the mutant
    does not break, is stray.
    """
    killed: list[str] = []
    missed: list[str] = []
    stray: list[str] = []
    for i, case in enumerate(bench.cases):
        found = seen.get(Trial(mutant.id, i))
        if found is None:
            continue
        if found.right:
            killed.append(case.id)
        elif found.verdict in FAILS:
            stray.append(f"{case.id}: {found.told}")
        if mutant.id in case.killed_by and not found.right:
            missed.append(f"{case.id}: {found.told}")
        elif mutant.id in case.killed_by and found.charged:
            stray.append(f"{case.id}: charged with {', '.join(found.charged)} besides")
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


def _charged_besides(mutant: Mutant, assessment: Assessment) -> tuple[str, ...]:
    """The requirements that findings contradict although the mutant does not break them."""
    contradicted = {
        name
        for finding in assessment.findings
        if finding.outcome is Outcome.CONTRADICTED
        for name in finding.requires
    }
    return tuple(sorted(contradicted - set(mutant.requires)))


def _told(assessment: Assessment) -> str:
    """Verdict, reason, and what the finding that decided says of which requirements."""
    told = assessment.verdict.value
    if assessment.reason is not None:
        told += f" {assessment.reason.value}"
    if (decisive := assessment.decisive) is not None:
        told += f" [{', '.join(decisive.requires)}]" if decisive.requires else ""
        told += f" ({decisive.text})"
    return told
