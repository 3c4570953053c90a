"""The plan of a network: what a scenario writes, and what of it cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases
from kvcs_conformance.errors import DataError
from kvcs_conformance.network.plan import Grant, PairPlan, make_plan, octets, rate

CATALOGUE = catalogues.load()

CASE: dict[str, Any] = {
    "id": "relay/network/sample",
    "title": "A sample",
    "requires": ["KVCS-8-2"],
    "sut": "relay",
    "scenario": {"use": "tiny-gqa"},
    "steps": [{"consumer": {"fetch": ["k.raw.s0"], "layers": [0, 3], "as": "all"}}],
    "judge": [{"each-object-once": {"of": "all"}}],
    "killed-by": ["relay/never-caches"],
}


def test_units() -> None:
    """Bandwidth is told in bits per second, or octets; sizes in octets or binary units."""
    assert [rate(value) for value in ("8bit", "1kbit", "10Mbit", "1.5Gbit", 125)] == [
        1.0,
        125.0,
        1_250_000.0,
        187_500_000.0,
        125.0,
    ]
    assert [octets(value) for value in ("4KiB", "1MiB", 7)] == [4096, 1 << 20, 7]


def test_a_plan_holds_what_the_scenario_says() -> None:
    """Each pair has its path, each node its grants; pairs that steps name are touched too."""
    plan = make_plan(
        {
            "links": [
                {
                    "between": ["publisher", "relay"],
                    "latency": "20ms",
                    "bandwidth": "10Mbit",
                    "lose": [{"from": "publisher", "packets": [3, 7]}],
                }
            ],
            "grants": {"consumer": {"streams": 8, "window": "4KiB"}},
            "idle-timeout": "2s",
        },
        [{"network": {"partition": ["consumer", "relay"]}}, {"expect": {"event": "done"}}],
    )
    path = plan.between("relay", "publisher")
    assert path == PairPlan(
        latency=0.02, bandwidth=1_250_000.0, lost={"publisher": frozenset({3, 7})}
    )
    assert plan.between("relay", "consumer") == PairPlan()
    grant = Grant(unidirectional_streams=8, connection_window=4096)
    assert plan.grants == {"consumer": grant}
    assert grant.options() == {"unidirectional_streams": 8, "connection_window": 4096}
    assert plan.idle_timeout == 2.0
    assert plan.touched == {frozenset(("publisher", "relay")), frozenset(("consumer", "relay"))}
    assert not plan.streams


@pytest.mark.parametrize(
    ("values", "step", "streams"),
    [
        ({}, {"hold": {"from": "publisher", "to": "relay"}}, True),
        ({}, {"slow-reader": "consumer"}, True),
        ({}, {"kill": "relay"}, False),
        ({"links": [{"between": ["a", "b"], "reorder-streams": True}]}, None, True),
        ({"watch-streams": True}, None, True),
        (None, None, False),
    ],
)
def test_streams_are_interfered_with_only_where_a_case_asks(
    values: dict[str, Any] | None, step: dict[str, Any] | None, streams: bool
) -> None:
    """Without such a fault the nodes run the plain session."""
    plan = make_plan(values, [{"network": step}] if step else [])
    assert plan.streams is streams


def test_lost_packets_are_drawn_from_the_seed() -> None:
    """So many of the first so many: the same for the same seed, others for another; each
    direction has its own."""
    rule = {"count": 5, "of": 40}
    link = {"between": ["a", "b"], "lose": [{"from": "a", **rule}, {"from": "b", **rule}]}
    one, again, other = (make_plan({"links": [link]}, seed=seed) for seed in (1, 1, 2))
    lost = one.between("a", "b").lost
    assert one == again
    assert lost != other.between("a", "b").lost
    assert lost["a"] != lost["b"]
    assert {len(numbers) for numbers in lost.values()} == {5}
    assert all(number < 40 for numbers in lost.values() for number in numbers)


def _load(tmp_path: Path, **changes: Any) -> None:
    (tmp_path / "sample.yaml").write_text(yaml.safe_dump({**CASE, **changes}, sort_keys=False))
    load_cases(CATALOGUE, tmp_path)


def _steps(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"steps": [*({"network": step} for step in steps), *CASE["steps"]]}


def _network(**values: Any) -> dict[str, Any]:
    return {"scenario": {"use": "tiny-gqa", "network": values}}


def _link(**values: Any) -> dict[str, Any]:
    return _network(links=[{"between": ["publisher", "relay"], **values}])


def test_a_case_with_faults_that_can_be_done_is_taken(tmp_path: Path) -> None:
    """Every step and key in its right place."""
    hold = {"from": "publisher", "to": "relay", "track": "k.raw.s0"}
    _load(
        tmp_path,
        **_steps(
            {"partition": ["publisher", "relay"]},
            {"heal": ["relay", "publisher"]},
            {"lose-connection": ["publisher", "relay"]},
            {"hold": {**hold, "only": "fin", "for": "20ms"}},
            {"release": {**hold, "only": "fin"}},
            {"reset-stream": {**hold, "layer": 1, "at": 100, "code": 5}},
            {"slow-reader": "consumer"},
            {"read": "consumer"},
            {"kill": "publisher"},
        ),
        scenario={
            "use": "tiny-gqa",
            "network": {
                "links": [
                    {
                        "between": ["publisher", "relay"],
                        "latency": "5ms",
                        "bandwidth": 1000,
                        "reorder-streams": True,
                        "lose": [{"from": "relay", "packets": [1]}],
                        "chunks": [1, 9],
                    }
                ],
                "grants": {"consumer": {"stream-window": "4KiB", "request-streams": 4}},
            },
        },
        links={"only": "memory", "because": "of the pieces"},
    )


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (_steps({"partition": ["publisher", "relais"]}), "unknown node 'relais'"),
        (_steps({"heal": ["publisher", "relay"]}), "no partition of the same before this heal"),
        (_steps({"read": "consumer"}), "no slow-reader of the same before this read"),
        (
            _steps(
                {"hold": {"from": "publisher", "to": "relay", "layer": 1}},
                {"release": {"from": "publisher", "to": "relay"}},
            ),
            "no hold of the same before this release",
        ),
        (
            _steps({"hold": {"from": "relay", "to": "consumer"}}),
            "relay is under test: its streams cannot be told apart on the way",
        ),
        (
            _steps({"reset-stream": {"from": "relay", "to": "x", "track": "k.raw.s0", "at": 1}}),
            "relay is under test",
        ),
        (_steps({"reset-stream": {"from": "publisher", "to": "relay"}}), "key 'track' is missing"),
        (_steps({"slow-reader": "relay"}), "relay is under test: how it reads"),
        (_steps({"kill": "relay"}), "relay is under test: the case would judge its absence"),
        (_steps({"kill": "publisher"}, {"restart": "publisher"}), "only relays come back"),
        (_steps({"cut": ["publisher", "relay"]}), "unknown step 'cut'"),
        (_link(chunks=[1, 9]), "chunks can be done on memory only"),
        (_network(**{"datagram-size": 1400}), "datagram-size can be done on quic only"),
        (_link(lose=[{"from": "consumer", "packets": [1]}]), "unknown node 'consumer'"),
        (_link(lose=[{"from": "relay", "count": 9, "of": 3}]), "9 of 3 cannot be lost"),
        (_link(lose=[{"from": "relay", "rate": 0.1}]), "unknown key 'rate'"),
        (_link(latency="20"), "'20' should be like 300ms or 5s"),
        (_network(links=[{"between": ["publisher", "nobody"]}]), "unknown node 'nobody'"),
        (_network(grants={"relay": {"streams": 4}}), "relay is under test: what it grants"),
        (_network(grants={"nobody": {"streams": 4}}), "unknown node 'nobody'"),
    ],
)
def test_a_fault_that_cannot_be_done_is_refused_at_load_time(
    tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    """By whom, in which order, on which link: the complaint names file and line."""
    with pytest.raises(DataError, match=complaint) as refusal:
        _load(tmp_path, **changes)
    assert f"{tmp_path / 'sample.yaml'}:" in str(refusal.value)
    assert refusal.value.line > 1
