"""What a scenario sets on a relay of ours, and the steps of one."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import Schema, Word, table

STEPS: dict[str, Word] = table()

OPTIONS: dict[str, Schema] = {
    "tokens-required": {"type": "boolean", "description": "the relay asks for scope tokens"},
    "cache": {
        "type": "integer",
        "minimum": 0,
        "description": "octets that the relay's cache may hold",
    },
    "filter-ranges": {
        "type": "integer",
        "minimum": 0,
        "description": "MAX_FILTER_RANGES that the relay announces",
    },
}
"""Keys of a scenario that are about the relay."""
