"""Reading case files: what is wrong with one is said with its file and line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import DataError
from kvcs_conformance.source import Document, read_yaml
from kvcs_conformance.verdicts import Level


@dataclass(frozen=True, slots=True)
class Judgement:
    """One judge word with its arguments, and the requirements that it speaks about."""

    word: str
    arguments: Mapping[str, Any]
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Twin:
    """The positive twin: the same steps under `scenario`, judged by `judge`."""

    scenario: Mapping[str, Any]
    judge: tuple[Judgement, ...]


@dataclass(frozen=True)
class Case:
    """One case as written; `scenario` is resolved: the named scenario file with its own keys."""

    id: str
    title: str
    requires: tuple[str, ...]
    sut: str
    level: Level
    scenario: Mapping[str, Any]
    steps: tuple[Mapping[str, Any], ...]
    judge: tuple[Judgement, ...]
    twin: Twin | None
    killed_by: tuple[str, ...]
    only_link: str | None
    path: Path
    source: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    field: tuple[int, ...] = ()


def load_cases(
    catalogue: Catalogue,
    folder: Path | None = None,
    *,
    check: bool = True,
    ids: Collection[str] | None = None,
) -> tuple[Case, ...]:
    """All cases below `folder` (default: the project's), ordered by id.

    `check` False trusts the files as far as the values can be used at all: a listing need not
    wait for the schema. `ids` looks only into files that hold one of these. Raises DataError with
    file and line.
    """
    root = folder or datafiles.folder("testcases") / "cases"
    found: dict[str, Case] = {}
    for path in sorted(root.rglob("*.yaml")):
        if ids is not None and not _mentions(path, ids):
            continue
        document = read_yaml(path)
        if check or not _usable(document):
            from kvcs_conformance.cases.semantics import check_case

            check_case(document, catalogue)
        case = _case(document, catalogue)
        if case.id in found:
            raise document.error(("id",), f"id {case.id!r} is taken by {found[case.id].path}")
        found[case.id] = case
    return tuple(found[name] for name in sorted(found))


def _mentions(path: Path, ids: Collection[str]) -> bool:
    text = path.read_bytes()
    return any(name.encode() in text for name in ids)


def case_of(source: Mapping[str, Any], catalogue: Catalogue, path: Path) -> Case:
    """A case from saved values (evidence of an earlier run); nothing is checked."""
    return _case(Document(path, source, {}), catalogue, resolved=True)


def _usable(document: Document) -> bool:
    value = document.data
    return (
        isinstance(value, dict)
        and {"id", "title", "requires", "sut", "scenario", "steps", "judge", "killed-by"}
        <= value.keys()
        and isinstance(value["requires"], list)
        and isinstance(value["judge"], list)
        and isinstance(value["scenario"], dict)
        and "use" in value["scenario"]
        and all(isinstance(entry, dict) and len(entry) == 1 for entry in value["judge"])
    )


def _case(document: Document, catalogue: Catalogue, *, resolved: bool = False) -> Case:
    source = document.data
    requires = tuple(source["requires"])
    for i, name in enumerate(requires):
        if name not in catalogue:
            raise document.error(("requires", i), f"no requirement {name!r} in the catalogue")
    twin = source.get("twin")
    scenario = source["scenario"] if resolved else resolve(document, source["scenario"])
    return Case(
        id=source["id"],
        title=source["title"],
        requires=requires,
        sut=source["sut"],
        level=catalogue.level(requires),
        scenario=scenario,
        steps=tuple(source["steps"]),
        judge=_judgements(source["judge"], requires),
        twin=Twin(twin["scenario"], _judgements(twin["judge"], requires)) if twin else None,
        killed_by=tuple(source["killed-by"]),
        only_link=source.get("links", {}).get("only"),
        path=document.path,
        source={**source, "scenario": scenario},
        needs=tuple(source.get("needs", ())),
        tags=tuple(source.get("tags", ())),
        field=tuple(source.get("field", ())),
    )


def _judgements(
    entries: Iterable[Mapping[str, Any]], requires: tuple[str, ...]
) -> tuple[Judgement, ...]:
    judgements = []
    for entry in entries:
        ((word, value),) = entry.items()
        arguments = dict(value or {})
        judgements.append(Judgement(word, arguments, tuple(arguments.pop("for", requires))))
    return tuple(judgements)


def resolve(document: Document, scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario that `use` names, overlaid with the case's own keys."""
    path = datafiles.folder("testcases") / "scenarios" / f"{scenario['use']}.yaml"
    if not path.is_file():
        raise document.error(("scenario", "use"), f"no scenario {scenario['use']!r}")
    return {**_scenario_file(path), **scenario}


@cache
def _scenario_file(path: Path) -> Mapping[str, Any]:
    document = read_yaml(path)
    if not isinstance(document.data, dict):
        raise DataError(path, 1, "a scenario is a mapping")
    return document.data
