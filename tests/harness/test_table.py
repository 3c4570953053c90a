"""Tables on terminals of any width."""

from __future__ import annotations

import io

import pytest
from kvcs_conformance.report import table
from kvcs_conformance.report.console import Page

CASE = "consumer/manifest/no-fallback-when-authentic"
RESULT = {
    "link": "memory",
    "summary": {"inconclusive": 1},
    "cases": [
        {
            "id": CASE,
            "level": "MUST NOT",
            "verdict": "inconclusive",
            "reason": "evidence.absent",
            "findings": [{"outcome": "unseen", "text": "nothing speaks of it"}],
        }
    ],
}


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_verdict_and_case_are_never_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow the terminal, one can read the verdict and copy the case's id."""
    screen = io.StringIO()

    def terminal(**options: bool) -> Page:
        return Page(
            file=screen, force_terminal=True, width=columns, color_system=None, highlight=False
        )

    monkeypatch.setattr("kvcs_conformance.report.console.Page", terminal)
    table.print_results(RESULT)
    assert CASE in screen.getvalue()
    assert "inconclusive" in screen.getvalue()
    assert "1 case on memory: 1 inconclusive" in screen.getvalue()
