"""Judge words for stopped publications and for FETCHes, on hand-made evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import (
    NAMESPACE,
    OTHER,
    SCENARIO,
    Event,
    answered,
    asked,
    evidence,
    message,
    obj,
    whole_track,
)
from tests.harness.test_judge_identity import FENCE


def announcement(namespace: list[str], stream: int) -> Event:
    name, data = message("PublishNamespace", namespace=namespace)
    return name, {**data, "stream": stream}


def done(code: int, request: int = 0, label: str = "old") -> Event:
    values = {"label": label, "track": "k.raw.s0", "request": request, "code": code}
    return ("kvcs:track-ended", {**values, "complete": code == 2})


FIRST, SECOND = announcement(NAMESPACE, 0), announcement(OTHER, 4)
WITHDRAWN: Event = ("moqt:reset_received", {"stream": 0, "code": 1})


def findings(
    word: str, seen: Iterable[Event], **arguments: Any
) -> list[tuple[Outcome, Reason | None]]:
    scenario = {**SCENARIO, "components": ["k"]}
    case = evidence("publisher", {"consumer": list(seen)}, scenario=scenario)
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return [(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)]


def outcomes(word: str, seen: Iterable[Event], **more: Any) -> set[Outcome]:
    return {outcome for outcome, _ in findings(word, seen, **more)}


def test_publication_stopped() -> None:
    """Withdrawn, ended with an error, and another one announced: upheld (KVCS-3.4-4)."""
    seen = [FIRST, WITHDRAWN, done(0x0), SECOND, FENCE]
    assert {Outcome.UPHELD} == outcomes("publication-stopped", seen, of="old")
    assert {Outcome.UNSEEN} == outcomes("publication-stopped", seen[:-1], of="old")


def test_publication_stopped_contradicted() -> None:
    """Still announced, still subscribed, ended as whole, or with End of Track: each contradicts
    (KVCS-3.4-4)."""
    end = obj(2, 0, status="END_OF_TRACK")
    for seen in (
        [FIRST, done(0x0), SECOND, FENCE],
        [FIRST, WITHDRAWN, SECOND, FENCE],
        [FIRST, WITHDRAWN, done(0x2), SECOND, FENCE],
        [FIRST, WITHDRAWN, end, done(0x0), SECOND, FENCE],
    ):
        found = findings("publication-stopped", seen, of="old")
        assert (Outcome.CONTRADICTED, Reason.NOT_STOPPED) in found


def test_publication_stopped_not_replaced() -> None:
    """Without another publication it stays open what took its place (KVCS-3.4-4)."""
    seen = [FIRST, WITHDRAWN, done(0x0), FENCE]
    assert Outcome.UNSEEN in outcomes("publication-stopped", seen, of="old")


def delivery(*objects: Event, end: bool = True) -> list[Event]:
    """A FETCH with these Objects, and its end."""
    ended = ("kvcs:delivered", {"request": 0, "complete": True, "code": None})
    return [asked("all"), *objects, *([ended] if end else [])]


def fetched() -> list[Event]:
    return [event for event in whole_track(via="fetch") if event[1]["status"] == "NORMAL"]


def test_fetch_in_order() -> None:
    """Ascending layers with all their blocks uphold; another order contradicts, and a hole does;
    a part, or no end, leaves it open (KVCS-7.3-3)."""
    right = fetched()
    one = {"of": "all", "layers": [0, 1]}
    assert {Outcome.UPHELD} == outcomes("fetch-in-order", delivery(*right), **one)
    for wrong in ([*right[2:], *right[:2]], [right[0], *right[2:]], [right[1], right[0]]):
        expected = [(Outcome.CONTRADICTED, Reason.ORDER_LAYERS)]
        assert expected == findings("fetch-in-order", delivery(*wrong), **one)
    assert {Outcome.UNSEEN} == outcomes("fetch-in-order", delivery(*right[:2]), **one)
    assert {Outcome.UNSEEN} == outcomes("fetch-in-order", delivery(*right, end=False), **one)


def ended(request: int) -> Event:
    return ("kvcs:delivered", {"request": request, "complete": True, "code": None})


REQUESTS = [asked("all", request=i) for i in range(3)]
REFUSED = answered("RequestError", 2, code=0x9)
LIMIT = {"of": "all", "limit": 2}


def test_fetches_limited() -> None:
    """Two at once and a third that is refused or comes later uphold (KVCS-10-11)."""
    both = [answered("FetchOk", 0), answered("FetchOk", 1)]
    refusing = [*REQUESTS, *both, REFUSED, ended(0), ended(1)]
    assert {Outcome.UPHELD} == outcomes("fetches-limited", refusing, **LIMIT)
    waiting = [*REQUESTS, *both, ended(0), answered("FetchOk", 2), ended(1), ended(2)]
    assert {Outcome.UPHELD} == outcomes("fetches-limited", waiting, **LIMIT)


def test_fetches_limited_contradicted() -> None:
    """Three at once contradict; so does one without an answer, behind a fence (KVCS-10-11)."""
    three = [*REQUESTS, *(answered("FetchOk", i) for i in range(3)), *map(ended, range(3))]
    expected = [(Outcome.CONTRADICTED, Reason.LIMIT_EXCEEDED)]
    assert expected == findings("fetches-limited", three, **LIMIT)
    hanging = [*REQUESTS, *(answered("FetchOk", i) for i in range(2)), ended(0), ended(1)]
    assert {Outcome.UNSEEN} == outcomes("fetches-limited", hanging, **LIMIT)
    expected = [(Outcome.CONTRADICTED, Reason.ANSWER_NUMBER)]
    assert expected == findings("fetches-limited", [*hanging, FENCE], **LIMIT)


def test_fetches_limited_other_code() -> None:
    """A refusal with another code departs from what is preferred (KVCS-10-11)."""
    refused = answered("RequestError", 2, code=0x0)
    seen = [*REQUESTS, answered("FetchOk", 0), answered("FetchOk", 1), refused, ended(0), ended(1)]
    assert {Outcome.DEPARTS, Outcome.UPHELD} == outcomes("fetches-limited", seen, **LIMIT)
    assert {Outcome.UNSEEN} == outcomes("fetches-limited", [], **LIMIT)
