"""The seven kinds of request: as octets (MOQT-22 §9), asked for, and answered."""

from __future__ import annotations

from collections.abc import Callable

from moqt.session import Request, RequestKind, Session
from moqt.wire.messages import FetchOk
from moqt.wire.names import Location

from tests.session.pair import TRACK

NAME = "01 04 6c697665 05 766964656f"
NAMESPACE = "01 04 6c697665"

OPENERS: dict[str, str] = {
    "SUBSCRIBE": f"03 000e ID {NAME} 00",
    "PUBLISH": f"1d 000f ID {NAME} 01 00",
    "FETCH": f"16 000e ID {NAME} 00",
    "TRACK_STATUS": f"0d 000e ID {NAME} 00",
    "PUBLISH_NAMESPACE": f"06 0008 ID {NAMESPACE} 00",
    "SUBSCRIBE_NAMESPACE": f"50 0008 ID {NAMESPACE} 00",
    "SUBSCRIBE_TRACKS": f"51 0008 ID {NAMESPACE} 00",
}


def opener(kind: str, request_id: int = 0) -> str:
    """The message as hex text."""
    return OPENERS[kind].replace("ID", f"{request_id:02x}")


ASK: dict[RequestKind, Callable[[Session], Request]] = {
    RequestKind.SUBSCRIBE: lambda s: s.subscribe(TRACK),
    RequestKind.PUBLISH: lambda s: s.publish(TRACK).request,
    RequestKind.FETCH: lambda s: s.fetch(TRACK),
    RequestKind.TRACK_STATUS: lambda s: s.track_status(TRACK),
    RequestKind.PUBLISH_NAMESPACE: lambda s: s.publish_namespace((b"live",)),
    RequestKind.SUBSCRIBE_NAMESPACE: lambda s: s.subscribe_namespace((b"live",)),
    RequestKind.SUBSCRIBE_TRACKS: lambda s: s.subscribe_tracks((b"live",)),
}


def answer(session: Session, request: Request) -> None:
    """Accept a request of any kind."""
    if request.kind is RequestKind.SUBSCRIBE:
        session.accept_subscribe(request, largest=None)
    elif request.kind is RequestKind.FETCH:
        session.accept_fetch(request, FetchOk(False, Location(0, 0)))
    else:
        session.accept(request)
