"""Interfering with streams: real sessions on the simulated link, each fault by what arrives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Case, load_cases, select
from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.network.memory import MemoryLink
from kvcs_conformance.network.plan import make_plan
from kvcs_conformance.peers import Peers
from kvcs_conformance.runner import perform
from moqt.session import Session, SessionConfig

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE, check=False)
SUBSCRIBE = {"consumer": {"subscribe": ["k.raw.s0"], "from": "start", "as": "all"}}
ANSWERED = {"expect": {"event": "answered", "of": "all"}}
PUBLISH = {"publisher": {"publish": "all"}}
ENDED = {"expect": {"event": "track-ended", "track": "k.raw.s0", "within": "10s"}}


def run(*steps: Mapping[str, Any], link: str = "memory", **network: Any) -> Evidence:
    """A publisher, a relay and a subscriber; the steps between subscribing and the end."""
    (case,) = select(CASES, ["relay/join/exactly-once"])
    scenario = {**case.scenario, "nodes": {}, "layer-time": "1ms", "network": network}
    return play(case, scenario, [SUBSCRIBE, ANSWERED, *steps], link)


def play(
    case: Case, scenario: Mapping[str, Any], steps: list[Mapping[str, Any]], link: str
) -> Evidence:
    return perform(replace(case, steps=tuple(steps)), scenario, link, 0, Peers())


def told(evidence: Evidence, *names: str) -> list[Record]:
    """What the network says."""
    return list(evidence.records("network", *(f"network:{name}" for name in names)))


def arrivals(evidence: Evidence, node: str = "consumer") -> dict[int, float]:
    """When the first Object of each Group came."""
    first: dict[int, float] = {}
    for seen in evidence.objects(node):
        if seen.track == "k.raw.s0":
            first.setdefault(seen.group, seen.record.time)
    return first


def test_a_held_stream_waits_for_its_time_and_the_others_do_not() -> None:
    """Layer 1 comes 300 ms late, and everything comes; PUBLISH_DONE went out before."""
    hold = {"from": "publisher", "to": "relay", "track": "k.raw.s0", "layer": 1, "for": "300ms"}
    evidence = run({"network": {"hold": hold}}, PUBLISH, ENDED)
    came = arrivals(evidence)
    assert sorted(came) == [0, 1, 2, 3, 4]
    assert max(came[layer] for layer in (0, 2, 3)) < 0.1 < 0.3 <= came[1]
    held, released = told(evidence, "held", "released")
    assert (held.data["track"], held.data["layer"], held.data["fin_only"]) == ("k.raw.s0", 1, False)
    done = next(r for r, _ in evidence.messages("publisher", "PublishDone", sent=True))
    assert held.time <= done.time < released.time


def test_a_hold_without_a_time_ends_with_release() -> None:
    """Until then nothing of the stream comes, whatever else does."""
    streams = {"from": "publisher", "to": "relay", "track": "k.raw.s0", "layer": 1}
    evidence = run(
        {"network": {"hold": streams}},
        PUBLISH,
        {"expect": {"event": "end-of-track", "track": "k.raw.s0"}},
        {"fence": {}},
        {"network": {"release": streams}},
        ENDED,
    )
    (fence,) = evidence.records("consumer", "kvcs:fence")
    assert arrivals(evidence)[1] > fence.time
    assert sorted(arrivals(evidence)) == [0, 1, 2, 3, 4]


def test_a_held_fin_lets_the_octets_pass() -> None:
    """All Objects come at once, the ends of their streams 300 ms later."""
    hold = {"from": "publisher", "to": "relay", "only": "fin", "for": "300ms"}
    evidence = run({"network": {"hold": hold}}, PUBLISH, ENDED)
    assert max(arrivals(evidence).values()) < 0.1
    fins = [record.time for record in evidence.records("relay", "moqt:fin_received")]
    assert max(fins) >= 0.3
    held = told(evidence, "held")
    assert len(held) == 5
    assert all(record.data["fin_only"] for record in held)


def test_a_stream_is_reset_at_its_offset_once() -> None:
    """So many octets of the next such stream come, then RESET_STREAM with the code; the other
    streams, and a later one, are whole."""
    reset = {"from": "publisher", "to": "relay", "track": "k.raw.s0", "layer": 1, "at": 250}
    evidence = run({"network": {"reset-stream": {**reset, "code": 9}}}, PUBLISH, ENDED)
    (record,) = told(evidence, "reset")
    assert (record.data["at"], record.data["code"], record.data["layer"]) == (250, 9, 1)
    stream = record.data["stream"]
    resets = list(evidence.records("relay", "moqt:reset_received"))
    assert [(r.data["stream"], r.data["code"]) for r in resets] == [(stream, 9)]
    per_group: dict[int, int] = {}
    for seen in evidence.objects("relay"):
        if seen.track == "k.raw.s0" and seen.is_data:
            per_group[seen.group] = per_group.get(seen.group, 0) + 1
    assert per_group == {0: 3, 1: 1, 2: 3, 3: 3}


def test_a_slow_reader_takes_nothing_until_it_reads() -> None:
    """Requests are still answered meanwhile; then everything comes, in order."""
    evidence = run(
        {"network": {"slow-reader": "consumer"}},
        PUBLISH,
        {"expect": {"event": "completed", "at": "publisher"}},
        {"fence": {}},
        {"network": {"read": "consumer"}},
        ENDED,
    )
    stopped, *waited, reading = told(evidence, "reading-stopped", "not-read", "reading")
    assert len(waited) == 5
    assert {record.data["node"] for record in (stopped, *waited, reading)} == {"consumer"}
    (fence,) = evidence.records("consumer", "kvcs:fence")
    assert stopped.time <= fence.time <= reading.time
    assert all(at >= reading.time for at in arrivals(evidence).values())
    blocks = [seen.location for seen in evidence.objects("consumer") if seen.is_data]
    assert sorted(blocks) == [(g, o) for g in range(4) for o in range(3)]


def test_reordered_streams_overtake_each_other_by_the_seed() -> None:
    """Some Group comes before an older one, the network says which was overtaken, and the same
    seed does the same."""
    links = [{"between": ["publisher", "relay"], "reorder-streams": True}]
    evidence, again = (run(PUBLISH, ENDED, links=links) for _ in range(2))
    order = list(arrivals(evidence))
    assert order != sorted(order)
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert told(evidence, "overtaken")
    assert evidence.logs == again.logs


def test_the_network_tells_when_a_node_has_no_stream_left() -> None:
    """With two streams at a time the third Group has to wait for one of them."""
    grants = {"consumer": {"streams": 2}}
    network = {"watch-streams": True, "grants": grants}
    (case,) = select(CASES, ["publisher/order/layers-ascending"])
    scenario = {**case.scenario, "layer-time": "0ms", "network": network}
    evidence = play(case, scenario, list(case.steps), "memory")
    record = told(evidence, "no-stream-left")[0]
    assert record.data == {"from": "publisher", "to": "consumer"}
    whole = {seen.location for seen in evidence.objects("consumer") if seen.track == "k.raw.s0"}
    assert len([at for at in whole if at[1] < 3 and at[0] < 4]) == 12


def test_a_killed_relay_comes_back_at_its_address_with_nothing() -> None:
    """The publisher connects again; what was cached is gone, what is asked for is fetched again."""
    (case,) = select(CASES, ["consumer/live/exactly-once-join"])
    scenario = {**case.scenario, "network": {"idle-timeout": "1s"}}
    steps: list[Mapping[str, Any]] = [
        {"publisher": {"publish": "all"}},
        {"expect": {"event": "completed", "at": "publisher"}},
        {"network": {"kill": "relay"}},
        {"network": {"restart": "relay"}},
        {"expect": {"event": "announce-accepted", "at": "publisher", "count": 2}},
        {"consumer": {"consume": "completed"}},
        {"expect": {"event": "done", "within": "10s"}},
    ]
    evidence = play(case, scenario, steps, "memory")
    assert evidence.facts["trouble"] is None
    assert [record.name for record in told(evidence, "killed", "restarted")] == [
        "network:killed",
        "network:restarted",
    ]
    assert len(list(evidence.reports("publisher", "announce-accepted"))) == 2
    (done,) = evidence.reports("consumer", "done")
    assert done.data["outcome"] == "complete"


def test_a_session_class_of_a_node_is_kept() -> None:
    """What a config asks for is under the interference, not instead of it."""

    class Own(Session):
        pass

    link = MemoryLink(0, make_plan({"watch-streams": True}))
    faults = link.interference("node")
    assert faults is not None
    nowhere: Any = object()
    session = faults.make_session(True, nowhere, SessionConfig(session_class=Own))
    assert isinstance(session, Own)
    assert type(session).__mro__[1].__name__ == "MeddledSession"


@pytest.mark.slow
def test_faults_on_quic_do_what_they_do_on_the_simulated_link() -> None:
    """Held and reset streams, lost packets and a severed connection, over UDP."""
    reset = {"from": "publisher", "to": "relay", "track": "k.raw.s0", "layer": 1, "at": 250}
    hold = {"from": "publisher", "to": "relay", "track": "k.raw.s0", "layer": 2}
    path = {
        "between": ["publisher", "relay"],
        "latency": "2ms",
        "bandwidth": "100Mbit",
        "lose": [{"from": "publisher", "packets": [4, 6]}],
    }
    evidence = run(
        {"network": {"hold": hold}},
        {"network": {"reset-stream": reset}},
        PUBLISH,
        {"expect": {"event": "end-of-group", "track": "k.raw.s0", "layer": 0}},
        {"expect": {"event": "end-of-group", "track": "k.raw.s0", "layer": 3}},
        {"network": {"release": hold}},
        ENDED,
        {"network": {"lose-connection": ["publisher", "relay"]}},
        {"expect": {"event": "session-closed", "at": "relay", "within": "5s"}},
        link="quic",
        links=[path],
        **{"idle-timeout": "1s"},
    )
    assert evidence.facts["trouble"] is None
    assert [step["outcome"] for step in evidence.facts["steps"]] == ["done"] * 11
    names = [record.name.removeprefix("network:") for record in told(evidence)]
    assert set(names) == {"held", "released", "reset", "lost", "connection-lost"}
    assert [r.data["packet"] for r in told(evidence, "lost")] == [4, 6]
    resets = [r.data["stream"] for r in evidence.records("relay", "moqt:reset_received")]
    assert resets == [r.data["stream"] for r in told(evidence, "reset")]
    came = arrivals(evidence)
    assert {0, 2, 3} <= set(came)
    (released,) = told(evidence, "released")
    assert max(came[0], came[3]) < released.time <= came[2]
