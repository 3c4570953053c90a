"""The exchange table against the prose of MOQT-22 §6.4.2 and §9."""

from __future__ import annotations

import pytest
from moqt.session.requests import RequestKind, RequestState
from moqt.session.states import EXCHANGES, Role, Side, classify, owes
from moqt.wire import messages as m
from moqt.wire.names import Location

PENDING, ESTABLISHED = RequestState.PENDING, RequestState.ESTABLISHED
EVERY: dict[str, m.Message] = {
    "SUBSCRIBE_OK": m.SubscribeOk(0),
    "FETCH_OK": m.FetchOk(False, Location(0, 0)),
    "REQUEST_OK": m.RequestOk(),
    "REQUEST_ERROR": m.RequestError(0),
    "REQUEST_UPDATE": m.RequestUpdate(0),
    "PUBLISH_DONE": m.PublishDone(0, 0),
    "PUBLISH_STATE_NOTIFY": m.PublishStateNotify(),
    "NAMESPACE": m.Namespace(()),
    "NAMESPACE_DONE": m.NamespaceDone(()),
    "PUBLISH_SKIPPED": m.PublishSkipped((), b""),
    "GOAWAY": m.Goaway(),
    "SETUP": m.Setup(),
}
PUBLISHER = "PUBLISH_DONE PUBLISH_STATE_NOTIFY"

LEGAL = {
    # kind: (opener, responder before its answer, responder after it), without open updates
    "SUBSCRIBE": ("REQUEST_UPDATE", "SUBSCRIBE_OK REQUEST_ERROR", PUBLISHER),
    "PUBLISH": (f"REQUEST_UPDATE {PUBLISHER}", "REQUEST_OK REQUEST_ERROR", "REQUEST_UPDATE"),
    "FETCH": ("REQUEST_UPDATE", "FETCH_OK REQUEST_ERROR", ""),
    "TRACK_STATUS": ("", "REQUEST_OK REQUEST_ERROR", ""),
    "PUBLISH_NAMESPACE": ("REQUEST_UPDATE", "REQUEST_OK REQUEST_ERROR", ""),
    "SUBSCRIBE_NAMESPACE": (
        "REQUEST_UPDATE",
        "REQUEST_OK REQUEST_ERROR",
        "NAMESPACE NAMESPACE_DONE",
    ),
    "SUBSCRIBE_TRACKS": ("REQUEST_UPDATE", "REQUEST_OK REQUEST_ERROR", "PUBLISH_SKIPPED"),
}


def legal(kind: RequestKind, state: RequestState, side: Side, open_updates: int = 0) -> set[str]:
    return {
        name
        for name, message in EVERY.items()
        if classify(kind, state, side, message, open_updates=open_updates) is not None
    }


@pytest.mark.parametrize("name", LEGAL)
def test_what_each_side_may_say(name: str) -> None:
    """R025, R063, R112, R127, R156, R192: nothing besides the table; GOAWAY always."""
    kind = RequestKind[name]
    opener, before, after = (set(row.split()) | {"GOAWAY"} for row in LEGAL[name])
    assert opener == legal(kind, PENDING, Side.OPENER)
    assert opener == legal(kind, ESTABLISHED, Side.OPENER)
    assert before == legal(kind, PENDING, Side.RESPONDER)
    assert after == legal(kind, ESTABLISHED, Side.RESPONDER)


@pytest.mark.parametrize("name", LEGAL)
def test_answers_to_updates_need_an_open_update(name: str) -> None:
    """R064, R112: with one, REQUEST_OK and REQUEST_ERROR are legal after the answer."""
    kind = RequestKind[name]
    answers = {"REQUEST_OK", "REQUEST_ERROR"}
    after = legal(kind, ESTABLISHED, Side.RESPONDER)
    assert after | answers == legal(kind, ESTABLISHED, Side.RESPONDER, 1)
    error = EVERY["REQUEST_ERROR"]
    assert Role.ANSWER is classify(kind, PENDING, Side.RESPONDER, error, open_updates=1)


def test_a_fetch_may_hold_its_answer_back() -> None:
    """R140: REQUEST_OK for an update may come before FETCH_OK."""
    message = m.RequestOk()
    assert Role.UPDATE_ANSWER is classify(
        RequestKind.FETCH, PENDING, Side.RESPONDER, message, open_updates=1
    )
    assert classify(RequestKind.FETCH, PENDING, Side.RESPONDER, message, open_updates=0) is None


@pytest.mark.parametrize("kind", list(RequestKind), ids=lambda kind: kind.name)
def test_what_a_fin_fails(kind: RequestKind) -> None:
    """R058, R059, R060, R061: an answer, PUBLISH_DONE and answers to updates are owed."""
    publisher = EXCHANGES[kind].publisher

    def owed(state: RequestState, side: Side, open_updates: int = 0) -> bool:
        return owes(kind, state, side, open_updates=open_updates, said_last=False)

    assert owed(PENDING, Side.RESPONDER)
    assert (publisher is Side.OPENER) == owed(PENDING, Side.OPENER)
    for side in Side:
        assert (publisher is side) == owed(ESTABLISHED, side)
        assert owed(ESTABLISHED, side, 1)
        assert not owed(RequestState.TERMINATED, side, 1)
        assert not owes(kind, PENDING, side, open_updates=1, said_last=True)
