"""Every case with the reference, which passes it, and with each known-bad peer that it names.

What users are told stands in `told.json`: for each pair the findings in words and the events that
they point at, without times. A change of it is part of a review; `make accept` writes it anew.

KVCS_CORPUS names a folder where the evidence is kept from one session to the next: the judges can
then be tested again and again (with defects put into them, too) without running anything.
"""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases
from kvcs_conformance.cases.load import Case
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Finding, Outcome
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.outcome import judge_case, twin_passes
from kvcs_conformance.runner import REFERENCE, perform
from kvcs_conformance.verdicts import FAILS

CATALOGUE = catalogues.load()
CASES = {case.id: case for case in load_cases(CATALOGUE, check=False)}
LOCAL = [case for case in CASES.values() if case.only_link != "quic"]
CORPUS = os.environ.get("KVCS_CORPUS")
TOLD = Path(__file__).with_name("told.json")
ACCEPT = "KVCS_ACCEPT" in os.environ
REFERENCE_NAME = "reference"
_NUMBERS = re.compile(r"\d+\.\d+ s\b|\b[0-9a-f]{32,}…?")


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, dict[str, list[str]]]]:
    """What is told of each pair, by case and peer; written anew when that is asked for."""
    before = json.loads(TOLD.read_text()) if TOLD.is_file() else {}
    if not ACCEPT:
        yield before
        return
    now: dict[str, dict[str, list[str]]] = {}
    yield now
    text = json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False)
    TOLD.write_text(text + "\n")


def findings(evidence: Evidence | None, found: tuple[Finding, ...]) -> list[str]:
    """The findings in words, those that agree on everything once."""
    lines = []
    for one in found:
        words = [one.outcome.value, ", ".join(one.requires), one.text, one.expected, one.observed]
        if one.octets:
            words.append(f"{len(one.octets) // 2} octets from {one.offset}")
        if one.index is not None and evidence is not None:
            words.append(event(evidence, one.node, one.index))
        lines.append(" | ".join(_NUMBERS.sub("…", word) for word in words if word))
    return list(dict.fromkeys(lines))


def event(evidence: Evidence, node: str, index: int) -> str:
    """The event that a finding points at, by what does not change with the pace of a run."""
    record = evidence.logs[node][index]
    data: dict[str, Any] = dict(record.data)
    what = [node, record.name, data.get("message", {}).get("type", "")]
    what += [str(data[key]) for key in ("group", "object", "layer", "block") if key in data]
    return " ".join(filter(None, what))


def compare(told: dict[str, dict[str, list[str]]], case: Case, peer: str, lines: list[str]) -> None:
    if ACCEPT:
        told.setdefault(case.id, {})[peer] = lines
    assert told.get(case.id, {}).get(peer) == lines, "see `make accept`"


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
def test_the_reference_passes(name: str, told: dict[str, dict[str, list[str]]]) -> None:
    """Each case passes on the reference, for the reasons that were accepted."""
    case = CASES[name]
    evidence, twin = evidence_of(case, None)
    assessment = judge_case(case, evidence, twin, CATALOGUE)
    assert (assessment.verdict, assessment.decisive) == ("pass", None)
    compare(told, case, REFERENCE_NAME, findings(evidence, assessment.findings))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mutant"), [(case.id, mutant) for case in LOCAL for mutant in case.killed_by]
)
def test_each_mutant_is_caught(
    name: str, mutant: str, told: dict[str, dict[str, list[str]]]
) -> None:
    """Each known-bad peer fails each case that names it, for one of its own reasons, is charged
    with nothing that it does not break, and its user is told what was accepted."""
    case, bad = CASES[name], MUTANTS[mutant]
    evidence, twin = evidence_of(case, mutant)
    assessment = judge_case(case, evidence, twin, CATALOGUE)
    assert assessment.verdict in FAILS
    against = [one for one in assessment.findings if one.outcome is Outcome.CONTRADICTED]
    assert bad.reasons & {one.reason for one in against if set(bad.requires) & set(one.requires)}
    assert {name for one in against for name in one.requires} <= set(bad.requires)
    compare(told, case, mutant, findings(evidence, tuple(against)))
