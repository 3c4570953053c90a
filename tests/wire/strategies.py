"""Hypothesis strategies for the values of the wire, and random chunking."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from moqt.wire import messages as m
from moqt.wire.drafts import DRAFT_22, ParameterContext
from moqt.wire.filters import (
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location, TrackNamespace
from moqt.wire.objects import ObjectDatagram, ObjectStatus
from moqt.wire.properties import Property, encode_properties
from moqt.wire.tokens import AliasType, Token
from moqt.wire.varint import U64

integers = st.one_of(st.integers(0, 300), st.integers(0, U64))
octet = st.integers(0, 255)
locations = st.builds(Location, integers, integers)
namespaces: SearchStrategy[TrackNamespace] = st.lists(
    st.binary(min_size=1, max_size=6), max_size=5
).map(tuple)


def tracks() -> SearchStrategy[FullTrackName]:
    """Full Track Names."""
    return st.builds(FullTrackName, namespaces, st.binary(max_size=8))


@st.composite
def tokens(draw: st.DrawFn) -> Token:
    """Tokens with the fields of their Alias Type."""
    alias_type = draw(st.sampled_from(AliasType))
    has_alias = alias_type is not AliasType.USE_VALUE
    has_value = alias_type in (AliasType.REGISTER, AliasType.USE_VALUE)
    return Token(
        alias_type,
        draw(integers) if has_alias else None,
        draw(integers) if has_value else None,
        draw(st.binary(max_size=8)) if has_value else None,
    )


@st.composite
def location_filters(draw: st.DrawFn) -> LocationFilter:
    """LOCATION_FILTERs whose last group fits 64 bits."""
    kind = draw(st.sampled_from(LocationFilterType))
    values = {name: draw(integers) for name in DRAFT_22.location_filter_fields[kind]}
    if "end_group_delta" in values:
        values["end_group_delta"] = min(values["end_group_delta"], U64 - values["start_group"])
    return LocationFilter(kind, **values)


@st.composite
def range_filters(draw: st.DrawFn, kind: RangeFilterType) -> RangeFilter:
    """Legal Range Filters of one type, the removing form among them."""
    if draw(st.booleans()):
        return RangeFilter(kind)
    on_property = kind in (RangeFilterType.OBJECT_PROPERTY, RangeFilterType.TRACK_PROPERTY)
    value = octet if kind is RangeFilterType.PRIORITY else integers
    ends = sorted(draw(st.lists(value, max_size=6)))
    ranges: list[tuple[int, int | None]] = list(zip(ends[::2], ends[1::2], strict=False))
    if len(ends) % 2:
        ranges.append((ends[-1], None))
    property_type = draw(st.integers(0, U64 // 2)) * 2 if on_property else None
    return RangeFilter(kind, draw(octet), property_type, tuple(ranges))


@st.composite
def parameters(draw: st.DrawFn, *contexts: ParameterContext) -> Parameters:
    """Parameters that may stand in any of these places."""
    allowed = set().union(*(DRAFT_22.allowed_parameters[context] for context in contexts))
    fields: dict[str, SearchStrategy[object]] = {
        "object_delivery_timeout": integers,
        "rendezvous_timeout": integers,
        "subgroup_delivery_timeout": integers,
        "expires": integers,
        "largest_object": locations,
        "fill_timeout": integers,
        "forward": st.integers(0, 1),
        "subscriber_priority": octet,
        "location_filter": location_filters(),
        "group_order": st.integers(1, 2),
        "new_group_request": integers,
        "track_namespace_prefix": namespaces.filter(bool),
        "include_properties": st.integers(0, 1),
        "authorization_tokens": st.lists(tokens(), min_size=1, max_size=2).map(tuple),
    }
    chosen: dict[str, object] = {}
    filters: list[RangeFilter] = []
    for kind in sorted(allowed):
        if not draw(st.booleans()):
            continue
        name = DRAFT_22.parameters[kind].field
        if name == "range_filters":
            some = st.lists(range_filters(RangeFilterType(kind)), min_size=1, max_size=2)
            filters += draw(some)
        elif name == "fill":
            chosen[name] = draw(parameters(ParameterContext.FILL))
        else:
            chosen[name] = draw(fields[name])
    return Parameters(range_filters=tuple(filters), **chosen)  # type: ignore[arg-type]


even_types = st.integers(0, U64 // 2).map(lambda half: 2 * half)
odd_types = st.integers(0, U64 // 2).map(lambda half: 2 * half + 1)
property_lists: SearchStrategy[list[Property]] = st.lists(
    st.one_of(
        st.tuples(even_types, integers),
        st.tuples(odd_types, st.binary(max_size=9)),
    ),
    max_size=4,
)
property_blocks = property_lists.map(encode_properties)
# Types of 0x80 and more keep clear of the Track Properties that have rules of their own.
track_blocks = st.lists(
    st.tuples(st.integers(0x40, 0x7F).map(lambda half: 2 * half), integers), max_size=3
).map(encode_properties)
reasons = st.text(max_size=12)

_C = ParameterContext


def _layout_contexts(message: type) -> tuple[ParameterContext, ...]:
    return DRAFT_22.layout_of_class[message].contexts


def _parameters_of(message: type) -> SearchStrategy[Parameters]:
    return parameters(*_layout_contexts(message))


@st.composite
def setup_options(draw: st.DrawFn) -> m.SetupOptions:
    """Setup Options, unknown ones among them."""
    unknown = [pair for pair in draw(property_lists) if pair[0] not in DRAFT_22.setup_options]
    optional_octets = st.one_of(st.none(), st.binary(max_size=9))
    return m.SetupOptions(
        path=draw(optional_octets),
        authorization_tokens=tuple(draw(st.lists(tokens(), max_size=2))),
        max_auth_token_cache_size=draw(integers),
        authority=draw(optional_octets),
        max_filter_ranges=draw(integers),
        implementation=draw(st.one_of(st.none(), st.text(max_size=9).map(str.encode))),
        max_request_updates=draw(integers),
        unknown=tuple(sorted(unknown, key=lambda pair: pair[0])),
    )


def _request_errors() -> SearchStrategy[m.RequestError]:
    plain = integers.filter(lambda code: code != 0x34)
    redirects = st.builds(m.Redirect, st.binary(max_size=20), tracks())
    return st.one_of(
        st.builds(m.RequestError, plain, integers, reasons),
        st.builds(m.RequestError, st.just(0x34), integers, reasons, redirects),
    )


messages: SearchStrategy[m.Message] = st.one_of(
    st.builds(m.Setup, setup_options()),
    st.builds(m.Goaway, st.binary(max_size=20), integers),
    st.builds(m.RequestOk, _parameters_of(m.RequestOk), track_blocks),
    _request_errors(),
    st.builds(m.Subscribe, integers, tracks(), _parameters_of(m.Subscribe)),
    st.builds(m.SubscribeOk, integers, _parameters_of(m.SubscribeOk), track_blocks),
    st.builds(m.RequestUpdate, integers, _parameters_of(m.RequestUpdate)),
    st.builds(m.Publish, integers, tracks(), integers, _parameters_of(m.Publish), track_blocks),
    st.builds(m.PublishDone, integers, st.one_of(st.none(), st.integers(0, U64 - 1)), reasons),
    st.builds(m.PublishStateNotify, _parameters_of(m.PublishStateNotify)),
    st.builds(m.Fetch, integers, tracks(), _parameters_of(m.Fetch)),
    st.builds(m.FetchOk, st.booleans(), locations, st.just(m.NO_PARAMETERS), track_blocks),
    st.builds(m.TrackStatus, integers, tracks(), _parameters_of(m.TrackStatus)),
    st.builds(m.PublishNamespace, integers, namespaces, _parameters_of(m.PublishNamespace)),
    st.builds(m.SubscribeNamespace, integers, namespaces, _parameters_of(m.SubscribeNamespace)),
    st.builds(m.SubscribeTracks, integers, namespaces, _parameters_of(m.SubscribeTracks)),
    st.builds(m.Namespace, namespaces),
    st.builds(m.NamespaceDone, namespaces),
    st.builds(m.PublishSkipped, namespaces, st.binary(max_size=8)),
)


@st.composite
def datagrams(draw: st.DrawFn) -> ObjectDatagram:
    """Object datagrams whose fields go together."""
    status = draw(st.sampled_from(ObjectStatus))
    normal = status is ObjectStatus.NORMAL
    return ObjectDatagram(
        draw(integers),
        draw(integers),
        draw(integers),
        draw(st.one_of(st.none(), octet)),
        draw(st.binary(max_size=20)) if normal else b"",
        status,
        draw(property_blocks) if normal else b"",
        end_of_group=normal and draw(st.booleans()),
    )


@st.composite
def cuts(draw: st.DrawFn, octets: bytes) -> list[bytes]:
    """The same octets in pieces, empty ones among them."""
    positions = draw(st.lists(st.integers(0, len(octets)), max_size=8))
    edges = [0, *sorted(positions), len(octets)]
    return [octets[start:end] for start, end in pairwise(edges)]
