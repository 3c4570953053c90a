"""The exchange on a request stream, as tables (MOQT-22 §6.4.2, §9).

A request stream carries one request. The side that opened it is the opener, the other one the
responder. What each side may say depends on the kind of request and on whether the responder has
answered (ESTABLISHED) or not (PENDING). Nothing may follow a side's last message.

- The responder's first answer is `ok` of the row, or REQUEST_ERROR, which ends the request.
- `extra` may follow: for ever, until the last message, or until somebody cancels.
- REQUEST_UPDATE is legal from the sides in `updaters`; each is answered by the other side with
  REQUEST_OK or REQUEST_ERROR, in order. Such an answer is only legal while an update is open.
- GOAWAY is legal once from each side, in every state.

FIN is "no more messages from me", never a cancellation. It fails the request where the side still
owed a message: the responder its answer, and the publisher of a subscription PUBLISH_DONE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from moqt.session.requests import RequestKind, RequestState
from moqt.wire import messages as m
from moqt.wire.drafts import ParameterContext
from moqt.wire.errors import PublishDoneCode, StreamError


class Side(Enum):
    """Who speaks on a request stream."""

    OPENER = "opener"
    RESPONDER = "responder"

    @property
    def other(self) -> Side:
        """The one that listens."""
        return Side.RESPONDER if self is Side.OPENER else Side.OPENER


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One row: what may be said for one kind of request.

    `publisher`: the side that sends Objects of a subscription and owes PUBLISH_DONE.
    `ends_with_answer`: the positive answer is the responder's last message.
    `fin_withdraws`: the responder's FIN after its answer ends the request (MOQT-22 §4.2.1).
    `fails_update`: what the responder does after it refused an update (MOQT-22 §9.5.1).
    """

    ok: type[Any]
    ok_context: ParameterContext
    update_context: ParameterContext | None = None
    updaters: frozenset[Side] = frozenset()
    opener_extra: frozenset[type[Any]] = frozenset()
    responder_extra: frozenset[type[Any]] = frozenset()
    publisher: Side | None = None
    ends_with_answer: bool = False
    fin_withdraws: bool = False

    def extra(self, side: Side) -> frozenset[type[Any]]:
        """Messages that `side` may send besides answers, updates and GOAWAY."""
        return self.opener_extra if side is Side.OPENER else self.responder_extra


_OPENER = frozenset({Side.OPENER})
_BOTH = frozenset({Side.OPENER, Side.RESPONDER})
_PUBLISHER_SAYS = frozenset({m.PublishStateNotify, m.PublishDone})

EXCHANGES: Mapping[RequestKind, Exchange] = {
    RequestKind.SUBSCRIBE: Exchange(
        ok=m.SubscribeOk,
        ok_context=ParameterContext.SUBSCRIBE_OK,
        update_context=ParameterContext.SUBSCRIPTION_UPDATE,
        updaters=_OPENER,
        responder_extra=_PUBLISHER_SAYS,
        publisher=Side.RESPONDER,
    ),
    RequestKind.PUBLISH: Exchange(
        ok=m.RequestOk,
        ok_context=ParameterContext.PUBLISH_OK,
        update_context=ParameterContext.SUBSCRIPTION_UPDATE,
        updaters=_BOTH,
        opener_extra=_PUBLISHER_SAYS,
        publisher=Side.OPENER,
    ),
    RequestKind.FETCH: Exchange(
        ok=m.FetchOk,
        ok_context=ParameterContext.FETCH_OK,
        update_context=ParameterContext.FETCH_UPDATE,
        updaters=_OPENER,
    ),
    RequestKind.TRACK_STATUS: Exchange(
        ok=m.RequestOk,
        ok_context=ParameterContext.TRACK_STATUS_OK,
        ends_with_answer=True,
    ),
    RequestKind.PUBLISH_NAMESPACE: Exchange(
        ok=m.RequestOk,
        ok_context=ParameterContext.PUBLISH_NAMESPACE_OK,
        update_context=ParameterContext.PUBLISH_NAMESPACE_UPDATE,
        updaters=_OPENER,
    ),
    RequestKind.SUBSCRIBE_NAMESPACE: Exchange(
        ok=m.RequestOk,
        ok_context=ParameterContext.SUBSCRIBE_NAMESPACE_OK,
        update_context=ParameterContext.SUBSCRIBE_NAMESPACE_UPDATE,
        updaters=_OPENER,
        responder_extra=frozenset({m.Namespace, m.NamespaceDone}),
        fin_withdraws=True,
    ),
    RequestKind.SUBSCRIBE_TRACKS: Exchange(
        ok=m.RequestOk,
        ok_context=ParameterContext.SUBSCRIBE_TRACKS_OK,
        update_context=ParameterContext.SUBSCRIBE_TRACKS_UPDATE,
        updaters=_OPENER,
        responder_extra=frozenset({m.PublishSkipped}),
        fin_withdraws=True,
    ),
}


class Role(Enum):
    """What a legal message is in its exchange."""

    ANSWER = "the answer to the request"
    UPDATE = "an update"
    UPDATE_ANSWER = "the answer to the listener's oldest update"
    GOAWAY = "GOAWAY for this request"
    EXTRA = "one of the row's own messages"


def classify(
    kind: RequestKind, state: RequestState, side: Side, message: m.Message, *, open_updates: int
) -> Role | None:
    """What `message` from `side` is, or None when it is not legal there.

    `open_updates` counts the listener's updates without an answer. REQUEST_ERROR before the
    answer refuses the request itself; REQUEST_OK may answer an update of a FETCH whose FETCH_OK
    is held back.
    """
    row = EXCHANGES[kind]
    answered = side is Side.OPENER or state is not RequestState.PENDING
    match message:
        case m.Goaway():
            return Role.GOAWAY
        case m.RequestError() if not answered:
            return Role.ANSWER
        case m.RequestOk() | m.RequestError() if open_updates and (
            answered or row.ok is not m.RequestOk
        ):
            return Role.UPDATE_ANSWER
        case m.RequestUpdate():
            return Role.UPDATE if answered and side in row.updaters else None
    if type(message) is row.ok:
        return None if answered else Role.ANSWER
    return Role.EXTRA if answered and type(message) in row.extra(side) else None


def owes(
    kind: RequestKind, state: RequestState, side: Side, *, open_updates: int, said_last: bool
) -> bool:
    """Whether a FIN of `side` now fails the request (MOQT-22 §6.4.2.2)."""
    if said_last or state is RequestState.TERMINATED:
        return False
    if side is EXCHANGES[kind].publisher:
        return True
    return open_updates > 0 or (side is Side.RESPONDER and state is RequestState.PENDING)


DRAINING: frozenset[int] = frozenset(
    {PublishDoneCode.TRACK_ENDED, PublishDoneCode.GOING_AWAY, PublishDoneCode.EXPIRED}
)
"""PUBLISH_DONE codes under which everything queued is still delivered."""

RESET_WITH: Mapping[int, StreamError] = {
    PublishDoneCode.TOO_FAR_BEHIND: StreamError.TOO_FAR_BEHIND,
    PublishDoneCode.MALFORMED_TRACK: StreamError.MALFORMED_TRACK,
    PublishDoneCode.EXCESSIVE_LOAD: StreamError.EXCESSIVE_LOAD,
    PublishDoneCode.INTERNAL_ERROR: StreamError.INTERNAL_ERROR,
}
"""The code that the streams of a subscription are reset with under the others, else CANCELLED."""
