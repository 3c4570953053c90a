"""Stopping a run: what was run by then is a valid result, and it can be completed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.campaign import Campaign
from kvcs_conformance.cases import Case, load_cases, select
from kvcs_conformance.casework import Orders, work_on
from kvcs_conformance.evidence.files import case_folder
from kvcs_conformance.parallel import Unwatched
from kvcs_conformance.recheck import recheck
from kvcs_conformance.stage import Stage

COMMAND = "import sys; from kvcs_conformance.cli import main; main(sys.argv[1:])"


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    """`kvcs` as a process."""
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_evidence(process: subprocess.Popen[str], out: Path) -> None:
    """Until some case has left its evidence."""
    while process.poll() is None and not list(out.glob("cases/**/run.json")):
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue


def result_in(out: Path) -> dict[str, Any]:
    """The result, by its schema."""
    result: dict[str, Any] = json.loads((out / "results.json").read_text())
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(result)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_valid_partial_result(
    tmp_path: Path, jobs: str, number: signal.Signals
) -> None:
    """One Ctrl-C or SIGTERM to all processes is enough: exit code 3, no traceback, the rest is
    not run, and the evidence of what was run gives the same result again."""
    process = started("run", "--jobs", jobs, "--out", tmp_path, "--repeat", "20")
    wait_for_evidence(process, tmp_path)
    # As a terminal does it: every process of the group gets the signal.
    subprocess.run(["kill", f"-{number.value}", "--", f"-{process.pid}"], check=True)
    _, err = process.communicate(timeout=30)
    assert (3, "kvcs: stopped; what was not run is named as such\n") == (process.returncode, err)
    result = result_in(tmp_path)
    assert result["summary"]["not-run"] > 0
    assert result["summary"].keys() <= {"pass", "not-run"}
    again = recheck(tmp_path, result, catalogues.load())
    assert result["summary"] == again["summary"]


@pytest.mark.slow
def test_a_stopped_self_test_leaves_no_process(tmp_path: Path) -> None:
    """Exit code 3, one line, and nobody works on."""
    process = started("selftest", "--jobs", "2", "relay")
    try:
        process.communicate(timeout=4)
    except subprocess.TimeoutExpired:
        subprocess.run(["kill", f"-{signal.SIGINT.value}", "--", f"-{process.pid}"], check=True)
    _, err = process.communicate(timeout=30)
    assert (3, "kvcs: stopped\n") == (process.returncode, err)
    ended = "while pgrep -g $0 > /dev/null; do sleep 0.05; done"
    subprocess.run(["sh", "-c", ended, str(process.pid)], check=True, timeout=20)


def named(name: str) -> Case:
    """The case of that id."""
    (found,) = select(load_cases(catalogues.load(), check=False), [name])
    return found


@pytest.mark.parametrize("name", ["publisher/retention/stated", "consumer/checks/digest-mismatch"])
def test_a_case_whose_process_is_lost_is_no_fault_of_a_peer(tmp_path: Path, name: str) -> None:
    """A harness error that says why; with a twin or without one, the evidence says it again."""
    catalogue = catalogues.load()
    campaign = Campaign([named(name)], Orders(catalogue, out=tmp_path), {})
    campaign.lose(named(name), "its process ended: SIGKILL")
    result = campaign.close(lambda result: result)
    (entry,) = result["cases"]
    assert ("harness-error", "harness.internal", "harness") == (
        entry["verdict"],
        entry["reason"],
        entry["blame"],
    )
    assert "its process ended: SIGKILL" == entry["findings"][0]["text"]
    assert result == recheck(tmp_path, result_in(tmp_path), catalogue)


@pytest.mark.slow
def test_a_case_that_hangs_is_a_harness_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past its limit of real time the run ends with the evidence so far, and the next case runs."""

    def endless(stage: Stage) -> None:
        while True:
            pass

    catalogue = catalogues.load()
    name = "publisher/retention/stated"
    orders = Orders(catalogue, out=tmp_path, limit=0.3)
    with monkeypatch.context() as patched:
        patched.setattr(Stage, "play", endless)
        entry = work_on(orders, named(name))
    assert ("harness-error", "harness") == (entry["verdict"], entry["blame"])
    assert "not over after 0.3 s" in entry["findings"][0]["text"]
    assert case_folder(tmp_path, name).joinpath("publisher.sqlog").is_file()
    campaign = Campaign([named(name)], orders, {})
    campaign.run(workers=1, watch=Unwatched())
    assert {"pass": 1} == campaign.close(lambda result: result)["summary"]
