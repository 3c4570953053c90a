"""Judging a run again from its folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import case_of
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.evidence.files import CASE, RUN, case_folder, read_json
from kvcs_conformance.evidence.read import read_evidence
from kvcs_conformance.outcome import Outcome, judge_case, not_applicable
from kvcs_conformance.report.results import results


def recheck(folder: Path, result: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """The result that the saved evidence gives; raises UsageError when evidence is missing."""
    outcomes = []
    for entry in result["cases"]:
        home = case_folder(folder, entry["id"])
        case = case_of(read_json(home / CASE), catalogue, home / CASE)
        there = (home / RUN).is_file()
        evidence = read_evidence(home) if there else None
        twin_home = case_folder(folder, case.id, twin=True)
        twin = read_evidence(twin_home) if twin_home.is_dir() else None
        if case.only_link not in (None, result["link"]):
            assessment = not_applicable(case)
        else:
            assessment = judge_case(case, evidence, twin, catalogue)
        outcomes.append(Outcome(case, assessment, evidence, twin, entry["duration_s"]))
    return results(
        outcomes, catalogue, link=result["link"], seed=result["seed"], peers=result["peers"]
    )
