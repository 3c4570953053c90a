"""Object datagrams and padding (MOQT-22 §11.2, §11.5.2)."""

from __future__ import annotations

import pytest
from moqt.wire.datagrams import decode_datagram, encode_datagram
from moqt.wire.drafts import DRAFT_22
from moqt.wire.errors import LocalProtocolError, RemoteProtocolError, SessionError
from moqt.wire.objects import ObjectDatagram, ObjectStatus

PUBLISHED = {
    "08 07 03 01 64617461": ObjectDatagram(7, 3, 1, None, b"data"),
    "0c 07 03 64617461": ObjectDatagram(7, 3, 0, None, b"data"),
    "28 07 03 09 03": ObjectDatagram(7, 3, 9, None, b"", ObjectStatus.END_OF_GROUP),
}


@pytest.mark.parametrize("text", PUBLISHED)
def test_published_datagrams(text: str) -> None:
    """Each published datagram is read and written."""
    octets = bytes.fromhex(text)
    assert PUBLISHED[text] == decode_datagram(octets)
    assert octets == encode_datagram(PUBLISHED[text])


def test_all_fields() -> None:
    """Object ID, priority, Properties, END_OF_GROUP and payload stand in this order."""
    datagram = ObjectDatagram(7, 3, 1, 0x40, b"hi", properties=b"\x3e\x01", end_of_group=True)
    octets = bytes.fromhex("03 07 03 01 40 02 3e01 6869")
    assert datagram == decode_datagram(octets)
    assert octets == encode_datagram(datagram)


def test_padding_is_no_object() -> None:
    """A padding datagram is nothing, whatever follows its type (R053)."""
    padding = bytes.fromhex("f0132b3e29")
    assert None is decode_datagram(padding)
    assert None is decode_datagram(padding + bytes(1000))


def test_legal_flags() -> None:
    """The legal Type Flags are those of the text, every other first octet closes (R051, R160)."""
    legal = {*range(0x10), 0x20, 0x21, 0x24, 0x25, 0x28, 0x29, 0x2C, 0x2D}
    assert legal == DRAFT_22.datagram_types
    for flags in range(0x80):
        if flags in legal:
            # Alias, group, Object ID, priority; then Properties and status, or payload.
            body = b"\x01\x02" + b"\x03" * (not flags & 4) + b"\x04" * (not flags & 8)
            body += b"\x02\x02\x07" * (flags & 1) + (b"\x00" if flags & 0x20 else b"data")
            decoded = decode_datagram(bytes((flags,)) + body)
            assert decoded is not None
            assert 1 == decoded.track_alias
            continue
        with pytest.raises(RemoteProtocolError) as caught:
            decode_datagram(bytes((flags,)) + bytes(20))
        assert SessionError.PROTOCOL_VIOLATION == caught.value.code


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("22 01 02 03 04 00", "0x22"),
        ("10 01 02 03 04", "0x10"),
        ("f0132b3e2a", "0x132b3e2a"),
        ("01 01 02 03 04 00", "length 0"),
        ("21 01 02 03 04 02 0207 03", "has Properties"),
        ("20 01 02 03 04 01", "Status 0x1 "),
        ("20 01 02 03 04 03 00", "follow the Object Status"),
        ("01 01 02 03 04 01 0d", "inside a pair"),
        ("01 01 02 03 04 05 0207", "inside a field"),
        ("", "inside a field"),
        ("00 01 02 03", "inside a field"),
    ],
)
def test_datagram_violations(text: str, why: str) -> None:
    """Illegal flags, empty Properties, Properties on a status and cut fields close (R160)."""
    with pytest.raises(RemoteProtocolError) as caught:
        decode_datagram(bytes.fromhex(text))
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code
    assert why in caught.value.reason


def test_status_with_properties() -> None:
    """STATUS with Properties is legal while the status is Normal (R160)."""
    decoded = decode_datagram(bytes.fromhex("21 01 02 03 04 02 0207 00"))
    assert ObjectDatagram(1, 2, 3, 4, properties=b"\x02\x07") == decoded


@pytest.mark.parametrize(
    "datagram",
    [
        ObjectDatagram(1, 2, 3, 4, b"a", ObjectStatus.END_OF_GROUP),
        ObjectDatagram(1, 2, 3, 4, b"", ObjectStatus.END_OF_GROUP, b"\x02\x07"),
        ObjectDatagram(1, 2, 3, 4, b"", ObjectStatus.END_OF_TRACK, end_of_group=True),
        ObjectDatagram(1, 2, 3, 256),
        ObjectDatagram(1, 2**64, 3, 4),
    ],
)
def test_datagrams_that_cannot_be_written(datagram: ObjectDatagram) -> None:
    """Fields that exclude each other are not sent (R158)."""
    with pytest.raises(LocalProtocolError):
        encode_datagram(datagram)
