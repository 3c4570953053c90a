"""Objects in datagrams (MOQT-22 §11.2)."""

from __future__ import annotations

from moqt.wire.drafts import DRAFT_22, Draft
from moqt.wire.errors import LocalProtocolError, NeedMore, RemoteProtocolError
from moqt.wire.objects import ObjectDatagram, ObjectStatus
from moqt.wire.properties import decode_properties
from moqt.wire.stream_decoder import read_status
from moqt.wire.stream_encoder import encode_priority
from moqt.wire.stream_types import StreamType
from moqt.wire.varint import Cursor, encode_prefixed, encode_vi64

_PROPERTIES = 0x01
_END_OF_GROUP = 0x02
_ZERO_OBJECT_ID = 0x04
_DEFAULT_PRIORITY = 0x08
_STATUS = 0x20


def encode_datagram(datagram: ObjectDatagram) -> bytes:
    """Type Flags, Track Alias, Group ID, [Object ID] (vi64 each), [Publisher Priority (8)],
    [Properties with length], then Object Status (vi64) or the payload.

    Raises LocalProtocolError for fields that exclude each other.
    """
    flags = 0
    pieces = [encode_vi64(datagram.track_alias), encode_vi64(datagram.group)]
    if datagram.object:
        pieces.append(encode_vi64(datagram.object))
    else:
        flags |= _ZERO_OBJECT_ID
    if datagram.priority is None:
        flags |= _DEFAULT_PRIORITY
    else:
        pieces.append(encode_priority(datagram.priority))
    if datagram.properties:
        flags |= _PROPERTIES
        pieces.append(encode_prefixed(datagram.properties))
    if datagram.end_of_group:
        flags |= _END_OF_GROUP
    if datagram.status is ObjectStatus.NORMAL:
        pieces.append(datagram.payload)
    elif datagram.payload or datagram.properties or datagram.end_of_group:
        raise LocalProtocolError(
            f"{datagram.status.name} has no payload, no Properties and no END_OF_GROUP flag"
        )
    else:
        flags |= _STATUS
        pieces.append(encode_vi64(datagram.status))
    return encode_vi64(flags) + b"".join(pieces)


def decode_datagram(octets: bytes, draft: Draft = DRAFT_22) -> ObjectDatagram | None:
    """The Object of one datagram, or None for padding.

    Raises RemoteProtocolError for an unknown type, illegal flags, and fields that are cut.
    """
    cursor = Cursor(octets)
    try:
        flags = cursor.vi()
        if flags == StreamType.PADDING_DATAGRAM:
            return None
        if flags not in draft.datagram_types:
            raise RemoteProtocolError(f"datagram type 0x{flags:x} is not known or not legal")
        alias, group = cursor.vi(), cursor.vi()
        object_id = 0 if flags & _ZERO_OBJECT_ID else cursor.vi()
        priority = None if flags & _DEFAULT_PRIORITY else cursor.u8()
        properties = b""
        if flags & _PROPERTIES:
            properties = cursor.prefixed()
            if not properties:
                raise RemoteProtocolError("a datagram announces Properties of length 0")
            decode_properties(properties)
        status = ObjectStatus.NORMAL
        if flags & _STATUS:
            status = read_status(cursor.vi(), properties)
            if cursor.left:
                raise RemoteProtocolError("octets follow the Object Status of a datagram")
    except NeedMore:
        raise RemoteProtocolError("a datagram ends inside a field") from None
    return ObjectDatagram(
        alias,
        group,
        object_id,
        priority,
        cursor.rest(),
        status,
        properties,
        end_of_group=bool(flags & _END_OF_GROUP),
    )
