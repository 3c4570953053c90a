"""Reports read back by other programs than those that wrote them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from junitparser import JUnitXml
from kvcs_conformance.cli import main
from kvcs_conformance.evidence.files import REPORT_FILES, clear_run
from kvcs_conformance.report import formats, results
from kvcs_conformance.report.summary import Weight, weight
from kvcs_conformance.verdicts import Verdict

from tests.harness.reports import HOSTILE, case, every_verdict, hostile, result, write_run

KINDS = {"Failure": Weight.FAILED, "Error": Weight.OPEN, "Skipped": Weight.SKIPPED}
VOID = {"meta", "input", "br", "link", "img", "hr"}


def text_of(tmp_path: Path, made: dict[str, Any], name: str) -> str:
    """One report of a hand-made run."""
    return formats.text(write_run(tmp_path, made), made, name)


# JUnit.


def test_junit_has_one_suite_per_role_and_every_case(tmp_path: Path) -> None:
    """Counts agree with the cases, and each case has the result that its verdict calls for."""
    made = every_verdict()
    xml = JUnitXml.fromstring(text_of(tmp_path, made, "junit"))
    assert [suite.name for suite in xml] == ["publisher", "relay", "consumer"]
    cases = {test.name: test for suite in xml for test in suite}
    assert set(cases) == {entry["id"] for entry in made["cases"]}
    weights = [weight(entry) for entry in made["cases"]]
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (
        len(weights),
        weights.count(Weight.FAILED),
        weights.count(Weight.OPEN),
        weights.count(Weight.SKIPPED),
    )
    for entry in made["cases"]:
        test = cases[entry["id"]]
        assert test.classname == entry["sut"]
        found = [KINDS[type(one).__name__] for one in test.result]
        assert found == ([weight(entry)] if weight(entry) in KINDS.values() else [])


def test_junit_says_why_and_where_from(tmp_path: Path) -> None:
    """Message: reason and finding; body: the explanation; properties: requirement, level, seed."""
    made = every_verdict()
    root = ElementTree.fromstring(text_of(tmp_path, made, "junit"))
    (test,) = root.findall(".//testcase[@name='consumer/every/fail']")
    (failure,) = test.findall("failure")
    assert failure.get("message") == "payload.digest-mismatch: what makes it fail"
    assert "at fault: consumer" in (failure.text or "")
    properties = [(p.get("name"), p.get("value")) for p in test.findall(".//property")]
    assert ("requirement", "KVCS-4-22") in properties
    assert ("level", "MUST") in properties
    assert ("seed", "7") in properties


def test_junit_skips_what_is_known_and_notes_advice(tmp_path: Path) -> None:
    """A known failure is skipped with its link, an unexpected pass fails, advice passes visibly."""
    root = ElementTree.fromstring(text_of(tmp_path, every_verdict(), "junit"))

    def one(name: str) -> ElementTree.Element:
        (test,) = root.findall(f".//testcase[@name='{name}']")
        return test

    skipped = one("relay/known/failure").find("skipped")
    assert skipped is not None
    assert "https://x.test/1" in str(skipped.get("message"))
    assert one("relay/known/passes").find("failure") is not None
    assert one("relay/known/expired").find("failure") is not None
    advised = one("publisher/every/advise")
    assert advised.find("failure") is None
    assert "property.absent" in str(advised.findtext("system-out"))


def test_junit_is_legal_xml_whatever_a_peer_says(tmp_path: Path) -> None:
    """No character that XML forbids, no text that ends a section."""
    xml = text_of(tmp_path, hostile(), "junit")
    assert len(list(JUnitXml.fromstring(xml))) == 2
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e\ud800-\udfff]", xml)


# TAP.


def points(tap: str) -> list[tuple[bool, int, str, str, dict[str, Any]]]:
    """A strict reader of what we write of TAP 14: ok, number, description, directive, block."""
    lines = tap.split("\n")
    assert lines[0] == "TAP version 14"
    assert lines[-1] == ""
    plan = re.fullmatch(r"1\.\.(\d+)(?: # SKIP .+)?", lines[1])
    assert plan is not None
    found: list[tuple[bool, int, str, str, dict[str, Any]]] = []
    rest = lines[2:-1]
    while rest:
        line = rest.pop(0)
        pattern = (
            r"(not )?ok (\d+) - ((?:[^#\\]|\\[#\\])*?)(?: # ((?:SKIP|TODO) (?:[^#\\]|\\[#\\])*))?"
        )
        point = re.fullmatch(pattern, line)
        assert point is not None, line
        block: list[str] = []
        if rest and rest[0] == "  ---":
            rest.pop(0)
            while rest[0] != "  ...":
                assert rest[0].startswith("  ")
                block.append(rest.pop(0)[2:])
            rest.pop(0)
        description = re.sub(r"\\([#\\])", r"\1", point[3])
        data = yaml.safe_load("\n".join(block)) or {}
        found.append((not point[1], int(point[2]), description, point[4] or "", data))
    assert [number for _, number, *_ in found] == list(range(1, int(plan[1]) + 1))
    return found


def test_tap_has_every_case_with_its_verdict(tmp_path: Path) -> None:
    """Numbered from 1, ok or not as the build takes it, SKIP and TODO where nothing was judged."""
    made = every_verdict()
    found = {
        name: (ok, directive)
        for ok, _, name, directive, _ in points(text_of(tmp_path, made, "tap"))
    }
    assert set(found) == {entry["id"] for entry in made["cases"]}
    assert found["publisher/every/pass"] == (True, "")
    assert found["consumer/every/fail"] == (False, "")
    assert found["publisher/every/advise"] == (True, "")
    assert found["relay/every/unsupported"] == (True, "SKIP unsupported")
    assert found["relay/known/failure"][0] is False
    assert found["relay/known/failure"][1].startswith("TODO known failure: https://x.test/1")
    assert found["relay/known/passes"] == (False, "")
    assert all(not found[e["id"]][0] for e in made["cases"] if weight(e) is Weight.OPEN)


def test_tap_survives_hostile_text(tmp_path: Path) -> None:
    """A hostile reason is data in a YAML block; a name with # and \\ is read back as it was."""
    made = hostile()
    made["cases"].append(case("relay/odd/#name\\x", "fail"))
    found = points(text_of(tmp_path, made, "tap"))
    assert found[-1][2] == "relay/odd/#name\\x"
    assert found[0][4]["verdict"] == "fail"
    assert found[0][4]["place"] == "cases/consumer/hostile/fail/consumer.sqlog:5"
    assert "\\x1b[31mred" in found[0][4]["message"]


def test_tap_of_nothing_is_a_skipped_plan(tmp_path: Path) -> None:
    """A run without a case is a legal stream."""
    assert points(text_of(tmp_path, result([]), "tap")) == []


# Markdown.


def test_markdown_says_the_verdict_first(tmp_path: Path) -> None:
    """The first lines say conformant or not and why not; every verdict is in the table."""
    text = text_of(tmp_path, every_verdict(), "markdown")
    lines = text.splitlines()
    assert lines[0] == "## KVCS: not conformant"
    assert "3 cases contradict a MUST, a MUST NOT or stated behaviour" in lines[2]
    assert "1 of them known" in lines[2]
    table = next(line for line in lines if line.startswith("| role |"))
    assert all(f" {verdict.value} " in table for verdict in Verdict)
    assert text.count("<details>") == text.count("</details>")


@pytest.mark.slow
def test_markdown_fits_a_job_summary_whatever_the_run(tmp_path: Path) -> None:
    """Five hundred failures stay under 64 KiB, and the rest is counted."""
    made = result([case(f"relay/many/case-{i}", "fail") for i in range(500)])
    (tmp_path / "results.json").write_text(json.dumps(made))
    text = formats.text(tmp_path, made, "markdown")
    assert len(text.encode()) <= 64 * 1024
    left = re.search(r"and (\d+) more: there is no room", text)
    assert left is not None
    assert text.count("relay/many/case-") >= 500 - int(left[1])


def test_markdown_shows_hostile_text_as_text(tmp_path: Path) -> None:
    """No tag of a peer's, no fence, no mention of anybody."""
    text = text_of(tmp_path, hostile(), "markdown")
    assert "<script" not in text
    outside = re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL)
    assert "@you" not in outside
    assert "``" not in outside


# HTML.


class Page(HTMLParser):
    """Balanced tags, ids, links and inline scripts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.tags: dict[str, int] = {}
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_page_has_every_case_and_requirement(tmp_path: Path) -> None:
    """Each case is under its id, each verdict in words; links lead inside or to evidence."""
    made = every_verdict()
    page = Page(text_of(tmp_path, made, "html"))
    assert len(page.ids) == len(set(page.ids))
    assert {entry["id"] for entry in made["cases"]} <= set(page.ids)
    assert "KVCS-4-22" in page.ids
    words = {word.strip() for word in page.words}
    assert {verdict.value for verdict in Verdict} <= words
    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)
    outside = [link for link in page.links if not link.startswith(("#", "cases/"))]
    assert set(outside) == {"https://x.test/1"}


def test_page_has_all_that_its_script_looks_for(tmp_path: Path) -> None:
    """Every id, class and data attribute that the script selects is in the page, even of a run
    without a case."""
    for made in (every_verdict(), result([])):
        text = text_of(tmp_path, made, "html")
        body, _, script = text.partition("<script>")
        for name in re.findall(r'one\("#([\w-]+)"', script):
            assert f'id="{name}"' in body or name.endswith("-")
        assert all(f'id="by-{name}"' in body for name in ("verdict", "role", "level"))
        assert 'class="empty"' in body


def test_page_fetches_nothing_and_forbids_it(tmp_path: Path) -> None:
    """A policy of hashes; no inline handler or style beside it; nothing to load."""
    text = text_of(tmp_path, every_verdict(), "html")
    page = Page(text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not any(name.startswith("on") or name in ("style", "src") for name in page.attributes)
    assert (page.tags["script"], page.tags["style"]) == (1, 1)
    assert not {"img", "link", "iframe", "object"} & set(page.tags)


def test_page_of_hostile_text_has_no_tag_more(tmp_path: Path) -> None:
    """What a peer says is text: no script of its own, nothing invisible, no link that runs."""
    known = {"kind": "failure", "state": "known", "link": "javascript:alert(1)", "expires": HOSTILE}
    made = hostile()
    made["cases"].append(case("relay/hostile/known", "fail", known=known))
    text = text_of(tmp_path, made, "html")
    page = Page(text)
    assert page.tags["script"] == 1
    assert not any(link.startswith("javascript") for link in page.links)
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)" in text


@pytest.mark.slow
def test_page_of_two_hundred_cases_is_no_burden(tmp_path: Path) -> None:
    """Two hundred cases, forty of them failing, take less than 5 MB."""
    cases = [
        case(
            f"relay/many/case-{i}",
            "fail" if i % 5 == 0 else "pass",
            finding={"node": "consumer", "index": 5},
        )
        for i in range(200)
    ]
    assert len(text_of(tmp_path, result(cases), "html")) < 5_000_000


# All of them.


@pytest.mark.parametrize("name", list(REPORT_FILES))
def test_the_same_folder_gives_the_same_octets(name: str, tmp_path: Path) -> None:
    """A report is a pure function of the folder, wherever that is."""
    made = every_verdict()
    assert text_of(tmp_path / "a", made, name) == text_of(tmp_path / "b", made, name)


@pytest.mark.slow
def test_the_command_writes_them_beside_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All formats by default, one with --format, to a file or to standard output with --out."""

    def kvcs(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    write_run(tmp_path, every_verdict())
    assert kvcs("report", tmp_path)[0] == 0
    assert all((tmp_path / name).is_file() for name in REPORT_FILES.values())
    tap = (tmp_path / "results.tap").read_text()
    assert kvcs("report", tmp_path, "--format", "tap", "--out", "-") == (0, tap, "")
    assert kvcs("report", tmp_path, "--format", "tap", "--out", tmp_path / "x.tap")[0] == 0
    assert (tmp_path / "x.tap").read_text() == tap
    code, _, err = kvcs("report", tmp_path, "--out", "-")
    assert (code, len(err.splitlines())) == (2, 1)


def test_a_new_run_takes_old_reports_away(tmp_path: Path) -> None:
    """A report beside another result than its own would lie."""
    made = result([case("relay/a/b")])
    paths = formats.write(write_run(tmp_path, made), results.read(tmp_path))
    assert all(path.is_file() for path in paths)
    clear_run(tmp_path)
    assert not any(path.exists() for path in paths)


def test_a_new_run_takes_nothing_away_that_is_not_of_a_run(tmp_path: Path) -> None:
    """A folder `cases` may be somebody's own: what no run wrote there stays."""
    write_run(tmp_path, result([case("relay/a/b"), case("relay/a/b-twin")]))
    own = tmp_path / "cases" / "relay" / "mine.yaml"
    own.write_text("mine")
    clear_run(tmp_path)
    assert [own] == [path for path in (tmp_path / "cases").rglob("*") if path.is_file()]
    assert [own.parent] == [path for path in (tmp_path / "cases").rglob("*") if path.is_dir()]
