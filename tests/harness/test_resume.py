"""Repeating cases, and completing a run that was not finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs_conformance import casework, datafiles
from kvcs_conformance.cases import Case
from kvcs_conformance.cli import main
from kvcs_conformance.evidence.files import case_folder
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.outcome import Outcome
from kvcs_conformance.runner import run_case

pytestmark = pytest.mark.slow
SCHEMA = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())


def command(*arguments: str | Path) -> int:
    """The exit code of `kvcs`."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def result_in(out: Path) -> dict[str, Any]:
    """The result, by its schema."""
    result: dict[str, Any] = json.loads((out / "results.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(result)
    return result


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the cases that are really run; the list may be told to stop after some."""
    names: list[str] = []

    def noted(case: Case, *arguments: Any, **options: Any) -> Outcome:
        names.append(case.id)
        return run_case(case, *arguments, **options)

    monkeypatch.setattr(casework, "run_case", noted)
    return names


def stopped_after_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """Run the cases about priority, stopped before the second; their ids."""
    done: list[str] = []

    def once(case: Case, *arguments: Any, **more: Any) -> Outcome:
        if done and done != [case.id]:
            raise KeyboardInterrupt
        done[:] = [case.id]
        return run_case(case, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(casework, "run_case", once)
        assert 3 == command("run", "publisher/priority/*", *options, "--out", tmp_path)
    return [case["id"] for case in result_in(tmp_path)["cases"]]


def test_a_stopped_run_is_completed(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--resume` runs what was not run, with the seed and repeats of the run, and writes one
    whole result; then there is nothing left to do."""
    first, second = stopped_after_one(tmp_path, monkeypatch, "--seed", "5", "--repeat", "2")
    before = result_in(tmp_path)
    assert ["pass", "not-run"] == [case["verdict"] for case in before["cases"]]
    assert 0 == command("run", "--resume", tmp_path)
    assert [second, second] == ran
    after = result_in(tmp_path)
    assert (5, 2, {"pass": 2}) == (after["seed"], after["repeat"], after["summary"])
    assert before["cases"][0] == after["cases"][0]
    assert 0 == command("run", "--resume", tmp_path)
    assert [second, second] == ran
    assert 0 == command("recheck", tmp_path)
    assert first == after["cases"][0]["id"]


def test_a_stopped_run_says_what_could_show_nothing_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that is for another link is not applicable, run or not: to judge again changes
    nothing."""

    def stop(*_: Any, **__: Any) -> Outcome:
        raise KeyboardInterrupt

    names = ["relay/cache/five-minutes", "relay/cache/whole-group"]
    with monkeypatch.context() as patched:
        patched.setattr(casework, "run_case", stop)
        assert 3 == command("run", *names, "--link", "quic", "--out", tmp_path)
    cases = result_in(tmp_path)["cases"]
    assert ["not-applicable", "not-run"] == [case["verdict"] for case in cases]
    assert 0 == command("recheck", tmp_path)


@pytest.mark.parametrize("what", ["log", "case", "facts"])
def test_a_case_without_its_evidence_is_run_again(
    tmp_path: Path, ran: list[str], what: str
) -> None:
    """A log that is cut off, facts that are gone, or a case file that has changed since: the
    entry does not stand."""
    name = "publisher/retention/stated"
    assert 0 == command("run", name, "--out", tmp_path)
    ran.clear()
    home = case_folder(tmp_path, name)
    if what == "log":
        log = next(home.glob("*.sqlog"))
        log.write_text(log.read_text()[: log.read_text().rindex("\x1e")])
    elif what == "facts":
        (home / "run.json").unlink()
    else:
        source = json.loads((home / "case.json").read_text())
        (home / "case.json").write_text(json.dumps({**source, "title": "Another"}))
    assert 0 == command("run", "--resume", tmp_path)
    assert [name] == ran
    assert 0 == command("recheck", tmp_path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--seed", "1"], "had --seed 0, not 1"),
        (["--link", "quic"], "had --link memory, not quic"),
        (["--repeat", "3"], "had --repeat 1, not 3"),
        (["--mutant", "publisher/no-retention"], "as its publisher reference, not publisher/no-"),
        (["publisher/*"], "was about other cases"),
        (["--out", "elsewhere"], "leave out --out"),
        (["--main-job"], "--main-job is not part"),
    ],
)
def test_another_run_is_not_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    """What is asked for and differs from the run in the folder is named; exit code 2."""
    name = "publisher/retention/stated"
    assert 0 == command("run", name, "--out", tmp_path)
    capsys.readouterr()
    assert 2 == command("run", "--resume", tmp_path, *options)
    err = capsys.readouterr().err
    assert told in err
    assert 1 == err.count("\n")
    assert 0 == command("run", name, "--resume", tmp_path, "--seed", "0", "--out", tmp_path)


def test_another_catalogue_is_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was judged by another catalogue is not completed, nor one with a case that is
    no more."""
    assert 0 == command("run", "publisher/retention/stated", "--out", tmp_path)
    result = result_in(tmp_path)
    for change, told in (
        ({"catalogue": {**result["catalogue"], "sha256": "0" * 64}}, "another catalogue"),
        ({"cases": [{**result["cases"][0], "id": "publisher/gone"}]}, "publisher/gone"),
    ):
        (tmp_path / "results.json").write_text(json.dumps({**result, **change}))
        capsys.readouterr()
        assert 2 == command("run", "--resume", tmp_path)
        assert told in capsys.readouterr().err


def test_repeats_are_counted_and_more_than_one_verdict_is_flaky(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worst verdict stands, with the evidence and the seed of the first run that has it."""
    name, bad = "publisher/retention/stated", MUTANTS["publisher/no-retention"]

    def sometimes(case: Case, *arguments: Any, **options: Any) -> Outcome:
        if options["seed"] in (8, 9):
            options["peers"] = bad.peers
        return run_case(case, *arguments, **options)

    monkeypatch.setattr(casework, "run_case", sometimes)
    options = ["--repeat", "4", "--vary-seed", "--seed", "7", "--out", str(tmp_path)]
    assert 0 == command("run", name, *options)
    assert "flaky: 2 advise, 2 pass" in capsys.readouterr().out
    result = result_in(tmp_path)
    (entry,) = result["cases"]
    assert {"runs": 4, "verdicts": {"advise": 2, "pass": 2}} == entry["repeat"]
    assert ("advise", True, 8) == (entry["verdict"], entry["flaky"], entry["seed"])
    facts = json.loads((case_folder(tmp_path, name) / "run.json").read_text())
    assert 8 == facts["seed"]
    assert 0 == command("recheck", tmp_path)


def test_a_steady_case_is_not_flaky(tmp_path: Path) -> None:
    """One verdict in all repeats; without `--vary-seed` all have the same seed."""
    assert 0 == command("run", "publisher/retention/stated", "--repeat", "2", "--out", tmp_path)
    (entry,) = result_in(tmp_path)["cases"]
    assert {"runs": 2, "verdicts": {"pass": 2}} == entry["repeat"]
    assert entry.keys().isdisjoint({"flaky", "seed"})


def test_varying_without_repeating_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """`--vary-seed` alone has no effect, and says so."""
    assert 2 == command("run", "publisher/retention/stated", "--vary-seed")
    assert "--vary-seed varies nothing without --repeat" in capsys.readouterr().err
