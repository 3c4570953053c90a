"""JSON and CBOR as a peer sent them: a value, or None for octets that are no such document.

No octets make these functions raise: what a peer sends wrongly is a finding about the peer, and
never a breakdown of the judge.
"""

from __future__ import annotations

import hashlib
import json
from io import BytesIO
from typing import Any, NoReturn

SIGN1_TAG = 18
_DEPTH = 64


def json_object(octets: bytes) -> dict[str, Any] | None:
    """The object that a JSON text in UTF-8 holds: NaN and Infinity are no JSON (RFC 8259 §6)."""
    try:
        value = json.loads(octets.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_shallow(value) else None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_shallow(value: object) -> bool:
    level: list[Any] = [value]
    for _ in range(_DEPTH):
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [one for items in inner for one in items if isinstance(one, dict | list)]
        if not level:
            return True
    return False


def canonical_digest(value: dict[str, Any]) -> str | None:
    """Hex SHA-256 of the RFC 8785 form; None for a value that has none."""
    import rfc8785

    try:
        return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
    except rfc8785.CanonicalizationError:
        return None


def sign1(octets: bytes) -> tuple[Any, Any, Any, Any] | None:
    """The four parts of a COSE_Sign1, tagged 18 or untagged (A8), with no octet behind it."""
    import cbor2

    value = _cbor(octets)
    if isinstance(value, cbor2.CBORTag):
        value = value.value if value.tag == SIGN1_TAG else None
    if not isinstance(value, list | tuple) or len(value) != 4:
        return None
    protected, unprotected, payload, signature = value
    return protected, unprotected, payload, signature


def cbor_map(octets: object) -> dict[Any, Any] | None:
    """The map that these octets hold, as a protected header does (empty for no octets)."""
    if octets == b"":
        return {}
    value = _cbor(octets) if isinstance(octets, bytes) else None
    return value if isinstance(value, dict) else None


def _cbor(octets: bytes) -> Any:
    """The one item in these octets; None if there is none or more."""
    import cbor2

    stream = BytesIO(octets)
    try:
        value = cbor2.CBORDecoder(stream).decode()
    except (cbor2.CBORError, ValueError, TypeError, ArithmeticError):
        return None
    return value if stream.tell() == len(octets) else None
