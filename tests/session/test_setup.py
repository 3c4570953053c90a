"""SETUP, control streams and stream types (MOQT-22 §6.3, §6.4.1, §9.1)."""

from __future__ import annotations

import pytest
from moqt.session import Session, SessionConfig
from moqt.session.events import RequestReceived, SessionClosed, SetupReceived
from moqt.wire.errors import LocalProtocolError, SessionError
from moqt.wire.messages import Parameters, SetupOptions
from moqt.wire.tokens import AliasType, Token

from tests.session.pair import SETUP, TRACK, Pair, RawPeer, WireTap, config

SUBSCRIBE_0 = "0300 0e 00 01 04 6c697665 05 766964656f 00"


def test_each_side_sends_one_setup_first() -> None:
    """R022: a control stream begins with af 00; nobody waits for the other."""
    pair = Pair(start=False)
    pair.client.start(0.0)
    pair.server.start(0.0)
    assert b"\xaf\x00" == pair.taps[0].on_stream(2)[:2]
    assert b"\xaf\x00" == pair.taps[1].on_stream(3)[:2]
    pair.run()
    assert SETUP == pair.one(0, SetupReceived).options
    assert SETUP == pair.one(1, SetupReceived).options
    assert 1 == sum(call.data[:2] == b"\xaf\x00" for call in pair.taps[0].calls)


def test_setup_may_come_octet_by_octet() -> None:
    """R028, R030: unknown options, repeated ones too, are ignored in any chunking."""
    peer = RawPeer(setup=None)
    for octet in bytes.fromhex("af00 0008 809d00 0000 000161"):
        peer.send(peer.control, bytes((octet,)))
    assert peer.code is None
    assert 1 == len(peer.seen(SetupReceived))


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("af00 0006 04 01 00 01 04 02", 0x3),
        ("af00 0003 01 01 2f", None),
        ("af00 0004 01 02 2f20", 0x9),
        ("af00 0003 05 01 61", None),
        ("af00 0004 05 02 615c", 0x1A),
        ("af00 0002 05 00", 0x1A),
        ("af00 0004 03 02 00 01", 0x3),
        ("af00 0004 03 02 02 01", 0x3),
        ("af00 0004 03 02 03 00", None),
        ("af00 0003 03 01 09", 0x6),
        ("af00 0001 04", 0x3),
    ],
    ids=[
        "known option repeated",
        "path",
        "path with a space",
        "authority",
        "authority with a backslash",
        "empty authority",
        "token DELETE",
        "token USE_ALIAS",
        "token USE_VALUE",
        "unknown alias type",
        "cut option",
    ],
)
def test_a_server_checks_the_options_of_a_client(octets: str, code: int | None) -> None:
    """R031, R032, R100, R101 and their legal neighbours."""
    peer = RawPeer(setup=octets)
    assert code == peer.code


@pytest.mark.parametrize(
    ("octets", "code"),
    [("af00 0003 01 01 2f", 0x8), ("af00 0003 05 01 61", 0x19), ("af00 0002 04 05", None)],
    ids=["path", "authority", "cache size"],
)
def test_a_client_refuses_path_and_authority_of_a_server(octets: str, code: int | None) -> None:
    """R031, R032: only a client may send PATH and AUTHORITY."""
    assert code == RawPeer(session_is_client=True, setup=octets).code


def test_a_server_does_not_send_path() -> None:
    """R031, R032: our own server refuses to be configured with them."""
    with pytest.raises(LocalProtocolError):
        Session(False, WireTap(False), SessionConfig(setup=SetupOptions(path=b"/x")))
    with pytest.raises(LocalProtocolError):
        Session(False, WireTap(False), SessionConfig(setup=SetupOptions(authority=b"x")))
    Session(True, WireTap(True), SessionConfig(setup=SetupOptions(path=b"/x", authority=b"x")))


def test_a_second_setup_closes() -> None:
    """R022: after SETUP only GOAWAY travels on the control stream."""
    peer = RawPeer()
    peer.send(peer.control, "af000000")
    assert SessionError.PROTOCOL_VIOLATION == peer.code


def test_a_request_on_the_control_stream_closes() -> None:
    """R025: requests have streams of their own."""
    peer = RawPeer()
    peer.send(peer.control, SUBSCRIBE_0)
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize("how", ["fin", "reset", "stop"])
def test_the_end_of_a_control_stream_closes(how: str) -> None:
    """R021: control streams live as long as the session."""
    peer = RawPeer()
    if how == "fin":
        peer.send(peer.control, b"", fin=True)
    elif how == "reset":
        peer.session.stream_reset(peer.control, 0, 0.0)
    else:
        peer.session.stop_sending_received(3, 0, 0.0)
    peer.take()
    assert SessionError.PROTOCOL_VIOLATION == peer.code
    assert [SessionError.PROTOCOL_VIOLATION] == [e.code for e in peer.seen(SessionClosed)]
    assert not peer.seen(SessionClosed)[0].by_peer


def test_a_second_control_stream_closes() -> None:
    """A second control stream is not described anywhere: PROTOCOL_VIOLATION."""
    peer = RawPeer()
    peer.stream("af000000")
    assert SessionError.PROTOCOL_VIOLATION == peer.code


@pytest.mark.parametrize("octets", ["02", "00", "06", "16", "17", "8080", "af01", "f0132b3e29"])
def test_unknown_stream_types_close(octets: str) -> None:
    """R024, R162: a type that the draft does not define, invalid subgroup flags among them."""
    peer = RawPeer()
    peer.stream(octets + "00" * 16)
    assert SessionError.PROTOCOL_VIOLATION == peer.code


def test_padding_is_read_and_dropped() -> None:
    """R052, R053: padding streams and datagrams have no effect, however long."""
    peer = RawPeer()
    stream = peer.stream("f0132b3e28" + "00" * 100)
    for _ in range(100):
        peer.send(stream, bytes(10_000))
    peer.send(stream, b"", fin=True)
    peer.session.datagram(bytes.fromhex("f0132b3e290000"), 0.0)
    peer.take()
    assert peer.code is None
    assert peer.events[-1] == peer.seen(SetupReceived)[-1]


@pytest.mark.parametrize(
    ("octets", "code"), [("10 00 00 00 61", 0x3), ("40 00", 0x3), ("22 00 00 80 03", 0x3)]
)
def test_unknown_datagram_types_close(octets: str, code: int) -> None:
    """R051, R160: illegal datagram flags."""
    peer = RawPeer()
    peer.session.datagram(bytes.fromhex(octets), 0.0)
    assert code == peer.code


def test_requests_that_overtake_setup_wait_for_it() -> None:
    """Streams that come before the peer's SETUP are kept (MOQT-22 §6.3)."""
    peer = RawPeer(setup=None)
    peer.request(SUBSCRIBE_0)
    assert [] == peer.seen(RequestReceived)
    peer.send(peer.control, "af000000")
    assert TRACK == peer.seen(RequestReceived)[0].request.track


def test_too_much_before_setup_is_refused() -> None:
    """What is kept before SETUP is bounded: the stream is reset, the session lives."""
    peer = RawPeer(setup=None, early_data_budget=100)
    stream = peer.request(bytes(200))
    assert {stream: 0x9} == peer.tap.codes("reset")
    peer.send(peer.control, "af000000")
    assert peer.code is None


def test_a_missing_setup_times_out() -> None:
    """A peer that never completes SETUP is closed with CONTROL_MESSAGE_TIMEOUT."""
    peer = RawPeer(setup=None)
    peer.send(peer.control, "af00")
    peer.wait(9.9)
    assert peer.code is None
    peer.wait(0.2)
    assert SessionError.CONTROL_MESSAGE_TIMEOUT == peer.code


def test_an_incomplete_message_times_out() -> None:
    """A control message that stays incomplete closes with CONTROL_MESSAGE_TIMEOUT."""
    peer = RawPeer()
    peer.request(SUBSCRIBE_0[:17])
    peer.wait(9.9)
    assert peer.code is None
    peer.wait(0.2)
    assert SessionError.CONTROL_MESSAGE_TIMEOUT == peer.code


def test_a_slow_message_that_completes_is_fine() -> None:
    """The timer ends with the message."""
    peer = RawPeer()
    stream = peer.request(SUBSCRIBE_0[:17])
    peer.wait(9.0)
    peer.send(stream, SUBSCRIBE_0[17:])
    peer.wait(20.0)
    assert peer.code is None
    assert 1 == len(peer.seen(RequestReceived))


def test_no_request_goes_before_our_setup() -> None:
    """R022: a request that is made before the connection is up waits for SETUP."""
    pair = Pair(start=False)
    request = pair.client.subscribe(TRACK)
    assert [] == pair.taps[0].calls
    pair.client.start(0.0)
    pair.server.start(0.0)
    pair.run()
    assert 0 == request.stream_id
    assert TRACK == pair.request().track


def test_a_closed_session_does_nothing() -> None:
    """After the close nothing is sent, and calls of the application raise."""
    pair = Pair()
    pair.client.close(SessionError.NO_ERROR, "bye")
    pair.run()
    assert (0, False) == (pair.one(0, SessionClosed).code, pair.one(0, SessionClosed).by_peer)
    assert (0, True) == (pair.one(1, SessionClosed).code, pair.one(1, SessionClosed).by_peer)
    calls = len(pair.taps[0].calls)
    with pytest.raises(LocalProtocolError):
        pair.client.subscribe(TRACK)
    pair.client.stream_data(3, b"\xff", False, 1.0)
    assert calls == len(pair.taps[0].calls)
    assert pair.client.next_timer() is None


def test_setup_tokens_beyond_the_cache_are_used_once() -> None:
    """R033, R034, R035: a REGISTER that does not fit acts as USE_VALUE; its alias is forgotten."""
    tokens = (
        Token(AliasType.REGISTER, 1, 0, b"small"),
        Token(AliasType.REGISTER, 2, 0, b"x" * 100),
    )
    pair = Pair(
        config(setup=SetupOptions(authorization_tokens=tokens)),
        config(setup=SetupOptions(max_auth_token_cache_size=40)),
    )
    assert not pair.server.closed
    assert (
        Token(AliasType.USE_VALUE, None, 0, b"small"),
        Token(AliasType.USE_VALUE, None, 0, b"x" * 100),
    ) == pair.server.peer_tokens
    pair.client.subscribe(TRACK, Parameters(authorization_tokens=(Token(AliasType.USE_ALIAS, 1),)))
    with pytest.raises(LocalProtocolError):
        pair.client.subscribe(
            TRACK, Parameters(authorization_tokens=(Token(AliasType.USE_ALIAS, 2),))
        )
    pair.run()
    assert (Token(AliasType.USE_VALUE, None, 0, b"small"),) == pair.request().tokens
