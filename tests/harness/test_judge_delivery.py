"""Judge words for requests and deliveries, on hand-made evidence."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import (
    NAMESPACE,
    OTHER,
    Event,
    answered,
    asked,
    evidence,
    message,
    obj,
    payload,
    report,
)

UPHELD = {(Outcome.UPHELD, None)}
UNSEEN = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
REFUSED = answered("RequestError", code=1, reason="no")
END = report("delivered", request=0, complete=True)


def found(
    word: str, events: list[Event], *, more: dict[str, list[Event]] | None = None, **arguments: Any
) -> set[tuple[Outcome, Reason | None]]:
    """The outcomes and reasons of a judge word over the logs of a relay case."""
    case = evidence(
        "relay", {"consumer": events, **(more or {})}, publishers=("publisher", "second")
    )
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)}


def against(reason: Reason) -> set[tuple[Outcome, Reason | None]]:
    return {(Outcome.CONTRADICTED, reason)}


def four(**more: Any) -> list[Event]:
    """All Objects of two layers of two blocks."""
    return [obj(group, block, **more) for group in (0, 1) for block in (0, 1)]


def test_each_object_once() -> None:
    """Every Object once upholds; twice, outside, or missing at the end contradicts; missing
    without an end is open (KVCS-7.2-3)."""
    ask = [asked("all", "SUBSCRIBE")]
    assert found("each-object-once", [*ask, *four(), END], of="all") == UPHELD
    by_fill = [obj(0, 0, via="fill"), *four()[1:]]
    assert found("each-object-once", [*ask, *by_fill, END], of="all") == UPHELD
    twice = [*ask, obj(0, 0, via="fill"), *four(), END]
    assert found("each-object-once", twice, of="all") == against(Reason.OBJECT_DUPLICATE)
    stray = [*ask, *four(), obj(7, 0), END]
    assert found("each-object-once", stray, of="all") == against(Reason.OBJECT_UNEXPECTED)
    short = [*ask, *four()[:3]]
    assert found("each-object-once", [*short, END], of="all") == against(Reason.OBJECT_MISSING)
    assert found("each-object-once", short, of="all") == UNSEEN
    cut = report("delivered", request=0, complete=False)
    assert found("each-object-once", [*short, cut], of="all") == UNSEEN
    assert found("each-object-once", four(), of="all") == UNSEEN


def test_each_object_once_within_layers() -> None:
    """With `layers` only those Groups are wanted, and others are unexpected."""
    ask = [asked("one")]
    assert found("each-object-once", [*ask, *four()[:2], END], of="one", layers=[0, 0]) == UPHELD
    assert found("each-object-once", [*ask, *four(), END], of="one", layers=[0, 0]) == against(
        Reason.OBJECT_UNEXPECTED
    )


def test_other_requests_do_not_count() -> None:
    """What came for another request of the node is not taken for this one."""
    events = [asked("one", request=0), asked("two", request=2), *four(request=2), END]
    assert found("each-object-once", events, of="one") == against(Reason.OBJECT_MISSING)


def test_came_both_ways() -> None:
    """A join that was not half-way is open, never contradicted."""
    ask = asked("late", "SUBSCRIBE")
    both = [ask, obj(0, 0, via="fill"), obj(0, 1)]
    assert found("came-both-ways", both, of="late") == UPHELD
    assert found("came-both-ways", [ask, obj(0, 0)], of="late") == UNSEEN


def test_same_octets() -> None:
    """One Location with two contents contradicts, whoever saw them; what the relay under test
    says it sent does not count (KVCS-3.4-4, KVCS-8-3)."""
    twice = [*four(), *four()]
    assert found("same-octets", twice) == UPHELD
    assert found("same-octets", four()) == UNSEEN
    other = [*four(), obj(0, 0, octets=payload(0, 0, data=b"tada")), *four()[1:]]
    assert found("same-octets", other) == against(Reason.OBJECT_CHANGED)
    priority = [*four(), obj(0, 0, priority=5), *four()[1:]]
    assert found("same-octets", priority) == against(Reason.OBJECT_CHANGED)
    sent = {"publisher": four(sent=True)}
    assert found("same-octets", four(), more=sent) == UPHELD
    wrong = {"publisher": [obj(0, 0, sent=True, octets=payload(0, 0, data=b"tada"))]}
    assert found("same-octets", four(), more=wrong) == against(Reason.OBJECT_CHANGED)
    own = {"relay": [obj(0, 0, octets=payload(0, 0, data=b"tada"))]}
    assert found("same-octets", twice, more=own) == UPHELD


def test_same_octets_of_two_steps() -> None:
    """With `among` only what those steps got is compared; a datagram beside an Object of a Subgroup
    denies the Delivery Mode, another difference that nothing changes (R003, R004)."""
    asks = [asked(name, request=i) for i, name in enumerate("abc")]
    other = payload(0, 0, data=b"tada")
    seen = [*asks, obj(0, 0), obj(0, 0, request=1), obj(0, 0, request=2, octets=other)]
    assert found("same-octets", seen, among=["a", "b"]) == UPHELD
    content = ("KVCS-3.4-4", "KVCS-6-7", "KVCS-8-3", "MOQT-R003", "MOQT-R078")
    mode = obj(0, 0, subgroup=None)
    for changed, clauses in ((seen[-1], content), (mode, ("MOQT-R004",))):
        changed[1]["request"] = 2
        case = evidence("relay", {"consumer": [*seen[:-1], changed]})
        (finding,) = JUDGES["same-octets"].function(case, {"among": ["b", "c"]})
        assert clauses == finding.requires


def test_groups_ascend() -> None:
    """Locations on a fetch ascend (KVCS-7.3-3)."""
    ask = asked("all")
    assert found("groups-ascend", [ask, *four()], of="all") == UPHELD
    assert found("groups-ascend", [ask, *four()[::-1]], of="all") == against(Reason.ORDER_LAYERS)
    assert found("groups-ascend", [ask], of="all") == UNSEEN


def test_refused() -> None:
    """UNAUTHORIZED and nothing else upholds, another code departs, an OK, an Object or a NAMESPACE
    contradicts; no answer, or no fence behind it, is open (KVCS-8-4, KVCS-10-8)."""
    ask, fence = asked("x", "SUBSCRIBE_NAMESPACE", ""), report("fence", label="fence-1")
    assert found("refused", [ask, REFUSED, fence], of="x") == UPHELD
    assert found("refused", [ask, REFUSED], of="x") == UNSEEN
    assert found("refused", [fence, ask, REFUSED], of="x") == UNSEEN
    other = answered("RequestError", code=0x10)
    departs = {(Outcome.DEPARTS, Reason.REQUEST_CODE)}
    assert found("refused", [ask, other, fence], of="x") == departs
    leaked = against(Reason.AUTH_LEAKED)
    assert found("refused", [ask, answered("RequestOk")], of="x") == leaked
    assert found("refused", [ask, REFUSED, obj(0, 0)], of="x") == leaked
    name = report("namespace", request=0, namespace=NAMESPACE)
    assert found("refused", [ask, name, REFUSED], of="x") == leaked
    assert found("refused", [ask, fence], of="x") == UNSEEN
    assert found("refused", [REFUSED, fence], of="x") == UNSEEN


def test_accepted() -> None:
    """An OK upholds, an error contradicts, no answer is open."""
    ask = asked("x")
    assert found("accepted", [ask, answered("FetchOk")], of="x") == UPHELD
    assert found("accepted", [ask, REFUSED], of="x") == against(Reason.REQUEST_REFUSED)
    assert found("accepted", [ask], of="x") == UNSEEN
    assert found("accepted", [answered("FetchOk")], of="x") == UNSEEN


def test_namespaces_shown() -> None:
    """Only matching publications may be shown; absence counts behind a fence or a refusal
    (KVCS-3.1-7, KVCS-7.1-2)."""
    ask = asked("x", "SUBSCRIBE_NAMESPACE", "")
    name = report("namespace", request=0, namespace=NAMESPACE)
    other = report("namespace", request=0, namespace=OTHER)
    fence = report("fence", label="fence-1")
    word = "namespaces-shown"
    assert found(word, [ask, name], of="x", publishers=["publisher"]) == UPHELD
    assert found(word, [ask, name, other], of="x", publishers=["publisher"]) == against(
        Reason.NAMESPACE_LEAKED
    )
    assert found(word, [ask], of="x", publishers=["publisher"]) == UNSEEN
    assert found(word, [ask, fence], of="x", publishers=["publisher"]) == against(
        Reason.NAMESPACE_ABSENT
    )
    assert found(word, [ask], of="x", publishers=[]) == UNSEEN
    assert found(word, [fence, ask], of="x", publishers=[]) == UNSEEN
    assert found(word, [ask, fence], of="x", publishers=[]) == UPHELD
    assert found(word, [ask, REFUSED], of="x", publishers=[]) == UPHELD
    assert found(word, [ask, name, fence], of="x", publishers=[]) == against(
        Reason.NAMESPACE_LEAKED
    )


def upstream(*times: int) -> dict[str, list[Event]]:
    """A publisher that sends (0, 0) at these milliseconds."""
    events: list[Event] = [("moqt:fin_sent", {})] * (max(times) + 1)
    for time in times:
        events[time] = obj(0, 0, sent=True)
    return {"publisher": events}


def test_no_second_transfer() -> None:
    """What was sent before and is sent again between request and end contradicts; before, behind,
    or an Object that is new does not (KVCS-8-2)."""
    events = [("moqt:fin_sent", {}), asked("warm"), *four(), END]
    word = "no-second-transfer"
    assert found(word, events, of="warm", more=upstream(0)) == UPHELD
    assert found(word, events, of="warm", more=upstream(0, 3)) == against(Reason.UPSTREAM_REPEATED)
    assert found(word, events, of="warm", more=upstream(0, 9)) == UPHELD
    assert found(word, events, of="warm", more=upstream(3)) == UNSEEN
    assert found(word, events[:-1], of="warm", more=upstream(0)) == UNSEEN


def test_one_subscription_upstream() -> None:
    """One SUBSCRIBE upholds, two contradict, none is open (KVCS-8-2)."""
    word = "one-subscription-upstream"
    ask = message("Subscribe", track={"name": "k.raw.s0"})
    other = message("Subscribe", track={"name": "v.raw.s0"})
    one = {"publisher": [ask, other]}
    assert found(word, [], track="k.raw.s0", more=one) == UPHELD
    two = {"publisher": [ask, ask]}
    assert found(word, [], track="k.raw.s0", more=two) == against(Reason.UPSTREAM_REPEATED)
    assert found(word, [], track="k.raw.s0", more={"publisher": [other]}) == UNSEEN
