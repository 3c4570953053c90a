"""Who may do what at a relay: by scope, for every request that reaches content or names (A14).

KVCS asks for authorisation at least at the granularity of the prefix ("kvcs-1", Scope ID)
(KVCS-8-4, KVCS-10-6 to KVCS-10-9).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from moqt.relay import BOTH_VERBS, Grant, ScopePolicy, Verb
from moqt.wire.tokens import AliasType, Token

from kvcs.errors import InputError
from kvcs.names import KVCS_1, SCOPE_ID_OCTETS

OUT_OF_BAND = 0
"""Token Type of a token whose meaning both sides know by other means (MOQT-22 §8.9)."""

READING = frozenset({Verb.SUBSCRIBE})


def scope_policy(
    grants: Mapping[bytes, Collection[bytes]],
    readers: Mapping[bytes, Collection[bytes]] | None = None,
) -> ScopePolicy:
    """The policy under which each token value opens the Scope IDs that it maps to, and no more.

    Tokens of `readers` open theirs for who subscribes and not for who publishes (KVCS-10-6). A
    prefix that stops before the Scope ID is refused: it would list every scope. Raises InputError
    for an empty token and for a Scope ID that has not 16 octets.
    """
    known: dict[tuple[int, bytes], list[Grant]] = {}
    for verbs, tokens in ((BOTH_VERBS, grants), (READING, readers or {})):
        for token, scopes in tokens.items():
            if not token:
                raise InputError("a token has at least one octet")
            for scope in scopes:
                if len(scope) != SCOPE_ID_OCTETS:
                    raise InputError(f"a Scope ID has {SCOPE_ID_OCTETS} octets, not {len(scope)}")
                known.setdefault((OUT_OF_BAND, token), []).append(Grant(verbs, (KVCS_1, scope)))
    return ScopePolicy(known)


def bearer(value: bytes) -> Token:
    """The token that a client sends to prove membership of a scope."""
    return Token(AliasType.USE_VALUE, token_type=OUT_OF_BAND, value=value)
