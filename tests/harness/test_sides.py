"""Several foreign sides: who plays what, and whose fault a failure is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs.consumer import Consumer
from kvcs.publisher import Publisher
from kvcs_conformance import casework, datafiles
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Case, load_cases, select
from kvcs_conformance.casework import Orders, work_on
from kvcs_conformance.cli import main
from kvcs_conformance.errors import UsageError
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.outcome import Outcome
from kvcs_conformance.peers import Peers
from kvcs_conformance.runner import run_case
from kvcs_conformance.sides import Sides, sides_of

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE, check=False)
JOIN = "consumer/live/exactly-once-join"
BAD_PUBLISHER = "publisher/layer-from-one"
BAD_CONSUMER = "consumer/joins-without-fill"
BAD_RELAY = "relay/changes-payload"


def case(name: str) -> Case:
    """The case of that id, by itself: what it shows with a bad peer is a failure."""
    (found,) = select(CASES, [name])
    return replace(found, twin=None)


def command(*arguments: str | Path) -> int:
    """The exit code of `kvcs`."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def entry(name: str, *mutants: str) -> dict[str, Any]:
    """The entry of a case with these mutants in their roles."""
    return work_on(Orders(CATALOGUE, sides=sides_of(mutants)), case(name))


def test_each_role_is_played_by_who_is_named_for_it() -> None:
    """A mutant plays its role, the reference the others; a mutant of the session too."""
    sides = sides_of([BAD_PUBLISHER, "relay/skips-unknown-messages"])
    peers = sides.peers()
    assert ("publisher", "relay") == sides.foreign
    assert issubclass(peers.publisher, Publisher)
    assert peers.publisher is MUTANTS[BAD_PUBLISHER].peers.publisher
    assert peers.consumer is Consumer
    assert {"relay"} == peers.sessions.keys()
    assert Sides(publisher=BAD_PUBLISHER) == sides.with_reference("relay")
    assert Peers(names=Sides().names) == Sides().peers()


def test_one_role_has_one_player() -> None:
    """Two mutants of a role are refused; the same one twice is one."""
    with pytest.raises(UsageError, match="are both a publisher"):
        sides_of([BAD_PUBLISHER, "publisher/no-retention"])
    assert sides_of([BAD_RELAY]) == sides_of([BAD_RELAY, BAD_RELAY])


def test_evidence_names_who_played() -> None:
    """The facts of a run name the player of each role."""
    outcome = run_case(
        case(JOIN), CATALOGUE, link="memory", peers=sides_of([BAD_PUBLISHER, BAD_CONSUMER]).peers()
    )
    assert outcome.evidence is not None
    assert {
        "publisher": BAD_PUBLISHER,
        "relay": "reference",
        "consumer": BAD_CONSUMER,
    } == outcome.evidence.facts["peers"]


@pytest.mark.slow
def test_the_side_at_fault_is_found_by_putting_the_reference_in_its_place() -> None:
    """A bad publisher before a consumer that is bad elsewhere: the publisher is at fault; alone
    before the reference it is too."""
    found = entry(JOIN, BAD_PUBLISHER, "consumer/skips-signature")
    assert ("fail", "publisher") == (found["verdict"], found["blame"])
    assert {"publisher": "pass", "consumer": "fail"} == found["blame_runs"]
    found = entry(JOIN, BAD_PUBLISHER)
    assert ("publisher", {"publisher": "pass"}) == (found["blame"], found["blame_runs"])


@pytest.mark.slow
def test_two_sides_at_fault_are_both_told() -> None:
    """When the case fails whoever is replaced, more than one is at fault."""
    found = entry(JOIN, BAD_PUBLISHER, BAD_CONSUMER)
    assert {"publisher": "fail", "consumer": "fail"} == found["blame_runs"]
    assert "more than one of them is at fault" in found["blame_text"]


def test_the_peer_under_test_alone_needs_no_other_run() -> None:
    """With the reference in every other role the fault is where the judge saw it."""
    found = entry("consumer/live/exactly-once-join", BAD_CONSUMER)
    assert ("fail", "consumer") == (found["verdict"], found["blame"])
    assert found.keys().isdisjoint({"blame_runs", "blame_text"})


def test_a_failure_of_a_pair_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the case passes whoever is replaced, only the pair fails; who does not take part in
    the case is not replaced."""
    ran = []

    def only_together(one: Case, *arguments: Any, **options: Any) -> Outcome:
        names = options["peers"].names
        ran.append(names)
        foreign = {role for role, name in names.items() if name != "reference"}
        if {"publisher", "consumer"} <= foreign:
            options["peers"] = MUTANTS[BAD_CONSUMER].peers
        else:
            options["peers"] = Peers()
        return run_case(one, *arguments, **options)

    monkeypatch.setattr(casework, "run_case", only_together)
    found = entry(JOIN, BAD_PUBLISHER, BAD_CONSUMER)
    assert "publisher and consumer" == found["blame"]
    assert {"publisher": "pass", "consumer": "pass"} == found["blame_runs"]
    assert found["blame_text"].startswith("only this pair")
    assert 3 == len(ran)


@pytest.mark.slow
def test_blame_is_in_the_result_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--mutant` once per role; table and result name the side; `recheck` keeps it; a mutant that
    plays in no case is refused."""
    bad = ["--mutant", BAD_PUBLISHER, "--mutant", "consumer/skips-signature"]
    assert 0 != command("run", JOIN, *bad, "--out", tmp_path)
    assert "at fault: publisher" in " ".join(capsys.readouterr().out.split())
    result = json.loads((tmp_path / "results.json").read_text())
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(result)
    assert BAD_PUBLISHER == result["peers"]["publisher"]
    before = (tmp_path / "results.json").read_text()
    assert 0 == command("recheck", tmp_path)
    assert before == (tmp_path / "results.json").read_text()
    capsys.readouterr()
    assert 2 == command("run", "publisher/*", "--mutant", BAD_RELAY)
    assert "in none of these cases is there a relay" in capsys.readouterr().err
