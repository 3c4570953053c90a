"""Control messages to octets and back (MOQT-22 §9), as the table of a draft lays them out.

Frame: Message Type (vi64), Message Length (16 bits, most significant octet first), Body.
"""

from __future__ import annotations

from typing import Any

from moqt.wire.drafts import Draft, FieldForm, MessageLayout
from moqt.wire.errors import (
    LocalProtocolError,
    NeedMore,
    RemoteProtocolError,
    RequestErrorCode,
)
from moqt.wire.messages import Message, Redirect
from moqt.wire.names import (
    Location,
    decode_namespace,
    decode_track,
    encode_namespace,
    encode_track,
)
from moqt.wire.parameters import decode_parameters, encode_parameters
from moqt.wire.properties import check_track_properties
from moqt.wire.setup_options import decode_setup_options, encode_setup_options
from moqt.wire.varint import Cursor, encode_prefixed, encode_vi64, read_vi64

MAX_BODY_LENGTH = 0xFFFF
MAX_URI_LENGTH = 8192
MAX_REASON_LENGTH = 1024


def encode_message(message: Message, draft: Draft, *, fill_count: bool | None = None) -> bytes:
    """The whole frame of one control message.

    `fill_count`: whether nested FILL_PARAMETERS start with their number; None is the draft's way.
    Raises LocalProtocolError for a value that the message cannot carry.
    """
    layout = draft.layout_of_class.get(type(message))
    if layout is None:
        raise LocalProtocolError(f"{draft.alpn} has no {type(message).__name__}")
    counted = draft.fill_count if fill_count is None else fill_count
    body = b"".join(
        _encode_field(form, getattr(message, name), message, layout, draft, counted)
        for name, form in layout.fields
    )
    if len(body) > MAX_BODY_LENGTH:
        raise LocalProtocolError(
            f"{type(message).__name__} has {len(body)} octets, more than the 65535 of a message"
        )
    return encode_vi64(layout.message_type) + len(body).to_bytes(2, "big") + body


def _encode_field(
    form: FieldForm,
    value: Any,
    message: Message,
    layout: MessageLayout,
    draft: Draft,
    fill_count: bool,
) -> bytes:
    match form:
        case FieldForm.INTEGER:
            return encode_vi64(value)
        case FieldForm.STREAM_COUNT:
            return encode_vi64(draft.unknown_stream_count if value is None else value)
        case FieldForm.FLAG:
            return b"\x01" if value else b"\x00"
        case FieldForm.LOCATION:
            return encode_vi64(value.group) + encode_vi64(value.object)
        case FieldForm.NAMESPACE:
            return encode_namespace(value)
        case FieldForm.TRACK:
            return encode_track(value)
        case FieldForm.NAME:
            return encode_prefixed(value)
        case FieldForm.URI:
            return _encode_uri(value)
        case FieldForm.REASON:
            return _encode_reason(value)
        case FieldForm.REDIRECT:
            return _encode_redirect(value, getattr(message, "code", None))
        case FieldForm.PARAMETERS:
            allowed = draft.allowed_in_type[layout.message_type]
            return encode_parameters(value, draft, allowed, fill_count=fill_count)
        case FieldForm.TRACK_PROPERTIES:
            return _checked_track_properties(value)
        case FieldForm.SETUP_OPTIONS:
            return encode_setup_options(value, draft)


def _encode_uri(uri: bytes) -> bytes:
    if len(uri) > MAX_URI_LENGTH:
        raise LocalProtocolError(f"a URI has at most 8192 octets, not {len(uri)}")
    return encode_prefixed(uri)


def _encode_reason(reason: str) -> bytes:
    octets = reason.encode("utf-8", "replace")
    if len(octets) > MAX_REASON_LENGTH:
        raise LocalProtocolError(f"a Reason Phrase has at most 1024 octets, not {len(octets)}")
    return encode_prefixed(octets)


def _encode_redirect(redirect: Redirect | None, code: int | None) -> bytes:
    if (redirect is not None) != (code == RequestErrorCode.REDIRECT):
        raise LocalProtocolError("REQUEST_ERROR has a Redirect exactly with the code REDIRECT")
    return b"" if redirect is None else _encode_uri(redirect.uri) + encode_track(redirect.track)


def _checked_track_properties(octets: bytes) -> bytes:
    try:
        check_track_properties(octets)
    except RemoteProtocolError as error:
        raise LocalProtocolError(error.reason) from None
    return octets


def decode_body(layout: MessageLayout, body: bytes, draft: Draft) -> Message:
    """The message whose body is exactly `body`.

    Raises RemoteProtocolError when the fields need more or fewer octets or break a rule.
    """
    cursor = Cursor(body)
    values: dict[str, Any] = {}
    try:
        for name, form in layout.fields:
            values[name] = _decode_field(form, cursor, values, layout, draft)
    except NeedMore:
        raise RemoteProtocolError(f"{layout.message.__name__} is shorter than its fields") from None
    if cursor.left:
        raise RemoteProtocolError(
            f"{layout.message.__name__} has {cursor.left} octets behind its fields"
        )
    message: Message = layout.message(**values)
    return message


def _decode_field(
    form: FieldForm, cursor: Cursor, before: dict[str, Any], layout: MessageLayout, draft: Draft
) -> Any:
    match form:
        case FieldForm.INTEGER:
            return cursor.vi()
        case FieldForm.STREAM_COUNT:
            count = cursor.vi()
            return None if count == draft.unknown_stream_count else count
        case FieldForm.FLAG:
            flag = cursor.u8()
            if flag > 1:
                raise RemoteProtocolError(f"a flag of {layout.message.__name__} is {flag}")
            return flag == 1
        case FieldForm.LOCATION:
            return Location(cursor.vi(), cursor.vi())
        case FieldForm.NAMESPACE:
            return decode_namespace(cursor)
        case FieldForm.TRACK:
            return decode_track(cursor)
        case FieldForm.NAME:
            return cursor.prefixed()
        case FieldForm.URI:
            return _decode_limited(cursor, MAX_URI_LENGTH, "a URI")
        case FieldForm.REASON:
            reason = _decode_limited(cursor, MAX_REASON_LENGTH, "a Reason Phrase")
            return reason.decode("utf-8", "replace")
        case FieldForm.REDIRECT:
            if before["code"] != RequestErrorCode.REDIRECT:
                return None
            return Redirect(_decode_limited(cursor, MAX_URI_LENGTH, "a URI"), decode_track(cursor))
        case FieldForm.PARAMETERS:
            return decode_parameters(cursor, draft, draft.allowed_in_type[layout.message_type])
        case FieldForm.TRACK_PROPERTIES:
            octets = cursor.rest()
            check_track_properties(octets)
            return octets
        case FieldForm.SETUP_OPTIONS:
            return decode_setup_options(cursor.rest(), draft)


def _decode_limited(cursor: Cursor, limit: int, what: str) -> bytes:
    length = cursor.vi()
    if length > limit:
        raise RemoteProtocolError(f"{what} has at most {limit} octets, not {length}")
    return cursor.raw(length)


class MessageReader:
    """Cuts the octets of a control or request stream into messages, in any chunking."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._buffer = bytearray()

    @property
    def pending(self) -> bool:
        """Whether octets of a message that is not complete are held."""
        return bool(self._buffer)

    def feed(self, data: bytes | memoryview) -> None:
        """Append octets of the stream."""
        self._buffer += data

    def next(self) -> tuple[Message, bytes] | None:
        """The next message and its whole frame, or None when more octets are needed.

        Raises RemoteProtocolError for an unknown type, as soon as it is known, and for a body
        that breaks a rule; the reader is of no use afterwards.
        """
        buffer = self._buffer
        try:
            kind, start = read_vi64(buffer, 0, len(buffer))
        except NeedMore:
            return None
        layout = self._draft.layout_of_type.get(kind)
        if layout is None:
            raise RemoteProtocolError(f"control message type 0x{kind:x} is not known")
        body = start + 2
        if len(buffer) < body:
            return None
        end = body + int.from_bytes(buffer[start:body], "big")
        if len(buffer) < end:
            return None
        frame = bytes(buffer[:end])
        del buffer[:end]
        return decode_body(layout, frame[body:], self._draft), frame
