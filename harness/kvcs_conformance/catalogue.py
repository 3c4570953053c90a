"""The requirement catalogue: what is asked of whom, in our words, and where the text says it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.source import Document, read_yaml
from kvcs_conformance.verdicts import SEVERITY, Level

ROLES = ("publisher", "relay", "consumer", "registry")

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "KVCS requirement catalogue",
    "type": "object",
    "additionalProperties": False,
    "required": ["catalogue", "revision", "source", "requirements"],
    "properties": {
        "catalogue": {"type": "string", "minLength": 1},
        "revision": {"type": "string", "minLength": 1},
        "source": {
            "type": "object",
            "additionalProperties": False,
            "required": ["title", "sha256"],
            "properties": {
                "title": {"type": "string", "minLength": 1},
                "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            },
        },
        "ambiguities": {
            "type": "object",
            "description": "open places of the text by number, with the reading that is taken",
            "propertyNames": {"pattern": "^A[1-9][0-9]*$"},
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "requirements": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "level", "roles", "clause", "text"],
                "properties": {
                    "id": {"type": "string", "pattern": "^[A-Z]+-[0-9A-Z.]+-[0-9]+$"},
                    "level": {"enum": [str(level) for level in Level]},
                    "roles": {
                        "type": "array",
                        "minItems": 1,
                        "uniqueItems": True,
                        "items": {"enum": list(ROLES)},
                    },
                    "clause": {"type": "string", "minLength": 1},
                    "text": {"type": "string", "minLength": 1},
                    "ambiguity": {"type": "string", "minLength": 1},
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry; `clause` is the section by the catalogue's numbering."""

    id: str
    level: Level
    roles: tuple[str, ...]
    clause: str
    text: str
    ambiguity: str | None = None


@dataclass(frozen=True)
class Catalogue:
    """All entries of one revision by id, and the SHA-256 of the file that they came from."""

    name: str
    revision: str
    sha256: str
    requirements: Mapping[str, Requirement]

    def __getitem__(self, requirement: str) -> Requirement:
        return self.requirements[requirement]

    def __contains__(self, requirement: str) -> bool:
        return requirement in self.requirements

    def level(self, requirements: Iterable[str]) -> Level:
        """The level that binds most among `requirements`."""
        levels = {self.requirements[name].level for name in requirements}
        return next(level for level in SEVERITY if level in levels)


def load(path: Path | None = None) -> Catalogue:
    """Read a catalogue, by default KVCS revision 00; raises DataError with file and line."""
    path = path or datafiles.folder("testcases") / "requirements" / "kvcs-00.yaml"
    document = read_yaml(path)
    entries = _entries(document)
    requirements: dict[str, Requirement] = {}
    for i, entry in enumerate(entries):
        if entry["id"] in requirements:
            raise document.error(("requirements", i, "id"), f"{entry['id']} occurs twice")
        requirements[entry["id"]] = Requirement(
            entry["id"],
            Level(entry["level"]),
            tuple(entry["roles"]),
            entry["clause"],
            entry["text"],
            entry.get("ambiguity"),
        )
    return Catalogue(
        document.data["catalogue"],
        document.data["revision"],
        hashlib.sha256(path.read_bytes()).hexdigest(),
        requirements,
    )


def _entries(document: Document) -> list[dict[str, Any]]:
    """The entries when they have the shape that `load` needs; the schema explains what is wrong."""
    try:
        entries: list[dict[str, Any]] = document.data["requirements"]
        good = bool(entries) and {"catalogue", "revision"} <= document.data.keys()
        for entry in entries:
            good = good and isinstance(entry["id"], str) and isinstance(entry["text"], str)
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
