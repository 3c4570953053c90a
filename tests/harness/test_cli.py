"""The command line: exit codes, one clear line for what is wrong, nothing half-written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cases import load_cases
from kvcs_conformance.cli import main


def kvcs(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_list_names_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    """`kvcs list` names each case with its level, requirements and title."""
    code, out, _ = kvcs(capsys, "list", "consumer/checks/digest-mismatch")
    assert code == 0
    assert out.startswith("consumer/checks/digest-mismatch  (consumer, MUST)\n")
    assert "KVCS-4-22" in out


def test_list_describes_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    """`--steps` and `--judges` come from the definitions, so every word is there."""
    from kvcs_conformance.cases.words import STEPS, TAMPERS, WAITS
    from kvcs_conformance.evidence.wait import EVENTS
    from kvcs_conformance.judge import JUDGES

    code, out, _ = kvcs(capsys, "list", "--steps", "--judges")
    assert code == 0
    shown = out.split()
    steps = {word for table in STEPS.values() for word in table}
    assert {*steps, *WAITS, *EVENTS, *TAMPERS, *JUDGES} <= set(shown)


def test_list_imports_nothing_heavy() -> None:
    """`kvcs list` answers without the packages that take time to import."""
    heavy = ["aioquic", "asyncio", "cryptography", "jsonschema", "ml_dtypes", "numpy", "rich"]
    script = (
        "import sys\n"
        "from kvcs_conformance.cli import main\n"
        "try:\n    main(['list'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "nothing/*"], "no case matches 'nothing/*'"),
        (["run", "nothing/*"], "no case matches 'nothing/*'"),
        (["selftest", "nothing/*"], "no case matches 'nothing/*'"),
        (["list", "--steps", "relay"], "--steps and --judges take no selection"),
        (["run", "--link", "pigeon"], "'pigeon' is not one of 'memory', 'quic'"),
        (["run", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["run", "--limit", "nan"], "nan is no number of seconds"),
        (["run", "--limit", "inf"], "inf is not in the range"),
        (["run", "--quic-qlog"], "--quic-qlog is about --link quic"),
        (["run", "--quic-qlog", "--link", "quic"], "say where, with --out"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["run", "--frobnicate"], "No such option"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """What cannot be served is said in one line on stderr; exit code 2."""
    code, out, err = kvcs(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_folder_without_result_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`explain` and `recheck` say what is missing in a folder that no run wrote."""
    for arguments in (["explain", tmp_path, "relay/x"], ["recheck", tmp_path]):
        code, _, err = kvcs(capsys, *arguments)
        assert code == 2
        assert (
            err
            == f"kvcs: {tmp_path}: no results.json there; `kvcs run --out {tmp_path}` writes one\n"
        )


def test_a_broken_result_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A results.json that is no JSON or no result is one line, exit code 2."""
    for text, told in (("{", "not JSON"), ('{"schema": 1}', "not a result of schema 1")):
        (tmp_path / "results.json").write_text(text)
        code, _, err = kvcs(capsys, "explain", tmp_path, "relay/x")
        assert code == 2
        assert told in err
        assert err.count("\n") == 1


def test_an_output_folder_that_cannot_be_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`--out` below a file is refused before anything runs."""
    (tmp_path / "file").write_text("")
    code, _, err = kvcs(capsys, "run", "consumer/live/*", "--out", tmp_path / "file" / "out")
    assert code == 2
    assert "cannot be made" in err


def test_a_broken_case_file_stops_everything(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown key in a case file is named with file and line; nothing runs, nothing is
    written."""
    data = tmp_path / "testcases"
    for name in ("requirements", "scenarios"):
        shutil.copytree(datafiles.folder("testcases") / name, data / name)
    (case,) = load_cases(catalogues.load(), ids=["publisher/retention/stated"])
    lines = case.path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines) if text.startswith("title:"))
    lines[line] = lines[line].replace("title:", "tilte:")
    (data / "cases").mkdir()
    (data / "cases/x.yaml").write_text("\n".join(lines))
    monkeypatch.setenv("KVCS_DATA", str(tmp_path))
    code, out, err = kvcs(capsys, "run", "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert (
        err == f"kvcs: {data}/cases/x.yaml:{line + 1}: unknown key 'tilte'; did you mean 'title'?\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["list", "run publisher/retention/*"])
def test_output_that_nobody_reads_is_no_failed_case(arguments: str) -> None:
    """Into a closed pipe: exit code 2, which is not that of a failed case."""
    script = "import sys; from kvcs_conformance.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", script, *arguments.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (b"", 2) == (process.stderr.read(), process.wait())


def test_the_result_schema_is_a_schema() -> None:
    """The published schema of results is valid, and refuses a result without cases."""
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": 1}, schema)


def test_a_known_bad_peer_fails_from_the_command_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """`--mutant` runs the cases that name it; result, explanation and rerun say which it was."""
    name, case = "relay/changes-payload", "relay/cache/immutable-object"
    code, out, _ = kvcs(capsys, "run", "--mutant", name, "--out", tmp_path)
    assert (1, True) == (code, case in out)
    result = json.loads((tmp_path / "results.json").read_text())
    cases = load_cases(catalogues.load(), check=False)
    naming = [one.id for one in cases if name in one.killed_by]
    assert naming == [row["id"] for row in result["cases"]]
    assert case in naming
    assert {"publisher": "reference", "relay": name, "consumer": "reference"} == result["peers"]
    code, out, _ = kvcs(capsys, "explain", tmp_path, case)
    assert f"kvcs run {case} --link memory --seed 0 --mutant {name}" in out
    assert 0 == kvcs(capsys, "recheck", tmp_path)[0]


def test_an_unknown_known_bad_peer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest names are offered; a case of another role is not run with it."""
    code, _, err = kvcs(capsys, "run", "--mutant", "relay/changes-payloads")
    assert (2, True) == (code, "relay/changes-payload" in err)
    code, _, err = kvcs(capsys, "run", "publisher/*", "--mutant", "relay/changes-payload")
    assert (2, 1) == (code, len(err.splitlines()))


def test_a_folder_holds_one_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A second run into a folder takes the evidence of the first away, and nothing else."""
    (tmp_path / "mine.txt").write_text("keep")
    kvcs(capsys, "run", "relay/cache/whole-group", "--out", tmp_path)
    kvcs(capsys, "run", "consumer/checks/length", "--out", tmp_path)
    assert ["consumer"] == [path.name for path in (tmp_path / "cases").iterdir()]
    assert "keep" == (tmp_path / "mine.txt").read_text()
