"""The rules of the house that no other tool checks."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.rows import LAST_ROW, cases_in, cited_rows, coverage

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("reference/**/*.py"), *ROOT.glob("harness/**/*.py")])
CLOCKS_AND_SOCKETS = {"asyncio", "random", "secrets", "selectors", "socket", "threading", "time"}
BELOW_THE_DRIVERS = ("wire", "session", "tracks", "relay", "origin")


def test_no_module_outgrows_a_screenful_of_thoughts() -> None:
    """A module of the packages has at most 450 lines."""
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in SOURCES
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 450
    }
    assert {} == too_long


def test_no_clock_chance_or_socket_below_the_drivers() -> None:
    """The MOQT core imports no clock, no randomness, no socket and no tasks."""
    offenders = []
    for path in SOURCES:
        parts = path.relative_to(ROOT / "reference").parts if "reference" in path.parts else ()
        if (
            len(parts) < 2
            or parts[0] != "moqt"
            or parts[1].removesuffix(".py") not in (BELOW_THE_DRIVERS)
        ):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            offenders += [
                f"{path.relative_to(ROOT)} imports {name}"
                for name in names
                if name.split(".")[0] in CLOCKS_AND_SOCKETS
            ]
    assert [] == offenders


def test_every_test_says_what_it_shows() -> None:
    """Each test has a docstring that states the behaviour."""
    silent = [
        name
        for path in sorted(ROOT.glob("tests/**/test_*.py"))
        for name, docstring in cases_in(path)
        if not docstring
    ]
    assert [] == silent


def test_cited_rows_exist() -> None:
    """Docstrings cite only rows of the rule table that exist."""
    assert {97, 98, 99, 3} == cited_rows("R097-R099 and R003")
    assert [] == [row for row in coverage(ROOT / "tests") if not 1 <= row <= LAST_ROW]
