"""A relay that runs somewhere already is the relay of every case."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cases import Case, load_cases, select
from kvcs_conformance.cli import main
from kvcs_conformance.remote import Remote
from kvcs_conformance.report.explanation import again

CASES = load_cases(catalogues.load(), check=False)
COMMAND = "import sys; from kvcs_conformance.cli import main; main(sys.argv[1:])"
ANY = Remote("moqt://127.0.0.1:4433/", insecure=True)
PLAIN = "relay/cache/immutable-object"


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


@pytest.fixture(scope="module")
def relay() -> Iterator[str]:
    """The URL of a relay in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "relay", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        assert ready.startswith("relay ready on "), ready
        yield f"moqt://{ready.split()[-1]}/"
        process.terminate()


def result_in(out: Path) -> dict[str, Any]:
    """The result, by its schema."""
    result: dict[str, Any] = json.loads((out / "results.json").read_text())
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(result)
    return result


@pytest.mark.slow
def test_cases_run_against_a_relay_in_another_process(relay: str, tmp_path: Path) -> None:
    """Twice against the same relay, whose cache lives on: the same verdicts; what must be set on
    the relay is not applicable; the evidence gives the verdicts again; the run can be resumed."""
    names = [PLAIN, "relay/cache/whole-group", "relay/authorisation/warm-cache"]
    for out in (tmp_path / "one", tmp_path / "two"):
        assert 0 == command("run", *names, "--relay", relay, "--insecure", "--out", out)
        result = result_in(out)
        assert {"pass": 2, "not-applicable": 1} == result["summary"]
        assert (relay, "quic") == (result["peers"]["relay"], result["link"])
        assert {"url": relay, "insecure": True} == result["remote"]
        command_again = again(result, result["cases"][-1])
        assert command_again.endswith(f"--relay {relay} --insecure")
        assert 0 == command("recheck", out)
        assert 0 == command("run", "--resume", out)
        assert result == result_in(out)


@pytest.mark.slow
def test_a_certificate_that_nobody_trusts_blocks(relay: str, tmp_path: Path) -> None:
    """Without `--insecure` the certificate is verified: the case is blocked, not failed."""
    assert 3 == command("run", PLAIN, "--relay", relay, "--out", tmp_path)
    (entry,) = result_in(tmp_path)["cases"]
    assert ("blocked", "setup.failed") == (entry["verdict"], entry["reason"])


@pytest.mark.slow
def test_a_relay_that_is_not_there_blocks_and_the_address_is_told(tmp_path: Path) -> None:
    """Nobody accepted an announcement; why not stands beside it, and no time is waited away."""
    gone = "moqt://127.0.0.1:1/"
    assert 3 == command("run", PLAIN, "--relay", gone, "--insecure", "--out", tmp_path)
    (entry,) = result_in(tmp_path)["cases"]
    assert ("blocked", "setup.failed") == (entry["verdict"], entry["reason"])
    assert "its session was closed: cannot reach 127.0.0.1:1" in entry["findings"][0]["text"]


def test_a_file_without_certificates_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said once and before anything is run, not once per case."""
    (tmp_path / "ca.pem").write_text("no certificate")
    assert 2 == command("run", PLAIN, "--relay", ANY.url, "--ca", tmp_path / "ca.pem")
    assert f"kvcs: {tmp_path / 'ca.pem'}: not certificates in PEM form\n" == capsys.readouterr().err


def test_without_selectors_the_cases_of_relays_are_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--relay` alone chooses them."""
    assert 0 == command("run", "--relay", ANY.url, "--insecure", "--list-only")
    shown = capsys.readouterr().out.split()
    assert [one.id for one in CASES if one.sut == "relay"] == shown


def with_scenario(**values: Any) -> Case:
    """A case of a relay whose scenario has these besides."""
    plain = case(PLAIN)
    return replace(plain, scenario={**plain.scenario, **values})


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (with_scenario(**{"tokens-required": True}), "tokens-required is set on the relay"),
        (with_scenario(limits={"requests": 3}), "limits is set on the relay"),
        (with_scenario(**{"relay-faults": [{"no-marks": {}}]}), "relay-faults is set on"),
        (with_scenario(network={"grants": {"relay": {"streams": 1}}}), "grants are set on"),
        (
            with_scenario(nodes={"relay": {"kind": "relay", "to": "up"}, "up": {"kind": "relay"}}),
            "downstream of up",
        ),
        (
            replace(case(PLAIN), steps=({"expect": {"event": "object", "at": "relay"}},)),
            "in the relay's log",
        ),
        (replace(case(PLAIN), steps=({"network": {"kill": "relay"}},)), "it is killed"),
        (case("consumer/live/exactly-once-join"), "is read in the relay's log"),
    ],
)
def test_what_the_harness_cannot_do_to_it_is_not_applicable(one: Case, why: str) -> None:
    """What a case needs to set on the relay, do to it or read from it is named."""
    told = ANY.why_not(one)
    assert told is not None
    assert why in told


def test_what_is_false_or_of_another_node_is_no_obstacle() -> None:
    """A setting that is off, and a fault of another node, need nothing of the relay."""
    assert ANY.why_not(case(PLAIN)) is None
    assert ANY.why_not(with_scenario(**{"tokens-required": False})) is None
    assert ANY.why_not(replace(case(PLAIN), steps=({"network": {"kill": "publisher"}},))) is None
    between = with_scenario(network={"links": [{"between": ["relay", "publisher"]}]})
    assert ANY.why_not(between) is None
    verified = replace(ANY, insecure=False)
    assert "needs --insecure" in str(verified.why_not(between))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--relay", "https://x/"], "is not a moqt URI"),
        (["--relay", ANY.url, "--link", "memory"], "leave out --link memory"),
        (["--insecure"], "about the relay that --relay names"),
        (["--relay", ANY.url, "--insecure", "--ca", __file__], "give one of them"),
        (["--relay", ANY.url, "--mutant", "relay/never-caches"], "are both a relay"),
        (["--relay", ANY.url, "publisher"], "in none of these cases is there a relay"),
    ],
)
def test_what_does_not_go_together_is_named(
    capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    """One line, exit code 2."""
    assert 2 == command("run", *options)
    err = capsys.readouterr().err
    assert told in err
    assert 1 == err.count("\n")
