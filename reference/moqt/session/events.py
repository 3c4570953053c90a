"""What a session tells its application: one small frozen class per event."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from moqt.wire.messages import (
    FetchOk,
    Goaway,
    PublishDone,
    PublishSkipped,
    PublishStateNotify,
    RequestError,
    RequestOk,
    RequestUpdate,
    SetupOptions,
    SubscribeOk,
)
from moqt.wire.names import Location, TrackNamespace
from moqt.wire.objects import Object, RangeKind

if TYPE_CHECKING:
    from moqt.session.requests import Request


class Via(Enum):
    """On what an Object came."""

    SUBSCRIPTION = "subscription"
    FILL = "fill"
    FETCH = "fetch"


@dataclass(frozen=True, slots=True)
class SetupReceived:
    """The peer's SETUP: the session is ready for requests."""

    options: SetupOptions


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The last event of a session; `code` None: the connection was lost or never came up."""

    code: int | None
    reason: str
    by_peer: bool


@dataclass(frozen=True, slots=True)
class GoawayReceived:
    """GOAWAY; `request` is None for the one on the control stream."""

    request: Request | None
    message: Goaway


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """The peer opened a request; the application answers with one accept or refuse call."""

    request: Request


@dataclass(frozen=True, slots=True)
class RequestAccepted:
    """The positive answer to our request."""

    request: Request
    response: SubscribeOk | RequestOk | FetchOk


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """Our request ended without success.

    `error` None: the peer reset the stream or ended it before the messages that it owed;
    `code` is then the stream code, if there was one.
    """

    request: Request
    error: RequestError | None
    code: int | None = None


@dataclass(frozen=True, slots=True)
class UpdateReceived:
    """REQUEST_UPDATE on a request; answered with accept_update or refuse_update, in order."""

    request: Request
    update: RequestUpdate


@dataclass(frozen=True, slots=True)
class UpdateAnswered:
    """The answer to our REQUEST_UPDATE with Request ID `update_id`."""

    request: Request
    update_id: int
    response: RequestOk | RequestError


@dataclass(frozen=True, slots=True)
class RequestCancelled:
    """The peer cancelled its request, or, as responder or publisher, gave up one of ours."""

    request: Request
    code: int


@dataclass(frozen=True, slots=True)
class PublishDoneReceived:
    """PUBLISH_DONE arrived; streams that it counts may still be on their way."""

    request: Request
    message: PublishDone


@dataclass(frozen=True, slots=True)
class SubscriptionEnded:
    """The subscription's last event.

    `complete`: PUBLISH_DONE came, and as many streams as it counted were seen to their end.
    False: a bounded timer fired first.
    """

    request: Request
    message: PublishDone
    complete: bool


@dataclass(frozen=True, slots=True)
class StateNotified:
    """PUBLISH_STATE_NOTIFY on a subscription."""

    request: Request
    message: PublishStateNotify


@dataclass(frozen=True, slots=True)
class NamespaceReceived:
    """NAMESPACE: `namespace` is prefix and suffix together."""

    request: Request
    namespace: TrackNamespace


@dataclass(frozen=True, slots=True)
class NamespaceEnded:
    """NAMESPACE_DONE, or the end of the response stream, for a namespace announced before."""

    request: Request
    namespace: TrackNamespace


@dataclass(frozen=True, slots=True)
class TrackSkipped:
    """PUBLISH_SKIPPED on a SUBSCRIBE_TRACKS of ours."""

    request: Request
    message: PublishSkipped


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The stream that carried an Object; equal for all events of one stream.

    `subgroup` None: fetch stream, datagram, or a Subgroup ID that the first Object decides and
    that is not known yet. `first_object` and `end_of_group` are the header bits (MOQT-22 §11.3.1).
    """

    via: Via
    stream_id: int | None
    request_id: int
    group: int | None = None
    subgroup: int | None = None
    first_object: bool = False
    end_of_group: bool = False


@dataclass(frozen=True, slots=True)
class ObjectStarted:
    """An Object's header arrived and its payload did not yet: it exists and is on its way."""

    request: Request
    location: Location
    stream: StreamInfo


@dataclass(frozen=True, slots=True)
class ObjectReceived:
    """One whole Object; for each request of ours that it matches, once."""

    request: Request
    object: Object
    stream: StreamInfo


@dataclass(frozen=True, slots=True)
class RangeReceived:
    """End of Range on a fetch stream: from `start` to `end`, both inclusive, is `kind`."""

    request: Request
    kind: RangeKind
    start: Location
    end: Location
    stream: StreamInfo


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """A data stream of ours ended: FIN, or reset with `code`.

    For a fetch or fill stream, FIN means that the range was delivered whole. We end a stream
    ourselves that brings too large an Object (EXCESSIVE_LOAD), or a fetch or fill stream that
    brings one outside of its range (CANCELLED).
    """

    request: Request
    stream: StreamInfo
    code: int | None = None

    @property
    def complete(self) -> bool:
        """Whether the stream ended with FIN."""
        return self.code is None


@dataclass(frozen=True, slots=True)
class StreamStopped:
    """The peer sent STOP_SENDING on a data stream that we write."""

    request: Request
    stream_id: int
    code: int


@dataclass(frozen=True, slots=True)
class SubscriptionCut:
    """We end a subscription whose subscriber is too slow; PUBLISH_DONE `code` goes out."""

    request: Request
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class TrackMalformed:
    """The peer's Objects broke a rule of the Track (MOQT-22 §12.1); the request was cancelled."""

    request: Request
    reason: str


Event: TypeAlias = (
    SetupReceived
    | SessionClosed
    | GoawayReceived
    | RequestReceived
    | RequestAccepted
    | RequestFailed
    | UpdateReceived
    | UpdateAnswered
    | RequestCancelled
    | PublishDoneReceived
    | SubscriptionEnded
    | StateNotified
    | NamespaceReceived
    | NamespaceEnded
    | TrackSkipped
    | ObjectStarted
    | ObjectReceived
    | RangeReceived
    | StreamEnded
    | StreamStopped
    | SubscriptionCut
    | TrackMalformed
)
