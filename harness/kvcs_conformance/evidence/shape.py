"""Whether records have the shape that a run writes: asked when one could not be told."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.evidence.read import Evidence

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
_TRACK = {
    "type": "object",
    "required": ["namespace", "name"],
    "properties": {"namespace": {"type": "array", "items": _TEXT}, "name": _TEXT},
}
_MESSAGE: dict[str, Any] = {
    "required": ["message"],
    "properties": {
        "message": {"type": "object", "required": ["type"], "properties": {"type": _TEXT}},
        "raw": _HEX,
    },
}
_OBJECT: dict[str, Any] = {
    "required": ["track", "group", "object", "status", "priority", "payload"],
    "properties": {
        "track": _TRACK,
        "group": _COUNT,
        "object": _COUNT,
        "status": _TEXT,
        "priority": _COUNT,
        "payload": {
            "type": "object",
            "required": ["length", "head"],
            "properties": {"length": _COUNT, "head": _HEX},
        },
    },
}
_STREAM: dict[str, Any] = {"required": ["stream"], "properties": {"stream": _COUNT}}
_OPENED: dict[str, Any] = {"required": ["stream", "kind"], "properties": {"kind": _TEXT}}
_PLACED: dict[str, Any] = {
    "required": ["track", "layer", "block"],
    "properties": {"track": _TEXT, "layer": _COUNT, "block": _COUNT},
}
_SHAPES: dict[str, dict[str, Any]] = {
    "moqt:message_sent": _MESSAGE,
    "moqt:message_received": _MESSAGE,
    "moqt:object_sent": _OBJECT,
    "moqt:object_received": _OBJECT,
    "moqt:object_unwanted": _OBJECT,
    "moqt:stream_opened": _OPENED,
    "moqt:stream_accepted": _OPENED,
    "moqt:fin_sent": _STREAM,
    "moqt:fin_received": _STREAM,
    "moqt:reset_sent": _STREAM,
    "moqt:reset_received": _STREAM,
    "kvcs:object-accepted": _PLACED,
    "kvcs:object-discarded": _PLACED,
}


def odd_record(evidence: Evidence) -> str:
    """The first record that no run writes, and what is wrong with it; "" when there is none."""
    from jsonschema import Draft202012Validator

    judges = {name: Draft202012Validator(shape) for name, shape in _SHAPES.items()}
    for node, log in evidence.logs.items():
        for record in log:
            judge = judges.get(record.name)
            wrong = next(judge.iter_errors(dict(record.data)), None) if judge else None
            if wrong is not None:
                return f"{node}, record {record.index}, {record.name}: {wrong.message[:200]}"
    return ""
