"""Comparing results and catalogues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cli import main
from kvcs_conformance.report.difference import (
    Change,
    ClauseChange,
    compare,
    compare_catalogues,
    touched,
)
from kvcs_conformance.verdicts import Level, Verdict

CATALOGUE = catalogues.load()


def case(name: str, verdict: str, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "title": "A title",
        "sut": "relay",
        "requires": ["KVCS-8-2"],
        "level": "STATED",
        "verdict": verdict,
        "reason": reason,
        "blame": "",
        "observed": {"draft": "22", "transport": "memory"},
        "duration_s": 0.25,
        "evidence": f"cases/{name}",
        "findings": [],
    } | more


def result(*cases: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "catalogue": {"kvcs": "00", "moqt": "22", "sha256": CATALOGUE.sha256},
        "peers": {"publisher": "reference", "relay": "reference", "consumer": "reference"},
        "link": "memory",
        "seed": 0,
        "summary": {},
        "cases": list(cases),
    } | more


def kvcs(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(stopped.value.code, int)
    return stopped.value.code, captured.out, captured.err


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("pass", "fail", Change.BROKEN),
        ("pass", "inconclusive", Change.BROKEN),
        ("not-applicable", "harness-error", Change.BROKEN),
        ("blocked", "pass", Change.FIXED),
        ("fail", "advise", Change.FIXED),
        ("pass", "pass-nonstrict", Change.CHANGED),
        ("fail", "blocked", Change.CHANGED),
    ],
)
def test_a_verdict_that_differs(before: str, after: str, change: Change) -> None:
    """Whether the case holds, before and now, makes it broken, fixed, or otherwise changed."""
    found = compare(result(case("relay/a", before)), result(case("relay/a", after)))
    assert [(one.change, one.before, one.after) for one in found.changes] == [
        (change, before, after)
    ]
    assert found.worse is (change is Change.BROKEN)


def test_the_same_verdict_for_another_reason() -> None:
    """Another reason code is a change."""
    found = compare(
        result(case("relay/a", "fail", "object.missing")),
        result(case("relay/a", "fail", "object.changed")),
    )
    assert [one.change for one in found.changes] == [Change.CHANGED]
    assert found.changes[0].after == "fail (object.changed)"


def test_what_is_equal_counts_as_the_same() -> None:
    """How long a case took and what it found is no difference."""
    one = result(case("relay/a", "pass"), case("relay/b", "pass"))
    other = result(case("relay/a", "pass", duration_s=9), case("relay/b", "pass"))
    assert (compare(one, other).changes, compare(one, other).same) == ((), 2)


def test_cases_that_are_new_or_gone() -> None:
    """A case of one result only is new or gone, and one that is gone makes the result worse."""
    found = compare(result(case("relay/old", "pass")), result(case("relay/new", "fail")))
    assert [(one.change, one.case) for one in found.changes] == [
        (Change.GONE, "relay/old"),
        (Change.NEW, "relay/new"),
    ]
    assert found.worse
    assert not compare(result(), result(case("relay/new", "fail"))).worse


def test_how_the_runs_were_made_is_told() -> None:
    """Other peers, another link or another catalogue stand before the cases."""
    other = result(
        link="quic",
        peers={"publisher": "reference", "relay": "theirs", "consumer": "reference"},
        catalogue={"kvcs": "01", "moqt": "22", "sha256": CATALOGUE.sha256},
    )
    assert compare(result(), other).settings == (
        ("relay under test", "reference", "theirs"),
        ("link", "memory", "quic"),
        ("catalogue kvcs", "00", "01"),
    )


def test_the_command_takes_files_and_tells_by_its_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 when nothing is worse, 1 when something is, and with --exact when anything differs."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(result(case("relay/a", "pass"))))
    bad.write_text(json.dumps(result(case("relay/a", "fail", "object.missing"))))
    assert kvcs(capsys, "diff", good, good)[:2] == (0, "no difference, 1 case as before\n")
    code, out, _ = kvcs(capsys, "diff", good, bad)
    assert code == 1
    assert "relay/a: pass -> fail (object.missing)" in out
    assert kvcs(capsys, "diff", bad, good)[0] == 0
    assert kvcs(capsys, "diff", bad, good, "--exact")[0] == 1
    code, out, _ = kvcs(capsys, "diff", good, bad, "--json")
    assert json.loads(out)["summary"] == {
        "broken": 1,
        "gone": 0,
        "new": 0,
        "fixed": 0,
        "changed": 0,
        "same": 0,
    }


def test_a_baseline_is_accepted_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--accept writes what does not differ from run to run, and the next run is equal to it."""
    run, baseline = tmp_path / "run.json", tmp_path / "baseline.json"
    run.write_text(json.dumps(result(case("relay/a", "pass"))))
    assert kvcs(capsys, "diff", baseline, run, "--accept")[0] == 0
    assert json.loads(baseline.read_text())["cases"][0]["duration_s"] == 0
    assert kvcs(capsys, "diff", baseline, run, "--exact")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run.json"], "give two runs"),
        (["run.json", "absent.json"], "no result there"),
        (["run.json", "wrong.json"], "not a result of schema 1"),
        (["run.json", "text.json"], "not JSON"),
        (["run.json", "--exact", "--catalogues", "a", "b"], "compare runs"),
    ],
)
def test_wrong_arguments_are_told(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What cannot be compared is one line and exit code 2."""
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(json.dumps(result(case("relay/a", "pass"))))
    Path("wrong.json").write_text("{}")
    Path("text.json").write_text("no")
    code, _, err = kvcs(capsys, "diff", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert told in err


def revised(**more: Any) -> catalogues.Catalogue:
    """The catalogue with another KVCS-8-2, without KVCS-8-5, and with a KVCS-8-9."""
    entries = dict(CATALOGUE.requirements)
    entries["KVCS-8-2"] = replace(entries["KVCS-8-2"], **more)
    entries["KVCS-8-9"] = replace(entries.pop("KVCS-8-5"), id="KVCS-8-9", text="Something new.")
    return replace(CATALOGUE, requirements=entries)


def test_clauses_that_differ() -> None:
    """An entry that says something else names what changed; new and gone entries are told."""
    found = compare_catalogues(CATALOGUE, revised(level=Level.MUST))
    assert [(one.requirement, one.what, one.after) for one in found] == [
        ("KVCS-8-2", ("level",), "MUST"),
        ("KVCS-8-9", ("new",), "Something new."),
        ("KVCS-8-5", ("gone",), ""),
    ]
    assert compare_catalogues(CATALOGUE, CATALOGUE) == ()


def test_the_cases_that_a_clause_touches() -> None:
    """By result, every case that cites the clause, with its verdict there."""
    clauses = [ClauseChange("KVCS-8-2", ("text",), "", ""), ClauseChange("KVCS-2-1", (), "", "")]
    one = result(case("relay/a", "fail", "object.missing"), case("relay/b", "pass", requires=["X"]))
    assert touched(clauses, {"theirs": one}) == {
        "KVCS-8-2": {"theirs": {"relay/a": "fail (object.missing)"}},
        "KVCS-2-1": {},
    }


@pytest.mark.slow
def test_a_run_is_judged_under_two_revisions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """When a MUST becomes a SHOULD, the same evidence is an advice instead of a failure, and the
    peer that it touches is named."""
    run = tmp_path / "run"
    mutant = "consumer/skips-compat-check"
    name = "consumer/manifest/compat-mismatch"
    assert kvcs(capsys, "run", name, "--mutant", mutant, "--out", run)[0] == 1
    current = datafiles.folder("testcases") / "requirements" / "kvcs-00.yaml"
    text = current.read_text()
    at = text.index("level: MUST", text.index("id: KVCS-5-17\n"))
    later = tmp_path / "kvcs-01.yaml"
    later.write_text(text[:at] + "level: SHOULD" + text[at + len("level: MUST") :])
    code, out, _ = kvcs(capsys, "diff", run, "--catalogues", current, later)
    assert code == 0
    assert "KVCS-5-17: level\n" in out
    assert f"touches consumer {mutant}" in out
    reason = "consumer.used-bad-publication"
    assert f"{name}: fail ({reason}) -> advise ({reason})" in out


def test_verdicts_that_hold_leave_no_must_open() -> None:
    """Every verdict but those that leave something open or contradicted counts as held."""
    from kvcs_conformance.report.difference import HOLDS

    assert set(Verdict) - set(HOLDS) == {
        Verdict.FAIL,
        Verdict.INCONCLUSIVE,
        Verdict.BLOCKED,
        Verdict.NOT_RUN,
        Verdict.HARNESS_ERROR,
    }
