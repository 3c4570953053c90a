"""Control messages as values (MOQT-22 §9); their octets are the business of the codec.

Draft-neutral: a field that a draft does not carry keeps its default there. Track Properties stay
the exact octets of their Key-Value-Pairs, because a relay must forward them unchanged;
`moqt.wire.properties` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from moqt.wire.filters import LocationFilter, RangeFilter
from moqt.wire.names import FullTrackName, Location, TrackNamespace
from moqt.wire.tokens import Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Message Parameters (MOQT-22 §9.20); None or empty means absent. Times are milliseconds."""

    object_delivery_timeout: int | None = None
    authorization_tokens: tuple[Token, ...] = ()
    rendezvous_timeout: int | None = None
    subgroup_delivery_timeout: int | None = None
    expires: int | None = None
    largest_object: Location | None = None
    fill_timeout: int | None = None
    forward: int | None = None
    subscriber_priority: int | None = None
    location_filter: LocationFilter | None = None
    group_order: int | None = None
    fill: Parameters | None = None
    range_filters: tuple[RangeFilter, ...] = ()
    new_group_request: int | None = None
    track_namespace_prefix: TrackNamespace | None = None
    include_properties: int | None = None


NO_PARAMETERS = Parameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupOptions:
    """Setup Options (MOQT-22 §9.1); `unknown` holds options that we ignore, in order."""

    path: bytes | None = None
    authorization_tokens: tuple[Token, ...] = ()
    max_auth_token_cache_size: int = 0
    authority: bytes | None = None
    max_filter_ranges: int = 0
    implementation: bytes | None = None
    max_request_updates: int = 0
    unknown: tuple[tuple[int, int | bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Setup:
    """SETUP 0x2F00, the first octets of each control stream."""

    options: SetupOptions = field(default_factory=SetupOptions)


@dataclass(frozen=True, slots=True)
class Goaway:
    """GOAWAY 0x10; timeout in milliseconds, 0 is no particular time."""

    uri: bytes = b""
    timeout: int = 0


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where a refused request may go; empty URI means the same one (MOQT-22 §9.4.1)."""

    uri: bytes
    track: FullTrackName


@dataclass(frozen=True, slots=True)
class RequestOk:
    """REQUEST_OK 0x07."""

    parameters: Parameters = NO_PARAMETERS
    track_properties: bytes = b""


@dataclass(frozen=True, slots=True)
class RequestError:
    """REQUEST_ERROR 0x05; retry_interval is 0 for "not again", else milliseconds plus one."""

    code: int
    retry_interval: int = 0
    reason: str = ""
    redirect: Redirect | None = None


@dataclass(frozen=True, slots=True)
class Subscribe:
    """SUBSCRIBE 0x03."""

    request_id: int
    track: FullTrackName
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class SubscribeOk:
    """SUBSCRIBE_OK 0x04."""

    track_alias: int
    parameters: Parameters = NO_PARAMETERS
    track_properties: bytes = b""


@dataclass(frozen=True, slots=True)
class RequestUpdate:
    """REQUEST_UPDATE 0x02."""

    request_id: int
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class Publish:
    """PUBLISH 0x1D."""

    request_id: int
    track: FullTrackName
    track_alias: int
    parameters: Parameters = NO_PARAMETERS
    track_properties: bytes = b""


@dataclass(frozen=True, slots=True)
class PublishDone:
    """PUBLISH_DONE 0x0B; stream_count None is "unknown"."""

    status_code: int
    stream_count: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PublishStateNotify:
    """PUBLISH_STATE_NOTIFY 0x22."""

    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH 0x16; the range is `parameters.location_filter`."""

    request_id: int
    track: FullTrackName
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class FetchOk:
    """FETCH_OK 0x18; `end` is inclusive."""

    end_of_track: bool
    end: Location
    parameters: Parameters = NO_PARAMETERS
    track_properties: bytes = b""


@dataclass(frozen=True, slots=True)
class TrackStatus:
    """TRACK_STATUS 0x0D."""

    request_id: int
    track: FullTrackName
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class PublishNamespace:
    """PUBLISH_NAMESPACE 0x06."""

    request_id: int
    namespace: TrackNamespace
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class SubscribeNamespace:
    """SUBSCRIBE_NAMESPACE 0x50."""

    request_id: int
    prefix: TrackNamespace
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class Namespace:
    """NAMESPACE 0x08; the suffix follows the prefix that was asked for."""

    suffix: TrackNamespace


@dataclass(frozen=True, slots=True)
class NamespaceDone:
    """NAMESPACE_DONE 0x0E."""

    suffix: TrackNamespace


@dataclass(frozen=True, slots=True)
class SubscribeTracks:
    """SUBSCRIBE_TRACKS 0x51."""

    request_id: int
    prefix: TrackNamespace
    parameters: Parameters = NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class PublishSkipped:
    """PUBLISH_SKIPPED 0x0F."""

    suffix: TrackNamespace
    name: bytes


TrackRequest: TypeAlias = Subscribe | Publish | Fetch | TrackStatus
NamespaceRequest: TypeAlias = PublishNamespace | SubscribeNamespace | SubscribeTracks
RequestMessage: TypeAlias = TrackRequest | NamespaceRequest
Message: TypeAlias = (
    RequestMessage
    | Setup
    | Goaway
    | RequestOk
    | RequestError
    | SubscribeOk
    | RequestUpdate
    | PublishDone
    | PublishStateNotify
    | FetchOk
    | Namespace
    | NamespaceDone
    | PublishSkipped
)
