"""Errors in case files: each names the file, the line, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases, select
from kvcs_conformance.errors import DataError, UsageError
from kvcs_conformance.source import read_yaml

GOOD = """\
id: publisher/order/sample
title: A sample
requires: [KVCS-3.3-2]
sut: publisher
scenario: {use: tiny-gqa}
steps:
  - consumer: {subscribe: [k.raw.s0], from: start, as: all}
  - publisher: {publish: all}
  - expect: {event: end-of-track, track: k.raw.s0}
judge:
  - layers-in-order: {tracks: data}
killed-by: [publisher/sample]
"""


@pytest.fixture(scope="module")
def catalogue() -> catalogues.Catalogue:
    return catalogues.load()


def refused(tmp_path: Path, catalogue: catalogues.Catalogue, text: str) -> DataError:
    (tmp_path / "sample.yaml").write_text(text)
    with pytest.raises(DataError) as caught:
        load_cases(catalogue, tmp_path)
    return caught.value


def test_a_right_case_is_read(tmp_path: Path, catalogue: catalogues.Catalogue) -> None:
    """A case that keeps every rule is read, with the scenario file under its own keys."""
    (tmp_path / "sample.yaml").write_text(GOOD)
    (case,) = load_cases(catalogue, tmp_path)
    assert case.id == "publisher/order/sample"
    assert case.level == "MUST"
    assert case.scenario["layers"] == 4


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("title:", "titel:", 2, "unknown key 'titel'; did you mean 'title'?"),
        ("sut: publisher", "sut: proxy", 4, "unknown value 'proxy'; known: publisher, relay"),
        ("{use: tiny-gqa}", "{use: tiny-gqa, layer: 3}", 5, "unknown key 'layer'"),
        ("{use: tiny-gqa}", "{use: huge}", 5, "no scenario 'huge'"),
        ("[KVCS-3.3-2]", "[KVCS-3.3-22]", 3, "unknown requirement 'KVCS-3.3-22'"),
        ("[KVCS-3.3-2]", "[KVCS-4-19]", 3, "KVCS-4-19 binds consumer, not the publisher"),
        ("[KVCS-3.3-2]", "[]", 3, "'requires' is empty"),
        ("  - layers-in-order: {tracks: data}", "  []", 10, "'judge' is empty"),
        ("layers-in-order:", "layers-in-odrer:", 11, "did you mean 'layers-in-order'?"),
        ("{tracks: data}", "{track: data}", 11, "unknown key 'track'; did you mean 'tracks'?"),
        ("{publish: all}", "{publsh: all}", 8, "unknown step 'publsh'; did you mean 'publish'?"),
        ("{publish: all}", "{subscribe: [k.raw.s0], from: next}", 8, "unknown step 'subscribe'"),
        ("- publisher:", "- relay:", 8, "unknown step or node 'relay'"),
        ("publisher: {publish: all}", "sleep: 2s", 8, "a bare sleep: wait for an event"),
        ("{publish: all}", "{wait: 2s}", 8, "a bare wait: wait for an event"),
        ("event: end-of-track", "event: end-of-trak", 9, "did you mean 'end-of-track'?"),
        ("{event: end-of-track, track: k.raw.s0}", "{}", 9, "key 'event' is missing"),
        ("track: k.raw.s0}", "of: none}", 9, "no step before this one is labelled 'none'"),
        ("[publisher/sample]", "[]", 12, "'killed-by' is empty"),
        ("track: k.raw.s0}", "track: k.raw.s0, within: 5}", 9, "5 should be like 300ms or 5s"),
        ("track: k.raw.s0}", "track: q.s0}", 9, "'q.s0' should be like k.raw.s0 or manifest"),
        ("tracks: data", "tracks: 3", 11, "3 should be 'data' or a list"),
        (
            "{publish: all}",
            "{publish: all}\n  - consumer: {fetch: [k.raw.s0], layers: [2, 1]}",
            9,
            "[2, 1] should be [first, last], the lower one first",
        ),
        ("title: A sample", "title: A sample\ntitle: B", 3, "key 'title' occurs twice"),
        ("title: A sample", "title: [", 4, "not YAML"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path,
    catalogue: catalogues.Catalogue,
    old: str,
    new: str,
    line: int,
    message: str,
) -> None:
    """Unknown words and keys, empty expectations and bare sleeps are errors at their line."""
    assert old in GOOD
    error = refused(tmp_path, catalogue, GOOD.replace(old, new, 1))
    assert str(error).startswith(f"{tmp_path}/sample.yaml:{line}: ")
    assert message in str(error)


def test_an_id_is_taken_once(tmp_path: Path, catalogue: catalogues.Catalogue) -> None:
    """Two files with one id are an error in the second."""
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text(GOOD)
    with pytest.raises(DataError, match=r"b\.yaml:1: id 'publisher/order/sample' is taken by"):
        load_cases(catalogue, tmp_path)


def test_a_requirement_without_judge_is_an_error(
    tmp_path: Path, catalogue: catalogues.Catalogue
) -> None:
    """A case that cites a requirement must have a judge that speaks about it."""
    text = GOOD.replace("[KVCS-3.3-2]", "[KVCS-3.3-1, KVCS-3.3-2]").replace(
        "{tracks: data}", "{tracks: data, for: [KVCS-3.3-2]}"
    )
    assert "no judge speaks about KVCS-3.3-1" in str(refused(tmp_path, catalogue, text))


def test_selection_by_glob_role_and_requirement(catalogue: catalogues.Catalogue) -> None:
    """A selector is a glob over ids, a role, or a requirement; several select the union."""
    cases = load_cases(catalogue, check=False)
    assert {case.sut for case in select(cases, ["relay"])} == {"relay"}
    assert [case.id for case in select(cases, ["consumer/checks/digest*"])] == [
        "consumer/checks/digest-mismatch"
    ]
    assert all("KVCS-8-2" in case.requires for case in select(cases, ["KVCS-8-2"]))
    assert len(select(cases, ["relay", "consumer"])) == len(
        [case for case in cases if case.sut in ("relay", "consumer")]
    )
    assert select(cases, []) == cases


def test_an_empty_selection_is_an_error(catalogue: catalogues.Catalogue) -> None:
    """A selector that matches nothing is named."""
    with pytest.raises(UsageError, match="no case matches 'nothing/'"):
        select(load_cases(catalogue, check=False), ["relay", "nothing/"])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "".join(
                f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" if i else "a0: &a0 [x]\n" for i in range(40)
            ),
            "over 200000 values",
        ),
        ("a: &a [*a]\n", "nested too deeply"),
        ("[" * 3000 + "]" * 3000, "depth|deep"),
    ],
)
def test_a_file_that_never_ends(tmp_path: Path, text: str, why: str) -> None:
    """Aliases that stand for more than memory holds, and bottomless nesting, are refused."""
    path = tmp_path / "case.yaml"
    path.write_text(text)
    with pytest.raises(DataError, match=why):
        read_yaml(path)
