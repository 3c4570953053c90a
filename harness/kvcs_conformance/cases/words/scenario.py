"""The keys of a scenario."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    DURATION,
    NAME,
    Schema,
)
from kvcs_conformance.cases.words.relay import OPTIONS as RELAY_OPTIONS

_KEYS: dict[str, Schema] = {
    "layers": {"type": "integer", "minimum": 1, "maximum": 512},
    "blocks": {"type": "integer", "minimum": 1, "maximum": 4096},
    "block-tokens": {"type": "integer", "minimum": 1},
    "kv-heads": {"type": "integer", "minimum": 1},
    "head-dim": {"type": "integer", "minimum": 2, "multipleOf": 2},
    "components": {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"enum": ["k", "v", "kv"]},
    },
    "deterministic": {"type": "boolean"},
    "manifest": {"enum": ["manifest", "manifest.cose"]},
    "layer-time": DURATION | {"description": "how long the publisher computes one layer"},
    "retention": DURATION | {"description": "MAX_CACHE_DURATION"},
}
"""What is published: keys that one node may have otherwise than the scenario."""

NODE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind"],
    "properties": {
        "kind": {"enum": ["scripted", "publisher", "relay", "consumer"]},
        "token": {"enum": ["scope", "other-scope", "none"]},
        "to": {
            "description": "the relay (or relays) that it connects to; default: relay",
            "anyOf": [NAME, {"type": "array", "minItems": 1, "items": NAME}],
        },
        "scenario": {
            "description": "what this node publishes or wants otherwise than the scenario",
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": _KEYS,
        },
    },
}

SCENARIO: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["use"],
    "properties": {
        "use": NAME | {"description": "the scenario file to start from"},
        **_KEYS,
        **RELAY_OPTIONS,
        "nodes": {"type": "object", "propertyNames": NAME, "additionalProperties": NODE},
        "tamper": {"type": "array", "items": {"type": "object"}},
    },
}
