"""What a scenario says about the links between nodes, and steps that do something to them."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.cases.words.base import COUNT, DURATION, NAME, TRACK, Schema, Word, table

BANDWIDTH: Schema = {
    "description": "`10Mbit` (per second), or octets per second",
    "examples": ["10Mbit", "125000"],
    "anyOf": [
        {"type": "string", "pattern": r"^\d+(\.\d+)?[kMG]?bit$"},
        {"type": "integer", "minimum": 1},
    ],
}
SIZE: Schema = {
    "examples": ["4KiB", "4096"],
    "anyOf": [
        {"type": "string", "pattern": r"^[1-9]\d*(KiB|MiB)$"},
        {"type": "integer", "minimum": 1},
    ],
}
POSITIVE: Schema = {"type": "integer", "minimum": 1}
PAIR: Schema = {
    "type": "array",
    "minItems": 2,
    "maxItems": 2,
    "uniqueItems": True,
    "items": NAME,
}


def _mapping(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    named = {name.rstrip("_").replace("_", "-"): schema for name, schema in properties.items()}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "minProperties": 1,
        "properties": named,
    }


_LOSS: Schema = {
    "description": "packets of one direction that do not arrive, by number from 0, or so many of "
    "the first so many, drawn from the seed; on memory a packet is a piece of a stream, which "
    "then comes late",
    "oneOf": [
        _mapping(
            ("from", "packets"),
            from_=NAME,
            packets={"type": "array", "minItems": 1, "uniqueItems": True, "items": COUNT},
        ),
        _mapping(("from", "count", "of"), from_=NAME, count=POSITIVE, of=POSITIVE),
    ],
}

_PATH: Schema = _mapping(
    ("between",),
    between=PAIR,
    latency=DURATION | {"description": "one way"},
    bandwidth=BANDWIDTH,
    reorder_streams={
        "const": True,
        "description": "each data stream that a node of ours opens begins late by a time drawn "
        "from the seed, so that streams overtake each other",
    },
    lose={"type": "array", "minItems": 1, "items": _LOSS},
    chunks={
        "type": "array",
        "minItems": 2,
        "maxItems": 2,
        "items": POSITIVE,
        "description": "least and most octets in which streams arrive; memory only",
    },
)

_GRANT: Schema = _mapping(
    streams=POSITIVE | {"description": "unidirectional streams that a peer may have open"},
    request_streams=POSITIVE | {"description": "bidirectional ones"},
    window=SIZE | {"description": "octets ahead of what was read, of the connection"},
    stream_window=SIZE | {"description": "the same of each stream"},
)

OPTIONS: dict[str, Any] = {
    "network": {
        "description": "what is between the nodes; without it a plain, lossless link",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "links": {"type": "array", "minItems": 1, "items": _PATH},
            "grants": {
                "description": "what nodes of ours let their peers send",
                "type": "object",
                "minProperties": 1,
                "propertyNames": NAME,
                "additionalProperties": _GRANT,
            },
            "watch-streams": {
                "const": True,
                "description": "the log tells when a node of ours finds no stream left to open",
            },
            "idle-timeout": DURATION
            | {"description": "how long a silent connection lives; default 30s"},
            "datagram-size": {
                "type": "integer",
                "minimum": 1200,
                "maximum": 16383,
                "description": "octets of UDP payload; quic only",
            },
        },
    }
}
"""Keys of a scenario."""


def _streams(*required: str, **more: Schema) -> Schema:
    properties = {"from_": NAME, "to": NAME, "track": TRACK, "layer": COUNT}
    return _mapping(("from", "to", *required), **properties, **more)


STEPS: dict[str, Word] = table(
    Word("partition", "nothing passes between two nodes until `heal`", PAIR),
    Word("heal", "end a partition", PAIR),
    Word(
        "lose-connection",
        "nothing passes any more on the connections between two nodes: both lose them after "
        "`idle-timeout`, new ones are unharmed",
        PAIR,
    ),
    Word(
        "hold",
        "a node of ours holds back the data streams of `track` (of `layer`, default all) that go "
        "`from` it `to` another, `for` a time or until `release`; its session believes that they "
        "went out; `only: fin` lets their octets pass and holds the ends of the streams",
        _streams(only={"const": "fin"}, for_=DURATION),
    ),
    Word(
        "release",
        "send what a `hold` of the same streams kept back",
        _streams(only={"const": "fin"}),
    ),
    Word(
        "reset-stream",
        "a node of ours resets the next data stream of `track` (and `layer`) once `at` octets of "
        "it went out, with `code` (default 0), and forgets the rest",
        _streams("track", "at", at=COUNT, code=COUNT),
    ),
    Word(
        "slow-reader",
        "a node of ours reads no data stream any more and grants no credit, until `read`; requests "
        "and answers pass",
        NAME,
    ),
    Word("read", "a slow reader reads again", NAME),
    Word("kill", "a node of ours is gone without a word", NAME),
    Word(
        "restart",
        "a killed relay is back at its address, with nothing in its memory; publishers of ours "
        "connect to it again",
        NAME,
    ),
)
