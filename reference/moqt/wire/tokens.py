"""Authorization tokens as carried in parameters and setup options (MOQT-22 §8.9)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


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
