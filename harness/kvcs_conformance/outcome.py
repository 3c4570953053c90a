"""One case with its verdict, from evidence alone: no peer, no network."""

from __future__ import annotations

from dataclasses import dataclass

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge import Assessment, assess
from kvcs_conformance.judge.findings import unseen
from kvcs_conformance.verdicts import Reason, Verdict

_GOOD = (Verdict.PASS, Verdict.PASS_NONSTRICT, Verdict.ADVISE)


@dataclass(frozen=True)
class Outcome:
    """One case with its assessment and what it rests on."""

    case: Case
    assessment: Assessment
    evidence: Evidence | None
    twin: Evidence | None = None
    duration: float = 0.0


def not_run(case: Case) -> Outcome:
    """A case that was chosen and not run."""
    return Outcome(case, Assessment(Verdict.NOT_RUN, None, "", ()), None)


def not_applicable(case: Case) -> Assessment:
    """The assessment of a case on a link that it is not for."""
    told = unseen(f"runs on {case.only_link} only")
    return Assessment(Verdict.NOT_APPLICABLE, None, "", (told,))


def judge_case(
    case: Case, evidence: Evidence | None, twin: Evidence | None, catalogue: Catalogue
) -> Assessment:
    """The assessment of a case from its evidence and that of its twin; a pure function."""
    if case.twin is not None and twin is not None:
        first = assess(twin, case.twin.judge, (), catalogue)
        if first.verdict is Verdict.HARNESS_ERROR:
            return first
        if first.verdict not in _GOOD:
            why = first.decisive.text if first.decisive else first.verdict.value
            told = unseen(f"the positive twin does not pass: {why}", Reason.TWIN_FAILED)
            return Assessment(
                Verdict.BLOCKED, Reason.TWIN_FAILED, first.blame, (told, *first.findings)
            )
    if evidence is None:
        return Assessment(Verdict.NOT_RUN, None, "", ())
    return assess(evidence, case.judge, case.requires, catalogue)


def twin_passes(case: Case, twin: Evidence, catalogue: Catalogue) -> bool:
    """Whether the positive twin lets the case be judged."""
    assert case.twin is not None
    return assess(twin, case.twin.judge, (), catalogue).verdict in _GOOD
