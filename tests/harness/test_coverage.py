"""Coverage: its arithmetic by hand-made catalogues, and what is still open in the project's own.

The check of the real catalogue fails on an entry that nobody has classified, on one that is
testable and has no case, and on one whose cases kill no mutant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import coverage as coverages
from kvcs_conformance import fieldcases
from kvcs_conformance.cases.load import Case, load_cases
from kvcs_conformance.catalogue import Catalogue, Requirement, Source, Standing
from kvcs_conformance.cli import main
from kvcs_conformance.errors import DataError, UsageError
from kvcs_conformance.fieldcases import FieldCase
from kvcs_conformance.mutants import MUTANTS
from kvcs_conformance.mutants.registry import Mutant
from kvcs_conformance.peers import Peers
from kvcs_conformance.report.coverage import summary
from kvcs_conformance.verdicts import Level

JUDGED = (Standing.JUDGED, None)


def entry(
    name: str, level: Level = Level.MUST, **standings: tuple[Standing, str | None] | None
) -> Requirement:
    """A requirement that binds the roles of `standings`; None leaves one unclassified."""
    roles = tuple(standings)
    known = {role: standing for role, standing in standings.items() if standing is not None}
    return Requirement(name, level, roles, "1", "text", standings=known)


def catalogue(*entries: Requirement) -> Catalogue:
    """A catalogue X of `entries`."""
    by_id = {each.id: each for each in entries}
    return Catalogue("x", "1", "0" * 64, by_id, {}, (Source("x", "1", "t", "0" * 64),))


def case(name: str, requires: list[str], killed_by: list[str], field: tuple[int, ...] = ()) -> Case:
    """A case of the role that its name begins with."""
    return Case(
        id=name,
        title="t",
        requires=tuple(requires),
        sut=name.split("/")[0],
        level=Level.MUST,
        scenario={},
        steps=(),
        judge=(),
        twin=None,
        killed_by=tuple(killed_by),
        only_link=None,
        path=Path("x.yaml"),
        source={},
        field=field,
    )


def mutant(name: str, *requires: str) -> Mutant:
    """A mutant that breaks `requires`."""
    return Mutant(name, name.split("/")[0], "d", requires, frozenset(), Peers())


def field_case(name: str, *roles: str) -> FieldCase:
    """A fault that `roles` can have."""
    return FieldCase(name, roles, "fault", "right")


def status(covered: Mapping[str, Any]) -> dict[str, str]:
    """The status of each entry."""
    return {row["id"]: row["status"] for row in covered["entries"]}


def numbers(counts: Mapping[str, Any]) -> tuple[int, ...]:
    """The counts in their order."""
    keys = ("total", "classified", "testable", "planned", "cased", "with_killed_mutant")
    return tuple(counts[key] for key in keys)


def test_each_step_of_coverage_has_its_status() -> None:
    """Nobody said, no case, waits, a case, a case with mutant, and the two that need none."""
    covered = coverages.coverage(
        catalogue(
            entry("X-1-1", relay=None),
            entry("X-1-2", relay=JUDGED),
            entry("X-1-3", relay=(Standing.PLANNED, "later")),
            entry("X-1-4", relay=JUDGED),
            entry("X-1-5", relay=JUDGED),
            entry("X-1-6", relay=(Standing.OUTSIDE, "not used")),
            entry("X-1-7", relay=(Standing.UNTESTABLE, "not seen")),
        ),
        [case("relay/a", ["X-1-4", "X-1-5"], ["relay/m"])],
        {"relay/m": mutant("relay/m", "X-1-5")},
    )
    assert status(covered) == {
        "X-1-1": "unclassified",
        "X-1-2": "open",
        "X-1-3": "planned",
        "X-1-4": "cased",
        "X-1-5": "proven",
        "X-1-6": "outside",
        "X-1-7": "untestable",
    }
    assert numbers(covered) == (7, 6, 4, 1, 2, 1)
    assert covered["gaps"] == [
        {"id": "X-1-1", "role": "relay", "status": "unclassified"},
        {"id": "X-1-2", "role": "relay", "status": "open"},
        {"id": "X-1-4", "role": "relay", "status": "cased"},
    ]


def test_an_entry_needs_a_case_for_each_role() -> None:
    """A case covers an entry for the role under test alone; the entry is as far as its last."""
    entries = catalogue(entry("X-1-1", publisher=JUDGED, relay=JUDGED))
    relay = case("relay/a", ["X-1-1"], ["relay/m"])
    mutants = {
        "relay/m": mutant("relay/m", "X-1-1"),
        "publisher/m": mutant("publisher/m", "X-1-1"),
    }
    half = coverages.coverage(entries, [relay], mutants)
    assert status(half) == {"X-1-1": "open"}
    assert numbers(half) == (1, 1, 1, 0, 0, 0)
    assert numbers(half["by_role"]["relay"]) == (1, 1, 1, 0, 1, 1)
    assert numbers(half["by_role"]["publisher"]) == (1, 1, 1, 0, 0, 0)
    both = [relay, case("publisher/a", ["X-1-1"], ["publisher/m"])]
    whole = coverages.coverage(entries, both, mutants)
    assert status(whole) == {"X-1-1": "proven"}
    assert whole["entries"][0]["cases"] == ["publisher/a", "relay/a"]
    assert whole["entries"][0]["mutants"] == ["publisher/m", "relay/m"]


def test_what_is_planned_for_one_role_is_not_cased() -> None:
    """An entry that is proven for one role and planned for another waits as a whole."""
    covered = coverages.coverage(
        catalogue(entry("X-1-1", publisher=JUDGED, consumer=(Standing.PLANNED, "later"))),
        [case("publisher/a", ["X-1-1"], ["publisher/m"])],
        {"publisher/m": mutant("publisher/m", "X-1-1")},
    )
    assert status(covered) == {"X-1-1": "planned"}
    assert numbers(covered) == (1, 1, 1, 1, 0, 0)
    assert covered["entries"][0]["why"] == "consumer: later"
    assert covered["gaps"] == []


def test_a_role_that_is_not_testable_does_not_hold_an_entry_back() -> None:
    """An entry is proven when it is proven for every role for which it can be."""
    covered = coverages.coverage(
        catalogue(entry("X-1-1", publisher=JUDGED, registry=(Standing.UNTESTABLE, "paper"))),
        [case("publisher/a", ["X-1-1"], ["publisher/m"])],
        {"publisher/m": mutant("publisher/m", "X-1-1")},
    )
    assert status(covered) == {"X-1-1": "proven"}
    assert numbers(covered) == (1, 1, 1, 0, 1, 1)


def test_a_mutant_proves_what_it_breaks() -> None:
    """A mutant that a case names proves only the requirements that the mutant itself breaks."""
    entries = catalogue(entry("X-1-1", relay=JUDGED), entry("X-1-2", relay=JUDGED))
    cases = [case("relay/a", ["X-1-1", "X-1-2"], ["relay/m", "relay/none"])]
    covered = coverages.coverage(entries, cases, {"relay/m": mutant("relay/m", "X-1-2")})
    assert status(covered) == {"X-1-1": "cased", "X-1-2": "proven"}


def test_the_golden_matrix_has_the_last_word() -> None:
    """With a kill matrix only the kills that it records count, for the case that it records."""
    entries = catalogue(entry("X-1-1", relay=JUDGED))
    cases = [case("relay/a", ["X-1-1"], ["relay/m"])]
    mutants = {"relay/m": mutant("relay/m", "X-1-1")}
    for kills, expected in (
        ({"relay/m": ("relay/a",)}, "proven"),
        ({"relay/m": ("relay/b",)}, "cased"),
        ({}, "cased"),
    ):
        covered = coverages.coverage(entries, cases, mutants, kills=kills)
        assert status(covered) == {"X-1-1": expected}


def test_levels_are_counted_by_entry() -> None:
    """Each level has the counts of its own entries, overall and by catalogue."""
    covered = coverages.coverage(
        catalogue(
            entry("X-1-1", Level.MUST, relay=JUDGED),
            entry("X-1-2", Level.SHOULD, relay=JUDGED, consumer=JUDGED),
        ),
        [case("relay/a", ["X-1-1"], ["relay/m"])],
        {},
    )
    assert list(covered["by_level"]) == ["MUST", "SHOULD"]
    assert numbers(covered["by_level"]["MUST"]) == (1, 1, 1, 0, 1, 0)
    assert numbers(covered["by_level"]["SHOULD"]) == (1, 1, 1, 0, 0, 0)
    assert covered["by_catalogue"]["x"]["by_level"] == covered["by_level"]


def test_one_role_alone() -> None:
    """With a role, only what binds it is there, and only as far as it binds it."""
    covered = coverages.coverage(
        catalogue(
            entry("X-1-1", relay=JUDGED, consumer=JUDGED),
            entry("X-1-2", consumer=JUDGED),
        ),
        [case("relay/a", ["X-1-1"], [])],
        {},
        [
            FieldCase("F1", ("relay", "consumer"), "f", "r"),
            FieldCase("F2", ("consumer",), "f", "r"),
        ],
        role="relay",
    )
    assert status(covered) == {"X-1-1": "cased"}
    assert list(covered["by_role"]) == ["relay"]
    assert [row["id"] for row in covered["field"]["entries"]] == ["F1"]


def test_a_field_case_wants_each_of_its_roles() -> None:
    """A field case is there when each role that can have the fault has a case that names it."""
    covered = coverages.coverage(
        catalogue(entry("X-1-1", relay=JUDGED)),
        [case("relay/a", ["X-1-1"], [], (1, 2))],
        {},
        [field_case("F1", "relay", "consumer"), field_case("F2", "relay")],
    )
    assert covered["field"] == {
        "total": 2,
        "cased": 1,
        "entries": [
            {
                "id": "F1",
                "roles": ["relay", "consumer"],
                "cases": ["relay/a"],
                "missing": ["consumer"],
            },
            {"id": "F2", "roles": ["relay"], "cases": ["relay/a"], "missing": []},
        ],
    }


def test_a_case_must_not_cite_what_cannot_be_judged() -> None:
    """A case that cites what the catalogue holds for not testable contradicts one of the two."""
    entries = catalogue(entry("X-1-1", relay=(Standing.UNTESTABLE, "not seen")))
    told = "relay/a cites X-1-1, which is untestable for the relay"
    cases = [case("relay/a", ["X-1-1"], [])]
    assert coverages.misplaced(entries, cases) == [told]
    assert summary(coverages.coverage(entries, cases, {})).endswith(
        f"Cited, and by the catalogue not to be judged (1)\n  {told}"
    )


def test_a_golden_matrix_is_read(tmp_path: Path) -> None:
    """Kills are read by mutant; without a file there are none to go by; a wrong one is named."""
    path = tmp_path / "kill-matrix.json"
    assert coverages.read_kills(path) is None
    path.write_text('{"mutants": [{"id": "relay/m", "killed_by": ["relay/a"]}]}')
    assert coverages.read_kills(path) == {"relay/m": ("relay/a",)}
    path.write_text('{"mutants": [{"id": "relay/m"}]}')
    with pytest.raises(UsageError, match="not a kill matrix: KeyError"):
        coverages.read_kills(path)


def test_the_summary_rounds_down_and_names_the_gaps() -> None:
    """A share is 100 % only when it is whole; what is missing is listed under its role."""
    entries = [entry(f"X-1-{i}", relay=JUDGED) for i in range(200)]
    cases = [case("relay/a", [f"X-1-{i}" for i in range(199)], ["relay/m"])]
    mutants = {"relay/m": mutant("relay/m", *(f"X-1-{i}" for i in range(198)))}
    text = summary(
        coverages.coverage(
            catalogue(*entries, entry("X-2-1", relay=(Standing.PLANNED, "later"))), cases, mutants
        )
    )
    assert text.splitlines()[0] == "X 1: 201 entries, 201 classified, 201 testable"
    assert "X MUST 201 201 199 99 % 198 98 % 1" in [
        " ".join(line.split()) for line in text.splitlines()
    ]
    assert text.endswith(
        "No case (1)\n  relay      X-1-199\n"
        "A case, and no mutant that it kills (1)\n  relay      X-1-198\n"
        "Planned: later (1)\n  relay      X-2-1"
    )


def test_field_cases_are_those_of_the_source() -> None:
    """The list has the 29 faults, numbered, each with the roles that can have it."""
    found = fieldcases.load()
    assert [each.number for each in found] == list(range(1, 30))
    assert {role for each in found for role in each.roles} == {"publisher", "relay", "consumer"}


def test_field_case_errors_name_the_line(tmp_path: Path) -> None:
    """An unknown role, or a number that is taken, is told with its line."""
    path = tmp_path / "f.yaml"
    head = f"source: {{title: t, sha256: {'a' * 64}}}\ncases:\n"
    row = "  - {id: F1, roles: [relay], fault: f, right: r}\n"
    path.write_text(head + row.replace("relay", "proxy"))
    with pytest.raises(DataError, match=r"f\.yaml:3: unknown value 'proxy'"):
        fieldcases.load(path)
    path.write_text(head + row + row)
    with pytest.raises(DataError, match=r"f\.yaml:4: F1 occurs twice"):
        fieldcases.load(path)


def test_the_command_prints_coverage(capsys: pytest.CaptureFixture[str]) -> None:
    """`kvcs list --coverage --json` is coverage.json; a role narrows it."""
    with pytest.raises(SystemExit) as stopped:
        main(["list", "--coverage", "--json", "--role", "consumer"])
    assert stopped.value.code == 0
    covered = json.loads(capsys.readouterr().out)
    assert list(covered["by_role"]) == ["consumer"]
    assert {"id", "level", "roles", "status", "why", "cases", "mutants"} <= covered["entries"][
        0
    ].keys()
    assert covered["total"] == len(covered["entries"])


@pytest.fixture(scope="module")
def project() -> tuple[Catalogue, tuple[Case, ...]]:
    requirements = catalogues.load()
    return requirements, load_cases(requirements, check=False)


def test_every_entry_is_classified(project: tuple[Catalogue, tuple[Case, ...]]) -> None:
    """For every role that an entry binds, the catalogue says how it stands."""
    covered = coverages.coverage(*project, MUTANTS)
    assert [gap for gap in covered["gaps"] if gap["status"] == "unclassified"] == []


def test_no_case_cites_what_cannot_be_judged(project: tuple[Catalogue, tuple[Case, ...]]) -> None:
    """Catalogue and cases agree on what can be judged for which role."""
    assert coverages.misplaced(*project) == []


def test_every_judged_entry_has_a_case_and_a_mutant(
    project: tuple[Catalogue, tuple[Case, ...]],
) -> None:
    """What is judged has a case that cites it, and a mutant that the case kills, for every role."""
    covered = coverages.coverage(*project, MUTANTS, kills=coverages.read_kills())
    assert covered["gaps"] == []


def test_every_field_case_is_replayed(project: tuple[Catalogue, tuple[Case, ...]]) -> None:
    """Each of the faults from the field has a case for every role that can have it."""
    covered = coverages.coverage(*project, MUTANTS, fieldcases.load())
    missing = {row["id"]: row["missing"] for row in covered["field"]["entries"] if row["missing"]}
    assert missing == {}
