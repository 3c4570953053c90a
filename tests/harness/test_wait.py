"""What an `expect` step waits for, asked of hand-made logs."""

from __future__ import annotations

import json
from typing import Any

import cbor2
import pytest
from kvcs_conformance.evidence.wait import came

from tests.harness.evidence import Event, evidence, obj


def holds(events: list[Event], **wanted: Any) -> bool:
    """Whether the awaited event is in the consumer's log."""
    return came(evidence("publisher", {"consumer": events}).logs["consumer"], wanted)


def version(group: int, *segments: Any, track: str = "manifest") -> Event:
    """A manifest version with these entries."""
    octets = json.dumps({"segments": segments}).encode()
    if track == "manifest.cose":
        octets = cbor2.dumps([b"", {}, octets, b""])
    return obj(group, 0, track=track, octets=octets)


@pytest.mark.parametrize("track", ["manifest", "manifest.cose"])
def test_listed_is_met_by_any_version(track: str) -> None:
    """However many versions a publisher made before, the one that lists the segment is met; an
    entry that is not complete does not meet `complete` (KVCS-5-10, KVCS-5-15)."""
    first = {"segment": 0, "complete": True}
    second = {"segment": 1, "complete": False}
    log = [version(group, first, track=track) for group in range(5)]
    log.append(version(5, first, second, track=track))
    assert holds(log, event="listed", segment=1)
    assert not holds(log[:5], event="listed", segment=1)
    assert holds(log, event="listed", segment=0, complete=True)
    assert not holds(log, event="listed", segment=1, complete=True)


@pytest.mark.parametrize(
    "entry", [5, {}, {"segment": "1"}, {"segment": True}, {"segment": [1]}, {"segment": 1.0}]
)
def test_listed_is_not_met_by_what_is_no_entry(entry: object) -> None:
    """What a peer sends in place of an entry ends no wait, and breaks none."""
    assert not holds([version(0, entry)], event="listed", segment=1)
