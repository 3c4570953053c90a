"""The table of a run on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_PAGE = 140
_NARROWEST = 80
_SCREENFUL = 50
"""Lines beyond which what is as it should be is counted, not listed."""

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


def print_results(result: Mapping[str, Any]) -> None:
    """One line per case, then the counts; of many cases those that pass are counted by family."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("verdict", "level", "case", "why"):
        table.add_column(heading, no_wrap=heading != "why", overflow="fold")
    shown = result["cases"]
    if len(shown) > _SCREENFUL:
        shown = [case for case in shown if case["verdict"] != "pass" or _why(case)]
        for family, count in _families(result["cases"], shown).items():
            table.add_row(Text("pass", style=_STYLES["pass"]), "", f"{family}/*", str(count))
    for case in shown:
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


def _families(cases: Sequence[Mapping[str, Any]], shown: Collection[Any]) -> dict[str, int]:
    """How many of the cases that are not shown one by one each family has."""
    named = {case["id"] for case in shown}
    families = Counter(
        "/".join(case["id"].split("/")[:2]) for case in cases if case["id"] not in named
    )
    return dict(sorted(families.items()))


def _why(case: Mapping[str, Any]) -> str:
    lines = []
    if case["verdict"] != "pass":
        told = next((f["text"] for f in case["findings"] if f["outcome"] != "upheld"), "")
        lines.append(f"{case['reason'] or ''}: {told}".strip(": "))
    if "blame_text" in case:
        lines.append(f"at fault: {case['blame'] or 'nobody is named'} ({case['blame_text']})")
    if "flaky" in case:
        counts = case["repeat"]["verdicts"].items()
        lines.append("flaky: " + ", ".join(f"{count} {verdict}" for verdict, count in counts))
    if "known" in case:
        from kvcs_conformance.report.explain import known_words

        lines.append(known_words(case["known"]))
    return "\n".join(lines)


def print_matrix(matrix: Mapping[str, Any]) -> None:
    """One line per mutant, then the counts; of many mutants only those that were not killed."""
    from rich.table import Table
    from rich.text import Text

    console = _console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("mutant", "verdict", "killed by", "defect"):
        table.add_column(heading, no_wrap=heading in ("mutant", "verdict"), overflow="fold")
    shown = matrix["mutants"]
    if len(shown) > _SCREENFUL:
        shown = [mutant for mutant in shown if mutant["verdict"] != "killed"]
    for mutant in shown:
        verdict = mutant["verdict"]
        table.add_row(
            mutant["id"],
            Text(verdict, style=_STYLES[verdict]),
            "\n".join(mutant["killed_by"]) or "nothing",
            Text(mutant["defect"]),
        )
    if shown:
        console.print(table)
    summary = matrix["summary"]
    console.print(
        f"{summary['total']} mutants: {summary['killed']} killed, "
        f"{summary['survived']} survived, {summary['stray']} stray"
    )
