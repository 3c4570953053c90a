"""What a run says as a whole, and how requirements stand in it."""

from __future__ import annotations

import pytest
from kvcs_conformance.report.summary import Standing, Weight, summarize, weight

from tests.harness.reports import CATALOGUE, case, result


def test_conformant_when_every_binding_case_passes() -> None:
    """Advice does not stand against it, and is told."""
    made = result([case("relay/a/b"), case("relay/a/c", "advise", level="SHOULD")])
    summary = summarize(made, CATALOGUE)
    assert summary.standing is Standing.CONFORMANT
    assert summary.sentence == (
        "Conformant: 1 case of a MUST or MUST NOT, all upheld; 1 SHOULD is not followed."
    )


@pytest.mark.parametrize("verdict", ["inconclusive", "blocked", "not-run", "harness-error"])
def test_an_open_binding_case_is_not_conformance(verdict: str) -> None:
    """Silence is no pass."""
    summary = summarize(result([case("relay/a/b"), case("relay/a/c", verdict)]), CATALOGUE)
    assert summary.standing is Standing.NOT_SHOWN
    assert f"1 {verdict}" in summary.sentence


def test_an_open_case_of_a_should_does_not_stand_against_it() -> None:
    """Only what binds counts."""
    made = result([case("relay/a/b"), case("relay/a/c", "inconclusive", level="SHOULD")])
    assert summarize(made, CATALOGUE).standing is Standing.CONFORMANT


def test_a_known_failure_is_still_a_failure() -> None:
    """The overlay colours a build, it never makes a peer conformant."""
    known = {"kind": "failure", "state": "known", "link": "x", "expires": "2030-01-01"}
    failed = case("relay/a/b", "fail", known=known)
    assert weight(failed) is Weight.SKIPPED
    summary = summarize(result([failed]), CATALOGUE)
    assert summary.standing is Standing.NOT_CONFORMANT
    assert "1 of them known" in summary.sentence


def test_nothing_run_shows_nothing() -> None:
    """No case is no conformance."""
    assert summarize(result([]), CATALOGUE).standing is Standing.NOT_SHOWN


def test_a_requirement_fails_only_where_a_finding_contradicts_it() -> None:
    """A case that fails for one of its requirements upholds another and leaves a third open."""
    entry = case("consumer/a/b", "fail", requires=["KVCS-4-22", "KVCS-4-23", "KVCS-7.4-1"])
    entry["findings"] += [{"outcome": "upheld", "text": "yes", "requires": ["KVCS-4-23"]}]
    lines = {line.id: line for line in summarize(result([entry]), CATALOGUE).requirements}
    assert lines["KVCS-4-22"].verdict == "fail"
    assert lines["KVCS-4-23"].verdict == "pass"
    assert lines["KVCS-7.4-1"].verdict == "inconclusive"


def test_a_requirement_stands_as_in_its_gravest_case() -> None:
    """One pass does not outweigh a failure elsewhere; both cases are named."""
    made = result([case("consumer/a/b"), case("consumer/a/c", "fail")])
    lines = {line.id: line for line in summarize(made, CATALOGUE).requirements}
    assert lines["KVCS-4-22"].verdict == "fail"
    assert lines["KVCS-4-22"].cases == (("consumer/a/b", "pass"), ("consumer/a/c", "fail"))


def test_requirements_without_a_case_are_not_hidden() -> None:
    """Those of the roles that were tested are listed, those of other roles are not."""
    summary = summarize(result([case("relay/a/b")]), CATALOGUE)
    uncited = {line.id for line in summary.requirements if not line.cases}
    assert uncited == {
        entry.id
        for entry in CATALOGUE.requirements.values()
        if "relay" in entry.roles and entry.id != "KVCS-4-22"
    }
    assert summary.cited == 1
