"""The kill matrix: the same on one core and on many, and compared with the committed one."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import golden, runner
from kvcs_conformance.cases import Case, load_cases, select
from kvcs_conformance.cli import main
from kvcs_conformance.golden import drift
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.peers import Peers
from kvcs_conformance.runner import perform
from kvcs_conformance.selftest import name_trials, selftest
from kvcs_conformance.stage import Stage
from moqt.wire.errors import LocalProtocolError

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE, check=False)
MATRIX: dict[str, Any] = {
    "summary": {"total": 2, "killed": 2, "survived": 0, "stray": 0},
    "mutants": [
        {
            "id": "relay/a",
            "role": "relay",
            "defect": "A.",
            "expected": ["KVCS-1"],
            "killed_by": ["relay/one", "relay/two"],
            "missed_by": [],
            "strays": [],
            "verdict": "killed",
        },
        {
            "id": "relay/b",
            "role": "relay",
            "defect": "B.",
            "expected": ["KVCS-2"],
            "killed_by": ["relay/two"],
            "missed_by": [],
            "strays": [],
            "verdict": "killed",
        },
    ],
}
BOTH = ["relay/one", "relay/two"]


def case(name: str) -> Case:
    """The case of that id."""
    (found,) = select(CASES, [name])
    return found


def command(*arguments: str | Path) -> int:
    """The exit code of `kvcs`."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.mark.slow
def test_many_cores_give_the_matrix_of_one() -> None:
    """Trials end in any order; the matrix does not tell."""
    chosen = select(CASES, ["publisher/retention/*", "publisher/priority/*"])
    one, two = (
        selftest(chosen, MUTANTS, CATALOGUE, link="memory", seed=0, workers=workers)
        for workers in (1, 2)
    )
    assert one == two
    assert one["summary"]["total"] == one["summary"]["killed"] > 1


def test_a_case_for_the_other_link_is_run_on_that_one() -> None:
    """The reference and the mutants that the case names are run there; other mutants are not."""
    named = replace(case("publisher/retention/stated"), only_link="quic")
    other = case("publisher/priority/by-layer")
    trials = name_trials([named, other], MUTANTS, "memory")
    assert "publisher/retention/stated (publisher/no-retention)" in trials
    assert "publisher/retention/stated (publisher/constant-priority)" not in trials
    assert "publisher/priority/by-layer (publisher/no-retention)" in trials


def test_a_fault_of_the_harness_is_no_survivor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of ours is told as an error with mutant and case."""

    def broken(stage: Stage) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Stage, "play", broken)
    name = "publisher/no-retention"
    matrix = selftest(
        [case("publisher/retention/stated")],
        {name: MUTANTS[name]},
        CATALOGUE,
        link="memory",
        seed=0,
    )
    mutant, reference = matrix["errors"]
    assert mutant.startswith(
        f"{name}: publisher/retention/stated: harness-error harness.internal (RuntimeError"
    )
    assert reference.startswith("reference: publisher/retention/stated: harness-error")


def test_a_mutant_that_breaks_down_is_no_fault_of_the_harness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own library refuses what it wants: a case that names it does not catch it, and other
    cases say nothing."""

    def broken(stage: Stage) -> None:
        raise LocalProtocolError("a Publisher Priority is 0 .. 255")

    monkeypatch.setattr(Stage, "play", broken)
    name = "publisher/no-retention"
    matrix = selftest(
        [case("publisher/retention/stated"), case("publisher/priority/by-layer")],
        {name: MUTANTS[name]},
        CATALOGUE,
        link="memory",
        seed=0,
        reference=False,
    )
    (row,) = matrix["mutants"]
    assert ([], [], "survived") == (matrix["errors"], row["strays"], row["verdict"])
    assert "LocalProtocolError" in row["missed_by"][0]


def test_a_stray_kill_is_told_with_its_clause() -> None:
    """Reason and requirements tell whether the mutant breaks more than it says."""
    bad = MUTANTS["publisher/layer-from-one"]
    matrix = selftest(
        [case("publisher/payload/header-and-digest")],
        {bad.id: replace(bad, requires=("KVCS-4-1",), reasons=frozenset())},
        CATALOGUE,
        link="memory",
        seed=0,
        reference=False,
    )
    (row,) = matrix["mutants"]
    assert "fail payload.field-mismatch [KVCS-4-8" in row["strays"][0]


def test_a_clause_charged_besides_is_told() -> None:
    """A case that catches a mutant may charge it only with what the mutant says that it breaks."""
    bad = MUTANTS["consumer/skips-digest"]
    matrix = selftest(
        [case("consumer/checks/digest-mismatch")],
        {bad.id: replace(bad, requires=("KVCS-4-22",))},
        CATALOGUE,
        link="memory",
        seed=0,
        reference=False,
    )
    (row,) = matrix["mutants"]
    assert row["verdict"] == "stray"
    assert "charged with KVCS-4-23" in row["strays"][0]


def test_a_mutant_that_behaves_survives() -> None:
    """The reference under a mutant's name is not caught by the case that names it."""
    name = "publisher/no-retention"
    matrix = selftest(
        [case("publisher/retention/stated")],
        {name: replace(MUTANTS[name], peers=Peers())},
        CATALOGUE,
        link="memory",
        seed=0,
        reference=False,
    )
    (row,) = matrix["mutants"]
    assert ("survived", ["publisher/retention/stated: pass"]) == (row["verdict"], row["missed_by"])


def test_the_committed_matrix_has_no_drift_from_itself(tmp_path: Path) -> None:
    """What `--accept` writes is what the next run is compared with."""
    path = tmp_path / "kill-matrix.json"
    assert golden.read_golden(path) is None
    golden.accept(MATRIX, path)
    written = golden.read_golden(path)
    assert written is not None
    assert [] == [*drift(MATRIX, written, BOTH, whole=True)]
    assert {"id", "role", "expected", "killed_by", "verdict"} == written["mutants"][0].keys()


@pytest.mark.parametrize(
    ("row", "change", "told"),
    [
        (0, {"killed_by": ["relay/one"]}, "- relay/a: no longer killed by relay/two"),
        (1, {"killed_by": BOTH}, "+ relay/b: now killed by relay/one"),
        (0, {"expected": ["KVCS-3"]}, "~ relay/a: expected was KVCS-1, is KVCS-3"),
        (1, {"verdict": "stray"}, "~ relay/b: verdict was killed, is stray"),
        (1, {"id": "relay/c"}, "+ relay/c: not in the committed matrix; killed by relay/two"),
    ],
)
def test_drift_is_told_by_mutant_and_case(row: int, change: dict[str, Any], told: str) -> None:
    """Every difference is a line that names the mutant."""
    now = copy.deepcopy(MATRIX)
    now["mutants"][row] |= change
    assert told in [*drift(now, MATRIX, BOTH, whole=True)]


def test_a_mutant_that_is_gone_is_drift_of_the_whole_only() -> None:
    """A selection runs fewer mutants and fewer cases, and that is no drift."""
    now = copy.deepcopy(MATRIX)
    del now["mutants"][1]
    gone = "- relay/b: in the committed matrix, and no longer run"
    assert [gone] == [*drift(now, MATRIX, BOTH, whole=True)]
    now["mutants"][0]["killed_by"] = ["relay/one"]
    assert [] == [*drift(now, MATRIX, ["relay/one"], whole=False)]


def test_the_command_compares_with_the_committed_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a committed matrix it says so; with another one it fails and tells the difference;
    only the whole is accepted."""
    path = tmp_path / "golden.json"
    monkeypatch.setattr(golden, "golden_path", lambda: path)
    chosen = "publisher/retention/*"
    assert 0 == command("selftest", chosen, "--out", tmp_path)
    assert f"there is no {path}" in capsys.readouterr().out.replace("\n", "")
    matrix = json.loads((tmp_path / "kill-matrix.json").read_text())
    golden.accept(matrix, path)
    assert 0 == command("selftest", chosen)
    matrix["mutants"][0]["killed_by"] = []
    golden.accept(matrix, path)
    capsys.readouterr()
    assert 1 == command("selftest", chosen)
    told = "+ publisher/no-retention: now killed by publisher/retention/stated"
    assert told in capsys.readouterr().out
    assert 2 == command("selftest", chosen, "--accept")
    assert "--accept takes the whole matrix" in capsys.readouterr().err


def test_the_twin_is_run_only_where_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant that fails the case must pass its positive twin; one that does not fail it is not
    run on the twin at all."""
    name = "consumer/checks/digest-mismatch"
    performed = []

    def counted(one: Case, *arguments: Any) -> Any:
        performed.append(arguments[0] == one.scenario)
        return perform(one, *arguments)

    monkeypatch.setattr(runner, "perform", counted)

    def verdict(peers: Peers) -> str:
        performed.clear()
        return str(
            runner.run_for_failure(
                case(name), CATALOGUE, link="memory", seed=0, peers=peers, limit=None
            ).assessment.verdict
        )

    assert ("pass", [True]) == (verdict(Peers()), performed)
    assert ("fail", [True, False]) == (verdict(MUTANTS["consumer/skips-digest"].peers), performed)
