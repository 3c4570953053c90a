"""Choosing cases."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cases import Case, Selection, load_cases
from kvcs_conformance.cli import main
from kvcs_conformance.errors import UsageError

CATALOGUE = catalogues.load()
CASES = load_cases(CATALOGUE, check=False)


def ids(selection: Selection, cases: tuple[Case, ...] = CASES) -> set[str]:
    """The ids of the cases chosen."""
    return {case.id for case in selection.of(cases)}


def test_values_of_one_kind_add_up_and_kinds_narrow_down() -> None:
    """Two roles are either role; a role and a level are both."""
    relay = {case.id for case in CASES if case.sut == "relay"}
    publisher = {case.id for case in CASES if case.sut == "publisher"}
    must = {case.id for case in CASES if case.level == "MUST"}
    assert relay | publisher == ids(Selection(roles=("relay", "publisher")))
    assert publisher & must == ids(Selection(roles=("publisher",), levels=("MUST",)))
    assert publisher & must == ids(Selection(("publisher/*",), levels=("MUST",)))
    assert {case.id for case in CASES} == ids(Selection())


def test_cases_are_chosen_by_requirement_and_tag() -> None:
    """A requirement may be a glob; a tag is one that a case carries."""
    cites = {case.id for case in CASES if any(r.startswith("KVCS-4-") for r in case.requires)}
    assert cites == ids(Selection(requirements=("KVCS-4-*",)))
    first, second, *rest = CASES
    tagged = (replace(first, tags=("slow", "new")), replace(second, tags=("new",)), *rest)
    assert {first.id, second.id} == ids(Selection(tags=("new",)), tagged)
    assert {first.id} == ids(Selection(tags=("slow",)), tagged)


def test_cases_are_left_out() -> None:
    """`--exclude` takes what a selector takes."""
    assert {case.id for case in CASES if case.sut != "relay"} == ids(Selection(exclude=("relay",)))


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        (Selection(tags=("nosuch",)), "--tag 'nosuch'"),
        (Selection(requirements=("KVCS-99",)), "--requirement 'KVCS-99'"),
        (Selection(exclude=("nosuch",)), "--exclude 'nosuch'"),
        (Selection(("relay",), roles=("publisher",)), "no case matches all"),
    ],
)
def test_what_chooses_nothing_is_named(selection: Selection, told: str) -> None:
    """A value that no case has is an error, and so are values that no case has together."""
    with pytest.raises(UsageError, match=told):
        selection.of(CASES)


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    name = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "-C", str(folder), *name, *words], check=True, capture_output=True)


@pytest.mark.slow
def test_cases_are_chosen_by_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed case file, a new one, and a changed scenario count; committed or not."""
    shutil.copytree(datafiles.folder("testcases"), tmp_path / "testcases")
    monkeypatch.setenv("KVCS_DATA", str(tmp_path))
    cases = load_cases(CATALOGUE, check=False)
    with pytest.raises(UsageError, match="is not in a git checkout"):
        Selection(changed_since="HEAD").of(cases)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    assert set() == ids(Selection(changed_since="HEAD"), cases)
    folder = tmp_path / "testcases" / "cases"
    publisher, relay = "publisher/retention/stated", "relay/cache/immutable-object"
    paths = {case.id: case.path for case in cases}
    for name in (publisher, relay):
        paths[name].write_text(paths[name].read_text() + "# changed\n")
    git(tmp_path, "commit", "-q", "-m", "two", "--", str(paths[publisher]))
    assert {relay} == ids(Selection(changed_since="HEAD"), cases)
    assert {relay, publisher} == ids(Selection(changed_since="HEAD~1"), cases)
    assert set() == ids(Selection(("publisher/*",), changed_since="HEAD"), cases)
    new = folder / "new.yaml"
    new.write_text("id: new\n")
    added = replace(cases[0], path=new)
    assert {added.id} == ids(Selection(changed_since="HEAD"), (added,))
    scenario = tmp_path / "testcases/scenarios/tiny-gqa.yaml"
    scenario.write_text(scenario.read_text() + "# changed\n")
    uses = {case.id for case in cases if case.scenario["use"] == "tiny-gqa"}
    assert uses <= ids(Selection(changed_since="HEAD"), cases)
    for revision in ("nosuch", "--help", ""):
        with pytest.raises(UsageError, match="git knows no revision"):
            Selection(changed_since=revision).of(cases)


def test_list_only_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """`kvcs run --list-only` names what would run, one id per line."""
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--role", "relay", "--list-only"])
    shown = capsys.readouterr().out.split()
    assert (0, [case.id for case in CASES if case.sut == "relay"]) == (stopped.value.code, shown)


@pytest.mark.slow
def test_whole_ids_load_their_cases_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of one case by name reads the others' files no further, broken or not; a glob, or an
    id that is none, reads all."""
    shutil.copytree(datafiles.folder("testcases"), tmp_path / "testcases")
    monkeypatch.setenv("KVCS_DATA", str(tmp_path))
    name = "publisher/retention/stated"
    assert [name] == [case.id for case in Selection((name,)).load(CATALOGUE)]
    (tmp_path / "testcases/cases/broken.yaml").write_text("id: [\n")
    assert [name] == [case.id for case in Selection((name,)).load(CATALOGUE)]
    for other in ("publisher/retention/*", "publisher/retention/state", "publisher"):
        with pytest.raises(UsageError, match=r"broken\.yaml"):
            Selection((other,)).load(CATALOGUE)
