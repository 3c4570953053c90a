"""The pytest plugin: one item per case, whose failure is explained."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cases import load_cases

from tests.harness.test_remote import relay

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

__all__ = ["relay"]
RunPytest: TypeAlias = Callable[..., pytest.RunResult]
ROOT = datafiles.folder("testcases").parent
CASE = "relay/cache/immutable-object"
BAD = ["--kvcs-mutant", "relay/changes-payload", "--kvcs-select", CASE]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> RunPytest:
    """pytest in a folder of its own, with the plugin and no other."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'reference'}:{ROOT / 'harness'}")

    def called(*arguments: str | Path) -> pytest.RunResult:
        return pytester.runpytest_subprocess("-p", "kvcs_conformance.plugin", *arguments)

    return called


def test_one_item_per_case(run: RunPytest) -> None:
    """In any folder, without a test file; the node ids are those of the cases."""
    done = run("--kvcs-link", "memory", "--collect-only", "-q")
    ids = [case.id for case in load_cases(catalogues.load(), check=False)]
    assert ids == [line for line in done.outlines if line in ids]
    assert 0 == done.ret


def test_cases_pass_on_the_reference_and_can_be_chosen(run: RunPytest) -> None:
    """`--kvcs-select` and pytest's own `-k` and `-m` choose."""
    run("--kvcs-select", "publisher/priority/*").assert_outcomes(passed=2)
    run("--kvcs-link", "memory", "-k", "immutable-object").assert_outcomes(
        passed=1, deselected=len(load_cases(catalogues.load(), check=False)) - 1
    )


def test_a_failure_is_explained(run: RunPytest, tmp_path: Path) -> None:
    """What `kvcs explain` says stands in the report; the result is kept where it is asked for."""
    done = run(*BAD, "--kvcs-out", tmp_path / "out")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"{CASE}: fail (*", "clause", "  *at fault: relay*"])
    assert "Traceback" not in done.stdout.str()
    result = json.loads((tmp_path / "out/results.json").read_text())
    assert {"fail": 1} == result["summary"]
    assert "relay/changes-payload" == result["peers"]["relay"]


def test_the_evidence_is_kept_until_the_next_session(
    run: RunPytest, pytester: pytest.Pytester
) -> None:
    """In pytest's cache, where nobody says where; the next session takes its place."""
    run(*BAD)
    kept = pytester.path / ".pytest_cache/d/kvcs"
    assert {"fail": 1} == json.loads((kept / "results.json").read_text())["summary"]
    assert (kept / "cases" / CASE / "relay.sqlog").is_file()
    run("--kvcs-select", "publisher/priority/*")
    assert ["publisher"] == [path.name for path in (kept / "cases").iterdir()]


def test_cases_run_in_several_processes(run: RunPytest, tmp_path: Path) -> None:
    """With pytest-xdist the result is that of all processes."""
    done = run("-p", "xdist", "-n", "2", "--kvcs-select", "publisher/priority/*",
               "--kvcs-out", tmp_path / "out")  # fmt: skip
    done.assert_outcomes(passed=2)
    assert {"pass": 2} == json.loads((tmp_path / "out/results.json").read_text())["summary"]


def test_what_is_known_is_expected(run: RunPytest, tmp_path: Path) -> None:
    """A known failure is an expected failure; when it passes, that is a failure."""
    known = tmp_path / "known.yaml"
    known.write_text(
        f"- {{case: {CASE}, kind: failure, link: https://example.org/7, expires: 9999-12-31}}\n"
    )
    run(*BAD, "--kvcs-known", known).assert_outcomes(xfailed=1)
    done = run("--kvcs-select", CASE, "--kvcs-known", known)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*known failure that passes*"])


def test_a_should_that_is_not_followed_warns(run: RunPytest) -> None:
    """`advise` is no failure, and not silent."""
    done = run(
        "--kvcs-mutant", "publisher/no-retention", "--kvcs-select", "publisher/retention/stated"
    )
    done.assert_outcomes(passed=1, warnings=1)
    done.stdout.fnmatch_lines(["*publisher/retention/stated: advise*"])


def test_cases_run_against_a_relay(run: RunPytest, relay: str) -> None:
    """`--kvcs-relay`: what must be set on it is skipped with the reason."""
    done = run(
        "--kvcs-relay", relay, "--kvcs-insecure", "-rs",
        "--kvcs-select", CASE, "--kvcs-select", "relay/authorisation/warm-cache",
    )  # fmt: skip
    done.assert_outcomes(passed=1, skipped=1)
    done.stdout.fnmatch_lines(["*tokens-required is set on the relay*"])


def test_wrong_options_are_one_line(run: RunPytest) -> None:
    """They are refused before anything runs."""
    done = run("--kvcs-select", "nosuch")
    assert pytest.ExitCode.USAGE_ERROR == done.ret
    done.stderr.fnmatch_lines(["ERROR: kvcs: no case matches 'nosuch'*"])


def test_tests_that_are_named_run_beside_the_cases(
    run: RunPytest, pytester: pytest.Pytester
) -> None:
    """A file on the command line is collected too; without an option only that."""
    pytester.makepyfile(test_own="def test_own(): pass")
    run("test_own.py", "--kvcs-select", CASE).assert_outcomes(passed=2)
    run().assert_outcomes(passed=1)
    run("--kvcs-select", CASE).assert_outcomes(passed=1)


def test_it_costs_nothing_when_it_is_not_asked_for() -> None:
    """The module that pytest loads imports nothing of the harness or the reference."""
    script = (
        "import sys, kvcs_conformance.plugin\n"
        "print(sorted(n for n in sys.modules if n.split('.')[0] in "
        "('kvcs_conformance', 'kvcs', 'moqt', 'yaml', 'click', 'numpy')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "['kvcs_conformance', 'kvcs_conformance.plugin']\n" == done.stdout
