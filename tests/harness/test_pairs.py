"""Every case with the reference, which passes it, and with each known-bad peer that it names.

KVCS_CORPUS names a folder where the evidence is kept from one session to the next: the judges can
then be tested again and again (with defects put into them, too) without running anything.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases
from kvcs_conformance.cases.load import Case
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Outcome
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.outcome import judge_case, twin_passes
from kvcs_conformance.runner import REFERENCE, perform
from kvcs_conformance.verdicts import FAILS

CATALOGUE = catalogues.load()
CASES = {case.id: case for case in load_cases(CATALOGUE, check=False)}
LOCAL = [case for case in CASES.values() if case.only_link != "quic"]
CORPUS = os.environ.get("KVCS_CORPUS")


def evidence_of(case: Case, mutant: str | None) -> tuple[Evidence | None, Evidence | None]:
    """Evidence of the case and of its twin, over the simulated network."""
    if CORPUS is None:
        return run(case, mutant)
    path = Path(CORPUS, f"{case.id}@{mutant or 'reference'}".replace("/", "+"))
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(run(case, mutant)))
    kept: tuple[Evidence | None, Evidence | None] = pickle.loads(path.read_bytes())
    return kept


def run(case: Case, mutant: str | None) -> tuple[Evidence | None, Evidence | None]:
    peers = MUTANTS[mutant].peers if mutant else REFERENCE
    twin = None
    if case.twin is not None:
        twin = perform(case, {**case.scenario, **case.twin.scenario}, "memory", 0, peers)
        if not twin_passes(case, twin, CATALOGUE):
            return None, twin
    return perform(case, case.scenario, "memory", 0, peers), twin


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.id for case in LOCAL])
def test_the_reference_passes(name: str) -> None:
    """Each case passes on the reference."""
    case = CASES[name]
    assessment = judge_case(case, *evidence_of(case, None), CATALOGUE)
    assert (assessment.verdict, assessment.decisive) == ("pass", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mutant"), [(case.id, mutant) for case in LOCAL for mutant in case.killed_by]
)
def test_each_mutant_is_caught(name: str, mutant: str) -> None:
    """Each known-bad peer fails each case that names it, for one of its own reasons."""
    case, bad = CASES[name], MUTANTS[mutant]
    assessment = judge_case(case, *evidence_of(case, mutant), CATALOGUE)
    assert assessment.verdict in FAILS
    assert bad.reasons & {
        finding.reason
        for finding in assessment.findings
        if finding.outcome is Outcome.CONTRADICTED and set(bad.requires) & set(finding.requires)
    }
