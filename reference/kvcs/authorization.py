"""Who may do what at a relay: by scope, for every request that reaches content or names (A14).

KVCS asks for authorisation at least at the granularity of the prefix ("kvcs-1", Scope ID)
(KVCS-8-4, KVCS-10-6 to KVCS-10-9). `ScopeGrants` is a hook for `RelayConfig.authorise`, which
asks it before the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import TrackNamespace
from moqt.wire.tokens import AliasType, Token

from kvcs.names import KVCS_1, SCOPE_ID_OCTETS

if TYPE_CHECKING:
    from moqt.session import Request

OUT_OF_BAND = 0
"""Token Type of a token whose meaning both sides know by other means (MOQT-22 §8.9)."""


class ScopeGrants:
    """Bearer tokens, each with the Scope IDs that it opens.

    A request may carry its token itself or rely on one of the session's SETUP. It is refused with
    UNAUTHORIZED when its namespace is no KVCS namespace, when it stops before the Scope ID (such
    a prefix would list every scope), or when no token of it opens that scope.
    """

    def __init__(self, grants: Mapping[bytes, Collection[bytes]]) -> None:
        self._grants = {token: frozenset(scopes) for token, scopes in grants.items()}

    def __call__(self, request: Request) -> None:
        """Return when `request` is allowed; raises RequestRefused otherwise."""
        namespace: TrackNamespace = request.namespace or ()
        if request.track is not None:
            namespace = request.track.namespace
        if len(namespace) < 2 or namespace[0] != KVCS_1 or len(namespace[1]) != SCOPE_ID_OCTETS:
            raise _refused("the namespace does not name one KVCS scope")
        setup = request.session.peer_setup
        tokens: Iterable[Token] = request.tokens
        if setup is not None:
            tokens = (*tokens, *setup.authorization_tokens)
        if not any(namespace[1] in self._opened_by(token) for token in tokens):
            raise _refused("no token of this request opens this scope")

    def _opened_by(self, token: Token) -> Collection[bytes]:
        # An alias that the session could not resolve has no value, and opens nothing.
        if token.token_type != OUT_OF_BAND or not token.value:
            return ()
        return self._grants.get(token.value, ())


def bearer(value: bytes) -> Token:
    """The token that a client sends to prove membership of a scope."""
    return Token(AliasType.USE_VALUE, token_type=OUT_OF_BAND, value=value)


def _refused(reason: str) -> RequestRefused:
    return RequestRefused(reason, RequestErrorCode.UNAUTHORIZED)
