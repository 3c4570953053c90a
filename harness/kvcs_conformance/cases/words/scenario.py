"""The keys of a scenario."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    COUNT,
    DURATION,
    NAME,
    TOKEN,
    Schema,
)
from kvcs_conformance.cases.words.faults import OPTIONS as FAULT_OPTIONS
from kvcs_conformance.cases.words.network import OPTIONS as NETWORK_OPTIONS
from kvcs_conformance.cases.words.relay import OPTIONS as RELAY_OPTIONS

KEYS: dict[str, Schema] = {
    "layers": {"type": "integer", "minimum": 1, "maximum": 512},
    "blocks": {
        "description": "the complete blocks of segment 0; 0 for a prompt shorter than a block",
        "type": "integer",
        "minimum": 0,
        "maximum": 4096,
    },
    "appended": {
        "description": "the blocks of each segment after segment 0, none by default",
        "type": "array",
        "minItems": 1,
        "maxItems": 64,
        "items": {"type": "integer", "minimum": 1, "maximum": 4096},
    },
    "tail": COUNT | {"description": "tokens behind the last complete block, none by default"},
    "changed-token": COUNT | {"description": "the token at this index of the prompt is another"},
    "block-tokens": {"type": "integer", "minimum": 1},
    "kv-heads": {"type": "integer", "minimum": 1},
    "head-dim": {"type": "integer", "minimum": 2, "multipleOf": 2},
    "components": {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {
            "type": "string",
            "pattern": r"^(k|v|kv)(\.(raw|zstd|deflate))?$",
            "examples": ["k", "v.zstd"],
        },
        "description": "the data tracks of each segment; without a codec it is raw",
    },
    "weights": NAME | {"description": "the model has other weights, of this name"},
    "adapters": {
        "description": "adapters of the model by name, in order of application",
        "type": "array",
        "items": {"type": "string", "minLength": 1},
    },
    "salt": {"type": "string", "description": "the salt of the block keys, none by default"},
    "scope": NAME | {"description": "the scope has another key, of this name"},
    "descriptor": {
        "description": "members that the Compatibility Descriptor has besides, or otherwise",
        "type": "object",
        "minProperties": 1,
    },
    "deterministic": {"type": "boolean"},
    "manifest": {"enum": ["manifest", "manifest.cose"]},
    "layer-time": DURATION | {"description": "how long the publisher computes one layer"},
    "block-time": DURATION
    | {"description": "the publisher is handed a layer block by block, one in each such time"},
    "refuse-announcements": {
        "const": True,
        "description": "a scripted node refuses PUBLISH_NAMESPACE as UNAUTHORIZED",
    },
    "fetch-limit": {
        "description": "FETCHes that the publisher serves at once in one session; no limit else",
        "type": "integer",
        "minimum": 1,
    },
    "retention": DURATION | {"description": "MAX_CACHE_DURATION"},
    "alike": {
        "type": "boolean",
        "description": "an origin leaves out what its steps call `wrong`",
    },
}
"""What is published: keys that one node may have otherwise than the scenario."""

OVERRIDES: Schema = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": KEYS,
}
"""Some of them."""

NODE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind"],
    "properties": {
        "kind": {"enum": ["scripted", "publisher", "origin", "relay", "consumer"]},
        "token": TOKEN,
        "to": {
            "description": "the relay (or relays) that it connects to; default: relay",
            "anyOf": [NAME, {"type": "array", "minItems": 1, "items": NAME}],
        },
        "scenario": OVERRIDES
        | {"description": "what this node publishes or wants otherwise than the scenario"},
    },
}

SCENARIO: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["use"],
    "properties": {
        "use": NAME | {"description": "the scenario file to start from"},
        **KEYS,
        **RELAY_OPTIONS,
        **FAULT_OPTIONS,
        **NETWORK_OPTIONS,
        "nodes": {"type": "object", "propertyNames": NAME, "additionalProperties": NODE},
        "tamper": {"type": "array", "items": {"type": "object"}},
    },
}
