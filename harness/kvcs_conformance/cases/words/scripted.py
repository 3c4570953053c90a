"""Steps of a scripted node."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    COUNT,
    LABEL,
    SPAN,
    TOKEN,
    TRACKS,
    Schema,
    Word,
    table,
)

_NOTATION: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "octets: hex, 'text', [with 16-bit length], (with vi64 length), *repeats the "
    "item before it, $namespace $prefix $scope (of the publication), $mine (of the attempt), "
    "$token, $options (PATH and AUTHORITY), $id (the peer's Request ID); `fin` or `reset` ends",
}

_DOWNSTREAM: Schema = {"enum": ["subscribe", "fetch", "fetch-late", "track-status"]}

SENDS: dict[str, Schema] = {
    "setup": _NOTATION,
    "control": _NOTATION,
    "request": _NOTATION,
    "more": _NOTATION,
    "reply": _NOTATION,
    "uni": _NOTATION,
    "datagram": _NOTATION,
    "answered": {"type": "integer", "minimum": 1},
    "asked": {"const": 1},
    "dropped": {"const": 1},
    "downstream": _DOWNSTREAM,
}
"""What an attempt does: octets on the control stream (`setup` in place of SETUP), on a new request
stream, `more` on the one opened last, in `reply` to the peer's request, on a new unidirectional
stream, in a datagram. It waits until the last request has so many OKs and errors (`answered`),
until the peer `asked`, or until it `dropped` what it asked. `downstream` lets the node's own
session ask for the attempt's Track."""

_ATTEMPT: Schema = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "sends"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 64},
        "sends": {
            "type": "array",
            "items": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "additionalProperties": False,
                "properties": SENDS,
            },
        },
    },
}

_PRIORITY: Schema = {"type": "integer", "minimum": 0, "maximum": 255}
_WHICH: dict[str, Schema] = {"publication": COUNT}
_AS: dict[str, Schema] = {"token": TOKEN, **LABEL}

STEPS: dict[str, Word] = table(
    Word(
        "attempt",
        "open a connection for each attempt and write what it `sends`, in order, then prove "
        "whether the session lives; `when-asked-to` lets each be the publisher of a Track that the "
        "node's own session then asks for",
        {"type": "array", "minItems": 1, "items": _ATTEMPT},
        {"when-asked-to": _DOWNSTREAM, **LABEL},
    ),
    Word(
        "subscribe",
        "SUBSCRIBE these tracks; `from: start` is Next Object and a fill from {0,0}, `from: next` "
        "no fill, `from: current` a fill of the current Group; `publication: n` is the n-th one "
        "announced to this node, from 0; `token` goes in place of the node's own",
        TRACKS,
        {"from": {"enum": ["start", "next", "current"]}, **_WHICH, **_AS},
        ("from",),
    ),
    Word(
        "fetch",
        "FETCH these tracks, Groups `layers: [first, last]`, ascending; `publication` as above, "
        "`priority` is the Subscriber Priority",
        TRACKS,
        {"layers": SPAN, "priority": _PRIORITY, **_WHICH, **_AS},
        ("layers",),
    ),
    Word(
        "track-status",
        "ask TRACK_STATUS of these tracks",
        TRACKS,
        _AS,
    ),
    Word(
        "subscribe-namespace",
        "SUBSCRIBE_NAMESPACE: the first 1, 2, 4 or 5 fields of the publication's namespace, or a "
        "prefix that only looks like it: `scope-cut` (scope one octet short), `scope-other` (last "
        "octet differs), `boundary-moved` (first scope octet moved to field 0)",
        {"enum": [1, 2, 4, 5, "scope-cut", "scope-other", "boundary-moved"]},
        _AS,
    ),
    Word(
        "publish-namespace",
        "PUBLISH_NAMESPACE of a new publication of the same prefix and scope",
        {"const": "same-scope"},
        _AS,
    ),
)
