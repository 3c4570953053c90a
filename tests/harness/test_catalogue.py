"""The requirement catalogue: it is whole, says what its source says, and errors name their line."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from kvcs_conformance import catalogue as catalogues
from kvcs_conformance import datafiles
from kvcs_conformance.catalogue import ROLES, Catalogue, Standing
from kvcs_conformance.errors import DataError
from kvcs_conformance.source import read_yaml
from kvcs_conformance.verdicts import Level

HOME = datafiles.folder("testcases") / "requirements"
SPEC = Path(__file__).parents[2].parent / "shared" / "spec"
SOURCES = {"kvcs": "kvcs.txt", "moqt": "moqt-22.md"}
SOURCE_ROLES = {
    "P": {"publisher"},
    "R": {"relay"},
    "S": {"consumer"},
    "E": {"publisher", "relay", "consumer"},
    "C": {"publisher", "consumer"},
    "Sv": {"relay"},
}
HEAD = f'catalogue: x\nrevision: "00"\nsource: {{title: t, sha256: {"a" * 64}}}\nrequirements:\n'
ENTRY = "  - {id: X-1-1, level: MUST, roles: [relay], clause: c, text: t}\n"


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return catalogues.load()


@pytest.fixture(scope="module")
def kvcs() -> Catalogue:
    return catalogues.load(HOME / "kvcs-00.yaml")


def source(name: str) -> str:
    """A text that the catalogue restates; the test is skipped where it is not at hand."""
    path = SPEC / name
    if not path.is_file():
        pytest.skip(f"{path} is not there to compare with")
    return path.read_text(encoding="utf-8")


def counts(catalogue: Catalogue, role: str | None = None) -> dict[str, int]:
    """Entries by level, of one role or of all."""
    levels = [e.level for e in catalogue.requirements.values() if role is None or role in e.roles]
    return {level.value: levels.count(level) for level in Level}


def test_the_kvcs_entries_are_as_many_as_the_text_gives(kvcs: Catalogue) -> None:
    """There are 128 entries, by level and by role in the numbers that their source counts."""
    shape = ("MUST", "MUST NOT", "SHOULD", "MAY", "STATED")
    assert counts(kvcs) == dict(zip(shape, (20, 5, 9, 1, 93), strict=True))
    assert counts(kvcs, "publisher") == dict(zip(shape, (6, 3, 7, 1, 62), strict=True))
    assert counts(kvcs, "consumer") == dict(zip(shape, (9, 2, 3, 0, 47), strict=True))
    assert counts(kvcs, "relay") == dict(zip(shape, (5, 0, 1, 0, 10), strict=True))
    assert counts(kvcs, "registry") == dict(zip(shape, (0, 0, 0, 0, 5), strict=True))


def test_both_catalogues_are_one(catalogue: Catalogue, kvcs: Catalogue) -> None:
    """KVCS comes first and gives the revision; the MOQT rows and the draft come with it."""
    assert (catalogue.name, catalogue.revision, catalogue.moqt) == ("kvcs", "00", "22")
    assert [name for name in catalogue.requirements if name.startswith("MOQT")] == [
        f"MOQT-R{i:03}" for i in range(1, 234)
    ]
    assert len(catalogue.requirements) == 128 + 233
    assert kvcs.moqt is None


def test_the_hash_covers_every_file(catalogue: Catalogue, kvcs: Catalogue) -> None:
    """The catalogue's SHA-256 is that of the octets of its files, one after the other."""
    files = [(HOME / name).read_bytes() for name in catalogues.FILES]
    assert catalogue.sha256 == hashlib.sha256(b"".join(files)).hexdigest()
    assert kvcs.sha256 == hashlib.sha256(files[0]).hexdigest()


@pytest.mark.parametrize("name", catalogues.FILES)
def test_the_catalogue_keeps_its_schema(name: str) -> None:
    """A catalogue that is shipped has no key that its schema does not know."""
    catalogues.check(read_yaml(HOME / name))  # raises for what it does not know


def test_every_ambiguity_that_is_cited_is_read(catalogue: Catalogue) -> None:
    """An entry that points at an open place of the text points at one whose reading is given."""
    cited = {
        number
        for entry in catalogue.requirements.values()
        for number in re.findall(r"\bA[0-9]+\b", f"{entry.ambiguity} {entry.standings}")
    }
    assert cited - catalogue.ambiguities.keys() == set()


def test_the_readings_are_documented(catalogue: Catalogue) -> None:
    """The page for readers of the text has a row for every open place, in their order."""
    page = (Path(__file__).parents[2] / "docs" / "catalogue.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (A[0-9]+) \|", page, re.MULTILINE) == list(catalogue.ambiguities)


def test_whatever_is_open_is_read(catalogue: Catalogue) -> None:
    """An entry that notes an ambiguity cites an open place by number, or gives its own reading."""
    assert [
        entry.id
        for entry in catalogue.requirements.values()
        if entry.ambiguity and not entry.reading and not re.search(r"\bA[0-9]", entry.ambiguity)
    ] == []


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_the_source_is_the_text_at_hand(catalogue: Catalogue, name: str) -> None:
    """The SHA-256 in the catalogue is that of the text that the project works from."""
    octets = source(SOURCES[name]).encode()
    named = {each.name: each.sha256 for each in catalogue.sources}
    assert named[name] == hashlib.sha256(octets).hexdigest()


def test_kvcs_entries_bind_whom_the_source_says(kvcs: Catalogue) -> None:
    """Ids, levels and roles are those of the source, in its order."""
    heading = re.compile(r"^\*\*(KVCS-\S+)\*\* · ([A-Z ]+) · ([a-z, ]+) —", re.MULTILINE)
    told = [
        (name, level, set(roles.strip().split(", ")))
        for name, level, roles in heading.findall(source("kvcs-requirements.md"))
    ]
    assert [
        (entry.id, entry.level.value, set(entry.roles)) for entry in kvcs.requirements.values()
    ] == told


def test_moqt_entries_bind_whom_the_source_says(catalogue: Catalogue) -> None:
    """Levels and roles are those of the rows: of mixed rows the level that binds most.

    A role more than the row names is one whose answer shows what another may do.
    """
    row = re.compile(r"^\| R([0-9]{3}) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)
    rows = row.findall(source("moqt-22.md"))
    assert len(rows) == 233
    more = []
    for number, section, keyword, who in rows:
        entry = catalogue[f"MOQT-R{number}"]
        assert entry.level.value == strongest(keyword), number
        assert entry.clause == f"MOQT-22 §{section.replace(', ', ', §')}"
        bound = set().union(*(SOURCE_ROLES[side] for side in who.split()))
        assert bound <= set(entry.roles), number
        more += [entry.id] if bound < set(entry.roles) else []
    assert more == ["MOQT-R061", "MOQT-R137", "MOQT-R175"]


def strongest(keyword: str) -> str:
    """The level of a row by its keyword column."""
    if keyword.startswith("("):
        return "STATED"
    found = {
        word.replace("-", " ").replace("SHOULD NOT", "SHOULD")
        for word in re.findall(r"MUST-NOT|SHOULD-NOT|MUST|SHOULD|MAY", keyword)
    }
    return next(level for level in ("MUST", "MUST NOT", "SHOULD", "MAY") if level in found)


def test_field_cases_name_the_text_at_hand() -> None:
    """The SHA-256 in the list of field cases is that of the list that the project works from."""
    octets = source("../field-cases.md").encode()
    named = read_yaml(HOME / "field-cases.yaml").data["source"]["sha256"]
    assert named == hashlib.sha256(octets).hexdigest()


@pytest.mark.parametrize("name", catalogues.FILES)
def test_every_shared_reason_is_used(name: str) -> None:
    """A reason that no entry points at any more is not kept."""
    text = (HOME / name).read_text(encoding="utf-8")
    reasons = set(re.findall(r"^  ([a-z-]+): &[a-z-]+ >-$", text, re.MULTILINE))
    assert reasons - set(re.findall(r"\*([a-z-]+)", text)) == set()


def test_an_entry_stands_by_role(catalogue: Catalogue) -> None:
    """One entry can be judged for one role and have its reason why not for another."""
    entry = catalogue["KVCS-9-2"]
    assert entry.standing("relay") is Standing.JUDGED
    assert entry.why("relay") is None
    assert entry.standing("publisher") is Standing.UNTESTABLE
    assert entry.why("publisher") == (
        "No data streams come to a publisher, so it has none to grant."
    )


def test_an_entry_that_says_nothing_is_unclassified(tmp_path: Path) -> None:
    """Who has not said how an entry stands finds it unclassified, without a reason."""
    path = tmp_path / "x.yaml"
    path.write_text(HEAD + ENTRY)
    entry = catalogues.load(path)["X-1-1"]
    assert [entry.standing(role) for role in ROLES] == [Standing.UNCLASSIFIED] * 4
    assert entry.why("relay") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY.replace("MUST", "OUGHT"), "5: unknown value 'OUGHT'"),
        (ENTRY + ENTRY, "6: X-1-1 occurs twice"),
        (ENTRY.replace("text: t", "txt: t"), "5: unknown key 'txt'; did you mean 'text'?"),
        (ENTRY.replace(", clause: c", ""), "5: key 'clause' is missing"),
        (ENTRY.replace("[relay]", "relay"), "5: 'relay' should be a list"),
        (ENTRY.replace("t}", "t, judged: relay}"), "5: 'relay' should be a list"),
        (ENTRY.replace("t}", "t, judged: [consumer]}"), "5: X-1-1 binds relay, not the consumer"),
        (
            ENTRY.replace("t}", "t, judged: [relay], untestable: {relay: why}}"),
            "5: X-1-1 is both judged and untestable for the relay",
        ),
        (
            ENTRY.replace("t}", "t, planned: {publisher: later}}"),
            "5: X-1-1 binds relay, not the publisher",
        ),
    ],
)
def test_catalogue_errors_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    """What is wrong with an entry is told with its file and line."""
    path = tmp_path / "x.yaml"
    path.write_text(HEAD + text)
    with pytest.raises(DataError) as caught:
        catalogues.load(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_a_second_file_adds_to_the_first(tmp_path: Path) -> None:
    """Entries of several files are one catalogue, and an id is taken once among them all."""
    (tmp_path / "x.yaml").write_text(HEAD + ENTRY)
    (tmp_path / "y.yaml").write_text(HEAD + ENTRY.replace("X-1-1", "Y-R001"))
    both = catalogues.load(tmp_path / "x.yaml", tmp_path / "y.yaml")
    assert list(both.requirements) == ["X-1-1", "Y-R001"]
    with pytest.raises(DataError, match=r"x\.yaml:5: X-1-1 occurs twice"):
        catalogues.load(tmp_path / "x.yaml", tmp_path / "x.yaml")
