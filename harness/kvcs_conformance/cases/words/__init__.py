"""The words of a case: steps, waits, ways to tamper, and the scenario's keys.

Each word carries its own documentation and the JSON Schema of what follows it; the schema of a
case and the output of `kvcs list --steps` are made of these tables. Which events can be waited
for stands in `evidence.wait`, beside how they are recognised.
"""

from kvcs_conformance.cases.words import (
    consumer,
    faults,
    network,
    origin,
    publisher,
    relay,
    scripted,
    scripted_access,
    scripted_delivery,
)
from kvcs_conformance.cases.words.base import NAME, Schema, Word
from kvcs_conformance.cases.words.scenario import SCENARIO
from kvcs_conformance.cases.words.waiting import WAITS

TAMPERS: dict[str, Word] = publisher.TAMPERS | faults.TAMPERS
"""The ways to tamper with what a publisher sends."""

STEPS: dict[str, dict[str, Word]] = {
    "publisher": publisher.STEPS,
    "origin": origin.STEPS,
    "scripted": scripted.STEPS | scripted_access.STEPS | scripted_delivery.STEPS,
    "relay": relay.STEPS,
    "consumer": consumer.STEPS,
    "network": network.STEPS,
}
"""The steps by the kind of node that takes them."""

__all__ = ["NAME", "SCENARIO", "STEPS", "TAMPERS", "WAITS", "Schema", "Word"]
