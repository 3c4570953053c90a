"""TAP 14 (testanything.org): one test point per case, a YAML block for all that is not a pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from kvcs_conformance.report.explain import known_words
from kvcs_conformance.report.explanation import Explanation
from kvcs_conformance.report.summary import Weight, weight

_OK = (Weight.PASSED, Weight.NOTED, Weight.SKIPPED)


def tap(result: Mapping[str, Any], told: Sequence[Explanation]) -> str:
    """The run as a TAP stream."""
    weights = {case["id"]: weight(case) for case in result["cases"]}
    lines = ["TAP version 14", f"1..{len(told)}" + ("" if told else " # SKIP no case was run")]
    for number, one in enumerate(told, 1):
        lines += _point(number, one, weights[one.id])
    return "\n".join(lines) + "\n"


def _point(number: int, told: Explanation, weighed: Weight) -> Iterator[str]:
    # A known failure is not ok and TODO, which a TAP reader takes as no failure.
    known = bool(told.known) and weighed is Weight.SKIPPED
    ok = "ok" if weighed in _OK and not known else "not ok"
    line = f"{ok} {number} - {_escaped(told.id)}"
    if known and told.known:
        line += f" # TODO {_escaped(known_words(told.known))}"
    elif weighed is Weight.SKIPPED:
        line += f" # SKIP {_escaped(told.verdict)}"
    yield line
    if weighed is not Weight.PASSED:
        yield from _diagnostic(told)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("#", "\\#")


def _diagnostic(told: Explanation) -> Iterator[str]:
    values: dict[str, Any] = {
        "verdict": told.verdict,
        "reason": told.reason,
        "message": told.found or told.why,
        "clause": [clause.id for clause in told.clauses],
        "blame": told.blame,
        "blame_text": told.blame_text,
        "expected": told.expected,
        "observed": told.observed,
        "place": f"{told.evidence}/{told.place}" if told.place else told.evidence,
        "known": dict(told.known) if told.known else None,
        "repeats": told.repeats,
        "again": told.again,
    }
    kept = {key: value for key, value in values.items() if value}
    text = yaml.safe_dump(kept, sort_keys=False, allow_unicode=False, width=10**6)
    yield "  ---"
    yield from (f"  {line}" for line in text.splitlines())
    yield "  ..."
