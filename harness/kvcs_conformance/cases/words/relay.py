"""What a scenario sets on a relay of ours, and the steps of one."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import Schema, Word, table

STEPS: dict[str, Word] = table()

OPTIONS: dict[str, Schema] = {
    "tokens-required": {"type": "boolean", "description": "the relay asks for scope tokens"},
}
"""Keys of a scenario that are about the relay."""
