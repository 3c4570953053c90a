"""A result folder that an enemy made: one clear line, or an explanation that says what is wrong."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kvcs_conformance.evidence.write import list_files

from tests.harness.test_cli import kvcs

NAME = "consumer/checks/length"
HOSTILE = "\x1b[2J]]></script>\x00\u202e"
Change = Callable[[Path, Path], None]
"""Alters a result folder; the second path is that of the case's evidence."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that an enemy then alters."""
    from kvcs_conformance.cli import main

    out = tmp_path_factory.mktemp("good")
    with pytest.raises(SystemExit):
        main(["run", NAME, "--out", str(out)])
    return out


def edited(path: str, edit: Callable[[Any], object], *, listed: bool = True) -> Change:
    """Edits a JSON file of the evidence, `listed` so that its SHA-256 is right."""

    def change(_: Path, home: Path) -> None:
        value = json.loads((home / path).read_text())
        edit(value)
        (home / path).write_text(json.dumps(value))
        if listed:
            list_files(home)

    return change


def of_results(edit: Callable[[Any], object]) -> Change:
    return lambda folder, _: edited("results.json", edit, listed=False)(folder, folder)


def first(**members: Any) -> Change:
    """Sets members of the first case of the result."""
    return of_results(lambda value: value["cases"][0].update(members))


def in_records(edit: Callable[[dict[str, Any]], object]) -> Change:
    """Edits every record of the relay's log."""

    def change(_: Path, home: Path) -> None:
        path = home / "relay.sqlog"
        head, *records = [json.loads(text) for text in path.read_text().split("\x1e")[1:]]
        for record in records:
            edit(record)
        path.write_text("".join(f"\x1e{json.dumps(value)}\n" for value in (head, *records)))
        list_files(home)

    return change


def in_place(path: str, put: Callable[[Path], object]) -> Change:
    """Puts something else in the place of a file of the evidence."""

    def change(_: Path, home: Path) -> None:
        (home / path).unlink()
        put(home / path)

    return change


def listing(name: str, digest: str = "00" * 32, octets: float = 1) -> Change:
    """Adds a file to the list of the evidence's files."""
    entry = {"path": name, "octets": octets, "sha256": digest}
    return edited("files.json", lambda value: value["files"].append(entry), listed=False)


REFUSED: dict[str, Change] = {
    "id-outside": first(id="../../../../etc/x"),
    "id-absolute": first(id="/etc"),
    "id-hostile": first(id=f"a/{HOSTILE}"),
    "requirement-hostile": first(requires=[HOSTILE]),
    "reason-hostile": first(reason=HOSTILE),
    "case-twice": of_results(lambda value: value["cases"].append(value["cases"][0])),
    "result-deep": lambda folder, _: shutil.copy(_deep(folder), folder / "results.json") and None,
}
UNREADABLE: dict[str, Change] = {
    "fifo": in_place("run.json", os.mkfifo),
    "endless": in_place("relay.sqlog", lambda path: path.symlink_to("/dev/zero")),
    "list-endless": listing("../../../../../../../../../../dev/zero"),
    "list-absolute": listing("/dev/zero"),
    "list-nul": listing("a\0b"),
    "list-infinite": listing("run.json", octets=float("inf")),
    "list-empty": edited("files.json", lambda value: value.update(files=[]), listed=False),
    "list-null": in_place("files.json", lambda path: path.write_text("null")),
    "log-outside": edited("run.json", lambda value: value["records"].update({"../../x": 1})),
    "log-absent": edited("run.json", lambda value: value["records"].update({"a": 1})),
    "no-role": edited("run.json", lambda value: value.pop("sut")),
    "trouble": edited("run.json", lambda value: value.update(trouble={"kind": "x"})),
    "steps": edited("run.json", lambda value: value.update(steps=[5])),
    "nodes": edited("run.json", lambda value: value.update(nodes={"relay": None})),
    "huge": edited("run.json", lambda value: value["scenario"].update(layers=10**12)),
    "observed": edited("run.json", lambda value: value.update(observed={"alpn": [5]})),
    "run-deep": in_place("run.json", lambda path: path.write_text("[" * 90000)),
    "time-text": in_records(lambda record: record.update(time="x")),
    "time-huge": in_records(lambda record: record.update(time=10**400)),
    "time-nan": in_records(lambda record: record.update(time=float("nan"))),
    "name": in_records(lambda record: record.update(name=["x"])),
    "data": in_records(lambda record: record.update(data=5)),
}
ODD: dict[str, Change] = {
    "no-data": in_records(lambda record: record.update(data={})),
    "message": in_records(lambda record: record["data"].update(message=5)),
    "track": in_records(lambda record: record["data"].update(track={"namespace": 5, "name": []})),
    "hostile": in_records(lambda record: record["data"].update(reason=HOSTILE, raw="zz")),
    "title": first(title=HOSTILE, blame=HOSTILE),
    "finding": first(findings=[{"outcome": "unseen", "text": HOSTILE * 9999, "index": 10**30}]),
    "peers": of_results(lambda value: value["peers"].update(relay=HOSTILE)),
}
COMMANDS = {
    "recheck": ["recheck", "DIR"],
    "explain": ["explain", "DIR", NAME],
    "json": ["explain", "DIR", NAME, "--json"],
    "report": ["report", "DIR", "--out", "OUT"],
    "certify": ["certify", "DIR", "--role", "consumer", "--out", "OUT/certificate.json"],
    "diff": ["diff", "GOOD", "DIR"],
}


def _deep(folder: Path) -> Path:
    path = folder / "deep"
    path.write_text("[" * 90000)
    return path


def after(
    change: Change, good: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command on the altered folder, outside of which nothing
    was written."""
    folder, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(good, folder)
    out.mkdir()
    change(folder, folder / "cases" / NAME)
    before = _prints(tmp_path, out)
    places = {"DIR": str(folder), "GOOD": str(good), "OUT": str(out)}
    words = [places.get(word, word.replace("OUT/", f"{out}/")) for word in COMMANDS[command]]
    code, told, complaint = kvcs(capsys, *words)
    assert before == _prints(tmp_path, out)
    assert "Traceback" not in complaint
    assert not set("\x00\x1b\u202e") & {*told, *complaint}
    return code, told, complaint


def _prints(root: Path, without: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink() and without not in path.parents
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", REFUSED)
def test_no_result(
    name: str,
    command: str,
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is no result of a run is refused by every command, in one line."""
    code, _, complaint = after(REFUSED[name], good, tmp_path, capsys, command)
    assert (2, 1) == (code, len(complaint.splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["recheck", "explain", "report"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_evidence(
    name: str,
    command: str,
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Evidence that no run writes is not judged; an explanation says why there is none."""
    code, _, complaint = after(UNREADABLE[name], good, tmp_path, capsys, command)
    if command == "recheck":
        assert (2, 1) == (code, len(complaint.splitlines()))
    else:
        assert (0, "") == (code, complaint)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ODD)
def test_odd_evidence(
    name: str,
    command: str,
    good: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever stands in texts and records, every command comes to an end and shows plain text."""
    code, _, complaint = after(ODD[name], good, tmp_path, capsys, command)
    assert code in (0, 1) or len(complaint.splitlines()) == 1


def test_a_defect_of_our_own_is_not_charged_to_the_folder(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the records are those of a run, what `explain` stumbles over is told as what it is."""
    from kvcs_conformance import catalogue
    from kvcs_conformance.report import explanation

    def broken(*_: object) -> None:
        raise KeyError("ours")

    result = json.loads((good / "results.json").read_text())
    monkeypatch.setattr(explanation, "timeline", broken)
    with pytest.raises(KeyError, match="ours"):
        explanation.explain_case(good, result, result["cases"][0], catalogue.load())
