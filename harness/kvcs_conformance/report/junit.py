"""JUnit XML: one suite per role, one test per case.

`advise` and `pass-nonstrict` pass with a note, because only a contradicted MUST makes a build red;
what was left open is an error, because a build that shows nothing must not be green.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from junitparser import (
    Error,
    Failure,
    JUnitXml,
    Properties,
    Property,
    Skipped,
    TestCase,
    TestSuite,
)

from kvcs_conformance.report.explain import as_text, known_words
from kvcs_conformance.report.explanation import Explanation
from kvcs_conformance.report.summary import ROLES, Weight, weight

_RESULTS = {Weight.SKIPPED: Skipped, Weight.FAILED: Failure, Weight.OPEN: Error}


def junit(result: Mapping[str, Any], told: Sequence[Explanation]) -> str:
    """The run as JUnit XML."""
    xml = JUnitXml("kvcs")
    weights = {case["id"]: weight(case) for case in result["cases"]}
    for role in ROLES:
        cases = [one for one in told if one.role == role]
        if cases:
            suite = TestSuite(role)
            for name, value in _run_properties(result, role):
                suite.add_property(name, value)
            suite.add_testcases([_case(one, weights[one.id], result) for one in cases])
            xml.append(suite)
    xml.update_statistics()
    octets: bytes = xml.tostring()
    return f'<?xml version="1.0" encoding="utf-8"?>\n{octets.decode()}\n'


def _run_properties(result: Mapping[str, Any], role: str) -> Iterator[tuple[str, str]]:
    yield "peer", str(result["peers"].get(role, ""))
    yield "link", result["link"]
    yield "seed", str(result["seed"])
    yield "kvcs", result["catalogue"]["kvcs"]
    yield "moqt", result["catalogue"]["moqt"]
    yield "catalogue-sha256", result["catalogue"]["sha256"]


def _case(told: Explanation, weighed: Weight, result: Mapping[str, Any]) -> TestCase:
    case = TestCase(told.id, told.role, told.duration)
    properties = Properties()
    for name, value in _properties(told, result):
        properties.add_property(Property(name, value))
    case.append(properties)
    if weighed in _RESULTS:
        entry = _RESULTS[weighed](_message(told), told.verdict)
        entry.text = as_text(told, Path())
        case.append(entry)
    elif weighed is Weight.NOTED:
        case.system_out = as_text(told, Path())
    return case


def _message(told: Explanation) -> str:
    parts = [known_words(told.known)] if told.known else []
    parts += [told.reason or told.verdict, told.found or told.why]
    return ": ".join(part for part in parts if part)


def _properties(told: Explanation, result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for requirement in told.requires:
        yield "requirement", requirement
    yield "level", told.level
    yield "verdict", told.verdict
    if told.reason:
        yield "reason", told.reason
    yield "draft", told.draft
    yield "link", result["link"]
    yield "seed", str(told.seed)
    yield "evidence", told.evidence
