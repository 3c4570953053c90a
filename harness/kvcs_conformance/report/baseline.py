"""Baselines: a result without what differs from run to run, kept beside the sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import read_json, write_json
from kvcs_conformance.report import results

_KEPT = ("schema", "catalogue", "profile", "peers", "link", "seed", "summary")
_CASE = ("id", "title", "sut", "requires", "level", "verdict", "reason", "blame", "observed")
_EMPTY: dict[str, Any] = {"duration_s": 0, "evidence": "", "findings": []}


def condensed(result: Mapping[str, Any]) -> dict[str, Any]:
    """What of a result must be the same when the same peers are judged again."""
    cases = [{name: case[name] for name in _CASE} | _EMPTY for case in result["cases"]]
    return {name: result[name] for name in _KEPT if name in result} | {"cases": cases}


def baselines() -> tuple[Path, ...]:
    """The published baselines, one file for each draft revision, peer and link."""
    return tuple(sorted((datafiles.folder("reports") / "baselines").rglob("*.json")))


def read_result(path: Path) -> dict[str, Any]:
    """A result from a run's folder or from a file; raises UsageError when it is none."""
    if path.is_dir():
        return results.read(path)
    if not path.is_file():
        raise UsageError(f"{path}: no result there: give a run's folder or a result file")
    return results.validated(path, read_json(path))


def write_baseline(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result as a baseline; raises UsageError when the path is a folder."""
    if path.is_dir():
        raise UsageError(f"{path}: a baseline is a file, this is a folder")
    write_json(path, condensed(result))
