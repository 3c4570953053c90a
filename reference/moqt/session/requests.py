"""Requests as the application sees them, and the ledger of Request IDs (MOQT-22 §6.4.2.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from moqt.session.intervals import Intervals
from moqt.wire.errors import RemoteProtocolError, SessionError
from moqt.wire.messages import (
    NO_PARAMETERS,
    Fetch,
    FetchOk,
    Parameters,
    Publish,
    PublishNamespace,
    RequestError,
    RequestMessage,
    RequestOk,
    Subscribe,
    SubscribeNamespace,
    SubscribeOk,
    SubscribeTracks,
    TrackStatus,
)
from moqt.wire.names import FullTrackName, TrackNamespace
from moqt.wire.tokens import Token

if TYPE_CHECKING:
    from moqt.session.publication import SubscriptionSender
    from moqt.session.session import Session


class RequestKind(Enum):
    """The seven messages that open a request stream (MOQT-22 §6.4.2)."""

    SUBSCRIBE = Subscribe
    PUBLISH = Publish
    FETCH = Fetch
    TRACK_STATUS = TrackStatus
    PUBLISH_NAMESPACE = PublishNamespace
    SUBSCRIBE_NAMESPACE = SubscribeNamespace
    SUBSCRIBE_TRACKS = SubscribeTracks


class RequestState(Enum):
    """Life of a request (MOQT-22 §3.1); Idle has no object."""

    PENDING = "sent, without an answer yet"
    ESTABLISHED = "accepted"
    TERMINATED = "refused, done, failed or cancelled"


@dataclass(eq=False, slots=True)
class Request:
    """One request, ours or the peer's.

    `parameters` are the current ones, accepted updates included. `tokens` are those of the
    request or its latest update with aliases resolved, all in USE_VALUE form. `namespace` is the
    namespace or prefix of the three namespace kinds. `sender` is there when we are the publisher
    of a subscription. `heard` is when octets last came on a data stream of it, 0 before the first.
    `context` belongs to the application.
    """

    session: Session
    id: int
    kind: RequestKind
    ours: bool
    message: RequestMessage
    state: RequestState = RequestState.PENDING
    stream_id: int | None = None
    response: SubscribeOk | RequestOk | FetchOk | RequestError | None = None
    track: FullTrackName | None = None
    namespace: TrackNamespace | None = None
    parameters: Parameters = NO_PARAMETERS
    tokens: tuple[Token, ...] = ()
    sender: SubscriptionSender | None = None
    heard: float = 0.0
    context: Any = field(default=None, repr=False)

    @classmethod
    def of(cls, session: Session, message: RequestMessage, *, ours: bool) -> Request:
        """The request that `message` opens."""
        namespace: TrackNamespace | None = None
        track: FullTrackName | None = None
        match message:
            case PublishNamespace():
                namespace = message.namespace
            case SubscribeNamespace() | SubscribeTracks():
                namespace = message.prefix
            case _:
                track = message.track
        return cls(
            session,
            message.request_id,
            RequestKind(type(message)),
            ours,
            message,
            track=track,
            namespace=namespace,
            parameters=message.parameters,
        )


class RequestIds:
    """Request IDs of both sides: the next of ours, and which the peer used."""

    def __init__(self, is_client: bool) -> None:
        self.next = 0 if is_client else 1
        self._used = Intervals(closing=True)
        """IDs of the peer's, each divided by two.

        IDs that a peer leaves out, or whose request was reset before its octets came, would
        cost memory for ever. The oldest gaps are therefore closed once there are thousands: a
        request that is that much overtaken is taken for a repeated one. Who only skips IDs, as
        many as it likes, breaks no rule.
        """

    def is_ours(self, request_id: int) -> bool:
        """Whether we gave this ID to a request or an update."""
        return request_id % 2 == self.next % 2 and request_id < self.next

    def take(self) -> None:
        """Use up `next`."""
        self.next += 2

    def use_of_peer(self, request_id: int) -> None:
        """Note an ID of the peer's; they may come out of order, each once.

        Raises RemoteProtocolError INVALID_REQUEST_ID for our parity or a repeated ID.
        """
        if request_id % 2 == self.next % 2:
            raise RemoteProtocolError(
                f"Request ID {request_id} has our parity", SessionError.INVALID_REQUEST_ID
            )
        if request_id // 2 in self._used:
            raise RemoteProtocolError(
                f"Request ID {request_id} was used before", SessionError.INVALID_REQUEST_ID
            )
        self._used.add(request_id // 2, request_id // 2)
