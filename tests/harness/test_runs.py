"""Whole runs: the reference passes, mutants are caught, evidence speaks for itself."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs.consumer import Consumer
from kvcs_conformance import casework, datafiles, golden
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Case, load_cases, select
from kvcs_conformance.cases.load import case_of
from kvcs_conformance.cases.schema import published_schema
from kvcs_conformance.cli import main
from kvcs_conformance.errors import SetupFailed, UsageError
from kvcs_conformance.evidence.files import case_folder
from kvcs_conformance.evidence.read import read_log
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.peers import Peers
from kvcs_conformance.recheck import recheck
from kvcs_conformance.report import results
from kvcs_conformance.report.explain import explain
from kvcs_conformance.runner import run_case, save
from kvcs_conformance.selftest import check_links, selftest
from kvcs_conformance.source import read_yaml
from kvcs_conformance.stage import Stage

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE)


def case(name: str) -> Case:
    (found,) = select(CASES, [name])
    return found


def command(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_every_case_has_a_mutant_and_every_mutant_a_case() -> None:
    """The links between cases and mutants hold in both directions."""
    assert check_links(CASES, MUTANTS) is None


def test_a_case_without_its_mutant_is_an_error() -> None:
    """A name under `killed-by` that is no mutant, or of another role, stops the self-test."""
    missing = {name: one for name, one in MUTANTS.items() if name != "consumer/skips-digest"}
    with pytest.raises(UsageError, match="no mutant 'consumer/skips-digest'"):
        check_links(CASES, missing)
    named = [one for one in CASES if "publisher/no-retention" not in one.killed_by]
    with pytest.raises(UsageError, match="no case names the mutant 'publisher/no-retention'"):
        check_links(named, MUTANTS)


def test_a_survivor_and_a_stray_are_told() -> None:
    """A mutant that its case does not fail survives; one that fails a case about something else
    is stray."""
    good, bad = MUTANTS["publisher/no-retention"], MUTANTS["publisher/constant-priority"]
    chosen = [case("publisher/retention/stated"), case("publisher/priority/by-layer")]

    def verdict(name: str, peers: object) -> str:
        mutant = replace(MUTANTS[name], peers=peers)
        matrix = selftest(chosen, {name: mutant}, CATALOGUE, link="memory", seed=0, reference=False)
        (row,) = matrix["mutants"]
        return str(row["verdict"])

    assert verdict(good.id, good.peers) == "killed"
    assert verdict(good.id, bad.peers) == "survived"
    both = type("Both", (bad.peers.publisher,), {})
    both.publication_class = type(
        "Both",
        (good.peers.publisher.publication_class, bad.peers.publisher.publication_class),
        {},
    )
    assert verdict(good.id, Peers(publisher=both)) == "stray"


def test_a_run_leaves_result_and_evidence(tmp_path: Path) -> None:
    """`kvcs run --out` writes a result that its schema accepts, and for each case and twin the
    facts and one log per node."""
    assert command("run", "consumer/checks/digest-mismatch", "--out", tmp_path) == 0
    result = json.loads((tmp_path / "results.json").read_text())
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(result)
    assert result["summary"] == {"pass": 1}
    (entry,) = result["cases"]
    assert entry["observed"] == {"draft": "22", "transport": "memory"}
    folder = tmp_path / entry["evidence"]
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "case.json",
        "run.json",
        "files.json",
        "consumer.sqlog",
        "publisher.sqlog",
        "relay.sqlog",
        "reports",
        "requests",
        "twin",
    }
    assert {path.name for path in (folder / "twin").iterdir()} == names - {"case.json", "twin"}


def test_logs_are_json_text_sequences(tmp_path: Path) -> None:
    """Each record of a log starts with RS and ends with LF (RFC 7464); the first is the qlog
    header."""
    save(run_case(case("publisher/retention/stated"), CATALOGUE, link="memory"), tmp_path)
    text = (tmp_path / "cases/publisher/retention/stated/consumer.sqlog").read_text()
    records = text.split("\x1e")
    assert records[0] == ""
    assert all(record.endswith("\n") for record in records[1:])
    header = json.loads(records[1])
    assert header["serialization_format"] == "application/qlog+json-seq"
    assert {*json.loads(records[2])} == {"time", "name", "data"}


def test_the_same_seed_gives_the_same_octets(tmp_path: Path) -> None:
    """Two runs with one seed leave the same files, octet for octet; another seed does not."""
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        outcome = run_case(case("relay/join/exactly-once"), CATALOGUE, link="memory", seed=seed)
        save(outcome, tmp_path / name)

    def octets(name: str) -> dict[str, bytes]:
        home = tmp_path / name
        return {
            str(path.relative_to(home)): path.read_bytes()
            for path in home.rglob("*")
            if path.is_file()
        }

    assert octets("a") == octets("b")
    assert octets("a") != octets("c")


def test_recheck_gives_the_verdicts_of_the_run(tmp_path: Path) -> None:
    """Judging the saved evidence again gives the result of the run, findings and all, for a
    pass, a failure and a case that its twin blocks."""
    passing = run_case(case("relay/cache/whole-group"), CATALOGUE, link="memory")
    failing = run_case(
        case("consumer/mixing/deterministic-only"),
        CATALOGUE,
        link="memory",
        peers=MUTANTS["consumer/mixes-any-publications"].peers,
    )
    blocked = run_case(impossible_twin(), CATALOGUE, link="memory")
    assert [one.assessment.verdict.value for one in (passing, failing, blocked)] == [
        "pass",
        "fail",
        "blocked",
    ]
    outcomes = [passing, failing, blocked]
    for outcome in outcomes:
        save(outcome, tmp_path)
    before = results.results(outcomes, CATALOGUE, link="memory", seed=0)
    assert recheck(tmp_path, before, CATALOGUE) == before


def impossible_twin() -> Case:
    """A case whose positive twin asks for what cannot be."""
    whole = case("consumer/checks/digest-mismatch")
    twin = {"scenario": {"tamper": []}, "judge": [{"layers-usable": {"layers": [0]}}]}
    return case_of({**whole.source, "twin": twin}, CATALOGUE, whole.path)


def test_a_twin_that_fails_blocks_the_case() -> None:
    """A peer that cannot do the legal steps is not failed for the illegal one."""
    outcome = run_case(impossible_twin(), CATALOGUE, link="memory")
    assert (outcome.assessment.verdict, outcome.assessment.reason) == ("blocked", "twin.failed")
    assert outcome.evidence is None


def test_recheck_needs_its_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Evidence that is gone or broken is named in one line, with exit code 2."""
    assert command("run", "publisher/retention/*", "--out", tmp_path) == 0
    assert command("recheck", tmp_path) == 0
    home = case_folder(tmp_path, "publisher/retention/stated")
    log = home / "consumer.sqlog"
    whole = log.read_text()
    count = whole.count("\x1e") - 1
    for text, complaint in (
        ("nothing", "not an event log: it does not begin with a record"),
        ("\x1e{}\n\x1enothing\n", "line 2 is not a record of an event log"),
        (whole.replace('"time":', '"tide":'), "line 2 is not a record of an event log"),
        (
            whole[: whole.rindex("\x1e")],
            f"{count - 1} records, but {count} were written by the run",
        ),
    ):
        log.write_text(text)
        capsys.readouterr()
        assert command("recheck", tmp_path) == 2
        assert f"consumer.sqlog: {complaint}" in capsys.readouterr().err
    log.unlink()
    assert command("recheck", tmp_path) == 2
    assert "consumer.sqlog: cannot be read" in capsys.readouterr().err
    source = json.loads((home / "case.json").read_text())
    source["judge"] = [{"guesses": {}}]
    (home / "case.json").write_text(json.dumps(source))
    assert command("recheck", tmp_path) == 2
    assert "case.json: there is no judge word 'guesses'" in capsys.readouterr().err
    shutil.rmtree(home)
    assert command("recheck", tmp_path) == 2
    assert "case.json: cannot be read" in capsys.readouterr().err


def test_recheck_needs_the_twin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case is not passed again without the evidence of its positive twin, nor without its own;
    where the twin failed, there is none of the case itself."""
    name = "consumer/checks/digest-mismatch"
    assert command("run", name, "--out", tmp_path) == 0
    home = case_folder(tmp_path, name)
    for lost in (home / "twin", home / "run.json"):
        kept = lost.rename(tmp_path / "kept")
        capsys.readouterr()
        assert command("recheck", tmp_path) == 2
        assert "run.json: cannot be read" in capsys.readouterr().err
        kept.rename(lost)
    assert command("recheck", tmp_path) == 0

    class Deaf(Consumer):
        """Reports nothing."""

        def handle_event(self, *event: Any) -> None:
            """Heard and not heeded."""

    outcome = run_case(case(name), CATALOGUE, link="memory", peers=Peers(consumer=Deaf))
    assert (outcome.assessment.verdict, outcome.evidence) == ("blocked", None)
    save(outcome, tmp_path)
    before = results.results([outcome], CATALOGUE, link="memory", seed=0)
    assert recheck(tmp_path, before, CATALOGUE) == before


def test_explain_says_what_is_wrong(tmp_path: Path) -> None:
    """The explanation names clause, expectation, octets with offset, side, events and the command
    that runs the case again; it fits a screen."""
    outcome = run_case(
        case("publisher/payload/header-and-digest"),
        CATALOGUE,
        link="memory",
        peers=MUTANTS["publisher/layer-from-one"].peers,
    )
    save(outcome, tmp_path)
    result = results.results([outcome], CATALOGUE, link="memory", seed=0)
    told = explain(tmp_path, result, "publisher/payload/header-and-digest", CATALOGUE)
    lines = told.splitlines()
    assert len(lines) <= 40
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 100
    assert lines[0] == "publisher/payload/header-and-digest: fail (payload.field-mismatch)"
    assert "  KVCS-4-8 STATED (4 Object Payload): Layer equals the Group ID." in lines
    assert "  expected: 0x00000000" in lines
    assert "  observed: 0x00000001" in lines
    place = lines.index("  octets 8..11 of the payload:")
    assert "      8  00 00 00 01  Layer  1" == lines[place + 1]
    assert "  at fault: publisher" in lines
    assert any(line.startswith(">") and "k.raw.s0 (0, 0)" in line for line in lines)
    (events,) = (line for line in lines if line.startswith("events before it"))
    log, _, number = events.rpartition("(")[2].rstrip(")").partition(":")
    home = case_folder(tmp_path, "publisher/payload/header-and-digest")
    assert '"group":0,"object":0' in (home / log).read_text().split("\n")[int(number) - 1]
    again = "kvcs run publisher/payload/header-and-digest --link memory --seed 0"
    assert lines[-1].split(maxsplit=1) == ["again", again]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
def test_a_mutants_failure_can_be_explained(first: int, tmp_path: Path) -> None:
    """No explanation of a failing case fails itself or runs over the screen: a tenth of them all,
    taken evenly."""
    for name in sorted(MUTANTS)[10 * first :: 40]:
        chosen = next(one for one in CASES if name in one.killed_by)
        outcome = run_case(chosen, CATALOGUE, link="memory", peers=MUTANTS[name].peers)
        save(outcome, tmp_path)
        result = results.results([outcome], CATALOGUE, link="memory", seed=0)
        told = explain(tmp_path, result, chosen.id, CATALOGUE)
        assert len(told.splitlines()) <= 40


def test_explain_names_the_cases_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown case is refused with the names in the run that are like it."""
    assert command("run", "publisher/retention/*", "--out", tmp_path) == 0
    capsys.readouterr()
    assert command("explain", tmp_path, "publisher/x") == 2
    assert "did you mean publisher/retention/stated?" in capsys.readouterr().err
    assert command("explain", tmp_path, "publisher/retention/stated") == 0
    assert capsys.readouterr().out.startswith("publisher/retention/stated: pass\n")


def test_a_fault_of_the_harness_is_charged_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of ours is a harness error, a node that does not come up blocks."""

    def broken(stage: Stage) -> None:
        raise RuntimeError("broken")

    def absent(stage: Stage) -> None:
        raise SetupFailed("no relay")

    chosen = case("publisher/retention/stated")
    monkeypatch.setattr(Stage, "play", broken)
    assessment = run_case(chosen, CATALOGUE, link="memory").assessment
    assert (assessment.verdict, assessment.blame) == ("harness-error", "harness")
    assert assessment.decisive is not None
    assert "RuntimeError: broken" in assessment.decisive.text
    monkeypatch.setattr(Stage, "put_up", absent)
    assessment = run_case(chosen, CATALOGUE, link="memory").assessment
    assert (assessment.verdict, assessment.reason) == ("blocked", "setup.failed")


def test_a_failing_run_exits_1_and_a_rerun_replaces_the_evidence(tmp_path: Path) -> None:
    """Exit code 1 for a failure; a later run into the same folder leaves no file of the first."""
    bad = "publisher/layer-from-one"
    chosen = "publisher/payload/header-and-digest"
    assert command("run", chosen, "--mutant", bad, "--out", tmp_path) == 1
    (case_folder(tmp_path, chosen) / "stale.sqlog").write_text("")
    assert command("run", chosen, "--out", tmp_path) == 0
    assert not (case_folder(tmp_path, chosen) / "stale.sqlog").exists()


def test_selftest_command_writes_the_matrix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kvcs selftest` with a selector runs its mutants and writes kill-matrix.json."""
    monkeypatch.setattr(golden, "golden_path", lambda: tmp_path / "none.json")
    assert command("selftest", "publisher/retention/*", "--out", tmp_path) == 0
    matrix = json.loads((tmp_path / "kill-matrix.json").read_text())
    assert matrix["summary"] == {"total": 1, "killed": 1, "survived": 0, "stray": 0}
    (row,) = matrix["mutants"]
    assert row["id"] == "publisher/no-retention"
    assert row["killed_by"] == ["publisher/retention/stated"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "publisher/join/exactly-once",
        "relay/authorisation/warm-cache",
        "consumer/live/exactly-once-join",
    ],
)
def test_the_reference_passes_over_quic(name: str, tmp_path: Path) -> None:
    """One case of each role passes over QUIC on loopback, and its evidence can be rechecked."""
    outcome = run_case(case(name), CATALOGUE, link="quic")
    assert (outcome.assessment.verdict, outcome.assessment.decisive) == ("pass", None)
    save(outcome, tmp_path)
    before = results.results([outcome], CATALOGUE, link="quic", seed=0)
    assert recheck(tmp_path, before, CATALOGUE) == before
    assert read_log(next((tmp_path / "cases" / name).glob("*.sqlog")))


def test_a_stopped_run_leaves_a_valid_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C keeps what was run, calls the rest not-run, exits 3, and can be rechecked."""
    done = []

    def until_the_second(chosen: Case, *arguments: Any, **options: Any) -> object:
        if done:
            raise KeyboardInterrupt
        done.append(chosen)
        return run_case(chosen, *arguments, **options)

    monkeypatch.setattr(casework, "run_case", until_the_second)
    assert command("run", "publisher/priority/*", "--out", tmp_path) == 3
    result = json.loads((tmp_path / "results.json").read_text())
    assert result["summary"] == {"pass": 1, "not-run": 1}
    assert recheck(tmp_path, result, CATALOGUE) == result


def test_published_schemas_are_those_in_force() -> None:
    """The schema files for editors say what the loader checks."""
    folder = datafiles.folder("testcases") / "schemas"
    assert json.loads((folder / "case.schema.json").read_text()) == published_schema()
    assert json.loads((folder / "requirements.schema.json").read_text()) == catalogues.SCHEMA
    for one in CASES:
        jsonschema.Draft202012Validator(published_schema()).validate(read_yaml(one.path).data)
