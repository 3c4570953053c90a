"""The JSON Schema of a case file, composed of the tables of words."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.words import NAME, SCENARIO, STEPS, WAITS, Schema
from kvcs_conformance.judge.registry import JUDGES

ID: Schema = {
    "type": "string",
    "pattern": "^[a-z][a-z0-9-]*(/[a-z0-9][a-z0-9-]*)+$",
    "examples": ["relay/cache/whole-group"],
}
SUTS = ("publisher", "relay", "consumer")

_JUDGES: Schema = {"type": "array", "minItems": 1, "items": {"type": "object", "minProperties": 1}}

CASE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": [
        "id",
        "title",
        "requires",
        "sut",
        "scenario",
        "steps",
        "judge",
        "killed-by",
    ],
    "properties": {
        "id": ID,
        "title": {"type": "string", "minLength": 1},
        "requires": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "string"},
        },
        "sut": {"enum": list(SUTS)},
        "field": {
            "type": "array",
            "description": "the cases from the field that this one replays, by number",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"type": "integer", "minimum": 1},
        },
        "needs": {"type": "array", "items": NAME},
        "tags": {"type": "array", "minItems": 1, "uniqueItems": True, "items": NAME},
        "links": {
            "type": "object",
            "additionalProperties": False,
            "required": ["only", "because"],
            "properties": {
                "only": {"enum": ["memory", "quic"]},
                "because": {"type": "string", "minLength": 1},
            },
        },
        "scenario": SCENARIO,
        "steps": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        "judge": _JUDGES,
        "twin": {
            "type": "object",
            "additionalProperties": False,
            "required": ["scenario", "judge"],
            "properties": {
                "scenario": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": False,
                    "properties": SCENARIO["properties"],
                },
                "judge": _JUDGES,
            },
        },
        "killed-by": {"type": "array", "minItems": 1, "uniqueItems": True, "items": ID},
    },
}


def judge_schema(name: str) -> Schema:
    """The schema of what follows the judge word `name`."""
    word = JUDGES[name]
    return {
        "type": "object" if word.required else ["object", "null"],
        "description": word.doc,
        "additionalProperties": False,
        "required": list(word.required),
        "properties": {
            **word.options,
            "for": {
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"type": "string"},
                "description": "the requirements that this finding speaks about; default: all",
            },
        },
    }


def published_schema() -> dict[str, Any]:
    """The whole schema as one document, for editors and other tools."""
    step = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "properties": {name: word.value for name, word in WAITS.items()},
        "additionalProperties": {
            "anyOf": [word.schema() for table in STEPS.values() for word in table.values()]
        },
    }
    judge = {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": {name: judge_schema(name) for name in sorted(JUDGES)},
    }
    properties = dict(CASE["properties"])
    properties["steps"] = {"type": "array", "minItems": 1, "items": step}
    properties["judge"] = {"type": "array", "minItems": 1, "items": judge}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "KVCS conformance case",
        **CASE,
        "properties": properties,
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(published_schema(), indent=2) + "\n", encoding="utf-8")
