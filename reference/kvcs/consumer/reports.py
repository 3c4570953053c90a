"""What a consumer reports: one dict per event, with `event`, `time` (seconds) and details.

The way there: `source-ready`, `source-failed` {source}; `probe` {blocks}; `probe-refused` {source,
code, reason}; `publication` {publication, source, blocks}, `publication-withdrawn`,
`namespace-ignored` {detail}; `manifest` {publication, track, version, current, octets, via},
`manifest-refused` {reason, detail}, `manifest-ended`; `segment` {segment, first_block, blocks,
tracks}, `segment-unusable`.

Objects, each with {publication, track, segment, layer, block, octets, via, source}:
`object-accepted`; `object-held`, until a signed manifest lists it; `object-discarded` {reason,
reasons, clause, detail, mandatory}; `object-duplicate` {reason}; `object-excess`, not wanted and
no error. `objects-lost` {track, source, reason, first, objects} and `repair` {track, source, start,
end} tell of recovery, `retrieval-ended` {track, source, reason, code} of requests, `mark-misplaced`
{track, mark, location} of a wrong End of Group or End of Track.

Results: `layer-usable` {publication, segment, layer, blocks}; `track-complete` {track, by};
`combining` {with_publication}; `publication-discarded` {publication, reason, detail};
`out-of-time`; then always `reused-tokens` {tokens, prompt_tokens, publication}, `recompute`
{first_token, end_token} when fewer blocks than wanted are reused, and `done` {outcome, detail,
reused_tokens, compute_from, prompt_tokens, octets}, outcome "complete" or "recompute".
"""

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
