"""Steps of a scripted node that are about ranges, fills, filters and the ends of requests."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    COUNT,
    DURATION,
    LABEL,
    NAME,
    SPAN,
    TRACKS,
    Schema,
    Word,
    table,
)

_PLACE: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": COUNT}
_AFTER = {"after": DURATION}
_FILL: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"from": _PLACE, "to": _PLACE, "timeout": COUNT},
}

STEPS: dict[str, Word] = table(
    Word(
        "subscribe-range",
        "SUBSCRIBE these tracks with a Location filter: `from` a Location (default: the next "
        "Object), `to-group` the last Group; `forward: 0` is paused; `fill` is a fill `from` .. "
        "`to` (default: everything so far) with FILL_TIMEOUT `timeout` in ms; `objects: [first, "
        "last]` is an OBJECTID_FILTER, `ranges: too-many` one with a Range more than the peer "
        "announced; `rendezvous` is RENDEZVOUS_TIMEOUT in ms; made `after` so long",
        TRACKS,
        {
            **LABEL,
            **_AFTER,
            "from": _PLACE,
            "to-group": COUNT,
            "forward": {"enum": [0, 1]},
            "fill": _FILL,
            "objects": SPAN,
            "ranges": {"const": "too-many"},
            "rendezvous": COUNT,
        },
    ),
    Word(
        "fetch-range",
        "FETCH these tracks `from` .. `to`, Locations and both inclusive; `order: descending` by "
        "Groups; `fill-timeout` is FILL_TIMEOUT in ms; `objects` as above, `priority` is "
        "SUBSCRIBER_PRIORITY; made `after` so long",
        TRACKS,
        {
            **LABEL,
            **_AFTER,
            "from": _PLACE,
            "to": _PLACE,
            "order": {"enum": ["ascending", "descending"]},
            "fill-timeout": COUNT,
            "objects": SPAN,
            "priority": {"type": "integer", "minimum": 0, "maximum": 255},
        },
        ("from", "to"),
    ),
    Word(
        "fetch-many",
        "FETCH the whole k.raw.s0 of each of the first so many publications that a step let "
        "`publish-many` announce, all at once",
        {"type": "integer", "minimum": 1, "maximum": 64},
        LABEL,
    ),
    Word(
        "update",
        "REQUEST_UPDATE on the subscriptions of the step with this label",
        NAME,
        {**LABEL, **_AFTER, "forward": {"enum": [0, 1]}, "fill": _FILL},
    ),
    Word(
        "cancel",
        "cancel the requests of the step with this label; `by: request-stream` asks the peer to "
        "stop the request's own stream alone, so that what it does with the others shows; `by: "
        "fin` ends our side of that stream, which cancels nothing",
        NAME,
        {**_AFTER, "by": {"enum": ["all", "request-stream", "fin"]}},
    ),
    Word(
        "finish",
        "end our direction of the request streams of the step with this label by FIN, which "
        "cancels nothing",
        NAME,
        _AFTER,
    ),
    Word(
        "finish",
        "end our direction of the request streams of the step with this label by FIN, which "
        "cancels nothing",
        NAME,
        _AFTER,
    ),
    Word(
        "stop-stream",
        "STOP_SENDING for the data stream that brought an Object of this Group to the step with "
        "this label",
        NAME,
        {**_AFTER, "group": COUNT, "via": {"enum": ["subscription", "fill", "fetch"]}},
    ),
)
