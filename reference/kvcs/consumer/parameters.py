"""The parameters of a consumer's requests for data tracks (KVCS 7.2, 7.3)."""

from __future__ import annotations

from moqt.wire.filters import (
    NEXT_OBJECT,
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import Parameters
from moqt.wire.names import Location

from kvcs.consumer.ranges import LocationRange
from kvcs.consumer.request import ConsumeRequest

ASCENDING = 1
"""GROUP_ORDER Ascending (KVCS-7.3-2)."""


def live_parameters(request: ConsumeRequest, first: Location) -> Parameters:
    """Next Object, and a fill from `first` on: every Object exactly once (KVCS-7.2-1, 7.2-2).

    These filter types are draft-22's; {0, 0} means something else in drafts 20 and 21 (reading A1).
    """
    start = LocationFilter(LocationFilterType.ABSOLUTE_START, first.group, first.object)
    return Parameters(
        authorization_tokens=request.authorization,
        location_filter=NEXT_OBJECT,
        fill=Parameters(location_filter=start),
    )


def layers_parameters(request: ConsumeRequest, layers: range, blocks: int | None) -> Parameters:
    """Whole layers, ascending; `blocks` adds the filter on the first so many (KVCS-7.3-1, -4)."""
    span = LocationFilter(
        LocationFilterType.ABSOLUTE_START_GROUP_END,
        layers.start,
        0,
        layers.stop - 1 - layers.start,
    )
    filters: tuple[RangeFilter, ...] = ()
    if blocks is not None:
        filters = (RangeFilter(RangeFilterType.OBJECT_ID, set_id=0, ranges=((0, blocks - 1),)),)
    return Parameters(
        authorization_tokens=request.authorization,
        location_filter=span,
        group_order=ASCENDING,
        range_filters=filters,
    )


def range_parameters(request: ConsumeRequest, span: LocationRange) -> Parameters:
    """Exactly one range of missing Objects."""
    return Parameters(
        authorization_tokens=request.authorization,
        location_filter=span.filter,
        group_order=ASCENDING,
    )
