"""Steps of a scripted node."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    LABEL,
    SPAN,
    TRACKS,
    Word,
    table,
)

STEPS: dict[str, Word] = table(
    Word(
        "subscribe",
        "SUBSCRIBE these tracks; `from: start` is Next Object and a fill from {0,0}, `from: next` "
        "no fill, `from: current` a fill of the current Group",
        TRACKS,
        {"from": {"enum": ["start", "next", "current"]}, **LABEL},
        ("from",),
    ),
    Word(
        "fetch",
        "FETCH these tracks, Groups `layers: [first, last]`, ascending",
        TRACKS,
        {"layers": SPAN, **LABEL},
        ("layers",),
    ),
    Word(
        "track-status",
        "ask TRACK_STATUS of these tracks",
        TRACKS,
        LABEL,
    ),
    Word(
        "subscribe-namespace",
        "SUBSCRIBE_NAMESPACE: the first 1, 2, 4 or 5 fields of the publication's namespace, or a "
        "prefix that only looks like it: `scope-cut` (scope one octet short), `scope-other` (last "
        "octet differs), `boundary-moved` (first scope octet moved to field 0)",
        {"enum": [1, 2, 4, 5, "scope-cut", "scope-other", "boundary-moved"]},
        LABEL,
    ),
    Word(
        "publish-namespace",
        "PUBLISH_NAMESPACE of a new publication of the same prefix and scope",
        {"const": "same-scope"},
        LABEL,
    ),
)
