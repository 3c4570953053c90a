"""Steps of a consumer."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    DURATION,
    LABEL,
    SPAN,
    Word,
    table,
)
from kvcs_conformance.cases.words.scenario import KEYS

STEPS: dict[str, Word] = table(
    Word(
        "consume",
        "find the publication and retrieve it: `live` by SUBSCRIBE and fill, `completed` by FETCH; "
        "`layers: [first, last]` and `blocks: n` limit it; `wants` is what the consumer's prompt "
        "and descriptor have otherwise than the scenario; `budget` bounds every wait; after "
        "everything known is whole it `awaits-segments` so long; each such step is a restore of "
        "its own in the same process",
        {"enum": ["live", "completed"]},
        {
            "layers": SPAN,
            "blocks": {"type": "integer", "minimum": 1},
            "authenticity": {"type": "boolean"},
            "wants": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": False,
                "properties": KEYS,
            },
            "budget": DURATION,
            "awaits-segments": DURATION,
            **LABEL,
        },
    ),
)
