"""Steps of a consumer."""

from __future__ import annotations

from kvcs_conformance.cases.words.base import (
    DURATION,
    SPAN,
    Word,
    table,
)

STEPS: dict[str, Word] = table(
    Word(
        "consume",
        "find the publication and retrieve it: `live` by SUBSCRIBE and fill, `completed` by FETCH; "
        "`layers: [first, last]` and `blocks: n` limit it",
        {"enum": ["live", "completed"]},
        {
            "layers": SPAN,
            "blocks": {"type": "integer", "minimum": 1},
            "authenticity": {"type": "boolean"},
            "budget": DURATION,
        },
    ),
)
