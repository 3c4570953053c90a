"""From findings to one verdict; no clock, no socket, no peer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvcs_conformance.cases.load import Judgement
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Finding, Outcome, unseen
from kvcs_conformance.judge.registry import JUDGES
from kvcs_conformance.verdicts import CONTRADICTED, Reason, Verdict

_WORST_FIRST = (Verdict.FAIL, Verdict.ADVISE, Verdict.PASS_NONSTRICT)
_VOID = ("harness", "version", "report")
_TROUBLE: dict[str, tuple[Verdict, Reason, str]] = {
    "harness": (Verdict.HARNESS_ERROR, Reason.HARNESS, "harness"),
    "setup": (Verdict.BLOCKED, Reason.SETUP_FAILED, ""),
    "version": (Verdict.INCONCLUSIVE, Reason.VERSION, ""),
    "report": (Verdict.INCONCLUSIVE, Reason.REPORT, ""),
}


@dataclass(frozen=True)
class Assessment:
    """A verdict, why, who is at fault ("" for nobody), and all findings; the first finding that
    is not upheld is the one that the verdict rests on."""

    verdict: Verdict
    reason: Reason | None
    blame: str
    findings: tuple[Finding, ...]

    @property
    def decisive(self) -> Finding | None:
        """The finding that decided, if one did."""
        return next((f for f in self.findings if f.outcome is not Outcome.UPHELD), None)


def assess(
    evidence: Evidence,
    judgements: Iterable[Judgement],
    requires: Iterable[str],
    catalogue: Catalogue,
) -> Assessment:
    """Judge one run: the same evidence and catalogue always give the same assessment."""
    sut: str = evidence.facts["sut"]
    trouble = evidence.facts.get("trouble")
    if trouble and trouble["kind"] in _VOID:
        return _troubled(trouble, ())
    try:
        findings = _findings(evidence, judgements)
    except Exception as error:  # a judge that stumbles is our fault, whatever the evidence is
        return _troubled({"kind": "harness", "text": f"{type(error).__name__}: {error}"}, ())
    bad = [finding for finding in findings if finding.outcome is Outcome.CONTRADICTED]
    if bad:
        worst = min(bad, key=lambda f: _WORST_FIRST.index(_weight(f, catalogue)))
        return Assessment(_weight(worst, catalogue), worst.reason, sut, _first(worst, findings))
    if trouble:
        return _troubled(trouble, findings)
    late = next((s for s in evidence.facts["steps"] if s["outcome"] == "timeout"), None)
    if late:
        told = unseen(f"step {late['step']} waited {late['waited']} in vain", Reason.NO_EVENT)
        return Assessment(Verdict.INCONCLUSIVE, Reason.NO_EVENT, "", (told, *findings))
    open_ = next((f for f in findings if f.outcome is Outcome.UNSEEN), None)
    if open_:
        return Assessment(Verdict.INCONCLUSIVE, open_.reason, "", _first(open_, findings))
    for name in requires:
        if not any(name in f.requires for f in findings):
            told = unseen(f"no finding speaks of {name}")
            return Assessment(Verdict.INCONCLUSIVE, Reason.NO_EVIDENCE, "", (told, *findings))
    loose = next((f for f in findings if f.outcome is Outcome.DEPARTS), None)
    if loose:
        return Assessment(Verdict.PASS_NONSTRICT, loose.reason, "", _first(loose, findings))
    return Assessment(Verdict.PASS, None, "", tuple(findings))


def _findings(evidence: Evidence, judgements: Iterable[Judgement]) -> list[Finding]:
    """What all words find; one that finds nothing at all leaves its clauses open."""
    found: list[Finding] = []
    for judgement in judgements:
        told = list(JUDGES[judgement.word].function(evidence, dict(judgement.arguments)))
        told = told or [unseen(f"{judgement.word}: there is nothing that it could judge")]
        found += [finding.speaking_of(judgement.requires) for finding in told]
    return found


def _troubled(trouble: Mapping[str, str], findings: Iterable[Finding]) -> Assessment:
    verdict, reason, blame = _TROUBLE[trouble["kind"]]
    return Assessment(verdict, reason, blame, (unseen(trouble["text"], reason), *findings))


def _weight(finding: Finding, catalogue: Catalogue) -> Verdict:
    return CONTRADICTED[catalogue.level(finding.requires)]


def _first(chosen: Finding, findings: list[Finding]) -> tuple[Finding, ...]:
    return (chosen, *(finding for finding in findings if finding is not chosen))
