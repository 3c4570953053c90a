"""Authorization token aliases in both directions (MOQT-22 §8.9)."""

from __future__ import annotations

import pytest
from moqt.session.events import RequestFailed, RequestReceived, UpdateReceived
from moqt.wire.errors import LocalProtocolError, RequestErrorCode, SessionError
from moqt.wire.messages import Parameters, SetupOptions
from moqt.wire.tokens import AliasType, Token

from tests.session.openers import NAME
from tests.session.pair import OTHER, TRACK, Pair, RawPeer, config


def register(alias: int, value: bytes = b"abc") -> Token:
    return Token(AliasType.REGISTER, alias, 0, value)


def use(alias: int) -> Token:
    return Token(AliasType.USE_ALIAS, alias)


def delete(alias: int) -> Token:
    return Token(AliasType.DELETE, alias)


VALUE = Token(AliasType.USE_VALUE, None, 0, b"abc")


def with_tokens(*tokens: Token) -> Parameters:
    return Parameters(authorization_tokens=tokens)


def track_status(request_id: int, tokens: list[str]) -> str:
    """TRACK_STATUS with these Tokens, given as hex of the Token structure."""
    parameters = f"{len(tokens):02x}"
    for number, token in enumerate(tokens):
        octets = token.replace(" ", "")
        parameters += f"{0 if number else 3:02x}{len(octets) // 2:02x}{octets}"
    body = f"{request_id:02x}{NAME}{parameters}".replace(" ", "")
    return f"0d{len(body) // 2:04x}{body}"


def test_an_alias_works_until_it_is_deleted() -> None:
    """R099, R105, R108: REGISTER, use after the answer (a refusal, too), DELETE, gone."""
    pair = Pair()
    pair.client.track_status(TRACK, with_tokens(register(5)))
    pair.run()
    assert (VALUE,) == pair.request().tokens
    pair.server.refuse(pair.request(), RequestErrorCode.UNAUTHORIZED)
    pair.run()
    pair.client.track_status(TRACK, with_tokens(use(5)))
    pair.run()
    assert (VALUE,) == pair.request().tokens
    pair.server.accept(pair.request())
    pair.run()
    pair.client.track_status(TRACK, with_tokens(delete(5)))
    pair.run()
    assert () == pair.request().tokens
    with pytest.raises(LocalProtocolError):
        pair.client.track_status(TRACK, with_tokens(use(5)))
    pair.client.track_status(TRACK, with_tokens(register(5, b"new")))
    pair.run()
    assert b"new" == pair.request().tokens[0].value


def test_no_use_on_another_stream_before_the_answer() -> None:
    """R108: on the same stream an update may use it at once."""
    pair = Pair()
    first = pair.client.subscribe(TRACK, with_tokens(register(1)))
    with pytest.raises(LocalProtocolError):
        pair.client.subscribe(OTHER, with_tokens(use(1)))
    pair.client.update(first, with_tokens(use(1)))
    pair.run()
    assert [] == pair.seen(1, UpdateReceived)
    pair.server.accept_subscribe(pair.request(), largest=None)
    pair.run()
    assert (VALUE,) == pair.one(1, UpdateReceived).update.parameters.authorization_tokens
    pair.client.subscribe(OTHER, with_tokens(use(1)))


def test_no_delete_while_a_use_is_unanswered() -> None:
    """R109: DELETE waits for the answers to all uses."""
    pair = Pair()
    pair.client.track_status(TRACK, with_tokens(register(1)))
    pair.run()
    pair.server.accept(pair.request())
    pair.run()
    pair.client.track_status(TRACK, with_tokens(use(1)))
    with pytest.raises(LocalProtocolError):
        pair.client.track_status(TRACK, with_tokens(delete(1)))
    pair.run()
    pair.server.accept(pair.request())
    pair.run()
    pair.client.track_status(TRACK, with_tokens(delete(1)))


def test_we_keep_within_the_peers_cache() -> None:
    """R107: an alias costs 16 octets and its value; nothing is sent beyond the limit."""
    pair = Pair(server=config(setup=SetupOptions(max_auth_token_cache_size=38)))
    for alias in (1, 2):
        pair.client.track_status(TRACK, with_tokens(register(alias)))
    calls = len(pair.taps[0].calls)
    with pytest.raises(LocalProtocolError):
        pair.client.track_status(TRACK, with_tokens(register(3, b"")))
    with pytest.raises(LocalProtocolError):
        pair.client.track_status(TRACK, with_tokens(register(1)))
    assert calls == len(pair.taps[0].calls)
    pair.run()
    assert not pair.server.closed


REGISTER_1, USE_1, DELETE_1, VALUE_ABC = "01 01 00 616263", "02 01", "00 01", "03 00 616263"


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([[REGISTER_1], [USE_1]], None),
        ([[REGISTER_1, USE_1]], None),
        ([[REGISTER_1], [REGISTER_1]], 0x14),
        ([[REGISTER_1], [DELETE_1], [REGISTER_1]], None),
        ([[REGISTER_1], ["01 02 00 616263"]], None),
        ([[REGISTER_1], ["01 02 00 61626364"]], 0x13),
        ([[VALUE_ABC, VALUE_ABC]], None),
        ([["04 01"]], 0x6),
        ([["01"]], 0x6),
        ([["02 01 00"]], 0x6),
    ],
    ids=[
        "register, use",
        "register and use at once",
        "register twice",
        "register after delete",
        "cache exactly full",
        "cache overflow",
        "two values",
        "unknown alias type",
        "cut",
        "octets left over",
    ],
)
def test_the_peers_aliases(messages: list[list[str]], code: int | None) -> None:
    """R099, R101, R102, R107: with room for two entries of 19 octets."""
    peer = RawPeer(options=SetupOptions(max_auth_token_cache_size=38))
    for number, tokens in enumerate(messages):
        peer.request(track_status(2 * number, tokens))
    assert code == peer.code


@pytest.mark.parametrize("token", [USE_1, DELETE_1])
def test_an_unknown_alias_refuses_the_request(token: str) -> None:
    """R103, R105: REQUEST_ERROR 0x17; what else the message registers stays registered."""
    peer = RawPeer()
    peer.request(track_status(0, [token, "01 02 00 616263"]))
    assert b"\x05" == peer.tap.on_stream(0)[:1]
    assert 0x17 == peer.tap.on_stream(0)[3]
    assert [] == peer.seen(RequestReceived)
    peer.request(track_status(2, ["02 02"]))
    assert (VALUE,) == peer.seen(RequestReceived)[0].request.tokens
    assert peer.code is None


def test_an_unknown_alias_refuses_an_update() -> None:
    """R065, R103: the update fails, and with it the subscription."""
    peer = RawPeer()
    stream = peer.request(f"03 000e 00 {NAME} 00")
    peer.session.accept_subscribe(peer.seen(RequestReceived)[0].request, largest=None)
    peer.send(stream, "02 0006 02 01 03 02 02 01")
    sent = peer.tap.on_stream(0)
    assert bytes.fromhex("0400020000 05") == sent[:6]
    assert 0x0B in sent
    assert peer.tap.fin_on(0)


def test_a_bad_token_is_the_applications_to_refuse() -> None:
    """R104, R106: MALFORMED and EXPIRED are request errors; the alias stays live."""
    pair = Pair()
    pair.client.track_status(TRACK, with_tokens(register(1)))
    pair.run()
    pair.server.refuse(pair.request(), RequestErrorCode.EXPIRED_AUTH_TOKEN)
    pair.run()
    error = pair.one(0, RequestFailed).error
    assert error is not None
    assert RequestErrorCode.EXPIRED_AUTH_TOKEN == error.code
    pair.server.stream_data(4, bytes.fromhex(track_status(2, [REGISTER_1])), False, 0.0)
    assert pair.server.closed
    assert pair.taps[1].closed is not None
    assert SessionError.DUPLICATE_AUTH_TOKEN_ALIAS == pair.taps[1].closed[0]
