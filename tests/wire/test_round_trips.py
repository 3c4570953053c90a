"""What we write we read back, for every kind of structure."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moqt.wire import messages as m
from moqt.wire.codec import MessageReader, encode_message
from moqt.wire.datagrams import decode_datagram, encode_datagram
from moqt.wire.drafts import DRAFT_22
from moqt.wire.names import Location
from moqt.wire.objects import (
    FetchHeader,
    Object,
    ObjectDatagram,
    ObjectHeader,
    ObjectStatus,
    RangeKind,
    RangeMarker,
    SubgroupHeader,
)
from moqt.wire.properties import Property, decode_properties, encode_properties
from moqt.wire.stream_decoder import FetchDecoder, StreamDecoder, StreamItem, SubgroupDecoder
from moqt.wire.stream_encoder import (
    FetchObjectEncoder,
    SubgroupObjectEncoder,
    encode_fetch_header,
    encode_subgroup_header,
)
from moqt.wire.tokens import Token, decode_token, encode_token
from moqt.wire.varint import U64, read_vi64

from tests.wire.strategies import (
    cuts,
    datagrams,
    integers,
    messages,
    octet,
    property_blocks,
    property_lists,
    tokens,
)


@pytest.mark.slow
@settings(max_examples=200)
@given(messages, st.booleans(), st.data())
def test_messages(message: m.Message, fill_count: bool, data: st.DataObject) -> None:
    """Every message comes back from its frame in any chunking, with either form of a fill."""
    frame = encode_message(message, DRAFT_22, fill_count=fill_count)
    reader = MessageReader(DRAFT_22)
    found = []
    for piece in data.draw(cuts(frame + frame)):
        reader.feed(piece)
        while (item := reader.next()) is not None:
            found.append(item)
    assert [(message, frame)] * 2 == found
    assert not reader.pending


@given(tokens())
def test_tokens(token: Token) -> None:
    """A Token comes back from its octets."""
    assert token == decode_token(encode_token(token))


@given(property_lists)
def test_properties(pairs: list[Property]) -> None:
    """Pairs come back in ascending type order, equal types in their own order."""
    expected = tuple(sorted(pairs, key=lambda pair: pair[0]))
    assert expected == decode_properties(encode_properties(pairs))


@given(datagrams())
def test_datagrams(datagram: ObjectDatagram) -> None:
    """A datagram comes back from its octets."""
    assert datagram == decode_datagram(encode_datagram(datagram))


def headers_added(objects: list[Object], priority: int | None) -> list[StreamItem]:
    """The items of these Objects as a decoder gives them: each one's header goes first."""
    items: list[StreamItem] = []
    for one in objects:
        items.append(
            ObjectHeader(
                one.location,
                one.subgroup,
                one.priority if priority is not None else None,
                one.status,
                one.properties,
                len(one.payload),
            )
        )
        items.append(one)
    return items


def decoded(decoder: StreamDecoder, pieces: list[bytes]) -> list[StreamItem]:
    """All items of a stream that arrives as `pieces` and then ends."""
    items = [item for piece in pieces for item in decoder.feed(piece)]
    return items + decoder.feed(b"", fin=True)


@st.composite
def subgroups(draw: st.DrawFn) -> tuple[SubgroupHeader, list[Object]]:
    """A header and Objects that may follow it."""
    ids = sorted(draw(st.sets(integers, max_size=5)))
    given_subgroup = draw(st.one_of(st.none(), integers))
    header = SubgroupHeader(
        draw(integers),
        draw(integers),
        given_subgroup,
        draw(st.one_of(st.none(), octet)),
        properties=draw(st.booleans()),
        end_of_group=draw(st.booleans()),
        first_object=draw(st.booleans()),
    )
    objects = []
    for object_id in ids:
        status = draw(st.sampled_from([ObjectStatus.NORMAL] * 3 + list(ObjectStatus)))
        normal = status is ObjectStatus.NORMAL
        objects.append(
            Object(
                Location(header.group, object_id),
                ids[0] if given_subgroup is None else given_subgroup,
                77 if header.priority is None else header.priority,
                draw(st.binary(max_size=20)) if normal else b"",
                status,
                draw(property_blocks) if normal and header.properties else b"",
            )
        )
    return header, objects


@pytest.mark.slow
@settings(max_examples=150)
@given(subgroups(), st.data())
def test_subgroup_streams(stream: tuple[SubgroupHeader, list[Object]], data: st.DataObject) -> None:
    """A subgroup stream gives the same items in any chunking, header of each Object first."""
    header, objects = stream
    encoder = SubgroupObjectEncoder(header)
    octets = encode_subgroup_header(header)
    for one in objects:
        octets += encoder.encode(one) + bytes(one.payload)
    stream_type, start = read_vi64(octets, 0, len(octets))
    decoder = SubgroupDecoder(DRAFT_22, stream_type, default_priority=lambda _: 77)
    items = decoded(decoder, data.draw(cuts(octets[start:])))
    assert [header, *headers_added(objects, header.priority)] == items


@st.composite
def fetches(draw: st.DrawFn) -> tuple[bool, list[Object | RangeMarker]]:
    """A Group Order, and Objects and markers that may follow each other in it."""
    ascending = draw(st.booleans())
    places = draw(st.sets(st.tuples(st.integers(0, 3) | integers, integers), max_size=6))
    ordered = sorted(places, key=lambda place: (place[0] if ascending else -place[0], place[1]))
    items: list[Object | RangeMarker] = []
    for place in ordered:
        location = Location(*place)
        if draw(st.integers(0, 4)) == 0:
            items.append(RangeMarker(draw(st.sampled_from(RangeKind)), location))
            continue
        items.append(
            Object(
                location,
                draw(st.one_of(st.none(), st.integers(0, 3), integers)),
                draw(st.sampled_from([0, 128]) | octet),
                draw(st.binary(max_size=20)),
                properties=draw(property_blocks),
            )
        )
    return ascending, items


@pytest.mark.slow
@settings(max_examples=150)
@given(fetches(), st.integers(0, U64), st.data())
def test_fetch_streams(
    stream: tuple[bool, list[Object | RangeMarker]], request_id: int, data: st.DataObject
) -> None:
    """A fetch stream gives the same items in any chunking and in either Group Order (R149)."""
    ascending, sent = stream
    encoder = FetchObjectEncoder(ascending)
    octets = encode_fetch_header(FetchHeader(request_id))
    expected: list[StreamItem] = [FetchHeader(request_id)]
    for one in sent:
        if isinstance(one, RangeMarker):
            octets += encoder.marker(one)
            expected.append(one)
        else:
            octets += encoder.encode(one) + bytes(one.payload)
            expected += headers_added([one], one.priority)
    decoder = FetchDecoder(DRAFT_22, ascending)
    assert expected == decoded(decoder, data.draw(cuts(octets[1:])))
