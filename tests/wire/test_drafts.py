"""The table of draft-22 against the tables of the text (MOQT-22 §5.1, §7.1, §7.2, §9)."""

from __future__ import annotations

import pytest
from moqt.wire import messages as m
from moqt.wire.drafts import DRAFT_22, DRAFTS_BY_ALPN, ParameterContext
from moqt.wire.errors import PublishDoneCode, RequestErrorCode, SessionError, StreamError

C = ParameterContext

ALLOWED = {
    C.SUBSCRIBE: "02 03 04 06 10 20 21 22 23 25 26 27 28 32 35",
    C.SUBSCRIBE_OK: "08 09",
    C.PUBLISH: "02 03 06 08 09 10 20 21 22",
    C.PUBLISH_OK: "08",
    C.SUBSCRIPTION_UPDATE: "02 03 06 10 20 21 23 25 26 27 28 32",
    C.FETCH_UPDATE: "03 20",
    C.PUBLISH_NAMESPACE_UPDATE: "03",
    C.SUBSCRIBE_NAMESPACE_UPDATE: "03 34",
    C.SUBSCRIBE_TRACKS_UPDATE: "03 10 29 34",
    C.REQUEST_UPDATE_OK: "08 09",
    C.PUBLISH_STATE_NOTIFY: "09 10 21",
    C.FETCH: "03 0A 20 21 22 25 26 27 28 35",
    C.FETCH_OK: "",
    C.TRACK_STATUS: "03 35",
    C.TRACK_STATUS_OK: "08 09",
    C.PUBLISH_NAMESPACE: "03",
    C.PUBLISH_NAMESPACE_OK: "08",
    C.SUBSCRIBE_NAMESPACE: "03",
    C.SUBSCRIBE_NAMESPACE_OK: "08",
    C.SUBSCRIBE_TRACKS: "02 03 04 06 10 20 21 22 23 25 26 27 28 29 32 35",
    C.SUBSCRIBE_TRACKS_OK: "08",
    C.FILL: "0A 20 21 22 25 26 27 28",
}


@pytest.mark.parametrize("context", ParameterContext)
def test_where_parameters_may_stand(context: ParameterContext) -> None:
    """The set of each place is the one of the text (R079, R089)."""
    expected = frozenset(int(text, 16) for text in ALLOWED[context].split())
    assert expected == DRAFT_22.allowed_parameters[context]


def test_message_types() -> None:
    """Every message of the text has its type, and no other type exists (R026)."""
    expected = {
        0x02: m.RequestUpdate,
        0x03: m.Subscribe,
        0x04: m.SubscribeOk,
        0x05: m.RequestError,
        0x06: m.PublishNamespace,
        0x07: m.RequestOk,
        0x08: m.Namespace,
        0x0B: m.PublishDone,
        0x0D: m.TrackStatus,
        0x0E: m.NamespaceDone,
        0x0F: m.PublishSkipped,
        0x10: m.Goaway,
        0x16: m.Fetch,
        0x18: m.FetchOk,
        0x1D: m.Publish,
        0x22: m.PublishStateNotify,
        0x50: m.SubscribeNamespace,
        0x51: m.SubscribeTracks,
        0x2F00: m.Setup,
    }
    found = {number: layout.message for number, layout in DRAFT_22.layout_of_type.items()}
    assert expected == found
    assert set(expected.values()) == set(DRAFT_22.layout_of_class)


def test_the_draft_is_found_by_its_alpn() -> None:
    """`moqt-22` names draft-22."""
    assert DRAFT_22 is DRAFTS_BY_ALPN["moqt-22"]
    assert "<Draft 22>" == repr(DRAFT_22)


def test_error_registries() -> None:
    """The four registries hold the code points of the text."""
    assert {*range(7), 8, 9, *range(0x10, 0x15), *range(0x16, 0x1C)} == set(SessionError)
    requests = "0 1 2 3 4 5 6 9 10 11 12 17 20 30 31 33 34 35 36"
    assert {int(code, 16) for code in requests.split()} == set(RequestErrorCode)
    assert {0, 1, 2, 4, 5, 6, 8, 9, 0x12} == set(PublishDoneCode)
    assert {*range(8), 9, 0x12} == set(StreamError)
