"""One strict JSON text from octets: RFC 8259 in the I-JSON profile (RFC 7493).

The standard parser reads what two implementations would understand differently: duplicate members,
NaN, integers beyond 2^53-1, lone surrogates, any depth. A manifest that two consumers may read
differently is none, so all of these are refused here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from kvcs.errors import JsonError

JsonValue: TypeAlias = (
    bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
)

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 32
MAX_OCTETS = 64 * 2**20


def parse_json(
    octets: bytes | memoryview, *, max_octets: int = MAX_OCTETS, max_depth: int = MAX_DEPTH
) -> JsonValue:
    """The value of one JSON text in UTF-8; JsonError says what is wrong and where."""
    if len(octets) > max_octets:
        raise JsonError(f"a JSON text of {len(octets)} octets is over the limit of {max_octets}")
    text = _decode(bytes(octets))
    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        offset = len(text[: error.pos].encode())
        raise JsonError(f"not JSON: {error.msg.lower()} at octet {offset}") from None
    except RecursionError:
        raise JsonError(f"nested deeper than {max_depth} levels") from None
    _bound_depth(value, max_depth)
    if "\\ud" in text or "\\uD" in text:
        _refuse_surrogates(value)
    return value


def _decode(octets: bytes) -> str:
    if octets.startswith(b"\xef\xbb\xbf"):
        raise JsonError("a JSON text starts without a byte order mark (octets 0..2)")
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at octet {error.start}") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise JsonError(f"the member {twice[:64]!a} stands twice in one object")
    return members


def _integer(digits: str) -> int:
    # The length first: Python's own limit on digits would raise, and long ones cost time.
    if len(digits) > 17 or abs(int(digits)) > MAX_INTEGER:
        raise JsonError(f"the integer {digits[:20]} is beyond 2^53-1")
    return int(digits)


def _number(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise JsonError(f"the number {digits[:20]} is beyond a double")
    return number


def _constant(name: str) -> float:
    raise JsonError(f"{name} is not JSON")


def _bound_depth(value: JsonValue, max_depth: int) -> None:
    level: list[JsonValue] = [value]
    for _ in range(max_depth + 1):
        deeper: list[JsonValue] = []
        for item in level:
            if isinstance(item, Mapping):
                deeper.extend(v for v in item.values() if isinstance(v, (list, dict)))
            elif isinstance(item, list):
                deeper.extend(v for v in item if isinstance(v, (list, dict)))
        if not deeper:
            return
        level = deeper
    raise JsonError(f"nested deeper than {max_depth} levels")


def _refuse_surrogates(value: JsonValue) -> None:
    if isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise JsonError(f"the string {value[:64]!a} holds half of a surrogate pair")
    elif isinstance(value, Mapping):
        for name, member in value.items():
            _refuse_surrogates(name)
            _refuse_surrogates(member)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)
