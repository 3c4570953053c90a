"""Judging a run again from its folder alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import Case, case_of
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import CASE, RUN, case_folder, check_files, read_json
from kvcs_conformance.evidence.read import Evidence, read_evidence
from kvcs_conformance.judge import JUDGES
from kvcs_conformance.outcome import Outcome, judge_case, not_applicable, why_not
from kvcs_conformance.remote import Remote
from kvcs_conformance.report.results import row, whole
from kvcs_conformance.verdicts import Verdict

_NOT_PLAYED = (Verdict.NOT_RUN, Verdict.NOT_APPLICABLE)
_TWIN_ONLY = (Verdict.BLOCKED, Verdict.HARNESS_ERROR)
"""Verdicts that the positive twin alone may have led to."""

_HOW = ("remote", "lacks", "repeat", "vary_seed")
_TOLD = ("seed", "repeat", "flaky", "blame_runs", "blame_text", "known", "unexpected")


def recheck(folder: Path, result: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """The result that the saved evidence gives; raises UsageError when evidence is missing."""
    rows = []
    remote = Remote.of(result["remote"]) if "remote" in result else None
    for entry in result["cases"]:
        home = case_folder(folder, entry["id"])
        case = _case(home / CASE, entry["id"], catalogue)
        played = entry["verdict"] not in _NOT_PLAYED
        has_twin = case.twin is not None
        twin_home = case_folder(folder, entry["id"], twin=True)
        twin = _evidence(twin_home, needed=played and has_twin)
        spared = has_twin and entry["verdict"] in _TWIN_ONLY
        evidence = _evidence(home, needed=played and not spared)
        if evidence is None:
            check_files(home, [CASE])
        if (why := why_not(case, result["link"], remote)) is not None:
            assessment = not_applicable(why)
        else:
            assessment = judge_case(case, evidence, twin, catalogue, result.get("lacks", ()))
        outcome = Outcome(case, assessment, evidence, twin, entry["duration_s"])
        rows.append(_like(entry, row(outcome, result["link"])))
    return whole(
        rows,
        catalogue,
        link=result["link"],
        seed=result["seed"],
        peers=result["peers"],
        more={key: result[key] for key in _HOW if key in result},
    )


def _like(before: Mapping[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The new entry with what other runs of the case said, where the verdict is the same."""
    told = {key: before[key] for key in _TOLD if key in before}
    if "blame_runs" in before and before["verdict"] == now["verdict"]:
        told["blame"] = before["blame"]
    return {**now, **told}


def _case(path: Path, name: str, catalogue: Catalogue) -> Case:
    """The case as it was run; UsageError when it is another one, or the judges of today do not
    know its words."""
    try:
        case = case_of(read_json(path), catalogue, path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: not a saved case") from error
    if case.id != name:
        raise UsageError(f"{path}: not the case {name}, but {case.id!r}")
    for judgement in (*case.judge, *(case.twin.judge if case.twin else ())):
        if judgement.word not in JUDGES:
            raise UsageError(f"{path}: there is no judge word {judgement.word!r}")
    return case


def _evidence(home: Path, *, needed: bool) -> Evidence | None:
    """The evidence in a folder; None where there is none and none is needed."""
    return read_evidence(home) if needed or (home / RUN).is_file() else None
