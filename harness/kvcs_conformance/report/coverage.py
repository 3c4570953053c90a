"""Coverage as a person reads it: numbers by level and role, then what is still missing."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

_WIDTH = 100
_HEAD = ("", "entries", "testable", "cased", "", "proven", "", "planned")
_ROW = "{:<18} {:>8} {:>9} {:>7} {:>5} {:>8} {:>5} {:>8}"


def summary(coverage: Mapping[str, Any]) -> str:
    """The tables and the gaps of `coverage.json`."""
    names = ", ".join(f"{name.upper()} {rev}" for name, rev in coverage["catalogue"].items())
    lines = [
        f"{names}: {coverage['total']} entries, {coverage['classified']} classified, "
        f"{coverage['testable']} testable",
        "",
        _ROW.format(*_HEAD).rstrip(),
    ]
    for name, part in coverage["by_catalogue"].items():
        lines += [_row(f"{name.upper()} {level}", row) for level, row in part["by_level"].items()]
        lines.append(_row(f"{name.upper()} in all", part))
    lines += ["", *(_row(role, counts) for role, counts in coverage["by_role"].items())]
    field = coverage["field"]
    if field["total"]:
        lines.append(f"{'field cases':<18} {field['total']:>8} {'':>9} {field['cased']:>7}")
    return "\n".join([*lines, "", *_gaps(coverage)])


def _row(name: str, counts: Mapping[str, Any]) -> str:
    testable = counts["testable"]
    return _ROW.format(
        name,
        counts["total"],
        testable,
        counts["cased"],
        _percent(counts["cased"], testable),
        counts["with_killed_mutant"],
        _percent(counts["with_killed_mutant"], testable),
        counts["planned"] or "",
    ).rstrip()


def _percent(part: int, whole: int) -> str:
    """Rounded down: 100 % means all of them."""
    return f"{100 * part // whole} %" if whole else ""


def _gaps(coverage: Mapping[str, Any]) -> Iterable[str]:
    for status, title in (
        ("unclassified", "Nobody has said whether these can be tested"),
        ("open", "No case"),
        ("cased", "A case, and no mutant that it kills"),
    ):
        yield from _by_role(
            title,
            [(gap["role"], gap["id"]) for gap in coverage["gaps"] if gap["status"] == status],
        )
    if coverage["misplaced"]:
        yield f"Cited, and by the catalogue not to be judged ({len(coverage['misplaced'])})"
        yield from (f"  {line}" for line in coverage["misplaced"])
    yield from _planned(coverage)
    yield from _by_role(
        "Field cases without a case",
        [(role, row["id"]) for row in coverage["field"]["entries"] for role in row["missing"]],
    )


def _planned(coverage: Mapping[str, Any]) -> Iterable[str]:
    """What waits for a later part of the harness, by what it waits for."""
    waiting: dict[str, list[tuple[str, str]]] = {}
    for entry in coverage["entries"]:
        for role, row in entry["by_role"].items():
            if row["status"] == "planned":
                waiting.setdefault(row["why"], []).append((role, entry["id"]))
    for why, pairs in waiting.items():
        yield from _by_role(f"Planned: {why}", pairs)


def _by_role(title: str, pairs: list[tuple[str, str]]) -> Iterable[str]:
    """A title with its number, and a paragraph of ids for each role."""
    if not pairs:
        return
    yield f"{title} ({len(pairs)})"
    for role in dict.fromkeys(role for role, _ in pairs):
        ids = " ".join(name for own, name in pairs if own == role)
        yield from textwrap.wrap(
            ids, _WIDTH, initial_indent=f"  {role:<10} ", subsequent_indent=" " * 13
        )
