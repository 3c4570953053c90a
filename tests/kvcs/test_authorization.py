"""Scope authorisation: every request that names content needs a token of exactly that scope."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kvcs.authorization import bearer, scope_policy
from kvcs.errors import InputError
from moqt.session import RequestKind
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import FullTrackName
from moqt.wire.tokens import AliasType, Token

A, B = bytes(15) + b"\x01", bytes(15) + b"\x02"
GRANTS = scope_policy({b"for-a": {A}, b"for-both": {A, B}})


def request(
    *fields: bytes, token: Token | None = None, setup: Token | None = None, track: bool = False
) -> Any:
    """A request for a track of, or for the prefix, `fields`."""
    return SimpleNamespace(
        kind=RequestKind.FETCH if track else RequestKind.SUBSCRIBE_NAMESPACE,
        track=FullTrackName(fields, b"k.raw.s0") if track else None,
        namespace=None if track else fields,
        tokens=(token,) if token else (),
        session=SimpleNamespace(peer_tokens=(setup,) if setup else ()),
    )


@pytest.mark.parametrize("track", [True, False])
def test_a_token_opens_its_own_scope_alone(track: bool) -> None:
    """KVCS-8-4: requests for tracks and for namespaces are refused outside the token's scope."""
    token = bearer(b"for-a")
    GRANTS(request(b"kvcs-1", A, token=token, track=track))
    with pytest.raises(RequestRefused) as caught:
        GRANTS(request(b"kvcs-1", B, token=token, track=track))
    assert RequestErrorCode.UNAUTHORIZED == caught.value.code


def test_one_token_may_open_several_scopes() -> None:
    """A token that was granted two scopes opens both."""
    for scope in (A, B):
        GRANTS(request(b"kvcs-1", scope, token=bearer(b"for-both")))


def test_a_token_of_the_setup_counts_for_the_session() -> None:
    """A session that presented its token in SETUP need not repeat it."""
    GRANTS(request(b"kvcs-1", A, setup=bearer(b"for-a")))
    with pytest.raises(RequestRefused):
        GRANTS(request(b"kvcs-1", B, setup=bearer(b"for-a")))


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (b"kvcs-1",),
        (b"kvcs-2", A),
        (b"kvcs-1", A[:15]),
        (b"kvcs-1" + A[:1], A[1:]),
        (b"kvcs-1", A + b"\0"),
    ],
)
def test_a_namespace_that_does_not_name_one_scope_is_refused(fields: tuple[bytes, ...]) -> None:
    """Short prefixes, moved field boundaries and foreign applications open nothing."""
    with pytest.raises(RequestRefused):
        GRANTS(request(*fields, token=bearer(b"for-a")))


@pytest.mark.parametrize(
    "token",
    [
        None,
        bearer(b""),
        bearer(b"for-c"),
        Token(AliasType.USE_ALIAS, alias=1),
        Token(AliasType.USE_VALUE, token_type=1, value=b"for-a"),
    ],
)
def test_no_other_token_opens_a_scope(token: Token | None) -> None:
    """No token, an empty or unknown one, an unresolved alias, one of another type: refused."""
    with pytest.raises(RequestRefused):
        GRANTS(request(b"kvcs-1", A, token=token))


@pytest.mark.parametrize("grants", [{b"": {A}}, {b"for-a": {A[:15]}}])
def test_grants_that_make_no_sense_are_refused(grants: dict[bytes, set[bytes]]) -> None:
    """An empty token and a Scope ID of another length are errors of whoever set them up."""
    with pytest.raises(InputError):
        scope_policy(grants)


def test_a_reader_publishes_nothing() -> None:
    """KVCS-10-6: a token of readers opens its scope for who subscribes, not for who publishes."""
    policy = scope_policy({}, readers={b"for-readers": {A}})
    asked = request(b"kvcs-1", A, token=bearer(b"for-readers"))
    policy(asked)
    asked.kind = RequestKind.PUBLISH_NAMESPACE
    with pytest.raises(RequestRefused) as caught:
        policy(asked)
    assert RequestErrorCode.UNAUTHORIZED == caught.value.code
