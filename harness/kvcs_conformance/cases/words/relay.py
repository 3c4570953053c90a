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
    "open-updates": {
        "type": "integer",
        "minimum": 0,
        "description": "MAX_REQUEST_UPDATES that the relay announces",
    },
    "token-cache": {
        "type": "integer",
        "minimum": 0,
        "description": "MAX_AUTH_TOKEN_CACHE_SIZE that the relay announces",
    },
    "limits": {
        "type": "object",
        "description": "what one session may ask of the relay: open requests, announced "
        "namespaces, namespaces that one prefix may match, requests per second and at once",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            name: {"type": "integer", "minimum": 1}
            for name in (
                "requests",
                "namespaces",
                "listed-namespaces",
                "request-rate",
                "request-burst",
            )
        },
    },
}
"""Keys of a scenario that are about the relay."""
