"""Waiting for an event, and the fence."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    COUNT,
    DURATION,
    NAME,
    TRACK,
    Word,
    table,
)

WAITS: dict[str, Word] = table(
    Word(
        "expect",
        "wait for an event in the log of a node (`at`, default consumer); when it does not come "
        "`within` the time, the case ends inconclusive unless the evidence so far is a failure; "
        "with `probe` the peer of a scripted node is asked then whether it still answers, so that "
        "its silence counts",
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
                "via": {"enum": ["subscription", "fill", "fetch"]},
                "segment": COUNT,
                "complete": {"const": True},
                "times": {"type": "integer", "minimum": 1},
                "of": NAME,
                "type": {"type": "string"},
                "fault": {"type": "string"},
                "count": {"type": "integer", "minimum": 1},
                "within": DURATION,
                "probe": {"const": True},
            },
        },
    ),
    Word(
        "fence",
        "ask the peer of a scripted node something harmless and wait for the answer: what was not "
        "delivered before it was not delivered",
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {"at": NAME, "within": DURATION},
        },
    ),
)
