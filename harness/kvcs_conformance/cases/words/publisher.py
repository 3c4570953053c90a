"""Steps of a publisher, and the ways to tamper with what it sends."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    COUNT,
    NAME,
    TRACK,
    Schema,
    Word,
    table,
)
from kvcs_conformance.cases.words.scenario import OVERRIDES

_OF = {"of": NAME}

STEPS: dict[str, Word] = table(
    Word(
        "publish",
        "produce and publish the next so many layers, or all that are left and then complete the "
        "segment; one layer per `layer-time` of the scenario; the steps go on meanwhile. "
        "`segment` is by default the first that is not whole, `of` the publication opened last",
        {"anyOf": [{"const": "all"}, {"type": "integer", "minimum": 1}]},
        {"segment": COUNT, **_OF},
    ),
    Word(
        "add-segment",
        "add the next segment, of so many blocks as the scenario's `appended` says, once what was "
        "asked before is done; nothing of it is produced yet",
        {"type": "integer", "minimum": 1},
        _OF,
    ),
    Word(
        "open",
        "start one more publication under this name (the one from the start is called `first`), "
        "of the same content or of what `with` says otherwise",
        NAME,
        {"with": OVERRIDES},
    ),
    Word(
        "restart",
        "the publisher is gone without a word, and starts again as another process that is asked "
        "for the same as at first",
        {"const": "now"},
    ),
    Word(
        "stop",
        "end the publication as after an error: PUBLISH_DONE, namespace withdrawn",
        {"type": "string", "minLength": 1},
        _OF,
    ),
)

_OBJECT = {"track": TRACK, "layer": COUNT, "block": COUNT, "by": NAME}
_WHERE = ("track", "layer", "block")


def _tamper(name: str, doc: str, **more: Schema) -> Word:
    value: Schema = {
        "type": "object",
        "additionalProperties": False,
        "required": [*_WHERE, *more],
        "properties": {**_OBJECT, **more},
    }
    return Word(name, doc, value)


TAMPERS: dict[str, Word] = table(
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
        "the manifest's `compat` has another value for `member`",
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["member", "value"],
            "properties": {"member": NAME, "value": {"type": ["string", "integer"]}, "by": NAME},
        },
    ),
)
