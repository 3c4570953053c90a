"""Data streams: published octets, violations, chunking, cost (MOQT-22 §6.4.1, §11.3, §11.4)."""

from __future__ import annotations

from itertools import product

import pytest
from moqt.wire import stream_decoder
from moqt.wire.drafts import DRAFT_22
from moqt.wire.errors import (
    LocalProtocolError,
    ObjectTooLarge,
    RemoteProtocolError,
    SessionError,
)
from moqt.wire.names import Location
from moqt.wire.objects import (
    FetchHeader,
    Object,
    ObjectHeader,
    ObjectStatus,
    RangeKind,
    RangeMarker,
    SubgroupHeader,
)
from moqt.wire.stream_decoder import FetchDecoder, StreamDecoder, StreamItem, SubgroupDecoder
from moqt.wire.stream_encoder import (
    FetchObjectEncoder,
    SubgroupObjectEncoder,
    encode_fetch_header,
    encode_subgroup_header,
)
from moqt.wire.stream_types import StreamKind, StreamType, classify_stream
from moqt.wire.varint import U64, encode_vi64, read_vi64

NORMAL = ObjectStatus.NORMAL


def subgroup_items(text: str, *, fin: bool = True) -> list[StreamItem]:
    """The items of a whole subgroup stream given in hex."""
    octets = bytes.fromhex(text)
    stream_type, start = read_vi64(octets, 0, len(octets))
    return SubgroupDecoder(DRAFT_22, stream_type).feed(octets[start:], fin)


def fetch_items(text: str, *, ascending: bool = True, fin: bool = True) -> list[StreamItem]:
    """The items of a whole fetch stream, given in hex from its header on."""
    octets = bytes.fromhex(text)
    assert StreamType.FETCH == octets[0]
    return FetchDecoder(DRAFT_22, ascending).feed(octets[1:], fin)


def objects(items: list[StreamItem]) -> list[StreamItem]:
    """Whole Objects and markers."""
    return [item for item in items if isinstance(item, Object | RangeMarker)]


def test_stream_types() -> None:
    """The four kinds are told apart by the first integer; the rest is refused (R024, R162)."""
    assert StreamKind.FETCH is classify_stream(0x05, DRAFT_22)
    assert StreamKind.CONTROL is classify_stream(0x2F00, DRAFT_22)
    assert StreamKind.PADDING is classify_stream(0x132B3E28, DRAFT_22)
    groups = ("10-15", "18-1D", "30-35", "38-3D", "50-55", "58-5D", "70-75", "78-7D")
    bounds = [[int(end, 16) for end in group.split("-")] for group in groups]
    legal = {flags for first, last in bounds for flags in range(first, last + 1)}
    for number in range(0x100):
        if number in legal:
            assert StreamKind.SUBGROUP is classify_stream(number, DRAFT_22)
        elif number != 0x05:
            with pytest.raises(RemoteProtocolError) as caught:
                classify_stream(number, DRAFT_22)
            assert SessionError.PROTOCOL_VIOLATION == caught.value.code


@pytest.mark.parametrize("stream_type", [0x16, 0x17, 0x0F, 0x00, 0x90, 0x2F00])
def test_no_subgroup_header(stream_type: int) -> None:
    """Mode 11, bit 0x10 clear and bits above 0x7F are no SUBGROUP_HEADER (R162)."""
    with pytest.raises(RemoteProtocolError):
        SubgroupDecoder(DRAFT_22, stream_type)


def test_published_subgroup() -> None:
    """A subgroup of two Objects and End of Group is read as the text says."""
    text = "70 07 03 00 05 68656c6c6f 00 05 776f726c64 00 00 03"
    header = SubgroupHeader(7, 3, 0, None, first_object=True)
    hello = Object(Location(3, 0), 0, 128, b"hello")
    world = Object(Location(3, 1), 0, 128, b"world")
    end = Object(Location(3, 2), 0, 128, b"", ObjectStatus.END_OF_GROUP)
    assert [
        header,
        ObjectHeader(Location(3, 0), 0, None, NORMAL, b"", 5),
        hello,
        ObjectHeader(Location(3, 1), 0, None, NORMAL, b"", 5),
        world,
        ObjectHeader(Location(3, 2), 0, None, ObjectStatus.END_OF_GROUP, b"", 0),
        end,
    ] == subgroup_items(text)
    encoder = SubgroupObjectEncoder(header)
    written = encode_subgroup_header(header)
    for one in (hello, world, end):
        written += encoder.encode(one) + bytes(one.payload)
    assert bytes.fromhex(text) == written


def test_published_subgroup_with_properties() -> None:
    """Explicit subgroup and priority, and PRIOR_OBJECT_ID_GAP on Object 5."""
    text = "55 07 03 02 40 05 02 3e02 02 6869"
    header = SubgroupHeader(7, 3, 2, 0x40, properties=True, first_object=True)
    one = Object(Location(3, 5), 2, 0x40, b"hi", NORMAL, bytes.fromhex("3e02"))
    assert [
        header,
        ObjectHeader(Location(3, 5), 2, 0x40, NORMAL, bytes.fromhex("3e02"), 2),
        one,
    ] == subgroup_items(text)
    encoder = SubgroupObjectEncoder(header)
    assert bytes.fromhex(text) == encode_subgroup_header(header) + encoder.encode(one) + b"hi"


def test_published_subgroup_header_alone() -> None:
    """A header without Objects is a whole, empty subgroup."""
    header = SubgroupHeader(1, 3, 0, None)
    assert [header] == subgroup_items("30 01 03")
    assert bytes.fromhex("300103") == encode_subgroup_header(header)


def test_subgroup_id_of_the_first_object() -> None:
    """Mode 01 takes the Subgroup ID from the first Object on the stream."""
    items = subgroup_items("32 01 03 04 01 61 00 01 62")
    assert SubgroupHeader(1, 3, None, None) == items[0]
    first, second = Object(Location(3, 4), 4, 128, b"a"), Object(Location(3, 5), 4, 128, b"b")
    assert [first, second] == objects(items)


def test_empty_normal_object() -> None:
    """A Normal Object without payload carries its status; Properties of length 0 are none."""
    text = "31 01 03 00 00 00 00 05 00 00 03"
    expected = [
        Object(Location(3, 0), 0, 128),
        Object(Location(3, 6), 0, 128, b"", ObjectStatus.END_OF_GROUP),
    ]
    assert expected == objects(subgroup_items(text))


def test_header_flags_both_ways() -> None:
    """Every legal set of flags is read as it was written (R162)."""
    combinations = product((None, 0, 9), (None, 7), (False, True), (False, True), (False, True))
    seen = set()
    for subgroup, priority, properties, end, first in combinations:
        header = SubgroupHeader(1, 2, subgroup, priority, properties, end, first)
        octets = encode_subgroup_header(header)
        seen.add(octets[0])
        assert [header] == SubgroupDecoder(DRAFT_22, octets[0]).feed(octets[1:], True)
    assert DRAFT_22.subgroup_types == seen


def test_priority_of_the_track() -> None:
    """Without a priority in the header the Object has the default of its Track."""
    asked: list[int] = []

    def default(alias: int) -> int:
        asked.append(alias)
        return 9

    decoder = SubgroupDecoder(DRAFT_22, 0x30, default_priority=default)
    header, started, one = decoder.feed(bytes.fromhex("07 03 00 01 61"), True)
    assert SubgroupHeader(7, 3, 0, None) == header
    assert ObjectHeader(Location(3, 0), 0, None, NORMAL, b"", 1) == started
    assert Object(Location(3, 0), 0, 9, b"a") == one
    assert [7] == asked


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("30 01 03 00 00 01", "Status 0x1 "),
        ("30 01 03 00 00 05", "Status 0x5 "),
        ("31 01 03 00 02 3e02 00 03", "has Properties"),
        ("31 01 03 00 02 3e02 00 04", "has Properties"),
        ("30 01 03 00 01 61 ffffffffffffffffff 01 61", "Object ID exceeds"),
        ("30 01 03 ffffffffffffffffff 01 61 00 01 61", "Object ID exceeds"),
        ("31 01 03 00 01 0d 01 61", "inside a pair"),
        ("31 01 03 00 0b 0200 ffffffffffffffffff 01 61", "exceeds 2^64-1"),
    ],
)
def test_subgroup_violations(text: str, why: str) -> None:
    """Unknown status, Properties on a status, and IDs above 2^64-1 close (R157, R159, R163)."""
    with pytest.raises(RemoteProtocolError) as caught:
        subgroup_items(text)
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code
    assert why in caught.value.reason


def test_last_object_id() -> None:
    """Object ID 2^64-1 is legal, and the status of it is too."""
    items = objects(subgroup_items("30 01 03 ffffffffffffffffff 00 04"))
    assert [Object(Location(3, U64), 0, 128, b"", ObjectStatus.END_OF_TRACK)] == items


WHOLE = bytes.fromhex("07 03 02 40 05 02 3e02 02 6869 00 00 01 61")


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_fin_inside_a_structure(length: int) -> None:
    """FIN is legal between Objects only (R161)."""
    decoder = SubgroupDecoder(DRAFT_22, 0x55)
    decoder.feed(WHOLE[:length])
    if length in (4, 11):
        assert not decoder.pending
        assert [] == decoder.feed(b"", fin=True)
        return
    with pytest.raises(RemoteProtocolError) as caught:
        decoder.feed(b"", fin=True)
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code


def test_published_fetch() -> None:
    """Three Objects and a marker are read and written as the text says (R149)."""
    text = "05 06 1c 0c 05 80 026161 00 026262 0c0000 026363 810c 0d 09"
    sent: list[Object | RangeMarker] = [
        Object(Location(12, 5), 0, 128, b"aa"),
        Object(Location(12, 6), 0, 128, b"bb"),
        Object(Location(13, 0), 0, 128, b"cc"),
        RangeMarker(RangeKind.UNKNOWN, Location(13, 9)),
    ]
    items = fetch_items(text)
    assert FetchHeader(6) == items[0]
    assert ObjectHeader(Location(12, 5), 0, 128, NORMAL, b"", 2) == items[1]
    assert sent == objects(items)
    assert bytes.fromhex(text) == write_fetch(6, sent)


def write_fetch(request_id: int, sent: list[Object | RangeMarker], ascending: bool = True) -> bytes:
    """A whole fetch stream as we write it."""
    encoder = FetchObjectEncoder(ascending)
    octets = encode_fetch_header(FetchHeader(request_id))
    for one in sent:
        if isinstance(one, RangeMarker):
            octets += encoder.marker(one)
        else:
            octets += encoder.encode(one) + bytes(one.payload)
    return octets


def test_published_fetch_parts() -> None:
    """The header of a fill and the marker of a timed-out range are read."""
    assert [FetchHeader(95)] == fetch_items("055f")
    expected = RangeMarker(RangeKind.TIMED_OUT, Location(2, 4))
    assert [expected] == objects(fetch_items("0500 820c0204"))
    expected = RangeMarker(RangeKind.NON_EXISTENT, Location(2, 4))
    assert [expected] == objects(fetch_items("0500 808c0204"))


def test_fetch_subgroup_modes() -> None:
    """Subgroup 0, the prior one, the next one and a written one; 0x40 has none (R153, R154)."""
    text = (
        "05 00"
        "1f 01 07 02 80 00"  # {1,2} subgroup 7
        "01 00"  # {1,3} prior
        "02 00"  # {1,4} prior + 1
        "00 00"  # {1,5} subgroup 0
        "40 00"  # {1,6} datagram
        "43 00"  # {1,7} datagram, low bits ignored
        "03 09 00"  # {1,8} subgroup 9
        "02 00"  # {1,9} subgroup 10
    )
    found = [(one.location, one.subgroup) for one in fetch_items(text) if isinstance(one, Object)]
    subgroups = [7, 7, 8, 0, None, None, 9, 10]
    assert [((1, 2 + i), subgroup) for i, subgroup in enumerate(subgroups)] == found


def test_prior_subgroup_behind_a_datagram() -> None:
    """The prior Subgroup ID is the one of the last Object that had one."""
    found = objects(fetch_items("05 00 1f 01 07 02 80 00 40 00 01 00"))
    assert [7, None, 7] == [one.subgroup for one in found if isinstance(one, Object)]


def test_fetch_ids() -> None:
    """Object and Group deltas follow the Group Order of the fetch (R143)."""
    text = "05 00 1c 05 02 80 00 | 04 03 00 | 08 00 00 | 0c 01 00 00 | 10 07 00".replace("|", "")
    down = [(5, 2), (5, 5), (4, 6), (2, 0), (2, 1)]
    up = [(5, 2), (5, 5), (6, 6), (8, 0), (8, 1)]
    for ascending, expected in ((True, up), (False, down)):
        found = objects(fetch_items(text, ascending=ascending))
        assert expected == [one.location for one in found if isinstance(one, Object)]
        assert [128] * 4 + [7] == [one.priority for one in found if isinstance(one, Object)]


def test_first_object_after_a_marker() -> None:
    """After a leading marker the IDs are relative to it, subgroup and priority written out."""
    text = "05 00 810c 02 04 | 1c 00 00 80 00 | 80 8c 05 01 | 00 00".replace("|", "")
    assert [
        RangeMarker(RangeKind.UNKNOWN, Location(2, 4)),
        Object(Location(3, 0), 0, 128),
        RangeMarker(RangeKind.NON_EXISTENT, Location(5, 1)),
        Object(Location(5, 2), 0, 128),
    ] == objects(fetch_items(text))
    same_group = objects(fetch_items("05 00 810c 02 04 10 80 00"))
    assert Object(Location(2, 5), 0, 128) == same_group[1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("18 0c 80 00", "first Object"),
        ("14 05 80 00", "first Object"),
        ("10 80 00", "first Object"),
        ("00 00", "first Object"),
        ("0c 01 01 00", "prior priority"),
        ("1d 01 01 80 00", "prior Subgroup ID"),
        ("1e 01 01 80 00", "prior Subgroup ID"),
        ("5c 01 01 80 00 01 00", "prior Subgroup ID"),
        ("8080", "Flags 0x80 "),
        ("80ff", "Flags 0xff "),
        ("818c", "Flags 0x18c "),
        ("810c 02 04 00 00", "prior priority"),
        ("810c 02 04 11 80 00", "prior Subgroup ID"),
        ("1c ffffffffffffffffff 00 80 00 0c 00 00 00", "Group ID leaves"),
        ("1c 00 ffffffffffffffffff 80 00 00 00", "Object ID of a fetch exceeds"),
        ("1c 00 05 80 00 04 fffffffffffffffffb 00", "Object ID of a fetch exceeds"),
        ("1f 00 ffffffffffffffffff 05 80 00 02 00", "Subgroup ID exceeds"),
        ("3c 00 00 80 01 0d 00", "inside a pair"),
    ],
)
def test_fetch_violations(text: str, why: str) -> None:
    """References to nothing, unknown flags and IDs out of range close.

    R150, R151, R152, R155.
    """
    with pytest.raises(RemoteProtocolError) as caught:
        fetch_items("05 00" + text, fin=False)
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code
    assert why in caught.value.reason


def test_descending_group_below_zero() -> None:
    """A descending fetch cannot go below Group 0; Group 0 itself is legal (R151)."""
    text = "05 00 1c 01 00 80 00 0c 00 00 00"
    assert (0, 0) == fetch_items(text, ascending=False)[-1].location  # type: ignore[union-attr]
    with pytest.raises(RemoteProtocolError, match="Group ID"):
        fetch_items(text + "0c 00 00 00", ascending=False)


FETCH_WHOLE = bytes.fromhex("06 3c0c05 80 023e01 026161 000162 810c0d09".replace(" ", ""))


@pytest.mark.parametrize("length", range(len(FETCH_WHOLE)))
def test_fin_inside_a_fetch_structure(length: int) -> None:
    """FIN is legal after the header, an Object or a marker only (R161)."""
    decoder = FetchDecoder(DRAFT_22)
    decoder.feed(FETCH_WHOLE[:length])
    if length in (1, 11, 14):
        assert [] == decoder.feed(b"", fin=True)
        return
    with pytest.raises(RemoteProtocolError):
        decoder.feed(b"", fin=True)


def test_what_a_subgroup_stream_cannot_carry() -> None:
    """The encoder refuses Objects that do not follow on its stream (R005, R158)."""
    header = SubgroupHeader(1, 3, 2, 7)
    refused = [
        Object(Location(4, 0), 2, 7),
        Object(Location(3, 0), 1, 7),
        Object(Location(3, 0), None, 7),
        Object(Location(3, 0), 2, 8),
        Object(Location(3, 2**64), 2, 7),
        Object(Location(3, 0), 2, 7, properties=b"\x3e\x02"),
        Object(Location(3, 0), 2, 7, b"a", ObjectStatus.END_OF_GROUP),
    ]
    for one in refused:
        with pytest.raises(LocalProtocolError):
            SubgroupObjectEncoder(header).encode(one)
    encoder = SubgroupObjectEncoder(header)
    encoder.encode(Object(Location(3, 5), 2, 7))
    with pytest.raises(LocalProtocolError):
        encoder.encode(Object(Location(3, 5), 2, 7))
    with pytest.raises(LocalProtocolError):
        encode_subgroup_header(SubgroupHeader(1, 3, 2, 256))
    status = Object(Location(3, 0), 2, 7, b"", ObjectStatus.END_OF_TRACK, b"\x3e\x02")
    with pytest.raises(LocalProtocolError):
        SubgroupObjectEncoder(SubgroupHeader(1, 3, 2, 7, properties=True)).encode(status)


def test_what_a_fetch_stream_cannot_carry() -> None:
    """The encoder refuses what does not follow, and statuses."""
    start = Object(Location(3, 5), 0, 128)
    refused: list[Object | RangeMarker] = [
        Object(Location(3, 5), 0, 128),
        Object(Location(3, 4), 0, 128),
        Object(Location(2, 9), 0, 128),
        Object(Location(3, 6), 0, 128, b"", ObjectStatus.END_OF_GROUP),
        Object(Location(3, 6), 0, 256),
        RangeMarker(RangeKind.UNKNOWN, Location(3, 5)),
        RangeMarker(RangeKind.UNKNOWN, Location(2, 9)),
    ]
    for one in refused:
        with pytest.raises(LocalProtocolError):
            write_fetch(0, [start, one])
    with pytest.raises(LocalProtocolError):
        write_fetch(0, [start, Object(Location(4, 0), 0, 128)], ascending=False)


def test_what_follows_a_marker_is_written_out() -> None:
    """After a marker we write subgroup and priority again; receivers differ there."""
    sent: list[Object | RangeMarker] = [
        Object(Location(1, 0), 5, 9),
        RangeMarker(RangeKind.UNKNOWN, Location(1, 3)),
        Object(Location(1, 4), 5, 9),
    ]
    assert bytes.fromhex("0500 1f01050009 00 810c0103 13 05 09 00") == write_fetch(0, sent)


def test_subgroup_after_a_datagram_is_written_out() -> None:
    """After a Datagram Object we never refer to a prior Subgroup ID."""
    sent: list[Object | RangeMarker] = [
        Object(Location(1, 0), 5, 9),
        Object(Location(1, 1), None, 9),
        Object(Location(1, 2), 5, 9),
    ]
    assert bytes.fromhex("0500 1f01050009 00 4000 030500") == write_fetch(0, sent)


def _decoders() -> list[StreamDecoder]:
    return [SubgroupDecoder(DRAFT_22, 0x31), FetchDecoder(DRAFT_22)]


def _streams(properties: bytes, payload: bytes) -> list[bytes]:
    tail = encode_vi64(len(properties)) + properties + encode_vi64(len(payload)) + payload
    return [b"\x01\x03\x00" + tail, b"\x00\x3c\x01\x00\x80" + tail]


BIG_PAYLOAD = bytes(range(256)) * 4096
BIG_PROPERTIES = (b"\x0d" + b"\xc0\xff\xff" + b"p" * 65535) + (
    b"\x00\xc0\xff\xff" + b"q" * 65535
) * 15


@pytest.mark.parametrize("which", [0, 1], ids=["subgroup", "fetch"])
@pytest.mark.parametrize(
    ("properties", "payload"),
    [(b"", BIG_PAYLOAD), (BIG_PROPERTIES, b"end")],
    ids=["payload", "properties"],
)
def test_big_objects_are_parsed_once(
    which: int, properties: bytes, payload: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte in pieces of 1200 octets is gathered, not parsed or joined again per piece."""
    integers = 0
    joined = 0
    read, take = read_vi64, stream_decoder._Pieces.take

    def counted_read(octets: memoryview, offset: int, end: int) -> tuple[int, int]:
        nonlocal integers
        integers += 1
        return read(octets, offset, end)

    def counted_take(pieces: stream_decoder._Pieces) -> bytes:
        nonlocal joined
        octets = take(pieces)
        joined += len(octets)
        return octets

    monkeypatch.setattr(stream_decoder, "read_vi64", counted_read)
    monkeypatch.setattr(stream_decoder._Pieces, "take", counted_take)
    decoder, octets = _decoders()[which], _streams(properties, payload)[which]
    items = [
        item
        for start in range(0, len(octets), 1200)
        for item in decoder.feed(octets[start : start + 1200])
    ]
    one = items[-1]
    assert isinstance(one, Object)
    assert type(one.payload) is bytes
    assert (properties, payload) == (one.properties, one.payload)
    assert integers <= 16
    assert joined <= len(octets) + 1200


def test_single_octets_are_packed() -> None:
    """A payload that comes octet by octet is held in few pieces, not in one per octet."""
    decoder = SubgroupDecoder(DRAFT_22, 0x30)
    decoder.feed(b"\x01\x03\x00" + encode_vi64(5000))
    items: list[StreamItem] = []
    for _ in range(4999):
        items += decoder.feed(b"x")
    assert 1 == len(decoder._pieces._pieces)
    items += decoder.feed(memoryview(b"x"), fin=True)
    assert [Object(Location(3, 0), 0, 128, b"x" * 5000)] == items


def test_pieces_of_a_changing_buffer_are_copied() -> None:
    """A caller may reuse the buffer behind a view once feed has returned."""
    buffer = bytearray(b"\x01\x03\x00" + encode_vi64(2000) + b"a" * 1000)
    decoder = SubgroupDecoder(DRAFT_22, 0x30)
    decoder.feed(memoryview(buffer))
    buffer[:] = b"z" * len(buffer)
    (one,) = decoder.feed(b"a" * 1000)
    assert isinstance(one, Object)
    assert b"a" * 2000 == one.payload


@pytest.mark.parametrize("which", [0, 1], ids=["subgroup", "fetch"])
def test_object_size_limit(which: int) -> None:
    """Properties and payload together may reach the limit; one octet more stops the stream."""
    properties = b"\x02\x07"

    def make(limit: int) -> StreamDecoder:
        if which:
            return FetchDecoder(DRAFT_22, max_object_size=limit)
        return SubgroupDecoder(DRAFT_22, 0x31, max_object_size=limit)

    octets = _streams(properties, b"12345678")[which]
    one = make(10).feed(octets)[-1]
    assert isinstance(one, Object)
    assert b"12345678" == one.payload
    for limit in (9, 1):
        with pytest.raises(ObjectTooLarge) as caught:
            make(limit).feed(octets)
        assert one.location == caught.value.location


def test_items_before_a_large_object_are_kept() -> None:
    """What the same octets completed before an Object that is too large is not lost."""
    decoder = SubgroupDecoder(DRAFT_22, 0x30, max_object_size=2)
    with pytest.raises(ObjectTooLarge) as caught:
        decoder.feed(bytes.fromhex("01 03 00 01 61 00 03 616263"))
    assert (3, 1) == caught.value.location
    assert 3 == caught.value.size
    assert Object(Location(3, 0), 0, 128, b"a") == caught.value.items[-1]


def test_a_length_alone_allocates_nothing() -> None:
    """An announced length of 2^64-1 is only waited for."""
    for decoder, start in zip(_decoders(), _streams(b"", b""), strict=True):
        items = decoder.feed(start[:-1] + b"\xff" * 9 + b"abc")
        header = items[-1]
        assert isinstance(header, ObjectHeader)
        assert U64 == header.payload_length
        assert decoder.pending
