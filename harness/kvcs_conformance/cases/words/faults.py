"""What a relay of ours does wrong to a consumer, and what a publisher of ours says wrongly.

A consumer under test stands behind our relay and our publisher; each word here is one fault of
them, which it must live with.
"""

from __future__ import annotations

from typing import Any

from kvcs_conformance.cases.words.base import (
    COUNT,
    DURATION,
    NAME,
    TRACK,
    Schema,
    Word,
    table,
)

_BY: dict[str, Schema] = {"by": NAME | {"description": "the publisher; default: publisher"}}
_AT: dict[str, Schema] = {
    "at": NAME | {"description": "the relay; default: relay"},
    "skips": COUNT | {"description": "not the first so many times"},
    "times": {"type": "integer", "minimum": 1, "description": "only so often; default: always"},
}
_PLACE: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": COUNT}
_VIA: Schema = {"enum": ["fetch", "fill", "subscription"]}
_KIND: Schema = {"enum": ["subscribe", "fetch", "subscribe-namespace"]}


def _word(
    name: str, doc: str, required: tuple[str, ...], more: dict[str, Schema], common: dict[str, Any]
) -> Word:
    value: Schema = {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**more, **common},
    }
    return Word(name, doc, value)


def _fault(name: str, doc: str, *required: str, **more: Schema) -> Word:
    return _word(name, doc, required, more, _AT)


def _tamper(name: str, doc: str, *required: str, **more: Schema) -> Word:
    return _word(name, doc, required, more, _BY)


_OBJECT: dict[str, Schema] = {"track": TRACK, "layer": COUNT, "block": COUNT, "via": _VIA}

RELAY_FAULTS: dict[str, Word] = table(
    _fault(
        "silent",
        "requests of this kind (of `track`, if given) are never answered",
        "to",
        to=_KIND,
        track=TRACK,
    ),
    _fault(
        "refuses",
        "requests for `track` (of the kind `to`, if given) are refused with this error code; they "
        "may come again after `retry`, if given",
        "track",
        "with",
        track=TRACK,
        to=_KIND,
        retry=DURATION,
        **{"with": NAME},
    ),
    _fault("no-fetch-ok", "FETCH_OK is not sent; the Objects and FIN are"),
    _fault(
        "fetch-ends-early",
        "FETCH_OK and the fetch stream end with `layer`, as if nothing came after it",
        "layer",
        layer=COUNT,
    ),
    _fault(
        "drops",
        "Objects of `track` in `layer` (only `block`, if given; only on streams `via`) are left "
        "out without a word, and what marks the end of the layer too",
        "track",
        "layer",
        **_OBJECT,
    ),
    _fault(
        "unknown-range",
        "fetch and fill streams say End of Unknown Range instead of the Objects of `layer`",
        "track",
        "layer",
        track=TRACK,
        layer=COUNT,
    ),
    _fault(
        "resets",
        "fetch and fill streams are reset where this Object would come",
        "track",
        "layer",
        "block",
        **_OBJECT,
    ),
    _fault(
        "stalls",
        "fetch and fill streams stop before this Object, without FIN or reset; subscriptions bring "
        "nothing from there on",
        "track",
        "layer",
        "block",
        **_OBJECT,
    ),
    _fault(
        "trickles",
        "from the first FETCH on, data streams go out octet by octet, one each time that `by` is "
        "over",
        "by",
        by=DURATION,
    ),
    _fault(
        "flips-bit",
        "one bit of the Data of this Object differs; its digest does not",
        "track",
        "layer",
        "block",
        **_OBJECT,
    ),
    _fault(
        "replaces-data",
        "one bit of the Data of this Object differs, and Data Digest is that of the new Data",
        "track",
        "layer",
        "block",
        **_OBJECT,
    ),
    _fault(
        "late",
        "on subscriptions Objects of `layer` come `by` so much later than they should, behind "
        "those of later layers; with other Data, its digest right, when `changed`",
        "track",
        "layer",
        "by",
        track=TRACK,
        layer=COUNT,
        block=COUNT,
        by=DURATION,
        changed={"const": True},
    ),
    _fault("no-marks", "neither End of Group nor End of Track is sent"),
    _fault("no-done", "PUBLISH_DONE is not sent for data tracks"),
    _fault(
        "done-early",
        "PUBLISH_DONE with this code is sent for `track` after `layer`, and nothing live after it",
        "track",
        "layer",
        "code",
        track=TRACK,
        layer=COUNT,
        code=NAME,
    ),
    _fault(
        "ok-late",
        "SUBSCRIBE_OK comes `by` so much later; Objects do not wait for it",
        "by",
        by=DURATION,
    ),
    _fault(
        "floods",
        "so many Objects come on a Track Alias that nothing ever binds, before SUBSCRIBE_OK",
        "objects",
        objects=COUNT,
    ),
    _fault(
        "announces",
        "SUBSCRIBE_NAMESPACE is answered with one more NAMESPACE: no field after the prefix, two "
        "fields, a Publication ID of 15 or 17 octets, or one in hexadecimal",
        "shape",
        shape={"enum": ["no-field", "two-fields", "short", "long", "hexadecimal"]},
    ),
    _fault("fetch-ok-before", "FETCH_OK has an End Location before the range asked for"),
    _fault("refers-back", "the first Object of a fetch stream takes its fields from one before"),
    _fault(
        "mandatory-property",
        "SUBSCRIBE_OK and FETCH_OK of data tracks have a Mandatory Track Property that is unknown",
    ),
    _fault("withdraws-unlisted", "NAMESPACE_DONE comes for a namespace that was not told of"),
    _fault(
        "withdraws",
        "NAMESPACE_DONE is sent when the first Object of `layer` is",
        "layer",
        layer=COUNT,
    ),
)
"""The faults of a relay before a consumer, by `relay-faults` of a scenario."""

TAMPERS: dict[str, Word] = table(
    _tamper(
        "manifest-member",
        "a member of every manifest version has another value, or is absent",
        "member",
        member={"type": "string"},
        value={},
        absent={"const": True},
    ),
    _tamper(
        "segment-member",
        "a member of the manifest's entry of this segment has another value, or is absent",
        "segment",
        "member",
        segment=COUNT,
        member={"type": "string"},
        value={},
        absent={"const": True},
    ),
    _tamper(
        "manifest-text",
        "every manifest is the same JSON written otherwise, or not right JSON at all",
        "as",
        **{
            "as": {
                "enum": [
                    "reordered",
                    "array",
                    "followed",
                    "byte-order-mark",
                    "member-twice",
                    "not-utf-8",
                ]
            }
        },
    ),
    _tamper(
        "digests",
        "object_digests of `k.raw.s0` are listed wrongly",
        "as",
        **{
            "as": {
                "enum": [
                    "short-array",
                    "one-layer-more",
                    "layers-swapped",
                    "digit-missing",
                    "absent",
                ]
            }
        },
    ),
    _tamper(
        "anchor-not-last",
        "the manifest's segment 0 covers so many blocks, not those up to the Anchor Key",
        "blocks",
        blocks={"type": "integer", "minimum": 1},
    ),
    _tamper(
        "cose",
        "manifest.cose is another structure, or signed otherwise",
        "as",
        **{
            "as": {
                "enum": [
                    "untagged",
                    "kid-unprotected",
                    "es256",
                    "followed",
                    "detached",
                    "mac0",
                    "sign",
                    "label-twice",
                    "algorithm-unprotected",
                    "algorithm-other",
                    "kid-absent",
                    "kid-unknown",
                    "other-key",
                    "payload-altered",
                ]
            }
        },
    ),
    _tamper(
        "namespace",
        "the publication is announced and published under fields of this shape",
        "as",
        **{
            "as": {"enum": ["kvcs-2", "upper-case", "hexadecimal", "six-fields", "scope-neighbour"]}
        },
    ),
    _tamper(
        "header-little-endian",
        "the integers of the payload header have their octets the other way round",
        "track",
        "layer",
        "block",
        track=TRACK,
        layer=COUNT,
        block=COUNT,
    ),
    _tamper(
        "payload-of",
        "the Object carries the whole payload of an earlier one: `of: [layer, block]`",
        "track",
        "layer",
        "block",
        "of",
        track=TRACK,
        layer=COUNT,
        block=COUNT,
        of=_PLACE,
    ),
    _tamper(
        "data-of",
        "the Object carries the Data and Data Digest of an earlier one under its own header",
        "track",
        "layer",
        "block",
        "of",
        track=TRACK,
        layer=COUNT,
        block=COUNT,
        of=_PLACE,
    ),
)
"""What a publisher before a consumer says wrongly, besides `words.publisher.TAMPERS`."""

OPTIONS: dict[str, Schema] = {
    "relay-faults": {
        "description": "what relays of ours do wrong",
        "type": "array",
        "items": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": {name: word.value for name, word in RELAY_FAULTS.items()},
        },
    },
}
"""Keys of a scenario that are about faults of relays before a consumer."""
