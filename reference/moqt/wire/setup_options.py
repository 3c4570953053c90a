"""Setup Options as Key-Value-Pairs (MOQT-22 §9.1)."""

from __future__ import annotations

from typing import Any

from moqt.wire.drafts import Draft
from moqt.wire.errors import LocalProtocolError, RemoteProtocolError, SessionError
from moqt.wire.messages import SetupOptions
from moqt.wire.properties import Property, decode_properties, encode_properties
from moqt.wire.tokens import decode_token, encode_token

_DEFAULTS = SetupOptions()


def encode_setup_options(options: SetupOptions, draft: Draft) -> bytes:
    """The options that differ from their defaults, ascending by type, `unknown` ones included.

    Raises LocalProtocolError for a value of the wrong form or length.
    """
    pairs: list[Property] = []
    for kind, value in options.unknown:
        if kind in draft.setup_options:
            raise LocalProtocolError(f"setup option 0x{kind:x} is known: it has its own field")
        pairs.append((kind, value))
    for kind, spec in draft.setup_options.items():
        value = getattr(options, spec.field)
        if spec.token:
            pairs += [(kind, encode_token(token)) for token in value]
        elif value != getattr(_DEFAULTS, spec.field):
            pairs.append((kind, value))
    return encode_properties(pairs)


def decode_setup_options(octets: bytes, draft: Draft) -> SetupOptions:
    """Options that fill `octets`; those that the draft does not define land in `unknown`.

    Raises RemoteProtocolError: PROTOCOL_VIOLATION for a repeated known option (the draft names no
    reaction), KEY_VALUE_FORMATTING_ERROR for a Token that does not decode or text that is not
    UTF-8.
    """
    fields: dict[str, Any] = {}
    tokens = []
    unknown: list[Property] = []
    for kind, value in decode_properties(octets):
        spec = draft.setup_options.get(kind)
        if spec is None:
            unknown.append((kind, value))
        elif spec.token and isinstance(value, bytes):
            tokens.append(decode_token(value))
        elif spec.field in fields:
            raise RemoteProtocolError(f"setup option {spec.name} is repeated")
        else:
            if spec.text and isinstance(value, bytes) and not _is_utf8(value):
                raise RemoteProtocolError(
                    f"setup option {spec.name} is not UTF-8",
                    SessionError.KEY_VALUE_FORMATTING_ERROR,
                )
            fields[spec.field] = value
    return SetupOptions(authorization_tokens=tuple(tokens), unknown=tuple(unknown), **fields)


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True
