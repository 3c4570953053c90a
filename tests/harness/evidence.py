"""Hand-made evidence: what the judge reads, without a run behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record

NAMESPACE = ["6b7663732d31", "11" * 16, "22" * 32, "33" * 32, "44" * 16]
OTHER = [*NAMESPACE[:4], "55" * 16]
SCENARIO = {
    "layers": 2,
    "blocks": 2,
    "block-tokens": 4,
    "components": ["k"],
    "manifest": "manifest",
}

Event = tuple[str, dict[str, Any]]


def evidence(
    sut: str,
    logs: Mapping[str, Iterable[Event]],
    *,
    publishers: Iterable[str] = ("publisher",),
    **facts: Any,
) -> Evidence:
    """Evidence of nodes with these events; event i of a node happens at i milliseconds."""
    names = tuple(publishers)
    whole = {
        "sut": sut,
        "link": "memory",
        "observed": {"alpn": ["moqt-22"]},
        "scenario": SCENARIO,
        "nodes": {
            node: {"kind": "publisher" if node in names else "scripted"} for node in {*logs, *names}
        },
        "publications": {
            name: {"namespace": NAMESPACE if i == 0 else OTHER} for i, name in enumerate(names)
        },
        "retention_ms": 60000,
        "layer_digests": ["00" * 32, "01" * 32],
        "steps": [],
        "trouble": None,
        **facts,
    }
    return Evidence(
        whole,
        {
            node: tuple(
                Record(node, i, i / 1000, name, data) for i, (name, data) in enumerate(events)
            )
            for node, events in logs.items()
        },
    )


def payload(group: int, item: int, *, data: bytes = b"data", **fields: int | bytes) -> bytes:
    """A KVCS payload written down from the layout in KVCS 4; `fields` replace header values."""
    values: dict[str, int | bytes] = {
        "magic": 0x4B564F31,
        "version": 1,
        "component": 1,
        "flags": 0,
        "layer": group,
        "block": item,
        "token_start": 4 * item,
        "token_count": 4,
        "codec": 1,
        "reserved": 0,
        "data_length": len(data),
        "digest": hashlib.sha256(data).digest(),
    }
    values |= fields
    lengths = (4, 1, 1, 2, 4, 4, 8, 4, 2, 2, 4, 32)
    octets = b""
    for value, length in zip(values.values(), lengths, strict=True):
        octets += value if isinstance(value, bytes) else value.to_bytes(length, "big")
    return octets + data


def obj(
    group: int,
    block: int,
    *,
    track: str = "k.raw.s0",
    octets: bytes | None = None,
    status: str = "NORMAL",
    sent: bool = False,
    **more: Any,
) -> Event:
    """An Object that a node received (or sent)."""
    if octets is None:
        octets = payload(group, block) if status == "NORMAL" else b""
    data = {
        "track": {"namespace": NAMESPACE, "name": track},
        "group": group,
        "object": block,
        "status": status,
        "subgroup": 0,
        "priority": 128 * group // 2,
        "properties": "",
        "payload": {
            "length": len(octets),
            "sha256": hashlib.sha256(octets).hexdigest(),
            "data_sha256": hashlib.sha256(octets[68:]).hexdigest(),
            "head": octets.hex() if track.startswith("manifest") else octets[:96].hex(),
        },
        "request": 0,
        "via": "subscription",
        "stream": 3,
        **more,
    }
    return ("moqt:object_sent" if sent else "moqt:object_received", data)


def whole_track(**more: Any) -> list[Event]:
    """Both layers of the scenario with all marks, as they should come."""
    events = []
    for layer in (0, 1):
        events += [obj(layer, block, **more) for block in (0, 1)]
        events.append(obj(layer, 2, status="END_OF_GROUP", **more))
    return [*events, obj(2, 0, status="END_OF_TRACK", **more)]


def asked(label: str, kind: str = "FETCH", track: str = "k.raw.s0", request: int = 0) -> Event:
    """A request that a scripted node opened."""
    return (
        "kvcs:asked",
        {"label": label, "kind": kind, "track": track, "request": request},
    )


def answered(response: str, request: int = 0, **more: Any) -> Event:
    """The answer to such a request."""
    return ("kvcs:answered", {"request": request, "response": {"type": response, **more}})


def message(kind: str, *, sent: bool = False, **fields: Any) -> Event:
    """A control message that a node received (or sent)."""
    name = "moqt:message_sent" if sent else "moqt:message_received"
    return (name, {"message": {"type": kind, **fields}, "raw": "00"})


def report(event: str, **fields: Any) -> Event:
    """Something that a consumer reported."""
    return (f"kvcs:{event}", fields)
