"""Answers and cancellations that the peer may have overtaken: then there is nothing left to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from moqt.session import Request, RequestState
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, RequestRefused, StreamError
from moqt.wire.messages import NO_PARAMETERS, Parameters, RequestUpdate


def answerable(request: Request) -> bool:
    """Whether the request still waits for its answer."""
    return request.state is RequestState.PENDING and not request.session.closed


def alive(request: Request) -> bool:
    """Whether the request is neither refused, done nor cancelled."""
    return request.state is not RequestState.TERMINATED and not request.session.closed


def refuse(request: Request, code: int, reason: str, retry_interval: int = 0) -> None:
    """REQUEST_ERROR, if the request still waits for its answer.

    A publisher's REDIRECT that is passed on goes as INTERNAL_ERROR: where it leads was meant for
    us (MOQT-22 §9.4.1).
    """
    if code == RequestErrorCode.REDIRECT:
        code = RequestErrorCode.INTERNAL_ERROR
    if answerable(request):
        request.session.refuse(request, code, reason, retry_interval=retry_interval)


def refuse_with(request: Request, refusal: RequestRefused) -> None:
    """REQUEST_ERROR as `refusal` says."""
    refuse(request, refusal.code, refusal.reason, refusal.retry_interval)


def cancel(request: Request, code: int = StreamError.CANCELLED) -> None:
    """Cancel a request of either side, if it is not over."""
    if alive(request):
        request.session.cancel(request, code)


def accept_update(
    request: Request, update: RequestUpdate, parameters: Parameters = NO_PARAMETERS
) -> bool:
    """REQUEST_OK for an update, if the request is not over; whether it was sent."""
    if not alive(request):
        return False
    request.session.accept_update(request, update, parameters)
    return True


def refuse_update(request: Request, update: RequestUpdate, refusal: RequestRefused) -> None:
    """REQUEST_ERROR for an update, if the request is not over."""
    if alive(request):
        request.session.refuse_update(request, update, refusal.code, refusal.reason)


def as_updated(request: Request, update: RequestUpdate) -> Request:
    """The request as the update would leave it, for the authorisation of the update."""
    prefix = update.parameters.track_namespace_prefix
    return replace(
        request,
        tokens=update.parameters.authorization_tokens or request.tokens,
        namespace=request.namespace if prefix is None else prefix,
    )


def ask(send: Callable[[], Request]) -> Request | None:
    """Open a request, or None where the session takes none any more (closed, GOAWAY)."""
    with suppress(LocalProtocolError):
        return send()
    return None
