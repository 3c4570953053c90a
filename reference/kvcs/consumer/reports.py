"""What is told about single Objects, in one shape for all of them."""

from __future__ import annotations

from typing import Any

from moqt.session.events import Via
from moqt.wire.names import Location
from moqt.wire.objects import Object

from kvcs.consumer.carriers import Carrier
from kvcs.consumer.verification import reason_of
from kvcs.errors import Defect
from kvcs.names import DataTrack


def place(track: DataTrack, location: Location, publication: bytes, octets: int) -> dict[str, Any]:
    """Where an Object stands, and how long its payload is."""
    return {
        "publication": publication.hex(),
        "track": str(track),
        "segment": track.segment,
        "layer": location.group,
        "block": location.object,
        "octets": octets,
    }


def object_details(carrier: Carrier, item: Object, via: Via) -> dict[str, Any]:
    """Where an Object stands, on what it came and from where."""
    route = carrier.route
    details = place(carrier.track, item.location, route.publication.id, len(item.payload))
    return {**details, "via": via.value, "source": route.source.url}


def defect_details(defects: list[Defect]) -> dict[str, Any]:
    """Why an Object is discarded; `mandatory` False marks the checks of reading A6."""
    first = defects[0]
    return {
        "reason": reason_of(first),
        "reasons": [reason_of(defect) for defect in defects],
        "clause": first.clause,
        "detail": str(first),
        "mandatory": first.mandatory,
    }
