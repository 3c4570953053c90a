"""Authorization token aliases, one cache per direction (MOQT-22 §8.9, §9.1.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from moqt.wire.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    RequestErrorCode,
    RequestRefused,
    SessionError,
)
from moqt.wire.tokens import AliasType, Token

ENTRY_OVERHEAD = 16
"""What an alias costs besides its Token Value, in octets (MOQT-22 §9.1.4)."""


def _cost(token: Token) -> int:
    return ENTRY_OVERHEAD + len(token.value or b"")


def _as_value(token: Token) -> Token:
    return Token(AliasType.USE_VALUE, None, token.token_type, token.value)


class ReceivedTokens:
    """The aliases that the peer registered with us, within `limit` octets."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._tokens: dict[int, Token] = {}

    def from_setup(self, tokens: Iterable[Token]) -> tuple[Token, ...]:
        """The tokens of a SETUP in USE_VALUE form; what does not fit is not kept.

        Raises RemoteProtocolError for DELETE and USE_ALIAS, and for an alias given twice.
        """
        found = []
        for token in tokens:
            if token.alias_type in (AliasType.DELETE, AliasType.USE_ALIAS):
                raise RemoteProtocolError(f"SETUP carries a token with {token.alias_type.name}")
            if token.alias_type is AliasType.REGISTER:
                self._check_free(token)
                if self._size + _cost(token) <= self._limit:
                    self._keep(token)
            found.append(_as_value(token))
        return tuple(found)

    def resolve(self, tokens: Iterable[Token]) -> tuple[Token, ...]:
        """The tokens of one message in USE_VALUE form; registers and deletes on the way.

        Raises RemoteProtocolError for a live alias or a full cache. Raises RequestRefused for an
        unknown alias, after the other tokens took effect: an alias outlives a refused request.
        """
        found = []
        unknown: int | None = None
        for token in tokens:
            match token.alias_type:
                case AliasType.USE_VALUE:
                    found.append(token)
                case AliasType.REGISTER:
                    self._check_free(token)
                    if self._size + _cost(token) > self._limit:
                        raise RemoteProtocolError(
                            f"the token aliases exceed {self._limit} octets",
                            SessionError.AUTH_TOKEN_CACHE_OVERFLOW,
                        )
                    self._keep(token)
                    found.append(_as_value(token))
                case AliasType.USE_ALIAS if token.alias in self._tokens:
                    found.append(_as_value(self._tokens[token.alias]))
                case AliasType.DELETE if token.alias in self._tokens:
                    self._size -= _cost(self._tokens.pop(token.alias))
                case _:
                    unknown = token.alias
        if unknown is not None:
            raise RequestRefused(
                f"token alias {unknown} is not registered",
                RequestErrorCode.UNKNOWN_AUTH_TOKEN_ALIAS,
            )
        return tuple(found)

    def _check_free(self, token: Token) -> None:
        if token.alias in self._tokens:
            raise RemoteProtocolError(
                f"token alias {token.alias} is registered already",
                SessionError.DUPLICATE_AUTH_TOKEN_ALIAS,
            )

    def _keep(self, token: Token) -> None:
        assert token.alias is not None
        self._tokens[token.alias] = token
        self._size += _cost(token)


@dataclass(slots=True)
class _SentAlias:
    cost: int
    stream: object
    answered: bool = False
    open_uses: int = 0


@dataclass(slots=True)
class TokenUse:
    """The aliases that one sent message registers or uses, until its answer comes."""

    aliases: list[_SentAlias] = field(default_factory=list)

    def answered(self) -> None:
        """The peer answered the message."""
        for alias in self.aliases:
            alias.answered = True
            alias.open_uses -= 1
        self.aliases.clear()


class SentTokens:
    """The aliases that we registered with the peer, and what we may do with them now."""

    def __init__(self) -> None:
        self._limit = 0
        self._size = 0
        self._aliases: dict[int, _SentAlias] = {}

    def peer_limit(self, limit: int, setup: Iterable[Token]) -> None:
        """The peer's SETUP came: of the tokens in ours, keep the aliases that fit its cache."""
        self._limit = limit
        for token in setup:
            if token.alias_type is AliasType.REGISTER and self._size + _cost(token) <= limit:
                assert token.alias is not None
                self._aliases[token.alias] = _SentAlias(_cost(token), None, answered=True)
                self._size += _cost(token)

    def check(self, tokens: Iterable[Token], stream: object) -> None:
        """Whether a message on `stream` may carry these; LocalProtocolError if not."""
        size = self._size
        new: set[int | None] = set()
        for token in tokens:
            known = self._aliases.get(token.alias) if token.alias is not None else None
            match token.alias_type:
                case AliasType.REGISTER:
                    if known is not None or token.alias in new:
                        raise LocalProtocolError(f"token alias {token.alias} is in use")
                    size += _cost(token)
                    if size > self._limit:
                        raise LocalProtocolError(
                            f"the peer keeps {self._limit} octets of token aliases"
                        )
                    new.add(token.alias)
                case AliasType.USE_ALIAS if token.alias not in new:
                    if known is None:
                        raise LocalProtocolError(f"token alias {token.alias} is not registered")
                    if not known.answered and known.stream is not stream:
                        raise LocalProtocolError(
                            f"the registration of token alias {token.alias} is not answered yet"
                        )
                case AliasType.DELETE:
                    if known is None:
                        raise LocalProtocolError(f"token alias {token.alias} is not registered")
                    if known.open_uses:
                        raise LocalProtocolError(
                            f"token alias {token.alias} has uses that are not answered yet"
                        )
                case _:
                    pass

    def sent(self, tokens: Iterable[Token], stream: object) -> TokenUse:
        """Note what a message that was checked and sent does."""
        use = TokenUse()
        for token in tokens:
            if token.alias is None:
                continue
            if token.alias_type is AliasType.DELETE:
                self._size -= self._aliases.pop(token.alias).cost
                continue
            if token.alias_type is AliasType.REGISTER:
                self._aliases[token.alias] = _SentAlias(_cost(token), stream)
                self._size += _cost(token)
            alias = self._aliases[token.alias]
            alias.open_uses += 1
            use.aliases.append(alias)
        return use
