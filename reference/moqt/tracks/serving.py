"""From a request's parameters to the range that is read for it; origin and relay alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moqt.tracks.source import Resolver, StoreSource
from moqt.tracks.store import TrackStore
from moqt.wire.filters import RangeFilter, fill_range, passes, updated_range_filters
from moqt.wire.messages import Parameters
from moqt.wire.names import Location
from moqt.wire.objects import Object
from moqt.wire.properties import PropertyType, integer_property

DESCENDING = 2


def fetch_source(
    store: TrackStore,
    parameters: Parameters,
    track_properties: bytes,
    start: Location,
    end: Location,
    resolve: Resolver | None = None,
) -> StoreSource:
    """What a FETCH with these parameters reads (MOQT-22 §9.11)."""
    return StoreSource(
        store,
        start,
        end,
        descending=parameters.group_order == DESCENDING,
        passes=_verdict(parameters.range_filters, track_properties),
        resolve=resolve,
    )


def fill_source(
    store: TrackStore,
    message: Parameters,
    subscription: Parameters,
    track_properties: bytes,
    largest: Location | None,
    resolve: Resolver | None = None,
) -> StoreSource | None:
    """What the fill reads that `message` asks for, None if no stream opens (MOQT-22 §3.4.1).

    `subscription` are the subscription's parameters with those of `message` in force.
    """
    fill = message.fill
    if fill is None or subscription.forward == 0:
        return None
    chosen = fill_range(fill.location_filter, subscription.location_filter, largest)
    if chosen is None:
        return None
    order = fill.group_order or subscription.group_order
    if order is None:
        order = integer_property(track_properties, PropertyType.DEFAULT_PUBLISHER_GROUP_ORDER, 1)
    filters = updated_range_filters(subscription.range_filters, fill.range_filters)
    return StoreSource(
        store,
        *chosen,
        descending=order == DESCENDING,
        passes=_verdict(filters, track_properties),
        resolve=resolve,
    )


def sent_properties(parameters: Parameters, track_properties: bytes) -> bytes:
    """The Track Properties that the answer carries (INCLUDE_PROPERTIES, MOQT-22 §9.20)."""
    return b"" if parameters.include_properties == 0 else track_properties


def publish_parameters(wanted: Parameters, largest: Location | None) -> Parameters:
    """Parameters of a PUBLISH that SUBSCRIBE_TRACKS caused; no token among them (R202)."""
    return Parameters(
        object_delivery_timeout=wanted.object_delivery_timeout,
        subgroup_delivery_timeout=wanted.subgroup_delivery_timeout,
        largest_object=largest,
        forward=wanted.forward,
        subscriber_priority=wanted.subscriber_priority,
        location_filter=wanted.location_filter,
        group_order=wanted.group_order,
    )


def _verdict(
    filters: tuple[RangeFilter, ...], track_properties: bytes
) -> Callable[[Object], bool] | None:
    return partial(_passes, filters, track_properties) if filters else None


def _passes(filters: tuple[RangeFilter, ...], track_properties: bytes, item: Object) -> bool:
    return passes(filters, item, track_properties)
