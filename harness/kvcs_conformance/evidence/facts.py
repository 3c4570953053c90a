"""What a run wrote down about itself in run.json, checked before anybody judges by it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvcs_conformance.errors import UsageError

_NAME = "^[a-z0-9][a-z0-9-]*$"
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_BLOCKS = {"type": "integer", "minimum": 0, "maximum": 4096}
_HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}

_SCENARIO = {
    "type": "object",
    "required": ["layers", "blocks", "components", "manifest"],
    "properties": {
        "layers": {"type": "integer", "minimum": 0, "maximum": 4096},
        "blocks": _BLOCKS,
        "appended": {"type": "array", "items": _BLOCKS},
        "components": {"type": "array", "items": _TEXT},
        "manifest": _TEXT,
    },
}
_STEP = {
    "type": "object",
    "required": ["step", "outcome"],
    "properties": {"step": _COUNT, "outcome": _TEXT, "waited": _TEXT, "at": {"type": "number"}},
}
_SCHEMA = {
    "type": "object",
    "required": ["sut", "link", "nodes", "steps", "trouble", "observed", "records"],
    "properties": {
        "sut": {"enum": ["publisher", "relay", "consumer"]},
        "link": _TEXT,
        "seed": _COUNT,
        "scenario": _SCENARIO,
        "nodes": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["kind"],
                "properties": {"kind": _TEXT},
            },
        },
        "publications": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["namespace"],
                "properties": {"namespace": {"type": "array", "minItems": 1, "items": _HEX}},
            },
        },
        "producer": {
            "type": "object",
            "required": ["kid", "ed25519"],
            "properties": {"kid": _HEX, "ed25519": _HEX},
        },
        "steps": {"type": "array", "items": _STEP},
        "trouble": {
            "type": ["object", "null"],
            "required": ["kind", "text"],
            "properties": {
                "kind": {"enum": ["harness", "setup", "version", "report"]},
                "text": _TEXT,
            },
        },
        "observed": {
            "type": "object",
            "required": ["alpn"],
            "properties": {"alpn": {"type": "array", "items": _TEXT}},
        },
        "records": {
            "type": "object",
            "propertyNames": {"pattern": _NAME, "maxLength": 64},
            "additionalProperties": _COUNT,
        },
    },
}


def checked_facts(path: Path, facts: Any) -> dict[str, Any]:
    """The facts that were read from `path`; raises UsageError that says what no run writes."""
    from jsonschema import Draft202012Validator

    wrong = next(Draft202012Validator(_SCHEMA).iter_errors(facts), None)
    if wrong is not None:
        where = "/".join(map(str, wrong.absolute_path))
        raise UsageError(f"{path}: {where or 'it'} is not what a run writes: {wrong.message[:200]}")
    good: dict[str, Any] = facts
    return good
