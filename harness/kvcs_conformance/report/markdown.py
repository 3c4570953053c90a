"""A Markdown summary that a CI job can show: it is never over 64 KiB, whatever the run."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvcs_conformance.report.explain import as_text, known_words
from kvcs_conformance.report.explanation import Explanation
from kvcs_conformance.report.plain import short
from kvcs_conformance.report.summary import GRAVEST_FIRST, Summary, Weight, weight

MOST_OCTETS = 64 * 1024
_RESERVE = 512
_MARKS = {
    Weight.FAILED: "❌",
    Weight.OPEN: "❔",
    Weight.NOTED: "⚠️",
    Weight.SKIPPED: "➖",
    Weight.PASSED: "✅",
}
_ENTITIES = {ord(character): f"&#{ord(character)};" for character in "\\`*_[]|~#!@"}
"""What Markdown would read as its own, names of people included."""

_GRAVEST = (Weight.FAILED, Weight.OPEN, Weight.NOTED, Weight.SKIPPED)


def markdown(result: Mapping[str, Any], summary: Summary, told: Sequence[Explanation]) -> str:
    """The run in Markdown: the verdict first, then the table, then each case that did not pass."""
    text = "\n".join(_head(result, summary))
    weights = {case["id"]: weight(case) for case in result["cases"]}
    rank = {verdict.value: i for i, verdict in enumerate(GRAVEST_FIRST)}
    shown = sorted(
        (one for one in told if weights[one.id] in _GRAVEST),
        key=lambda one: (_GRAVEST.index(weights[one.id]), rank[one.verdict], one.id),
    )
    if shown:
        text += f"\n\n### Not a plain pass: {len(shown)} of {len(told)}\n"
    room = MOST_OCTETS - _RESERVE
    for i, one in enumerate(shown):
        for block in (_details(one, weights[one.id]), _line(one, weights[one.id])):
            if len((text + block).encode()) <= room:
                text += block
                break
        else:
            return f"{text}\nand {len(shown) - i} more: there is no room for them here.\n"
    return text + "\n"


def _head(result: Mapping[str, Any], summary: Summary) -> Iterator[str]:
    yield f"## KVCS: {summary.standing.value}"
    yield ""
    yield f"**{_text(summary.sentence)}**"
    yield ""
    cases = "1 case" if len(result["cases"]) == 1 else f"{len(result['cases'])} cases"
    peers = ", ".join(f"{role} {_code(name)}" for role, name in sorted(result["peers"].items()))
    yield (
        f"{cases} on {result['link']}, seed {result['seed']}, about {summary.cited} requirements "
        f"of KVCS {_text(result['catalogue']['kvcs'])} and MOQT draft "
        f"{_text(result['catalogue']['moqt'])}; {peers}."
    )
    yield ""
    verdicts = list(summary.counts)
    yield f"| role | {' | '.join(verdicts)} |"
    yield f"| --- |{' ---: |' * len(verdicts)}"
    for role, counts in summary.by_role.items():
        yield f"| {role} | {' | '.join(str(counts.get(v, 0) or '') for v in verdicts)} |"
    if len(summary.by_role) > 1:
        yield f"| **all** | {' | '.join(f'**{summary.counts[v]}**' for v in verdicts)} |"


def _details(told: Explanation, weighed: Weight) -> str:
    return (
        f"\n<details><summary>{_title(told, weighed)}</summary>\n\n"
        f"<pre>{html.escape(as_text(told, Path()))}</pre>\n</details>\n"
    )


def _line(told: Explanation, weighed: Weight) -> str:
    """A case without its explanation, for when there is little room left."""
    return f"\n{_title(told, weighed)}\n"


def _title(told: Explanation, weighed: Weight) -> str:
    known = f" · {_text(known_words(told.known))}" if told.known else ""
    reason = f" · {_text(told.reason)}" if told.reason else ""
    return f"{_MARKS[weighed]} {told.verdict} · {_code(told.id)} · {told.level}{reason}{known}"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    """Text that is neither HTML nor Markdown, on one line and in a table too."""
    return html.escape(short(text, 200), quote=False).translate(_ENTITIES)
