"""Which cases have changed since a git revision."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from kvcs_conformance import datafiles
from kvcs_conformance.cases.load import Case
from kvcs_conformance.errors import UsageError


def changed_since(cases: Iterable[Case], revision: str) -> tuple[Case, ...]:
    """The cases whose file, or whose scenario's file, differs from `revision` in the working
    tree, files that git does not know yet included.

    Raises UsageError outside a git checkout, and for what is no revision.
    """
    root = datafiles.folder("testcases")
    changed = _changed(root, revision)
    scenarios = root / "scenarios"
    return tuple(
        case
        for case in cases
        if case.path.resolve() in changed
        or (scenarios / f"{case.scenario['use']}.yaml").resolve() in changed
    )


def _changed(root: Path, revision: str) -> set[Path]:
    if _git(root, "rev-parse", "--is-inside-work-tree") is None:
        raise UsageError(f"{root} is not in a git checkout: --changed-since has nothing to ask")
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^0")
    if commit is None:
        raise UsageError(f"git knows no revision {revision!r}")
    known = _git(root, "diff", "--name-only", "-z", "--relative", commit.strip(), "--", ".")
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", ".")
    names = [name for answer in (known, new) for name in (answer or "").split("\0") if name]
    return {(root / name).resolve() for name in names}


def _git(root: Path, *words: str) -> str | None:
    """What git answers; None when it refuses, or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
