"""Tables on terminals of any width."""

from __future__ import annotations

import io

import pytest
from kvcs_conformance.report import table
from kvcs_conformance.report.console import Page
from kvcs_conformance.report.progress import progress

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


def test_a_terminal_shows_what_runs_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs that run are named, and those that are done are counted; a file gets none of it."""
    for is_terminal in (True, False):
        screen = io.StringIO()

        def console(
            is_terminal: bool = is_terminal, screen: io.StringIO = screen, **_: bool
        ) -> Page:
            return Page(file=screen, force_terminal=is_terminal, width=100, color_system=None)

        monkeypatch.setattr("kvcs_conformance.report.console.Page", console)
        with progress(["relay/a", "relay/b", "relay/c"]) as bar:
            for index in (0, 1):
                bar.started(index)
            bar._bar.refresh()  # now, and not with the next tick
            assert is_terminal == ("0/3 relay/a  relay/b" in screen.getvalue())
            bar.ended(0)
            bar.started(2)
            bar._bar.refresh()  # now, and not with the next tick
            assert is_terminal == ("1/3 relay/b  relay/c" in screen.getvalue())
