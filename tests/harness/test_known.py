"""Known failures and flakes: an overlay that changes the exit code and never a verdict."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.cases import load_cases
from kvcs_conformance.cli import main
from kvcs_conformance.errors import DataError
from kvcs_conformance.known import Known, exit_code_of, load_known, overlay

CASES = load_cases(catalogues.load(), check=False)
CASE = "relay/cache/immutable-object"
BAD = "relay/changes-payload"
TODAY = date(2026, 6, 15)
ENTRY = f"""
- case: {CASE}
  kind: failure
  link: https://example.org/issues/7
  expires: 2026-06-15
"""


def known(**values: Any) -> Known:
    """An entry about the case."""
    usual = {"case": CASE, "kind": "failure", "expires": TODAY, "place": "known.yaml:1"}
    return Known(**{**usual, "link": "https://example.org/issues/7", **values})


def result(verdict: str, reason: str | None = None, **peers: str) -> dict[str, Any]:
    """A result with one case."""
    return {
        "peers": {"publisher": "reference", "relay": "reference", "consumer": "x", **peers},
        "link": "memory",
        "summary": {verdict: 1},
        "cases": [{"id": CASE, "verdict": verdict, "reason": reason}],
    }


def marked(before: dict[str, Any], *entries: Known) -> tuple[str | None, int]:
    """The state of what is known of the case, and the exit code."""
    after = overlay(before, entries, TODAY)
    (case,) = after["cases"]
    assert before["summary"] == after["summary"]
    assert before["cases"][0]["verdict"] == case["verdict"]
    assert (case.get("known", {}).get("state") == "unexpected-pass") == ("unexpected" in case)
    return case.get("known", {}).get("state"), int(exit_code_of(after))


@pytest.mark.parametrize(
    ("verdict", "entry", "told"),
    [
        ("fail", known(), ("known", 0)),
        ("fail", known(kind="flake"), ("known", 0)),
        ("pass", known(), ("unexpected-pass", 1)),
        ("pass", known(kind="flake"), ("known", 0)),
        ("pass", known(expires=date(2026, 6, 14)), ("expired", 0)),
        ("fail", known(expires=date(2026, 6, 14)), ("expired", 1)),
        ("inconclusive", known(), ("differs", 3)),
        ("inconclusive", known(verdict="inconclusive"), ("known", 0)),
        ("harness-error", known(), ("differs", 2)),
        ("not-run", known(), (None, 3)),
        ("fail", known(peer="x"), ("known", 0)),
        ("fail", known(peer="y"), (None, 1)),
        ("fail", known(on="quic"), (None, 1)),
        ("fail", known(on="memory"), ("known", 0)),
        ("fail", known(case="relay/*"), ("known", 0)),
        ("fail", known(case="publisher/*"), (None, 1)),
    ],
)
def test_what_is_known_decides_the_exit_code(
    verdict: str, entry: Known, told: tuple[str | None, int]
) -> None:
    """A known failure is no failure of the run, its pass is one; an entry counts through its last
    day, for its verdict, peer, link and cases."""
    assert told == marked(result(verdict), entry)


def test_a_reason_narrows_down_what_is_known() -> None:
    """With a reason only a failure for that reason is known."""
    entry = known(reason="object.changed")
    assert ("known", 0) == marked(result("fail", "object.changed"), entry)
    assert ("differs", 1) == marked(result("fail", "object.missing"), entry)


def test_of_several_entries_the_one_that_counts_is_taken() -> None:
    """An expired entry does not hide one that counts."""
    old = known(expires=date(2026, 1, 1))
    assert ("known", 0) == marked(result("fail"), old, known(case="relay/*"))


def test_one_known_failure_hides_no_other() -> None:
    """Another case that fails still makes the exit code 1."""
    both = result("fail")
    both["cases"].append({"id": "relay/other", "verdict": "fail", "reason": None})
    assert 1 == exit_code_of(overlay(both, [known()], TODAY))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ENTRY + "  colour: red\n", ":6: unknown key 'colour'"),
        (ENTRY.replace(CASE, "relay/nosuch"), ":2: no case matches 'relay/nosuch'"),
        (ENTRY.replace("failure", "feature"), ":3: unknown value 'feature'"),
        (ENTRY.replace("06-15", "06-31"), ":5: '2026-06-31' is no value"),
        (ENTRY.replace("2026-06-15", "'2026-06-31'"), ":5: '2026-06-31' is no date"),
        (ENTRY.replace("2026-06-15", "soon"), ":5: 'soon' is no date"),
        (ENTRY.replace("https:", "ftp:"), "should be like https://example.org/issues/7"),
        ("case: x\n", "should be a list"),
        (ENTRY + "  verdict: pass\n", ":6: unknown value 'pass'"),
    ],
)
def test_a_wrong_overlay_is_named_with_file_and_line(tmp_path: Path, text: str, told: str) -> None:
    """What is wrong with an entry is said where it stands."""
    path = tmp_path / "known.yaml"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        load_known(path, CASES)
    assert told in str(refused.value)


def test_an_overlay_is_read(tmp_path: Path) -> None:
    """Dates may be quoted or not; an empty file knows nothing."""
    path = tmp_path / "known.yaml"
    path.write_text(ENTRY + ENTRY.replace("2026-06-15", "'2026-06-15'"))
    first, second = load_known(path, CASES)
    assert (CASE, "failure", TODAY, f"{path}:2") == (
        first.case,
        first.kind,
        first.expires,
        first.place,
    )
    assert second.expires == first.expires


def test_the_key_on_is_a_word(tmp_path: Path) -> None:
    """YAML 1.1 takes `on` for true; in an overlay it says on which link an entry counts."""
    path = tmp_path / "known.yaml"
    path.write_text(ENTRY + "  on: quic\n")
    (entry,) = load_known(path, CASES)
    assert "quic" == entry.on
    path.write_text("")
    assert () == load_known(path, CASES)


@pytest.mark.slow
def test_a_known_failure_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--known` makes the run green, says so in table and result; `recheck` keeps it."""
    overlay_file = tmp_path / "known.yaml"
    overlay_file.write_text(ENTRY.replace("2026-06-15", "9999-12-31"))
    with pytest.raises(SystemExit) as stopped:
        main(["run", CASE, "--mutant", BAD, "--known", str(overlay_file), "--out", str(tmp_path)])
    assert 0 == stopped.value.code
    assert "known failure: https://example.org/issues/7, until 9999-12-31" in " ".join(
        capsys.readouterr().out.split()
    )
    written = json.loads((tmp_path / "results.json").read_text())
    schema = json.loads((datafiles.folder("reports") / "results.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(written)
    assert {"fail": 1} == written["summary"]
    assert "known" == written["cases"][0]["known"]["state"]
    with pytest.raises(SystemExit) as stopped:
        main(["recheck", str(tmp_path)])
    assert 0 == stopped.value.code
    with pytest.raises(SystemExit) as stopped:
        main(["run", CASE, "--known", str(overlay_file)])
    assert 1 == stopped.value.code
    assert "known failure that passes" in " ".join(capsys.readouterr().out.split())
