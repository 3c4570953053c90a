"""What differs between MOQT drafts, as one table per draft; the codec asks it and never a number.

A table says which messages exist and what fields they have, which parameters exist, in what form
and where they may stand, which setup options, stream types, datagram types and markers are legal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

from moqt.wire import messages as m
from moqt.wire.filters import LocationFilterType
from moqt.wire.objects import RangeKind
from moqt.wire.varint import U64


class FieldForm(Enum):
    """How one field of a control message is written."""

    INTEGER = "vi64"
    STREAM_COUNT = "vi64, the largest value meaning unknown"
    FLAG = "one octet, 0 or 1"
    LOCATION = "Group ID and Object ID"
    NAMESPACE = "Track Namespace, whole or a prefix or suffix"
    NAME = "Track Name"
    TRACK = "Track Namespace and Track Name"
    URI = "length and at most 8192 octets"
    REASON = "length and at most 1024 octets of UTF-8"
    REDIRECT = "URI and Full Track Name, only with the code REDIRECT"
    PARAMETERS = "count and parameters"
    TRACK_PROPERTIES = "Key-Value-Pairs up to the end of the message"
    SETUP_OPTIONS = "Key-Value-Pairs up to the end of the message, read as options"


class ParameterForm(Enum):
    """How the value of a Message Parameter is written (MOQT-22 §9.20)."""

    INTEGER = "vi64"
    OCTET = "one octet"
    LOCATION = "Group ID and Object ID"
    NAMESPACE = "Track Namespace without a length"
    TOKEN = "length and Token"
    LOCATION_FILTER = "type and the fields of that type"
    RANGE_FILTER = "length and Range Filter"
    FILL = "length and nested parameters"


REPEATABLE = frozenset({ParameterForm.TOKEN, ParameterForm.RANGE_FILTER})


class ParameterContext(Enum):
    """Where parameters stand: the key to the sets of MOQT-22 §9.2 to §9.20."""

    SUBSCRIBE = "SUBSCRIBE"
    SUBSCRIBE_OK = "SUBSCRIBE_OK"
    SUBSCRIPTION_UPDATE = "REQUEST_UPDATE of a subscription"
    PUBLISH = "PUBLISH"
    PUBLISH_OK = "REQUEST_OK of PUBLISH"
    PUBLISH_STATE_NOTIFY = "PUBLISH_STATE_NOTIFY"
    REQUEST_UPDATE_OK = "REQUEST_OK of REQUEST_UPDATE"
    FETCH = "FETCH"
    FETCH_OK = "FETCH_OK"
    FETCH_UPDATE = "REQUEST_UPDATE of FETCH"
    TRACK_STATUS = "TRACK_STATUS"
    TRACK_STATUS_OK = "REQUEST_OK of TRACK_STATUS"
    PUBLISH_NAMESPACE = "PUBLISH_NAMESPACE"
    PUBLISH_NAMESPACE_OK = "REQUEST_OK of PUBLISH_NAMESPACE"
    PUBLISH_NAMESPACE_UPDATE = "REQUEST_UPDATE of PUBLISH_NAMESPACE"
    SUBSCRIBE_NAMESPACE = "SUBSCRIBE_NAMESPACE"
    SUBSCRIBE_NAMESPACE_OK = "REQUEST_OK of SUBSCRIBE_NAMESPACE"
    SUBSCRIBE_NAMESPACE_UPDATE = "REQUEST_UPDATE of SUBSCRIBE_NAMESPACE"
    SUBSCRIBE_TRACKS = "SUBSCRIBE_TRACKS"
    SUBSCRIBE_TRACKS_OK = "REQUEST_OK of SUBSCRIBE_TRACKS"
    SUBSCRIBE_TRACKS_UPDATE = "REQUEST_UPDATE of SUBSCRIBE_TRACKS"
    FILL = "FILL_PARAMETERS"


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """One control message: type, class, fields in wire order, and where its parameters belong.

    Several contexts: only the request decides which one applies, so the codec takes their union
    and the session checks the rest with `parameters.check_parameters`.
    """

    message_type: int
    message: type[Any]
    fields: tuple[tuple[str, FieldForm], ...]
    contexts: tuple[ParameterContext, ...] = ()


@dataclass(frozen=True, slots=True)
class ParameterSpec:
    """One Message Parameter: the field of `Parameters` that holds it, form, legal values."""

    name: str
    field: str
    form: ParameterForm
    values: range | None = None


@dataclass(frozen=True, slots=True)
class SetupOptionSpec:
    """One Setup Option: the field of `SetupOptions` that holds it, and what its octets are."""

    name: str
    field: str
    token: bool = False
    text: bool = False


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Draft:
    """One draft of MOQT; compared by identity.

    Mappings are ascending by code point. `fill_count`: nested parameters start with their count
    (MOQT-22 §9.20.15 leaves it open; both readings are accepted). `subgroup_types` and
    `datagram_types` are the legal Type Flags. `location_filter_fields` names the fields that
    follow each filter type.
    """

    number: int
    alpn: str
    messages: tuple[MessageLayout, ...]
    parameters: Mapping[int, ParameterSpec]
    allowed_parameters: Mapping[ParameterContext, frozenset[int]]
    location_filter_fields: Mapping[LocationFilterType, tuple[str, ...]]
    fill_count: bool
    setup_options: Mapping[int, SetupOptionSpec]
    unknown_stream_count: int
    subgroup_types: frozenset[int]
    datagram_types: frozenset[int]
    range_markers: Mapping[int, RangeKind]
    layout_of_type: Mapping[int, MessageLayout] = field(init=False)
    layout_of_class: Mapping[type[Any], MessageLayout] = field(init=False)
    allowed_in_type: Mapping[int, frozenset[int]] = field(init=False)

    def __repr__(self) -> str:
        return f"<Draft {self.number}>"

    def __post_init__(self) -> None:
        by_type = {layout.message_type: layout for layout in self.messages}
        by_class = {layout.message: layout for layout in self.messages}
        allowed = {
            layout.message_type: frozenset[int]().union(
                *(self.allowed_parameters[context] for context in layout.contexts)
            )
            for layout in self.messages
        }
        object.__setattr__(self, "layout_of_type", MappingProxyType(by_type))
        object.__setattr__(self, "layout_of_class", MappingProxyType(by_class))
        object.__setattr__(self, "allowed_in_type", MappingProxyType(allowed))


_F = FieldForm
_C = ParameterContext
_P = ParameterForm

_ID = ("request_id", _F.INTEGER)
_TRACK = ("track", _F.TRACK)
_PARAMETERS = ("parameters", _F.PARAMETERS)
_TRACK_PROPERTIES = ("track_properties", _F.TRACK_PROPERTIES)
_REASON = ("reason", _F.REASON)
_SUFFIX = ("suffix", _F.NAMESPACE)

_UPDATES = (
    _C.SUBSCRIPTION_UPDATE,
    _C.FETCH_UPDATE,
    _C.PUBLISH_NAMESPACE_UPDATE,
    _C.SUBSCRIBE_NAMESPACE_UPDATE,
    _C.SUBSCRIBE_TRACKS_UPDATE,
)
_OKS = (
    _C.PUBLISH_OK,
    _C.REQUEST_UPDATE_OK,
    _C.TRACK_STATUS_OK,
    _C.PUBLISH_NAMESPACE_OK,
    _C.SUBSCRIBE_NAMESPACE_OK,
    _C.SUBSCRIBE_TRACKS_OK,
)

_MESSAGES_22 = (
    MessageLayout(0x02, m.RequestUpdate, (_ID, _PARAMETERS), _UPDATES),
    MessageLayout(0x03, m.Subscribe, (_ID, _TRACK, _PARAMETERS), (_C.SUBSCRIBE,)),
    MessageLayout(
        0x04,
        m.SubscribeOk,
        (("track_alias", _F.INTEGER), _PARAMETERS, _TRACK_PROPERTIES),
        (_C.SUBSCRIBE_OK,),
    ),
    MessageLayout(
        0x05,
        m.RequestError,
        (
            ("code", _F.INTEGER),
            ("retry_interval", _F.INTEGER),
            _REASON,
            ("redirect", _F.REDIRECT),
        ),
    ),
    MessageLayout(
        0x06,
        m.PublishNamespace,
        (_ID, ("namespace", _F.NAMESPACE), _PARAMETERS),
        (_C.PUBLISH_NAMESPACE,),
    ),
    MessageLayout(0x07, m.RequestOk, (_PARAMETERS, _TRACK_PROPERTIES), _OKS),
    MessageLayout(0x08, m.Namespace, (_SUFFIX,)),
    MessageLayout(
        0x0B,
        m.PublishDone,
        (("status_code", _F.INTEGER), ("stream_count", _F.STREAM_COUNT), _REASON),
    ),
    MessageLayout(0x0D, m.TrackStatus, (_ID, _TRACK, _PARAMETERS), (_C.TRACK_STATUS,)),
    MessageLayout(0x0E, m.NamespaceDone, (_SUFFIX,)),
    MessageLayout(0x0F, m.PublishSkipped, (_SUFFIX, ("name", _F.NAME))),
    MessageLayout(0x10, m.Goaway, (("uri", _F.URI), ("timeout", _F.INTEGER))),
    MessageLayout(0x16, m.Fetch, (_ID, _TRACK, _PARAMETERS), (_C.FETCH,)),
    MessageLayout(
        0x18,
        m.FetchOk,
        (("end_of_track", _F.FLAG), ("end", _F.LOCATION), _PARAMETERS, _TRACK_PROPERTIES),
        (_C.FETCH_OK,),
    ),
    MessageLayout(
        0x1D,
        m.Publish,
        (_ID, _TRACK, ("track_alias", _F.INTEGER), _PARAMETERS, _TRACK_PROPERTIES),
        (_C.PUBLISH,),
    ),
    MessageLayout(0x22, m.PublishStateNotify, (_PARAMETERS,), (_C.PUBLISH_STATE_NOTIFY,)),
    MessageLayout(
        0x50,
        m.SubscribeNamespace,
        (_ID, ("prefix", _F.NAMESPACE), _PARAMETERS),
        (_C.SUBSCRIBE_NAMESPACE,),
    ),
    MessageLayout(
        0x51,
        m.SubscribeTracks,
        (_ID, ("prefix", _F.NAMESPACE), _PARAMETERS),
        (_C.SUBSCRIBE_TRACKS,),
    ),
    MessageLayout(0x2F00, m.Setup, (("options", _F.SETUP_OPTIONS),)),
)

_PARAMETERS_22 = {
    0x02: ParameterSpec("OBJECT_DELIVERY_TIMEOUT", "object_delivery_timeout", _P.INTEGER),
    0x03: ParameterSpec("AUTHORIZATION_TOKEN", "authorization_tokens", _P.TOKEN),
    0x04: ParameterSpec("RENDEZVOUS_TIMEOUT", "rendezvous_timeout", _P.INTEGER),
    0x06: ParameterSpec("SUBGROUP_DELIVERY_TIMEOUT", "subgroup_delivery_timeout", _P.INTEGER),
    0x08: ParameterSpec("EXPIRES", "expires", _P.INTEGER),
    0x09: ParameterSpec("LARGEST_OBJECT", "largest_object", _P.LOCATION),
    0x0A: ParameterSpec("FILL_TIMEOUT", "fill_timeout", _P.INTEGER),
    0x10: ParameterSpec("FORWARD", "forward", _P.OCTET, range(2)),
    0x20: ParameterSpec("SUBSCRIBER_PRIORITY", "subscriber_priority", _P.OCTET),
    0x21: ParameterSpec("LOCATION_FILTER", "location_filter", _P.LOCATION_FILTER),
    0x22: ParameterSpec("GROUP_ORDER", "group_order", _P.OCTET, range(1, 3)),
    0x23: ParameterSpec("FILL_PARAMETERS", "fill", _P.FILL),
    0x25: ParameterSpec("SUBGROUP_FILTER", "range_filters", _P.RANGE_FILTER),
    0x26: ParameterSpec("OBJECTID_FILTER", "range_filters", _P.RANGE_FILTER),
    0x27: ParameterSpec("PRIORITY_FILTER", "range_filters", _P.RANGE_FILTER),
    0x28: ParameterSpec("OBJECT_PROPERTY_FILTER", "range_filters", _P.RANGE_FILTER),
    0x29: ParameterSpec("TRACK_PROPERTY_FILTER", "range_filters", _P.RANGE_FILTER),
    0x32: ParameterSpec("NEW_GROUP_REQUEST", "new_group_request", _P.INTEGER),
    0x34: ParameterSpec("TRACK_NAMESPACE_PREFIX", "track_namespace_prefix", _P.NAMESPACE),
    0x35: ParameterSpec("INCLUDE_PROPERTIES", "include_properties", _P.OCTET, range(2)),
}

_OBJECT_FILTERS = {0x25, 0x26, 0x27, 0x28}
_SUBSCRIBE_22 = {0x02, 0x03, 0x04, 0x06, 0x10, 0x20, 0x21, 0x22, 0x23, 0x32, 0x35, *_OBJECT_FILTERS}

_ALLOWED_22: dict[ParameterContext, set[int]] = {
    _C.SUBSCRIBE: _SUBSCRIBE_22,
    _C.SUBSCRIBE_OK: {0x08, 0x09},
    _C.SUBSCRIPTION_UPDATE: _SUBSCRIBE_22 - {0x04, 0x22, 0x35},
    _C.PUBLISH: {0x02, 0x03, 0x06, 0x08, 0x09, 0x10, 0x20, 0x21, 0x22},
    _C.PUBLISH_OK: {0x08},
    _C.PUBLISH_STATE_NOTIFY: {0x09, 0x10, 0x21},
    _C.REQUEST_UPDATE_OK: {0x08, 0x09},
    _C.FETCH: {0x03, 0x0A, 0x20, 0x21, 0x22, 0x35, *_OBJECT_FILTERS},
    _C.FETCH_OK: set(),
    _C.FETCH_UPDATE: {0x03, 0x20},
    _C.TRACK_STATUS: {0x03, 0x35},
    # §9.13 says "same as SUBSCRIBE_OK": EXPIRES is accepted though we do not send it.
    _C.TRACK_STATUS_OK: {0x08, 0x09},
    _C.PUBLISH_NAMESPACE: {0x03},
    _C.PUBLISH_NAMESPACE_OK: {0x08},
    _C.PUBLISH_NAMESPACE_UPDATE: {0x03},
    _C.SUBSCRIBE_NAMESPACE: {0x03},
    _C.SUBSCRIBE_NAMESPACE_OK: {0x08},
    _C.SUBSCRIBE_NAMESPACE_UPDATE: {0x03, 0x34},
    # The definitions and §3.6.2 disagree: the union is accepted.
    _C.SUBSCRIBE_TRACKS: {0x29, *_SUBSCRIBE_22},
    _C.SUBSCRIBE_TRACKS_OK: {0x08},
    _C.SUBSCRIBE_TRACKS_UPDATE: {0x03, 0x10, 0x29, 0x34},
    _C.FILL: {0x0A, 0x20, 0x21, 0x22, *_OBJECT_FILTERS},
}

_SETUP_OPTIONS_22 = {
    0x01: SetupOptionSpec("PATH", "path"),
    0x03: SetupOptionSpec("AUTHORIZATION_TOKEN", "authorization_tokens", token=True),
    0x04: SetupOptionSpec("MAX_AUTH_TOKEN_CACHE_SIZE", "max_auth_token_cache_size"),
    0x05: SetupOptionSpec("AUTHORITY", "authority"),
    0x06: SetupOptionSpec("MAX_FILTER_RANGES", "max_filter_ranges"),
    0x07: SetupOptionSpec("MOQT_IMPLEMENTATION", "implementation", text=True),
    0x08: SetupOptionSpec("MAX_REQUEST_UPDATES", "max_request_updates"),
}

_START = ("start_group", "start_object")
_LOCATION_FILTER_22 = {
    LocationFilterType.NONE: (),
    LocationFilterType.RELATIVE_START: ("start_group",),
    LocationFilterType.ABSOLUTE_START: _START,
    LocationFilterType.ABSOLUTE_START_GROUP_END: (*_START, "end_group_delta"),
    LocationFilterType.ABSOLUTE_RANGE: (*_START, "end_group_delta", "end_object"),
    LocationFilterType.NEXT_OBJECT: (),
}

_SUBGROUP_TYPES_22 = frozenset(
    flags for flags in range(0x80) if flags & 0x10 and flags & 0x06 != 0x06
)
_DATAGRAM_TYPES_22 = frozenset(range(0x10)) | {
    flags for flags in range(0x20, 0x30) if not flags & 0x02
}

DRAFT_22 = Draft(
    number=22,
    alpn="moqt-22",
    messages=_MESSAGES_22,
    parameters=MappingProxyType(_PARAMETERS_22),
    allowed_parameters=MappingProxyType(
        {context: frozenset(types) for context, types in _ALLOWED_22.items()}
    ),
    location_filter_fields=MappingProxyType(_LOCATION_FILTER_22),
    fill_count=True,
    setup_options=MappingProxyType(_SETUP_OPTIONS_22),
    unknown_stream_count=U64,
    subgroup_types=_SUBGROUP_TYPES_22,
    datagram_types=_DATAGRAM_TYPES_22,
    range_markers=MappingProxyType({int(kind): kind for kind in RangeKind}),
)

DRAFTS_BY_ALPN: Mapping[str, Draft] = MappingProxyType({DRAFT_22.alpn: DRAFT_22})
