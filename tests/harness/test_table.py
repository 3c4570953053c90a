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


def row(name: str, verdict: str) -> dict[str, object]:
    finding = {"outcome": "contradicted", "text": "an Object is missing"}
    return {
        "id": name,
        "level": "MUST",
        "verdict": verdict,
        "reason": None if verdict == "pass" else "object.missing",
        "findings": [] if verdict == "pass" else [finding],
    }


def test_of_many_cases_those_that_pass_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Beyond a screenful, each family that passes is one line; what does not pass is listed."""
    cases = [row(f"relay/cache/case-{i}", "pass") for i in range(60)]
    cases.append(row("relay/join/late", "fail"))
    result = {"link": "memory", "summary": {"pass": 60, "fail": 1}, "cases": cases}
    table.print_results(result)
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert words[1] == ["pass", "relay/cache/*", "60"]
    assert words[2][:3] == ["fail", "MUST", "relay/join/late"]
    assert words[3] == ["61", "cases", "on", "memory:", "60", "pass,", "1", "fail"]


def test_of_many_mutants_those_that_live_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Beyond a screenful, a mutant that was killed is counted only."""

    def mutant(name: str, verdict: str) -> dict[str, object]:
        return {"id": name, "verdict": verdict, "killed_by": [], "defect": "It is wrong."}

    mutants = [mutant(f"relay/bad-{i}", "killed") for i in range(60)]
    summary = {"total": 61, "killed": 60, "survived": 1, "stray": 0}
    table.print_matrix(
        {"mutants": [*mutants, mutant("relay/worse", "survived")], "summary": summary}
    )
    out = capsys.readouterr().out
    assert "relay/worse" in out
    assert "relay/bad" not in out
    assert "61 mutants: 60 killed, 1 survived, 0 stray" in out
