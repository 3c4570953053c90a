"""Measured values, their medians, and the two forms in which they are given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(slots=True)
class Result:
    """One measurement: a value per run.

    `ratios` holds, per run, the value divided by that of `compared_to` in the same run.
    """

    name: str
    unit: str
    values: list[float] = field(default_factory=list)
    compared_to: str | None = None
    ratios: list[float] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The form of bench.json."""
        found: dict[str, Any] = {
            "name": self.name,
            "unit": self.unit,
            "median": median(self.values),
            "min": min(self.values),
            "max": max(self.values),
            "runs": len(self.values),
        }
        if self.compared_to is not None and self.ratios:
            found["ratio"] = {"to": self.compared_to, "median": median(self.ratios)}
        return found


class Results:
    """All measurements of one call of `kvcs bench`, in the order in which they came."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}

    def add(
        self, name: str, unit: str, value: float, compared_to: tuple[str, float] | None = None
    ) -> None:
        """One run's value; `compared_to` is the name and the value of what it is set against."""
        result = self._results.setdefault(name, Result(name, unit))
        result.values.append(value)
        if compared_to is not None:
            result.compared_to = compared_to[0]
            result.ratios.append(value / compared_to[1])

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def as_json(self) -> dict[str, Any]:
        """`{"results": [...]}`, the form of bench.json."""
        return {"results": [result.as_json() for result in self]}

    def write(self, path: Path) -> None:
        """Write bench.json."""
        path.write_text(json.dumps(self.as_json(), indent=2) + "\n", encoding="utf-8")

    def rows(self) -> Sequence[tuple[str, str, str, str]]:
        """Name, median with unit, range, and ratio, as text for a table."""
        rows = []
        for result in self:
            ratio = ""
            if result.compared_to is not None and result.ratios:
                ratio = f"{median(result.ratios):.2f} of {result.compared_to}"
            spread = f"{_number(min(result.values))} .. {_number(max(result.values))}"
            middle = f"{_number(median(result.values))} {result.unit}"
            rows.append((result.name, middle, spread, ratio))
        return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
