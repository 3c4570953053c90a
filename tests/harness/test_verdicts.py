"""Verdicts, reasons and exit codes: closed lists, and the page that explains them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvcs_conformance import datafiles
from kvcs_conformance.verdicts import (
    FAILS,
    GOOD,
    INCOMPLETE,
    REASONS,
    WORST_FIRST,
    ExitCode,
    Reason,
    Verdict,
    exit_code,
)

PAGE = datafiles.folder("testcases").parent / "docs" / "verdicts.md"


def rows(page: Path) -> dict[str, str]:
    """What stands in the second column of the page's tables, by the code in the first."""
    found = {}
    for line in page.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) > 1:
            found.setdefault(cells[0].strip("`"), cells[1])
    return found


def test_the_page_has_every_verdict_and_reason() -> None:
    """Each has a row; that of a reason says what the code says, word for word, and no reason is
    there that the code does not know."""
    page = rows(PAGE)
    assert [] == [verdict.value for verdict in Verdict if verdict.value not in page]
    missing = [f"| `{reason.value}` | {REASONS[reason]} |" for reason in Reason
               if page.get(reason.value) != REASONS[reason]]  # fmt: skip
    assert [] == missing, "rows to put into docs/verdicts.md"
    codes = {code for code in page if "." in code and " " not in code}
    assert {reason.value for reason in Reason} == codes


def test_the_page_has_the_order_of_verdicts() -> None:
    """The sentence about repeats names the verdicts in the order in which they stand."""
    text = " ".join(PAGE.read_text().split())
    assert "Worst first: " + ", ".join(f"`{verdict.value}`" for verdict in WORST_FIRST) in text


def test_every_reason_has_a_meaning() -> None:
    """The lists are complete: reasons with their meaning, verdicts with their weight."""
    assert {*Reason} == REASONS.keys()
    assert {*Verdict} == {*WORST_FIRST}
    assert len(Verdict) == len(WORST_FIRST)
    assert FAILS.isdisjoint(GOOD | INCOMPLETE)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["pass", "advise", "unsupported", "not-applicable", "pass-nonstrict"], ExitCode.PASS),
        (["pass", "fail", "harness-error", "blocked"], ExitCode.FAIL),
        (["pass", "harness-error", "not-run"], ExitCode.ERROR),
        (["pass", "inconclusive"], ExitCode.INCOMPLETE),
        (["blocked"], ExitCode.INCOMPLETE),
        (["not-run", "advise"], ExitCode.INCOMPLETE),
        ([], ExitCode.PASS),
    ],
)
def test_a_failure_outweighs_an_error_and_that_what_is_open(
    verdicts: list[str], code: ExitCode
) -> None:
    """The first of fail, harness error and incomplete that holds is told."""
    assert code == exit_code(map(Verdict, verdicts))
