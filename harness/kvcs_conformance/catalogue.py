"""The requirement catalogue: what is asked of whom, in our words, and where the text says it.

Every entry is classified for every role that it binds: a case judges it (`judged`), a later part
of the harness will (`planned`), no KVCS procedure rests on it (`outside`), or nothing shows it from
outside (`untestable`); all but the first with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.source import Document, read_yaml
from kvcs_conformance.verdicts import SEVERITY, Level

ROLES = ("publisher", "relay", "consumer", "registry")
FILES = ("kvcs-00.yaml", "moqt-22.yaml")
_TEXT = {"type": "string", "minLength": 1}
_ROLE_LIST = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"enum": list(ROLES)},
}
_REASONS = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": dict.fromkeys(ROLES, _TEXT),
}


class Standing(StrEnum):
    """How an entry stands for one role."""

    JUDGED = "judged"
    PLANNED = "planned"
    OUTSIDE = "outside"
    UNTESTABLE = "untestable"
    UNCLASSIFIED = "unclassified"


TESTABLE = (Standing.JUDGED, Standing.PLANNED)
_WITH_REASON = (Standing.PLANNED, Standing.OUTSIDE, Standing.UNTESTABLE)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "KVCS requirement catalogue",
    "type": "object",
    "additionalProperties": False,
    "required": ["catalogue", "revision", "source", "requirements"],
    "properties": {
        "catalogue": _TEXT,
        "revision": _TEXT,
        "source": {
            "type": "object",
            "additionalProperties": False,
            "required": ["title", "sha256"],
            "properties": {
                "title": _TEXT,
                "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            },
        },
        "ambiguities": {
            "type": "object",
            "description": "open places of the text by number, with the reading that is taken",
            "propertyNames": {"pattern": "^A[1-9][0-9]*$"},
            "additionalProperties": _TEXT,
        },
        "reasons": {
            "type": "object",
            "description": "reasons that many entries share, for aliases to point at",
            "additionalProperties": _TEXT,
        },
        "requirements": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "level", "roles", "clause", "text"],
                "properties": {
                    "id": {"type": "string", "pattern": "^[A-Z]+-([0-9A-Z.]+-[0-9]+|R[0-9]{3})$"},
                    "level": {"enum": [str(level) for level in Level]},
                    "roles": _ROLE_LIST,
                    "clause": _TEXT,
                    "text": _TEXT,
                    "ambiguity": {**_TEXT, "description": "what the text leaves open"},
                    "reading": {**_TEXT, "description": "how this project reads it"},
                    "observable": {**_TEXT, "description": "what shows it on the wire"},
                    "since": {
                        "type": "integer",
                        "description": "the first MOQT draft that it holds for as it is put here",
                        "minimum": 14,
                    },
                    "judged": {**_ROLE_LIST, "description": "roles that a case can judge"},
                    "planned": {**_REASONS, "description": "what a case by role waits for"},
                    "outside": {**_REASONS, "description": "why KVCS does not rest on it"},
                    "untestable": {**_REASONS, "description": "why nothing shows it"},
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry; `clause` is the section by the catalogue's numbering, `since` the first MOQT
    draft that it holds for (None: all), `standings` has its classification by role."""

    id: str
    level: Level
    roles: tuple[str, ...]
    clause: str
    text: str
    ambiguity: str | None = None
    reading: str | None = None
    observable: str | None = None
    since: int | None = None
    standings: Mapping[str, tuple[Standing, str | None]] = field(default_factory=dict)

    def standing(self, role: str) -> Standing:
        """How the entry stands for `role`."""
        return self.standings.get(role, (Standing.UNCLASSIFIED, None))[0]

    def why(self, role: str) -> str | None:
        """Why no case judges the entry for `role`; None where one does, or nobody has said."""
        return self.standings.get(role, (Standing.UNCLASSIFIED, None))[1]


@dataclass(frozen=True, slots=True)
class Source:
    """One file of the catalogue, and the exact text that its entries restate."""

    name: str
    revision: str
    title: str
    sha256: str


@dataclass(frozen=True)
class Catalogue:
    """All entries by id. `name` and `revision` are those of the first file; `sha256` is taken over
    the octets of all files in their order."""

    name: str
    revision: str
    sha256: str
    requirements: Mapping[str, Requirement]
    ambiguities: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()

    def __getitem__(self, requirement: str) -> Requirement:
        return self.requirements[requirement]

    def __contains__(self, requirement: str) -> bool:
        return requirement in self.requirements

    @property
    def moqt(self) -> str | None:
        """The MOQT draft whose rules are among the entries."""
        return next((source.revision for source in self.sources if source.name == "moqt"), None)

    def level(self, requirements: Iterable[str]) -> Level:
        """The level that binds most among `requirements`."""
        levels = {self.requirements[name].level for name in requirements}
        return next(level for level in SEVERITY if level in levels)


def load(*paths: Path) -> Catalogue:
    """Read catalogue files as one, by default KVCS revision 00 and MOQT draft 22.

    Raises DataError with file and line.
    """
    home = datafiles.folder("testcases") / "requirements"
    documents = [read_yaml(path) for path in paths or [home / name for name in FILES]]
    digest = hashlib.sha256()
    requirements: dict[str, Requirement] = {}
    ambiguities: dict[str, str] = {}
    sources = []
    for document in documents:
        for i, entry in enumerate(_entries(document)):
            if entry["id"] in requirements:
                raise document.error(("requirements", i, "id"), f"{entry['id']} occurs twice")
            requirements[entry["id"]] = _requirement(document, i, entry)
        head = document.data
        ambiguities |= head.get("ambiguities", {})
        sources.append(Source(head["catalogue"], head["revision"], **head["source"]))
        digest.update(document.path.read_bytes())
    first = sources[0]
    return Catalogue(
        first.name, first.revision, digest.hexdigest(), requirements, ambiguities, tuple(sources)
    )


def load_with(path: Path) -> Catalogue:
    """The catalogue with this file in place of the one of the same name, for another revision."""
    document = read_yaml(path)
    _entries(document)
    name = str(document.data["catalogue"])
    home = datafiles.folder("testcases") / "requirements"
    files = {file.split("-")[0]: home / file for file in FILES}
    return load(*{**files, name: path}.values())


def _requirement(document: Document, i: int, entry: Mapping[str, Any]) -> Requirement:
    return Requirement(
        id=entry["id"],
        level=Level(entry["level"]),
        roles=tuple(entry["roles"]),
        clause=entry["clause"],
        text=entry["text"],
        ambiguity=entry.get("ambiguity"),
        reading=entry.get("reading"),
        observable=entry.get("observable"),
        since=entry.get("since"),
        standings=_standings(document, i, entry),
    )


def _standings(
    document: Document, i: int, entry: Mapping[str, Any]
) -> dict[str, tuple[Standing, str | None]]:
    """The classification by role; a role that is not bound, or is classified twice, is an error."""
    found: dict[str, tuple[Standing, str | None]] = {}
    told: list[tuple[Standing, str, str | None]] = [
        (Standing.JUDGED, role, None) for role in entry.get(Standing.JUDGED, ())
    ]
    for standing in _WITH_REASON:
        told += [(standing, role, why) for role, why in entry.get(standing, {}).items()]
    for standing, role, why in told:
        where = ("requirements", i, standing.value, role)
        if role not in entry["roles"]:
            bound = ", ".join(entry["roles"])
            raise document.error(where, f"{entry['id']} binds {bound}, not the {role}")
        if role in found:
            both = f"{found[role][0]} and {standing}"
            raise document.error(where, f"{entry['id']} is both {both} for the {role}")
        found[role] = (standing, why)
    return found


def _entries(document: Document) -> list[dict[str, Any]]:
    """The entries when they have the shape that `load` needs; the schema explains what is wrong."""
    try:
        entries: list[dict[str, Any]] = document.data["requirements"]
        head = document.data
        good = bool(entries) and {"catalogue", "revision"} <= head.keys()
        good = good and head["source"].keys() == {"title", "sha256"}
        good = good and isinstance(head.get("ambiguities", {}), dict)
        for entry in entries:
            good = good and all(isinstance(entry[key], str) for key in ("id", "clause", "text"))
            good = good and isinstance(entry["roles"], list)
            good = good and isinstance(entry.get(Standing.JUDGED, []), list)
            good = good and all(isinstance(entry.get(kind, {}), dict) for kind in _WITH_REASON)
            Level(entry["level"])
    except (KeyError, TypeError, ValueError, AttributeError):
        good = False
    if not good:
        check(document)
    return entries


def check(document: Document) -> None:
    """Check a catalogue file by its schema; raises DataError with file and line."""
    from kvcs_conformance.cases.check import check_schema

    check_schema(document, SCHEMA)
