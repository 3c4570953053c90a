"""The cases from the field: faults of real systems, which the project's cases replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.source import read_yaml

_TEXT = {"type": "string", "minLength": 1}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Cases from the field",
    "type": "object",
    "additionalProperties": False,
    "required": ["source", "cases"],
    "properties": {
        "source": {
            "type": "object",
            "additionalProperties": False,
            "required": ["title", "sha256"],
            "properties": {
                "title": _TEXT,
                "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            },
        },
        "cases": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["id", "roles", "fault", "right"],
                "properties": {
                    "id": {"type": "string", "pattern": "^F[1-9][0-9]*$"},
                    "roles": {
                        "type": "array",
                        "minItems": 1,
                        "uniqueItems": True,
                        "items": {"enum": ["publisher", "relay", "consumer"]},
                    },
                    "fault": _TEXT,
                    "right": _TEXT,
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class FieldCase:
    """One fault, what is right instead, and the roles that can have it."""

    id: str
    roles: tuple[str, ...]
    fault: str
    right: str

    @property
    def number(self) -> int:
        """The number by which a case names it under `field`."""
        return int(self.id.removeprefix("F"))


def load(path: Path | None = None) -> tuple[FieldCase, ...]:
    """Read the list; raises DataError with file and line."""
    from kvcs_conformance.cases.check import check_schema

    document = read_yaml(
        path or datafiles.folder("testcases") / "requirements" / "field-cases.yaml"
    )
    check_schema(document, SCHEMA)
    found: dict[str, FieldCase] = {}
    for i, entry in enumerate(document.data["cases"]):
        if entry["id"] in found:
            raise document.error(("cases", i, "id"), f"{entry['id']} occurs twice")
        found[entry["id"]] = FieldCase(
            entry["id"], tuple(entry["roles"]), entry["fault"], entry["right"]
        )
    return tuple(found.values())
