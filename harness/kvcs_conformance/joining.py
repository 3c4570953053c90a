"""Two ways in which a fill and its subscription do not meet, for publishers and relays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from moqt.session import Request, RequestKind
from moqt.tracks import TrackStore
from moqt.wire.filters import LocationFilter, LocationFilterType
from moqt.wire.names import Location

_CURRENT_GROUP = LocationFilter(LocationFilterType.RELATIVE_START, 1)
_ANY_OBJECT = 1 << 20


def stop_fill_short(request: Request, largest: Location | None) -> None:
    """Let the fill of a SUBSCRIBE end with the Group before the current one."""
    parameters = request.parameters
    if request.kind is not RequestKind.SUBSCRIBE or parameters.fill is None:
        return
    if largest is not None and largest.group > 0:
        short = LocationFilter(
            LocationFilterType.ABSOLUTE_RANGE, 0, 0, largest.group - 1, _ANY_OBJECT
        )
        fill = replace(parameters.fill, location_filter=short)
        request.parameters = replace(parameters, fill=fill)


def repeat_live(request: Request, store: TrackStore, serve: Callable[[Request], None]) -> None:
    """Serve a SUBSCRIBE, then send the current Group's Objects again by the subscription."""
    largest = store.largest
    if request.kind is not RequestKind.SUBSCRIBE or largest is None:
        serve(request)
        return
    request.parameters = replace(request.parameters, location_filter=_CURRENT_GROUP)
    serve(request)
    sender = request.sender
    if sender is None:
        return
    for item in tuple(store):
        if item.location.group == largest.group:
            sender.offer(item, first=item.location.object == 0)
