"""Completing an earlier run: which of its entries stand, and whether it is the same run at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import CASE, case_folder, read_json
from kvcs_conformance.evidence.read import read_evidence
from kvcs_conformance.verdicts import Verdict

_AGAIN = (Verdict.NOT_RUN, Verdict.HARNESS_ERROR)
_OVERLAY = ("known", "unexpected")


def cases_of(
    result: Mapping[str, Any], cases: Iterable[Case], catalogue: Catalogue, folder: Path
) -> tuple[Case, ...]:
    """The cases that an earlier run was about.

    Raises UsageError when its catalogue is not this one, or a case of it is no more.
    """
    if result["catalogue"]["sha256"] != catalogue.sha256:
        raise UsageError(
            f"the run in {folder} was judged by another catalogue (sha256 "
            f"{result['catalogue']['sha256'][:12]}…, now {catalogue.sha256[:12]}…): run it anew"
        )
    by_id = {case.id: case for case in cases}
    for entry in result["cases"]:
        if entry["id"] not in by_id:
            raise UsageError(f"the run in {folder} has a case that is no more: {entry['id']}")
    return tuple(by_id[entry["id"]] for entry in result["cases"])


def must_agree(
    folder: Path, result: Mapping[str, Any], given: Mapping[str, tuple[Any, Any]]
) -> None:
    """Raise UsageError for the first option that was given and is not what the run had.

    `given` holds per option the value of the command line, None for one not given, and the run's.
    """
    for option, (value, had) in given.items():
        if value is not None and value != had:
            raise UsageError(f"the run in {folder} had {option} {had}, not {value}")


def entries_that_stand(
    folder: Path, result: Mapping[str, Any], cases: Iterable[Case]
) -> dict[str, dict[str, Any]]:
    """The entries that need not be made again: judged, the case as it was, the evidence whole."""
    entries = {entry["id"]: entry for entry in result["cases"]}
    return {
        case.id: {k: v for k, v in entries[case.id].items() if k not in _OVERLAY}
        for case in cases
        if _stands(folder, entries[case.id], case)
    }


def _stands(folder: Path, entry: Mapping[str, Any], case: Case) -> bool:
    if entry["verdict"] in _AGAIN:
        return False
    if entry["verdict"] == Verdict.NOT_APPLICABLE:
        return True
    home = case_folder(folder, case.id)
    try:
        if read_json(home / CASE) != case.source:
            return False
        if case.twin is not None:
            read_evidence(case_folder(folder, case.id, twin=True))
        if case.twin is None or entry["verdict"] != Verdict.BLOCKED:
            read_evidence(home)
    except UsageError:
        return False
    return True
