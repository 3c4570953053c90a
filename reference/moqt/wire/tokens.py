"""Authorization tokens as carried in parameters and setup options (MOQT-22 §8.9)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from moqt.wire.errors import LocalProtocolError, NeedMore, RemoteProtocolError, SessionError
from moqt.wire.varint import Cursor, encode_vi64


class AliasType(IntEnum):
    """What a Token asks the receiver to do (MOQT-22 §8.9)."""

    DELETE = 0x0
    REGISTER = 0x1
    USE_ALIAS = 0x2
    USE_VALUE = 0x3


@dataclass(frozen=True, slots=True)
class Token:
    """One Token structure; a field that its Alias Type does not carry is None."""

    alias_type: AliasType
    alias: int | None = None
    token_type: int | None = None
    value: bytes | None = None


_HAS_ALIAS = frozenset({AliasType.DELETE, AliasType.REGISTER, AliasType.USE_ALIAS})
_HAS_VALUE = frozenset({AliasType.REGISTER, AliasType.USE_VALUE})


def encode_token(token: Token) -> bytes:
    """Alias Type, [Token Alias], [Token Type] (vi64 each), [Token Value]; no length prefix.

    Raises LocalProtocolError when the fields are not those of the Alias Type.
    """
    has_alias = token.alias_type in _HAS_ALIAS
    has_value = token.alias_type in _HAS_VALUE
    given = (token.alias is not None, token.token_type is not None, token.value is not None)
    if given != (has_alias, has_value, has_value):
        raise LocalProtocolError(f"the fields of {token!r} do not fit {token.alias_type.name}")
    octets = encode_vi64(token.alias_type)
    if token.alias is not None:
        octets += encode_vi64(token.alias)
    if token.token_type is not None and token.value is not None:
        octets += encode_vi64(token.token_type) + token.value
    return octets


def decode_token(octets: bytes) -> Token:
    """One Token that fills `octets`.

    Raises RemoteProtocolError with KEY_VALUE_FORMATTING_ERROR when it does not decode (§8.9).
    """
    cursor = Cursor(octets)
    try:
        number = cursor.vi()
        if number > AliasType.USE_VALUE:
            raise _undecodable(f"Alias Type 0x{number:x} is not known")
        alias_type = AliasType(number)
        alias = cursor.vi() if alias_type in _HAS_ALIAS else None
        if alias_type in _HAS_VALUE:
            return Token(alias_type, alias, cursor.vi(), cursor.rest())
    except NeedMore:
        raise _undecodable("it ends inside a field") from None
    if cursor.left:
        raise _undecodable(f"{cursor.left} octets follow its last field")
    return Token(alias_type, alias)


def _undecodable(why: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"a Token does not decode: {why}", SessionError.KEY_VALUE_FORMATTING_ERROR
    )
