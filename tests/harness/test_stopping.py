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
from kvcs_conformance.recheck import recheck

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
