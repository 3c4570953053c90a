"""Steps of an origin: a publisher that sends what the steps say, right or wrong.

Unless a step of the case lets it `announce`, it announces from the start the publication that the
node `publisher` has. Its data tracks are there from the start. Payloads are opaque octets that
begin with the place that they belong to.
"""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    COUNT,
    DURATION,
    LABEL,
    NAME,
    TRACK,
    TRACKS,
    Schema,
    Word,
    table,
)

_LOCATION: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": COUNT}
_LOCATIONS: Schema = {"type": "array", "minItems": 1, "items": _LOCATION}
_HEX: Schema = {"type": "string", "pattern": "^([0-9a-f]{2} ?)*$", "examples": ["04 c0ea60"]}
_KINDS = ["subscribe", "fetch", "track-status"]
_LATER = {"after": DURATION}
_TRACK = {"track": TRACK}

_FIELDS: dict[str, Schema] = {
    "subgroup": {"anyOf": [COUNT, {"const": "datagram"}]},
    "priority": {"type": "integer", "minimum": 0, "maximum": 255},
    "properties": _HEX,
    "version": {"type": "string"},
}


def _some(kinds: list[str]) -> Schema:
    return {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"enum": kinds}}


STEPS: dict[str, Word] = table(
    Word(
        "publish",
        "publish Objects at these Locations `[group, object]` of `track` (default k.raw.s0), "
        "`every` so long; subgroup 0, priority 128 and 160 `octets` unless said otherwise; "
        "`properties` are octets of Object Properties; `version` names another payload there; "
        "`largest-of-group` sets END_OF_GROUP in a header, `first: false` leaves FIRST_OBJECT "
        "clear; `fin` ends the subgroup behind each",
        _LOCATIONS,
        {
            **_TRACK,
            **_LATER,
            "every": DURATION,
            "subgroup": {"anyOf": [COUNT, {"const": "datagram"}]},
            **_FIELDS,
            "octets": COUNT,
            "wrong": {
                "description": "what an origin that is not `alike` has otherwise",
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": _FIELDS,
            },
            "status": {"enum": ["end-of-group", "end-of-track"]},
            "largest-of-group": {"type": "boolean"},
            "first": {"type": "boolean"},
            "fin": {"type": "boolean"},
        },
    ),
    Word(
        "fin",
        "end the streams of these subgroups `[group, subgroup]`",
        _LOCATIONS,
        {**_TRACK, **_LATER},
    ),
    Word(
        "reset",
        "reset the streams of these subgroups `[group, subgroup]` with `code`",
        _LOCATIONS,
        {**_TRACK, **_LATER, "code": COUNT},
    ),
    Word(
        "finish",
        "end the subscriptions of these tracks: PUBLISH_DONE with `code` (default TRACK_ENDED)",
        TRACKS,
        {**_LATER, "code": COUNT},
    ),
    Word(
        "track",
        "begin a track anew, without Objects, with these Track `properties` (default: the "
        "scenario's retention); `knows-all: false`: what it does not hold is unknown, not absent",
        TRACK,
        {"properties": _HEX, "knows-all": {"type": "boolean"}},
    ),
    Word(
        "largest",
        "report this Location as Largest Object, whatever was published; `notify` tells the "
        "subscribers at once",
        _LOCATION,
        {**_TRACK, "notify": {"type": "boolean"}},
    ),
    Word(
        "hold",
        "give no answer to requests of these kinds; `fetch-ok` holds FETCH_OK alone, Objects come",
        _some([*_KINDS, "fetch-ok"]),
    ),
    Word(
        "release",
        "answer what was held, and hold no more",
        _some([*_KINDS, "fetch-ok"]),
        _LATER,
    ),
    Word(
        "refuse",
        "answer requests of these kinds with REQUEST_ERROR `code` from now on",
        _some(_KINDS),
        {"code": COUNT},
        ("code",),
    ),
    Word(
        "announce",
        "PUBLISH_NAMESPACE of the first so many fields of the publication's namespace",
        {"enum": [2, 4, 5]},
        _LATER,
    ),
    Word(
        "withdraw",
        "take back the announcement of so many fields",
        {"enum": [2, 4, 5]},
        _LATER,
    ),
    Word(
        "publish-many",
        "announce so many further publications, each with one track k.raw.s0 of `groups` times "
        "`objects` Objects",
        {"type": "integer", "minimum": 1, "maximum": 64},
        {"groups": COUNT, "objects": COUNT, "octets": COUNT},
        ("groups", "objects", "octets"),
    ),
    Word(
        "rush",
        "announce so many further publications, one after another; 0 to 50 ms after each was "
        "accepted the scripted node `by` sends SUBSCRIBE and FETCH for its one Object, as the "
        "step labelled `as`",
        {"type": "integer", "minimum": 1, "maximum": 64},
        {"by": NAME, **LABEL},
        ("by",),
    ),
    Word("leave", "close every session", {"const": "now"}, _LATER),
)
