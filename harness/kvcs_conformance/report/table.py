"""The table of a run on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from kvcs_conformance.cases import Case

_PAGE = 140
_NARROWEST = 80

_STYLES = {
    "pass": "green",
    "pass-nonstrict": "yellow",
    "advise": "yellow",
    "fail": "bold red",
    "harness-error": "bold magenta",
    "killed": "green",
    "survived": "bold red",
    "stray": "bold red",
}


def _console() -> Console:
    """A terminal's width, and a page's where the output goes to a file.

    A terminal too narrow for verdict and case id breaks the lines itself: neither is ever cut.
    """
    from kvcs_conformance.report.console import Page

    console = Page(highlight=False)
    console.width = max(console.width, _NARROWEST) if console.is_terminal else _PAGE
    return console


def watched(cases: Sequence[Case]) -> Iterator[Case]:
    """The cases one by one; on a terminal a line says which one runs, and goes away at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from kvcs_conformance.report.console import Page

    console = Page(highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=len(cases))
        for case in cases:
            bar.update(task, description=case.id)
            yield case
            bar.advance(task)


def print_results(result: Mapping[str, Any]) -> None:
    """One line per case, then the counts."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("verdict", "level", "case", "why"):
        table.add_column(heading, no_wrap=heading != "why", overflow="fold")
    for case in result["cases"]:
        verdict = case["verdict"]
        table.add_row(
            Text(verdict, style=_STYLES.get(verdict, "cyan")),
            case["level"],
            case["id"],
            Text(_why(case)),
        )
    console.print(table)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in result["summary"].items())
    cases = "1 case" if len(result["cases"]) == 1 else f"{len(result['cases'])} cases"
    console.print(f"{cases} on {result['link']}: {counts}")


def _why(case: Mapping[str, Any]) -> str:
    if case["verdict"] == "pass":
        return ""
    findings = case["findings"]
    told = next((f["text"] for f in findings if f["outcome"] != "upheld"), "")
    return f"{case['reason'] or ''}: {told}".strip(": ")


def print_matrix(matrix: Mapping[str, Any]) -> None:
    """One line per mutant, then the counts."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("mutant", "verdict", "killed by", "defect"):
        table.add_column(heading, no_wrap=heading in ("mutant", "verdict"), overflow="fold")
    for mutant in matrix["mutants"]:
        verdict = mutant["verdict"]
        table.add_row(
            mutant["id"],
            Text(verdict, style=_STYLES[verdict]),
            "\n".join(mutant["killed_by"]) or "nothing",
            Text(mutant["defect"]),
        )
    console.print(table)
    summary = matrix["summary"]
    console.print(
        f"{summary['total']} mutants: {summary['killed']} killed, "
        f"{summary['survived']} survived, {summary['stray']} stray"
    )
