"""What a word of a case is, and the schemas that words share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

TRACK: Schema = {
    "type": "string",
    "pattern": r"^(manifest(\.cose)?|(k|v|kv)\.[a-z0-9-]+\.s\d+)$",
    "examples": ["k.raw.s0", "manifest"],
}
TRACKS: Schema = {"type": "array", "minItems": 1, "items": TRACK}
NAME: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$", "examples": ["late-joiner"]}
DURATION: Schema = {
    "type": "string",
    "pattern": r"^\d+(\.\d+)?(ms|s)$",
    "examples": ["300ms", "5s"],
}
TOKEN: Schema = {
    "enum": ["scope", "reader", "other-scope", "neighbour-scope", "garbled", "none"],
    "description": "whose token goes with the requests: a member's, that of a member who may only "
    "read, of two other scopes (one differs in the last octet), one that nobody was given, none",
}
COUNT: Schema = {"type": "integer", "minimum": 0}
SPAN: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": COUNT}


@dataclass(frozen=True)
class Word:
    """One word: what it means, and what is written with it."""

    name: str
    doc: str
    value: Schema
    options: dict[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def schema(self) -> Schema:
        """The schema of the mapping `{name: value, option: …}`."""
        return {
            "type": "object",
            "description": self.doc,
            "additionalProperties": False,
            "required": [self.name, *self.required],
            "properties": {self.name: self.value, **self.options},
        }


def table(*words: Word) -> dict[str, Word]:
    """The words by name."""
    return {word.name: word for word in words}


LABEL = {"as": NAME}
