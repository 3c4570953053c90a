"""The reports of a run, by the names of their formats; each is a function of the run's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.evidence.files import REPORT_FILES, write_atomically
from kvcs_conformance.report.explanation import Explanation, explain_case
from kvcs_conformance.report.plain import plain_values
from kvcs_conformance.report.summary import Summary, summarize


@dataclass(frozen=True, slots=True)
class Material:
    """What every report is made from; its text is plain."""

    result: Mapping[str, Any]
    summary: Summary
    explained: Sequence[Explanation]


def _html(material: Material) -> str:
    from kvcs_conformance.report.html import page

    return page(material.result, material.summary, material.explained)


def _junit(material: Material) -> str:
    from kvcs_conformance.report.junit import junit

    return junit(material.result, material.explained)


def _tap(material: Material) -> str:
    from kvcs_conformance.report.tap import tap

    return tap(material.result, material.explained)


def _markdown(material: Material) -> str:
    from kvcs_conformance.report.markdown import markdown

    return markdown(material.result, material.summary, material.explained)


FORMATS: dict[str, Callable[[Material], str]] = {
    "html": _html,
    "junit": _junit,
    "tap": _tap,
    "markdown": _markdown,
}
"""What makes the text of each format; `REPORT_FILES` names its file."""


def material(
    folder: Path, result: Mapping[str, Any], catalogue: Catalogue | None = None
) -> Material:
    """Read the evidence of a run and explain each of its cases, in the order of the result."""
    known = catalogue or catalogues.load()
    explained = [explain_case(folder, result, case, known) for case in result["cases"]]
    return Material(plain_values(dict(result)), summarize(result, known), explained)


def text(folder: Path, result: Mapping[str, Any], name: str) -> str:
    """One report as text."""
    return FORMATS[name](material(folder, result))


def write(
    folder: Path,
    result: Mapping[str, Any],
    formats: Iterable[str] = tuple(FORMATS),
    into: Path | None = None,
) -> list[Path]:
    """Write reports beside the result, or into another folder; the files that were written."""
    made = material(folder, result)
    paths = []
    for name in formats:
        path = (into or folder) / REPORT_FILES[name]
        write_atomically(path, FORMATS[name](made))
        paths.append(path)
    return paths
