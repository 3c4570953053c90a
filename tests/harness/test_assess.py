"""From findings to a verdict, an exit code, and the reasons for it."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Judgement
from kvcs_conformance.judge import assess
from kvcs_conformance.judge.findings import Finding, Outcome
from kvcs_conformance.verdicts import REASONS, ExitCode, Reason, Verdict, exit_code

from tests.harness.evidence import (
    Event,
    answered,
    asked,
    evidence,
    message,
    obj,
    report,
    whole_track,
)

LAYERS = Judgement("layers-in-order", {}, ("KVCS-3.3-2",))
PRIORITY = Judgement("priority-by-layer", {}, ("KVCS-3.4-5",))
MARKS = Judgement("groups-ended", {}, ("KVCS-3.3-7",))


@pytest.fixture(scope="module")
def catalogue() -> catalogues.Catalogue:
    return catalogues.load()


def verdict(
    catalogue: catalogues.Catalogue, events: list[Event], *judgements: Judgement, **facts: Any
) -> tuple[str, Reason | None, str]:
    requires = [name for judgement in judgements for name in judgement.requires]
    case = evidence("publisher", {"consumer": events}, **facts)
    assessment = assess(case, judgements, requires, catalogue)
    return assessment.verdict.value, assessment.reason, assessment.blame


SWAPPED = [*whole_track()[1:], whole_track()[0]]
FLAT = whole_track(priority=9)


def test_positive_evidence_for_every_clause_is_a_pass(catalogue: catalogues.Catalogue) -> None:
    """All clauses upheld: pass, nobody at fault."""
    assert verdict(catalogue, whole_track(), LAYERS, MARKS) == ("pass", None, "")


def test_a_contradicted_must_fails_and_names_the_side(catalogue: catalogues.Catalogue) -> None:
    """Evidence against a MUST or a STATED clause is a fail of the peer under test."""
    fail = ("fail", Reason.ORDER_LAYERS, "publisher")
    assert verdict(catalogue, SWAPPED, LAYERS) == fail
    unmarked = [event for event in whole_track() if event[1]["status"] != "END_OF_GROUP"]
    assert verdict(catalogue, unmarked, MARKS) == ("fail", Reason.MARK_GROUP, "publisher")


def test_a_contradicted_should_is_advice(catalogue: catalogues.Catalogue) -> None:
    """Evidence against a SHOULD advises; a MUST beside it weighs more."""
    assert verdict(catalogue, FLAT, PRIORITY) == ("advise", Reason.PRIORITY, "publisher")
    both = [*FLAT[1:], FLAT[0]]
    assert verdict(catalogue, both, PRIORITY, LAYERS)[:2] == ("fail", Reason.ORDER_LAYERS)


def test_silence_is_neither_pass_nor_fail(catalogue: catalogues.Catalogue) -> None:
    """No evidence, or a wait in vain, is inconclusive and charged to nobody."""
    open_ = ("inconclusive", Reason.NO_EVIDENCE, "")
    assert verdict(catalogue, [], LAYERS) == open_
    late = [{"step": 3, "outcome": "timeout", "waited": "5 s for end-of-track"}]
    timeout = ("inconclusive", Reason.NO_EVENT, "")
    assert verdict(catalogue, whole_track(), LAYERS, steps=late) == timeout
    assert verdict(catalogue, SWAPPED, LAYERS, steps=late)[0] == "fail"


def test_a_word_that_finds_nothing_leaves_its_clause_open(catalogue: catalogues.Catalogue) -> None:
    """A judge word without any finding is no pass, though another one upholds the same clause."""
    idle = Judgement("groups-descend", {"of": "nobody"}, LAYERS.requires)
    open_ = ("inconclusive", Reason.NO_EVIDENCE, "")
    assert open_ == verdict(catalogue, whole_track(), LAYERS, idle)


def test_trouble_decides_before_silence(catalogue: catalogues.Catalogue) -> None:
    """A fault of the harness or a wrong draft voids all; a failed set-up blocks, unless what was
    seen before it is a failure already."""

    def with_trouble(kind: str, events: list[Event]) -> tuple[str, Reason | None, str]:
        return verdict(catalogue, events, LAYERS, trouble={"kind": kind, "text": "x"})

    assert with_trouble("harness", SWAPPED) == ("harness-error", Reason.HARNESS, "harness")
    assert with_trouble("version", SWAPPED) == ("inconclusive", Reason.VERSION, "")
    assert with_trouble("setup", []) == ("blocked", Reason.SETUP_FAILED, "")
    assert with_trouble("setup", SWAPPED)[0] == "fail"


def test_a_judge_that_stumbles_is_our_fault(catalogue: catalogues.Catalogue) -> None:
    """Evidence that a judge cannot read is a harness error, never a fault of the peer."""
    broken = [("moqt:object_received", {})]
    assert verdict(catalogue, broken, LAYERS) == ("harness-error", Reason.HARNESS, "harness")


def test_a_departure_is_a_pass_that_is_not_strict(catalogue: catalogues.Catalogue) -> None:
    """A legal outcome that is not the preferred one passes, not strictly."""
    events = [asked("x"), answered("RequestError", code=0x10), report("fence", label="f")]
    refused = Judgement("refused", {"of": "x"}, ("KVCS-10-8",))
    assert verdict(catalogue, events, refused) == ("pass-nonstrict", Reason.REQUEST_CODE, "")


def test_a_clause_that_no_finding_speaks_of_is_open(catalogue: catalogues.Catalogue) -> None:
    """A requirement of the case without any finding keeps it from passing."""
    case = evidence("publisher", {"consumer": whole_track()})
    assessment = assess(case, [LAYERS], ["KVCS-3.3-2", "KVCS-3.3-7"], catalogue)
    assert assessment.verdict is Verdict.INCONCLUSIVE
    assert assessment.decisive is not None
    assert "KVCS-3.3-7" in assessment.decisive.text


def test_judging_twice_gives_the_same(catalogue: catalogues.Catalogue) -> None:
    """The judge keeps nothing between two calls."""
    events = [message("PublishNamespace", namespace=["00"]), *SWAPPED, obj(9, 9)]
    case = evidence("publisher", {"consumer": events})
    judgements = [LAYERS, MARKS, PRIORITY, Judgement("announced-fully", {}, ("KVCS-6-1",))]
    first = assess(case, judgements, [], catalogue)
    assert assess(case, judgements, [], catalogue) == first


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["pass", "pass-nonstrict", "advise", "not-applicable"], ExitCode.PASS),
        (["pass", "inconclusive"], ExitCode.INCOMPLETE),
        (["blocked"], ExitCode.INCOMPLETE),
        (["not-run"], ExitCode.INCOMPLETE),
        (["inconclusive", "harness-error"], ExitCode.ERROR),
        (["pass", "fail", "inconclusive", "harness-error"], ExitCode.FAIL),
        ([], ExitCode.PASS),
    ],
)
def test_exit_codes(verdicts: list[str], code: ExitCode) -> None:
    """0 pass, 1 fail, 2 harness error, 3 incomplete; what is proven weighs most."""
    assert exit_code(map(Verdict, verdicts)) is code


def test_every_reason_has_a_meaning() -> None:
    """The list of reason codes is closed, and each code is explained."""
    assert set(REASONS) == set(Reason)


@pytest.mark.parametrize(
    ("own", "judged", "spoken"),
    [
        ((), ("KVCS-8-2", "KVCS-8-3"), ("KVCS-8-2", "KVCS-8-3")),
        (("KVCS-8-3",), ("KVCS-8-2", "KVCS-8-3"), ("KVCS-8-3",)),
        (("KVCS-8-3", "KVCS-4-1"), ("KVCS-8-2", "KVCS-8-3"), ("KVCS-8-3",)),
        (("KVCS-4-1",), ("KVCS-8-2", "KVCS-8-3"), ("KVCS-4-1",)),
    ],
)
def test_what_a_finding_speaks_of(
    own: tuple[str, ...], judged: tuple[str, ...], spoken: tuple[str, ...]
) -> None:
    """A finding that names its own clauses charges no other, whatever its judgement is about."""
    finding = Finding(Outcome.CONTRADICTED, "it is wrong", requires=own)
    assert finding.speaking_of(judged).requires == spoken
