"""Which rows of the MOQT rule table (R001 to R233) the tests cite in their docstrings.

Run as a program it prints the count and the rows that no test cites yet.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LAST_ROW = 233
_ROW = re.compile(r"\bR(\d{3})\b(?:\s*(?:-|to|–)\s*R?(\d{3})\b)?")


def cited_rows(text: str) -> set[int]:
    """The row numbers in `text`; `R097-R099` and `R097 to R099` are three rows."""
    rows: set[int] = set()
    for match in _ROW.finditer(text):
        first = int(match[1])
        rows.update(range(first, int(match[2] or first) + 1))
    return rows


def cases_in(path: Path) -> Iterator[tuple[str, str]]:
    """Name and docstring of each test function of one file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_function and node.name.startswith("test"):
            yield f"{path.name}::{node.name}", ast.get_docstring(node) or ""


def coverage(root: Path) -> dict[int, list[str]]:
    """Row number to the tests that cite it."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("test_*.py")):
        for name, docstring in cases_in(path):
            for row in cited_rows(docstring):
                found[row].append(name)
    return dict(found)


def main() -> None:
    """Print the figures."""
    found = coverage(Path(__file__).parent)
    missing = [row for row in range(1, LAST_ROW + 1) if row not in found]
    print(f"{len(found)} of {LAST_ROW} rows are cited by at least one test")
    if missing:
        print("not cited: " + " ".join(f"R{row:03}" for row in missing))
    if "-v" in sys.argv:
        for row, names in sorted(found.items()):
            print(f"R{row:03}  {len(names):3}  {names[0]}")


if __name__ == "__main__":
    main()
