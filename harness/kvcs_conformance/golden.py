"""The committed kill matrix: what it holds, and in what a new one differs from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.evidence.files import KILL_MATRIX, read_json, write_json

_KEPT = ("id", "role", "expected", "killed_by", "verdict")


def golden_path() -> Path:
    """Where the committed matrix is."""
    return datafiles.folder("testcases") / KILL_MATRIX


def read_golden(path: Path) -> dict[str, Any] | None:
    """The committed matrix, or None if there is none yet."""
    if not path.is_file():
        return None
    golden: dict[str, Any] = read_json(path)
    return golden


def accept(matrix: Mapping[str, Any], path: Path) -> None:
    """Write a matrix as the committed one: what does not change from run to run."""
    rows = [{key: row[key] for key in _KEPT} for row in matrix["mutants"]]
    write_json(path, {"schema": 1, "summary": matrix["summary"], "mutants": rows})


def drift(
    matrix: Mapping[str, Any], golden: Mapping[str, Any], cases: Iterable[str], *, whole: bool
) -> Iterator[str]:
    """What is not as it was, a line each; of a selection only its cases and mutants count.

    `whole` says that every case was chosen, so that a mutant without a row is gone.
    """
    chosen = set(cases)
    was = {row["id"]: row for row in golden["mutants"]}
    now = {row["id"]: row for row in matrix["mutants"]}
    for name in sorted(was.keys() - now.keys() if whole else ()):
        yield f"- {name}: in the committed matrix, and no longer run"
    for name, row in now.items():
        if name not in was:
            yield f"+ {name}: not in the committed matrix; killed by {_list(row['killed_by'])}"
            continue
        before = was[name]
        for case in sorted(chosen & {*before["killed_by"]} - {*row["killed_by"]}):
            yield f"- {name}: no longer killed by {case}"
        for case in sorted({*row["killed_by"]} - {*before["killed_by"]}):
            yield f"+ {name}: now killed by {case}"
        for key in ("role", "expected", "verdict"):
            if before[key] != row[key]:
                yield f"~ {name}: {key} was {_list(before[key])}, is {_list(row[key])}"


def _list(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value) or "nothing"
