"""The words of a case: steps, events to wait for, ways to tamper, and the scenario's keys.

Each word carries its own documentation and the JSON Schema of what follows it; the schema of a
case and the output of `kvcs list --steps` are made of these tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

TRACK: Schema = {"type": "string", "pattern": r"^(manifest(\.cose)?|(k|v|kv)\.[a-z0-9-]+\.s\d+)$"}
TRACKS: Schema = {"type": "array", "minItems": 1, "items": TRACK}
NAME: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}
DURATION: Schema = {"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s)$"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SPAN: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": COUNT}


@dataclass(frozen=True)
class Word:
    """One word: who understands it, what it means, and what is written with it."""

    name: str
    of: str
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


def _table(*words: Word) -> dict[str, Word]:
    return {word.name: word for word in words}


LABEL = {"as": NAME}

STEPS: dict[str, Word] = _table(
    Word(
        "publish",
        "publisher",
        "produce and publish the next so many layers, or all that are left and then complete the "
        "segment; one layer per `layer-time` of the scenario; the steps go on meanwhile",
        {"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 1}]},
    ),
    Word(
        "stop",
        "publisher",
        "end the publication as after an error: PUBLISH_DONE, namespace withdrawn",
        {"type": "string", "minLength": 1},
    ),
    Word(
        "subscribe",
        "scripted",
        "SUBSCRIBE these tracks; `from: start` is Next Object and a fill from {0,0}, `from: next` "
        "no fill, `from: current` a fill of the current Group",
        TRACKS,
        {"from": {"enum": ["start", "next", "current"]}, **LABEL},
        ("from",),
    ),
    Word(
        "fetch",
        "scripted",
        "FETCH these tracks, Groups `layers: [first, last]`, ascending",
        TRACKS,
        {"layers": SPAN, **LABEL},
        ("layers",),
    ),
    Word(
        "track-status",
        "scripted",
        "ask TRACK_STATUS of these tracks",
        TRACKS,
        LABEL,
    ),
    Word(
        "subscribe-namespace",
        "scripted",
        "SUBSCRIBE_NAMESPACE: the first 1, 2, 4 or 5 fields of the publication's namespace, or a "
        "prefix that only looks like it: `scope-cut` (scope one octet short), `scope-other` (last "
        "octet differs), `boundary-moved` (first scope octet moved to field 0)",
        {"enum": [1, 2, 4, 5, "scope-cut", "scope-other", "boundary-moved"]},
        LABEL,
    ),
    Word(
        "publish-namespace",
        "scripted",
        "PUBLISH_NAMESPACE of a new publication of the same prefix and scope",
        {"const": "same-scope"},
        LABEL,
    ),
    Word(
        "consume",
        "consumer",
        "find the publication and retrieve it: `live` by SUBSCRIBE and fill, `completed` by FETCH; "
        "`layers: [first, last]` and `blocks: n` limit it",
        {"enum": ["live", "completed"]},
        {
            "layers": SPAN,
            "blocks": {"type": "integer", "minimum": 1},
            "authenticity": {"type": "boolean"},
            "budget": DURATION,
        },
    ),
)

WAITS: dict[str, Word] = _table(
    Word(
        "expect",
        "any",
        "wait for an event in the log of a node (`at`, default consumer); when it does not come "
        "`within` the time, the case ends inconclusive unless the evidence so far is a failure",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["event"],
            "properties": {
                "event": {"type": "string"},
                "at": NAME,
                "track": TRACK,
                "layer": COUNT,
                "block": COUNT,
                "of": NAME,
                "within": DURATION,
            },
        },
    ),
    Word(
        "fence",
        "any",
        "ask the peer of a scripted node something harmless and wait for the answer: what was not "
        "delivered before it was not delivered",
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {"at": NAME, "within": DURATION},
        },
    ),
)

EVENTS: dict[str, str] = {
    "announced": "PUBLISH_NAMESPACE arrived",
    "namespace": "NAMESPACE arrived",
    "answered": "every request of the step labelled `of` has its OK or its error",
    "delivered": "every fetch of the step labelled `of` ended: FIN, reset, or refused",
    "object": "an Object of `track` arrived, in `layer` and at `block` if given",
    "end-of-group": "End of Group of `layer` of `track` arrived",
    "end-of-track": "End of Track of `track` arrived",
    "track-ended": "PUBLISH_DONE of `track` arrived",
    "layer-published": "the publisher handed over `layer` (default: any)",
    "completed": "the publisher completed the segment",
    "layer-usable": "the consumer reported `layer` usable",
    "done": "the consumer reported that it is done",
}

_OBJECT = {"track": TRACK, "layer": COUNT, "block": COUNT, "by": NAME}
_WHERE = ("track", "layer", "block")


def _tamper(name: str, doc: str, **more: Schema) -> Word:
    value: Schema = {
        "type": "object",
        "additionalProperties": False,
        "required": [*_WHERE, *more],
        "properties": {**_OBJECT, **more},
    }
    return Word(name, "publisher", doc, value)


TAMPERS: dict[str, Word] = _table(
    _tamper("data-bit-flipped", "one bit of Data differs, Data Digest does not"),
    _tamper(
        "header-field",
        "one field of the payload header has another value; digest and length stay right",
        field={
            "enum": [
                "magic",
                "version",
                "component",
                "flags",
                "layer",
                "block",
                "token_start",
                "token_count",
                "codec",
                "data_length",
            ]
        },
        value=COUNT,
    ),
    _tamper("data-replaced", "one bit of Data differs, and Data Digest is that of the new Data"),
    _tamper("cut", "the last `octets` of the payload are missing", octets=COUNT),
    _tamper("padded", "`octets` zero octets follow the payload", octets=COUNT),
    _tamper("withheld", "the Object is not published"),
    Word(
        "signature-broken",
        "publisher",
        "one bit of the signature of every manifest version differs",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["by"],
            "properties": {"by": NAME},
        },
    ),
    Word(
        "descriptor-member",
        "publisher",
        "the manifest's `compat` has another value for `member`",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["member", "value"],
            "properties": {"member": NAME, "value": {"type": ["string", "integer"]}, "by": NAME},
        },
    ),
)

NODE: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["kind"],
    "properties": {
        "kind": {"enum": ["scripted", "publisher"]},
        "token": {"enum": ["scope", "other-scope", "none"]},
    },
}

SCENARIO: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["use"],
    "properties": {
        "use": NAME | {"description": "the scenario file to start from"},
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
        "tokens-required": {"type": "boolean", "description": "the relay asks for scope tokens"},
        "nodes": {"type": "object", "propertyNames": NAME, "additionalProperties": NODE},
        "tamper": {"type": "array", "items": {"type": "object"}},
    },
}
