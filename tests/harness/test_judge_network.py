"""Judge words about the network: upheld, contradicted, and what the evidence does not reach."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding
from kvcs_conformance.judge.registry import JUDGES
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import SCENARIO, Event, asked, evidence, message, obj, whole_track

STREAM = {"from": "publisher", "to": "relay", "stream": 3, "track": "k.raw.s0", "layer": 1}


def judged(word: str, seen: Evidence, **arguments: Any) -> list[Finding]:
    return list(JUDGES[word].function(seen, arguments))


def outcomes(findings: list[Finding]) -> list[str]:
    return [finding.outcome.value for finding in findings]


def at(seen: Evidence, node: str, *times: float) -> Evidence:
    """The same evidence with other times for the records of one node."""
    records = tuple(
        Record(r.node, r.index, time, r.name, r.data)
        for r, time in zip(seen.logs[node], times, strict=True)
    )
    return Evidence(seen.facts, {**seen.logs, node: records})


def network(*events: tuple[str, dict[str, Any]], **logs: list[Event]) -> Evidence:
    return evidence("relay", {"network": [(f"network:{n}", d) for n, d in events], **logs})


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ({"fault": "held"}, "upheld"),
        ({"fault": "held", "track": "k.raw.s0", "layer": 1, "to": "relay"}, "upheld"),
        ({"fault": "held", "layer": 2}, "unseen"),
        ({"fault": "held", "from": "relay"}, "unseen"),
        ({"fault": "held", "times": 2}, "unseen"),
        ({"fault": "lost"}, "unseen"),
        ({"fault": "healed", "between": ["b", "a"]}, "upheld"),
        ({"fault": "healed", "between": ["a", "c"]}, "unseen"),
    ],
)
def test_a_fault_counts_when_the_network_tells_of_it(
    arguments: dict[str, Any], outcome: str
) -> None:
    """By its kind, its details and how often; a fault that did not happen is never a failure."""
    seen = network(("held", STREAM), ("healed", {"between": ["a", "b"]}))
    assert outcomes(judged("network-fault-happened", seen, **arguments)) == [outcome]


@pytest.mark.parametrize(
    ("done", "outcome"), [(0.001, "unseen"), (0.003, "upheld"), (0.009, "unseen")]
)
def test_what_passed_a_held_stream_was_sent_while_it_was_held(done: float, outcome: str) -> None:
    """PUBLISH_DONE before the hold, between hold and release, and behind the release."""
    seen = at(
        at(
            network(
                ("held", STREAM),
                ("released", STREAM),
                publisher=[message("PublishDone", sent=True)],
            ),
            "network",
            0.002,
            0.005,
        ),
        "publisher",
        done,
    )
    words = {"fault": "held", "passed": "PublishDone"}
    assert outcomes(judged("network-fault-happened", seen, **words)) == [outcome]


def test_a_hold_that_never_ends_is_passed_by_all_that_comes_later() -> None:
    """Without a release everything behind the hold counts, of the same sender alone."""
    seen = network(("held", STREAM), publisher=[("x", {}), message("PublishDone", sent=True)])
    words = {"fault": "held", "passed": "PublishDone"}
    assert outcomes(judged("network-fault-happened", seen, **words)) == ["upheld"]
    other = network(("held", STREAM), relay=[("x", {}), message("PublishDone", sent=True)])
    assert outcomes(judged("network-fault-happened", other, **words)) == ["unseen"]


ENDED: Event = (
    "kvcs:track-ended",
    {"label": "all", "track": "k.raw.s0", "request": 0, "complete": True, "code": 2},
)
FENCE: Event = ("kvcs:fence", {"label": "fence-3"})


def waiting(*events: Event) -> Evidence:
    """A subscriber of a track of which the publisher sent everything by then."""
    seen = evidence(
        "relay",
        {
            "consumer": [asked("all", "SUBSCRIBE"), obj(0, 0), *events],
            "publisher": whole_track(sent=True),
        },
    )
    part = {"kind": "publisher", "under_test": False}
    nodes = {"consumer": {"kind": "scripted"}, "publisher": part}
    return Evidence({**seen.facts, "nodes": nodes}, seen.logs)


def test_a_delivery_that_ends_is_not_stalled() -> None:
    """Whatever came with it."""
    assert outcomes(judged("not-stalled", waiting(ENDED), of="all")) == ["upheld"]


def test_silence_counts_behind_a_probe_that_was_answered_late_enough() -> None:
    """A second after the publisher's last Object; at once it does not count, nor without one."""
    late = at(waiting(FENCE), "consumer", 0.0, 0.001, 1.5)
    (finding,) = judged("not-stalled", late, of="all")
    assert (finding.outcome.value, finding.reason) == ("contradicted", Reason.OBJECT_MISSING)
    assert "1 Objects, then nothing for 1.5 s" in finding.observed
    soon = at(waiting(FENCE), "consumer", 0.0, 0.001, 0.5)
    assert outcomes(judged("not-stalled", soon, of="all")) == ["unseen"]
    assert outcomes(judged("not-stalled", waiting(), of="all")) == ["unseen"]
    assert outcomes(judged("not-stalled", waiting(), of="none")) == ["unseen"]


def test_an_end_that_is_missing_is_no_stall() -> None:
    """When everything came that was sent, the end alone is missing: others judge that."""
    seen = evidence(
        "relay",
        {
            "consumer": [asked("all", "SUBSCRIBE"), *whole_track(), FENCE],
            "publisher": whole_track(sent=True),
        },
    )
    part = {"kind": "publisher", "under_test": False}
    seen = Evidence({**seen.facts, "nodes": {"publisher": part}}, seen.logs)
    late = at(seen, "consumer", *[0.001] * 8, 1.5)
    assert outcomes(judged("not-stalled", late, of="all")) == ["unseen"]


def test_a_request_that_the_peer_ended_is_no_stall() -> None:
    """FIN of the request's own stream without PUBLISH_DONE is another fault."""
    subscribe = message("Subscribe", sent=True, request_id=0)
    subscribe[1]["stream"] = 8
    fin: Event = ("moqt:fin_received", {"stream": 8})
    seen = at(waiting(subscribe, fin, FENCE), "consumer", 0.0, 0.001, 0.001, 0.002, 1.5)
    assert outcomes(judged("not-stalled", seen, of="all")) == ["unseen"]
    other: Event = ("moqt:fin_received", {"stream": 12})
    seen = at(waiting(subscribe, other, FENCE), "consumer", 0.0, 0.001, 0.001, 0.002, 1.5)
    assert outcomes(judged("not-stalled", seen, of="all")) == ["contradicted"]


def test_silence_does_not_count_while_nothing_was_sent() -> None:
    """A publisher of ours must have sent the track."""
    seen = at(waiting(FENCE), "consumer", 0.0, 0.001, 1.5)
    seen = Evidence(seen.facts, {**seen.logs, "publisher": ()})
    assert outcomes(judged("not-stalled", seen, of="all")) == ["unseen"]


def granted(*events: tuple[str, dict[str, Any]], watched: bool = True, sent: int = 6) -> Evidence:
    """A publisher of ours that sent its track to a relay."""
    seen = network(*events, publisher=whole_track(sent=True)[:sent])
    scenario = {**SCENARIO, **({"network": {"watch-streams": True}} if watched else {})}
    return Evidence({**seen.facts, "scenario": scenario}, seen.logs)


WORDS = {"by": "relay", "to": "publisher"}


def test_streams_are_granted_when_nobody_had_to_wait() -> None:
    """All Groups went out and the network tells of no wait; another pair's wait is another's."""
    assert outcomes(judged("streams-granted", granted(), **WORDS)) == ["upheld"]
    other = ("no-stream-left", {"from": "relay", "to": "consumer"})
    assert outcomes(judged("streams-granted", granted(other), **WORDS)) == ["upheld"]


def test_a_wait_for_a_stream_is_too_few_streams() -> None:
    """However much was sent before."""
    wait = ("no-stream-left", {"from": "publisher", "to": "relay"})
    (finding,) = judged("streams-granted", granted(wait, sent=1), **WORDS)
    assert (finding.outcome.value, finding.reason) == ("contradicted", Reason.STREAMS_FEW)


def test_grants_are_unseen_where_nobody_watched_or_little_was_sent() -> None:
    """Absence of a wait counts only if it would have been told, and if the streams were needed."""
    assert outcomes(judged("streams-granted", granted(watched=False), **WORDS)) == ["unseen"]
    assert outcomes(judged("streams-granted", granted(sent=2), **WORDS)) == ["unseen"]
