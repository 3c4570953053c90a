"""Reports of peers are input of strangers: one that no judge could read never reaches a judge."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Judgement
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.evidence.reports import MALFORMED
from kvcs_conformance.judge import JUDGES, Outcome, assess
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import evidence, report

ACCEPTED = {
    "event": "object-accepted",
    "publication": "44" * 16,
    "track": "k.raw.s0",
    "segment": 0,
    "layer": 0,
    "block": 1,
}


def test_a_right_report_is_kept_and_used() -> None:
    """Octets come as hex, members that nobody knows are kept, and there is no other record."""
    recorder = Recorder("consumer", lambda: 0.0)
    assert recorder.report({**ACCEPTED, "publication": b"\x44" * 16, "more": 1})
    assert recorder.reports == [{**ACCEPTED, "more": 1}]
    assert recorder.records == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"track": None}, "track: None is not of type 'string'"),
        ({"layer": "0"}, "layer: '0' is not of type 'integer'"),
        ({"block": -1}, "block: -1 is less than the minimum of 0"),
        ({"event": "done", "outcome": "fine"}, "outcome: 'fine' is not one of"),
        ({"event": 5}, "event: 5 is not of type 'string'"),
    ],
)
def test_a_malformed_report_is_evidence_and_not_used(change: dict[str, Any], why: str) -> None:
    """It is kept as it came, beside a record that tells what is wrong with it."""
    recorder = Recorder("consumer", lambda: 0.0)
    sent = {**ACCEPTED, **change}
    assert not recorder.report(sent)
    assert recorder.reports == [sent]
    (record,) = recorder.records
    assert record.name == MALFORMED
    assert record.data["report"] == sent
    assert record.data["why"].startswith(why)


def test_a_report_without_a_member_is_malformed() -> None:
    """What an event must have is looked at by its name."""
    recorder = Recorder("consumer", lambda: 0.0)
    assert not recorder.report({"event": "object-accepted"})
    assert not recorder.report({})
    assert recorder.report({"event": "something-of-its-own"})


def test_a_report_may_be_about_no_publication() -> None:
    """Who reused nothing says so with null; an Object always is of a publication."""
    recorder = Recorder("consumer", lambda: 0.0)
    assert recorder.report({"event": "reused-tokens", "tokens": 0, "publication": None})
    assert not recorder.report({**ACCEPTED, "publication": None})


def test_a_malformed_report_leaves_the_case_open() -> None:
    """What was not reported then proves nothing: the case is inconclusive and says why."""
    trouble = {"kind": "report", "text": "consumer sent a malformed report: layer: no"}
    case = evidence("consumer", {"consumer": []}, trouble=trouble)
    word = Judgement("object-used", {"track": "k.raw.s0", "layer": 0, "block": 0}, ("KVCS-4-22",))
    found = assess(case, [word], ["KVCS-4-22"], catalogues.load())
    assert (found.verdict.value, found.reason) == ("inconclusive", Reason.REPORT)
    assert found.findings[0].text == trouble["text"]


@pytest.mark.parametrize("word", ["object-used", "object-not-used", "object-implausible"])
def test_words_about_one_object_need_no_member(word: str) -> None:
    """Evidence with reports that lack what names an Object leaves these words an answer."""
    names = ("object-accepted", "object-discarded", "layer-usable")
    case = evidence("consumer", {"consumer": [report(name) for name in names]})
    told = JUDGES[word].function(case, {"track": "k.raw.s0", "layer": 0, "block": 0})
    assert [finding.outcome for finding in told] == [Outcome.UNSEEN]
