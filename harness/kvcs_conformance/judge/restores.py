"""What the judge words for consumers share: reports of one restore, and the log of our relays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record, Seen

CONSUMER, RELAY = "consumer", "relay"
NUMBER = {"type": "integer", "minimum": 0}
NUMBERS = {"type": "array", "items": NUMBER}
TRACK = {"type": "string"}
LABEL = {"type": "string", "description": "the label of the consume step; default: any"}
DURATION = {
    "type": "string",
    "pattern": r"^\d+(\.\d+)?(ms|s)$",
    "examples": ["300ms", "5s"],
}


def reports(evidence: Evidence, arguments: Mapping[str, Any], *events: str) -> Iterator[Record]:
    """The consumer's reports of these kinds, of the restore that the arguments name."""
    label = arguments.get("of")
    for record in evidence.reports(CONSUMER, *events):
        if label is None or record.data.get("label") == label:
            yield record


def finished(evidence: Evidence, arguments: Mapping[str, Any] | None = None) -> Record | None:
    """The report that the restore is done: behind it nothing more is used."""
    return next(reports(evidence, arguments or {}, "done"), None)


def wanted(evidence: Evidence, arguments: Mapping[str, Any]) -> Record | None:
    """What the consumer was to restore: the record `kvcs:restore`."""
    return next(reports(evidence, arguments, "restore"), None)


def relays(evidence: Evidence) -> list[str]:
    """The nodes of ours that a consumer asks, the main one first."""
    nodes = evidence.facts.get("nodes", {})
    found = [name for name, node in nodes.items() if node["kind"] == RELAY and name != RELAY]
    return [RELAY, *sorted(found)]


def asked(evidence: Evidence, *types: str) -> Iterator[tuple[Record, Mapping[str, Any]]]:
    """What our relays were asked, in order per relay. Publishers send them no such requests."""
    for node in relays(evidence):
        yield from evidence.messages(node, *types)


def sent(evidence: Evidence, arguments: Mapping[str, Any]) -> Seen | None:
    """The Object that the arguments name, as one of our relays sent it."""
    place = (arguments["layer"], arguments["block"])
    for node in relays(evidence):
        for seen in evidence.objects(node, sent=True):
            if seen.track == arguments["track"] and seen.location == place:
                return seen
    return None


def retrieves(evidence: Evidence) -> bool:
    """Whether the consumer asked for any track: one that found no publication shows nothing of how
    it retrieves and verifies."""
    return any(True for _ in asked(evidence, "Subscribe", "Fetch"))


def publication_of(evidence: Evidence, publisher: str) -> str:
    """The Publication ID of what a publisher of ours publishes, in hex."""
    publication: str = evidence.facts["publications"][publisher]["namespace"][-1]
    return publication
