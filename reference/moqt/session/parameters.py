"""Parameters over the life of a request: what an update leaves (MOQT-22 §9.5, §9.20)."""

from __future__ import annotations

from dataclasses import fields, replace

from moqt.wire.filters import updated_range_filters
from moqt.wire.messages import Parameters

_OF_ONE_MESSAGE = frozenset(
    {
        "authorization_tokens",
        "fill",
        "largest_object",
        "new_group_request",
        "track_namespace_prefix",
    }
)
"""Parameters that act when they are read and are not remembered."""

_REMEMBERED = tuple(
    field.name
    for field in fields(Parameters)
    if field.name not in _OF_ONE_MESSAGE and field.name != "range_filters"
)


def updated(current: Parameters, update: Parameters) -> Parameters:
    """The parameters of a request after an accepted update or a PUBLISH_STATE_NOTIFY."""
    changes = {name: value for name in _REMEMBERED if (value := getattr(update, name)) is not None}
    if update.range_filters:
        changes["range_filters"] = updated_range_filters(
            current.range_filters, update.range_filters
        )
    return replace(current, **changes) if changes else current


def smallest_timeout(*milliseconds: int | None) -> float | None:
    """The least of the timeouts that are set, in seconds; 0 is none (MOQT-22 §5.2)."""
    given = [value for value in milliseconds if value]
    return min(given) / 1000 if given else None
