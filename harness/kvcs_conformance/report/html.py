"""One self-contained HTML page of a run: it fetches nothing, and its policy forbids it to."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kvcs_conformance.report.diagram import SIGNS, diagram
from kvcs_conformance.report.explain import known_words
from kvcs_conformance.report.explanation import Bearing, Explanation
from kvcs_conformance.report.summary import GRAVEST_FIRST, ROLES, Summary, Weight, weight

_TEMPLATES = Path(__file__).parent / "templates"
_ROWS = 44
_ROWS_OF_A_PASS = 18

_LOOKS = {
    "pass": ("ok", "✓"),
    "pass-nonstrict": ("warn", "≈"),
    "advise": ("warn", "!"),
    "fail": ("bad", "✕"),
    "harness-error": ("open", "⚠"),
    "blocked": ("open", "⊘"),
    "inconclusive": ("open", "?"),
    "not-run": ("open", "…"),
    "unsupported": ("none", "○"),
    "not-applicable": ("none", "–"),
}
"""How a verdict looks: a class, and a sign that tells it without colour."""


_HEADINGS = {
    Bearing.EXACT: "The event that decides",
    Bearing.NEAREST: "No single event shows it; the nearest",
    Bearing.LAST: "The last that was seen",
}


def page(result: Mapping[str, Any], summary: Summary, told: Sequence[Explanation]) -> str:
    """The page; a pure function of what is given."""
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["path"] = quote
    environment.filters["capitalize_first"] = lambda text: text[:1].upper() + text[1:]
    rank = {verdict.value: i for i, verdict in enumerate(GRAVEST_FIRST)}
    weights = {case["id"]: weight(case) for case in result["cases"]}
    groups = {
        role: sorted(
            (one for one in told if one.role == role), key=lambda c: (rank[c.verdict], c.id)
        )
        for role in ROLES
    }
    grave = sorted(
        (one for one in told if weights[one.id] in (Weight.FAILED, Weight.OPEN)),
        key=lambda one: (rank[one.verdict], one.id),
    )
    return environment.get_template("report.html.j2").render(
        result=result,
        summary=summary,
        groups={role: cases for role, cases in groups.items() if cases},
        grave=grave,
        looks=_LOOKS,
        diagrams={one.id: diagram(one, _rows(weights[one.id])) for one in told},
        levels=sorted({one.level for one in told} | {line.level for line in summary.requirements}),
        link=link,
        known_words=known_words,
        headings=_HEADINGS,
        signs=SIGNS,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def link(text: str) -> str:
    """The text when a reader may follow it, else nothing: a page must not run what it shows."""
    return text if text.startswith(("https://", "http://")) else ""


def _rows(weighed: Weight) -> int:
    return _ROWS_OF_A_PASS if weighed is Weight.PASSED else _ROWS


def _hash(text: str) -> str:
    """A source of a Content-Security-Policy that allows exactly this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
