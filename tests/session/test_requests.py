"""Requests: IDs, legal messages, FIN and cancel (MOQT-22 §6.4.2, §9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from moqt.session import RequestKind, RequestState
from moqt.session.events import (
    ObjectReceived,
    RequestAccepted,
    RequestFailed,
    RequestReceived,
)
from moqt.session.states import EXCHANGES
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, SessionError
from moqt.wire.messages import Parameters, Redirect, RequestOk
from moqt.wire.names import FullTrackName, Location

from tests.session.openers import ASK, NAME, NAMESPACE, OPENERS, answer, opener
from tests.session.pair import OTHER, TRACK, Pair, RawPeer, config, obj, subscribed

UPDATE = "02 0002 ID 00"


@pytest.mark.parametrize("kind", list(RequestKind), ids=lambda k: k.name)
@pytest.mark.parametrize("asker", [0, 1], ids=["client", "server"])
def test_every_kind_is_asked_and_answered(kind: RequestKind, asker: int) -> None:
    """R001, R110, R111, R139, R191: seven kinds, either side asks, one answer each."""
    pair = Pair()
    ours = ASK[kind](pair.sessions[asker])
    pair.run()
    theirs = pair.request(1 - asker)
    assert (kind, False, ours.id) == (theirs.kind, theirs.ours, theirs.id)
    assert (asker, 4 * 0 + asker) == (ours.id, ours.stream_id)
    answer(pair.sessions[1 - asker], theirs)
    pair.run()
    assert ours is pair.one(asker, RequestAccepted).request
    expected = (
        RequestState.TERMINATED if EXCHANGES[kind].ends_with_answer else RequestState.ESTABLISHED
    )
    assert (expected, expected) == (ours.state, theirs.state)
    with pytest.raises(LocalProtocolError):
        answer(pair.sessions[1 - asker], theirs)
    assert not any(session.closed for session in pair.sessions)


@pytest.mark.parametrize("kind", list(RequestKind), ids=lambda k: k.name)
def test_every_kind_can_be_refused(kind: RequestKind) -> None:
    """R002, R062, R118: REQUEST_ERROR, then FIN; the session lives and the requester FINs."""
    pair = Pair()
    ours = ASK[kind](pair.client)
    pair.run()
    pair.server.refuse(pair.request(), RequestErrorCode.NOT_SUPPORTED, "no", retry_interval=1001)
    pair.run()
    failed = pair.one(0, RequestFailed)
    assert failed.error is not None
    assert (ours, 0x3, "no", 1001) == (
        failed.request,
        failed.error.code,
        failed.error.reason,
        failed.error.retry_interval,
    )
    assert RequestState.TERMINATED is ours.state
    assert ours.stream_id is not None
    assert pair.taps[0].fin_on(ours.stream_id)
    assert pair.taps[1].fin_on(ours.stream_id)
    assert not any(session.closed for session in pair.sessions)


@pytest.mark.parametrize("kind", OPENERS)
def test_raw_openers_are_understood(kind: str) -> None:
    """R020: each of the seven openers starts a request stream."""
    peer = RawPeer()
    peer.request(opener(kind))
    assert kind == peer.seen(RequestReceived)[0].request.kind.name


@pytest.mark.parametrize(
    "octets",
    [
        "02 0002 00 00",
        "07 0001 00",
        "04 0002 07 00",
        "0b 0003 02 00 00",
        "10 0002 00 00",
        "08 0001 00",
    ],
    ids=["REQUEST_UPDATE", "REQUEST_OK", "SUBSCRIBE_OK", "PUBLISH_DONE", "GOAWAY", "NAMESPACE"],
)
def test_other_messages_cannot_open_a_stream(octets: str) -> None:
    """R020, R025: another first message closes."""
    peer = RawPeer()
    peer.request(octets)
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize("kind", OPENERS)
def test_a_second_opener_on_a_stream_closes(kind: str) -> None:
    """R025: a request stream carries one request."""
    peer = RawPeer()
    stream = peer.request(opener(kind))
    peer.send(stream, opener(kind, 2))
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize("octets", ["01 0000", "1e 0001 00", "20 0000", "40 0000", "41 0000"])
def test_unknown_message_types_close(octets: str) -> None:
    """R026: reserved types count as unknown."""
    peer = RawPeer()
    peer.request(octets)
    assert SessionError.PROTOCOL_VIOLATION == peer.code


def test_lengths_must_fit() -> None:
    """R027: a body that is longer or shorter than its fields."""
    for octets in (f"03 000f 00 {NAME} 00 00", f"03 000d 00 {NAME}"):
        peer = RawPeer()
        peer.request(octets)
        assert SessionError.PROTOCOL_VIOLATION == peer.code


# Request IDs.


@pytest.mark.parametrize(
    ("ids", "code"),
    [
        ([0, 2, 4], None),
        ([4, 0, 2], None),
        ([100, 2], None),
        ([1], 0x4),
        ([0, 0], 0x4),
        ([4, 2, 4], 0x4),
    ],
)
def test_request_ids_have_our_peers_parity_and_come_once(ids: list[int], code: int | None) -> None:
    """R056, R057: order does not matter, parity and reuse do."""
    peer = RawPeer()
    for request_id in ids:
        peer.request(opener("TRACK_STATUS", request_id))
    assert code == peer.code


@pytest.mark.parametrize(("request_id", "code"), [(2, None), (1, 0x4), (0, 0x4)])
def test_updates_use_up_request_ids(request_id: int, code: int | None) -> None:
    """R057: REQUEST_UPDATE draws from the same space."""
    peer = RawPeer()
    stream = peer.request(opener("SUBSCRIBE"))
    peer.send(stream, UPDATE.replace("ID", f"{request_id:02x}"))
    assert code == peer.code


def test_our_ids_go_up_by_two() -> None:
    """R056, R057: client even, server odd, updates included."""
    pair = Pair()
    first = pair.client.subscribe(TRACK)
    update = pair.client.update(first, Parameters(forward=0))
    second = pair.client.fetch(TRACK)
    assert (0, 2, 4) == (first.id, update, second.id)
    assert (1, 3) == (pair.server.subscribe(TRACK).id, pair.server.subscribe(OTHER).id)


@pytest.mark.parametrize(
    "octets",
    [
        "04 0002 07 00 04 0002 07 00",
        "04 0002 07 00 05 0003 00 00 00",
        "05 0003 10 00 00 04 0002 07 00",
    ],
    ids=["OK twice", "OK then error", "error then OK"],
)
def test_a_second_response_closes(octets: str) -> None:
    """R112: one answer per request."""
    peer = RawPeer(session_is_client=True)
    peer.session.subscribe(TRACK)
    peer.send(0, octets)
    assert SessionError.PROTOCOL_VIOLATION == peer.code


def test_publish_namespace_is_answered_once() -> None:
    """R191: a second REQUEST_OK closes."""
    peer = RawPeer(session_is_client=True)
    peer.session.publish_namespace((b"live",))
    peer.send(0, "07 0001 00")
    assert peer.code is None
    peer.send(0, "07 0001 00")
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize(
    ("ask", "octets", "code"),
    [
        (RequestKind.SUBSCRIBE, "07 0001 00", 0x3),
        (RequestKind.FETCH, "07 0001 00", 0x3),
        (RequestKind.FETCH, "04 0002 07 00", 0x3),
        (RequestKind.TRACK_STATUS, "07 0006 01 09 03 07 0e 40", None),
        (RequestKind.PUBLISH_NAMESPACE, "07 0003 00 0e 40", 0x3),
        (RequestKind.SUBSCRIBE_NAMESPACE, "07 0003 00 0e 40", 0x3),
        (RequestKind.PUBLISH_NAMESPACE, "07 0003 01 08 05", None),
        (RequestKind.PUBLISH_NAMESPACE, "07 0004 01 09 03 07", 0x3),
        (RequestKind.PUBLISH, "07 0004 01 09 03 07", 0x3),
        (RequestKind.TRACK_STATUS, "07 0003 01 08 05", None),
    ],
)
def test_answers_fit_the_kind_of_request(ask: RequestKind, octets: str, code: int | None) -> None:
    """R070, R079: wrong answer, Track Properties or parameters for the kind."""
    peer = RawPeer(session_is_client=True)
    ASK[ask](peer.session)
    peer.send(0, octets)
    assert code == peer.code


def test_state_notify_belongs_to_a_publisher() -> None:
    """R127: on another kind of request, or from a subscriber, it closes."""
    notify = "22 0001 00"
    for kind in OPENERS:
        peer = RawPeer()
        stream = peer.request(opener(kind))
        peer.send(stream, notify)
        assert (None if kind == "PUBLISH" else 0x3) == peer.code


@pytest.mark.parametrize(
    ("uri", "code"), [("", None), ("6d6f71743a2f2f78", 0x3)], ids=["same", "other"]
)
def test_a_server_accepts_redirects_to_the_same_uri_only(uri: str, code: int | None) -> None:
    """R071: clients are the ones that connect."""
    peer = RawPeer()
    peer.session.subscribe(TRACK)
    length = len(uri) // 2
    body = f"34 01 00 {length:02x} {uri} {NAME}".replace(" ", "")
    peer.send(1, f"05 {len(body) // 2:04x} {body}")
    assert code == peer.code
    if code is None:
        error = peer.seen(RequestFailed)[0].error
        assert error is not None
        assert Redirect(b"", TRACK) == error.redirect


@pytest.mark.parametrize(("name", "code"), [("00", None), ("01 61", 0x3)])
def test_redirects_of_namespaces_have_no_track_name(name: str, code: int | None) -> None:
    """R072: the Track Name of such a Redirect is empty."""
    peer = RawPeer(session_is_client=True)
    peer.session.publish_namespace((b"live",))
    body = f"34 01 00 00 {NAMESPACE} {name}".replace(" ", "")
    peer.send(0, f"05 {len(body) // 2:04x} {body}")
    assert code == peer.code


def test_we_redirect_only_where_that_is_legal() -> None:
    """R071, R072: nothing is sent otherwise."""
    pair = Pair()
    pair.server.subscribe(TRACK)
    pair.client.publish_namespace((b"live",))
    pair.run()
    calls = len(pair.taps[0].calls), len(pair.taps[1].calls)
    with pytest.raises(LocalProtocolError):
        pair.client.refuse(
            pair.request(0), RequestErrorCode.REDIRECT, redirect=Redirect(b"moqt://x", TRACK)
        )
    with pytest.raises(LocalProtocolError):
        pair.server.refuse(
            pair.request(1), RequestErrorCode.REDIRECT, redirect=Redirect(b"moqt://x", TRACK)
        )
    assert calls == (len(pair.taps[0].calls), len(pair.taps[1].calls))
    assert RequestState.PENDING is pair.request(0).state


@pytest.mark.parametrize(
    ("first", "code"),
    [("2e", 0x10), ("2e73657373696f6e", 0x10), ("2e666f6f", None), ("6c697665", None)],
)
def test_reserved_names(first: str, code: int | None) -> None:
    """R011, R012, R017: '.' and '.session' do not exist; other reserved names are passed on."""
    peer = RawPeer()
    field = f"01 {len(first) // 2:02x} {first}".replace(" ", "")
    body = f"00{field}0176 00".replace(" ", "")
    peer.request(f"03 {len(body) // 2:04x} {body}")
    refusal = peer.tap.on_stream(0)
    assert (b"" if code is None else bytes((5,))) == refusal[:1]
    assert (code is None) == bool(peer.seen(RequestReceived))
    if code is not None:
        assert code == refusal[3]


def test_we_do_not_use_session_level_names() -> None:
    """R010, R015: the API refuses, nothing is sent."""
    pair = Pair()
    calls = len(pair.taps[0].calls)
    for field in (b".", b".session"):
        track = FullTrackName((field,), b"x")
        for ask in (pair.client.subscribe, pair.client.publish, pair.client.fetch):
            with pytest.raises(LocalProtocolError):
                ask(track)
        with pytest.raises(LocalProtocolError):
            pair.client.publish_namespace((field,))
    assert calls == len(pair.taps[0].calls)
    assert 0 == pair.client.subscribe(TRACK).id


def test_too_many_open_requests_are_refused() -> None:
    """R230: EXCESSIVE_LOAD with a Retry Interval; ended requests make room."""
    pair = Pair(server=config(max_open_requests=2))
    for number in range(3):
        pair.client.subscribe(FullTrackName((b"live",), b"%d" % number))
    pair.run()
    failed = pair.one(0, RequestFailed)
    assert failed.error is not None
    assert (RequestErrorCode.EXCESSIVE_LOAD, 1001) == (
        failed.error.code,
        failed.error.retry_interval,
    )
    pair.server.refuse(pair.seen(1, RequestReceived)[0].request, 0x10)
    pair.run()
    pair.client.subscribe(TRACK)
    pair.run()
    assert 3 == len(pair.seen(1, RequestReceived))


def test_requests_wait_for_stream_credit_in_order() -> None:
    """A request without stream credit is sent later, the first one first."""
    pair = Pair()
    pair.taps[0].credit[False] = 0
    first, second = pair.client.subscribe(TRACK), pair.client.fetch(TRACK)
    pair.run()
    assert [] == pair.seen(1, RequestReceived)
    pair.taps[0].credit[False] = 1
    pair.run()
    assert [first.id] == [event.request.id for event in pair.seen(1, RequestReceived)]
    pair.client.cancel(second)
    third = pair.client.track_status(TRACK)
    pair.taps[0].credit[False] = 2
    pair.run()
    assert [first.id, third.id] == [event.request.id for event in pair.seen(1, RequestReceived)]


def test_local_mistakes_leave_nothing_sent() -> None:
    """R009, R079: what cannot be encoded uses up no Request ID and opens no stream."""
    pair = Pair()
    calls = len(pair.taps[0].calls)
    bad: list[Callable[[], Any]] = [
        lambda: pair.client.subscribe(FullTrackName((b"",), b"x")),
        lambda: pair.client.subscribe(FullTrackName((b"x" * 4096,), b"x")),
        lambda: pair.client.subscribe(TRACK, Parameters(expires=5)),
        lambda: pair.client.fetch(TRACK, Parameters(forward=1)),
        lambda: pair.client.subscribe(TRACK, Parameters(group_order=3)),
        lambda: pair.client.publish_namespace((b"x",) * 33),
    ]
    for call in bad:
        with pytest.raises(LocalProtocolError):
            call()
    assert calls == len(pair.taps[0].calls)
    assert 0 == pair.client.subscribe(TRACK).id


def test_track_status_says_what_is_known() -> None:
    """R070, R090, R156: LARGEST_OBJECT and Track Properties, then FIN; no update of it."""
    pair = Pair()
    ours = pair.client.track_status(TRACK)
    pair.run()
    with pytest.raises(LocalProtocolError):
        pair.client.update(ours, Parameters())
    properties = bytes.fromhex("0e40")
    pair.server.accept(pair.request(), Parameters(largest_object=Location(3, 7)), properties)
    pair.run()
    assert (
        RequestOk(Parameters(largest_object=Location(3, 7)), properties)
        == pair.one(0, RequestAccepted).response
    )
    assert pair.taps[1].fin_on(0)
    assert pair.taps[0].fin_on(0)


def test_an_update_of_track_status_closes() -> None:
    """R063, R156: TRACK_STATUS is the only message of its side."""
    peer = RawPeer()
    stream = peer.request(opener("TRACK_STATUS"))
    peer.send(stream, UPDATE.replace("ID", "02"))
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize("kind", ["SUBSCRIBE", "FETCH", "PUBLISH_NAMESPACE"])
def test_an_update_of_a_responder_closes(kind: str) -> None:
    """R063: only the sender of these requests updates them."""
    peer = RawPeer(session_is_client=True)
    ASK[RequestKind[kind]](peer.session)
    ok = {"SUBSCRIBE": "04 0002 07 00", "FETCH": "18 0004 00 00 00 00"}.get(kind, "07 0001 00")
    peer.send(0, ok)
    assert peer.code is None
    peer.send(0, UPDATE.replace("ID", "01"))
    assert SessionError.PROTOCOL_VIOLATION == peer.code


def test_events_of_requests_are_about_one_object() -> None:
    """An Object's event names the request that the application got from `subscribe`."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    assert theirs.sender is not None
    theirs.sender.offer(obj(0, 0))
    pair.run()
    assert ours is pair.one(0, ObjectReceived).request
