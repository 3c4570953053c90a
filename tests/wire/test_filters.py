"""Location and Range Filters: octets and meaning (MOQT-22 §3.3, §8.6, §9.20.9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moqt.wire.drafts import DRAFT_22
from moqt.wire.errors import (
    LocalProtocolError,
    RemoteProtocolError,
    RequestErrorCode,
    RequestRefused,
    SessionError,
)
from moqt.wire.filter_codec import (
    decode_location_filter,
    decode_range_filter,
    encode_location_filter,
    encode_range_filter,
)
from moqt.wire.filters import (
    FROM_START,
    NEXT_OBJECT,
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
    check_range_filters,
    fetch_range,
    fill_range,
    passes,
    resolve,
    track_passes,
    updated_range_filters,
)
from moqt.wire.names import Location
from moqt.wire.objects import Object
from moqt.wire.properties import encode_properties
from moqt.wire.varint import U64, Cursor

from tests.wire.strategies import location_filters, locations, range_filters

T = LocationFilterType
K = RangeFilterType
NONE = LocationFilter(T.NONE)

LOCATION_OCTETS = {
    "00": NONE,
    "0100": LocationFilter(T.RELATIVE_START, 0),
    "0103": LocationFilter(T.RELATIVE_START, 3),
    "020000": FROM_START,
    "05": NEXT_OBJECT,
    "020c05": LocationFilter(T.ABSOLUTE_START, 12, 5),
    "030c0503": LocationFilter(T.ABSOLUTE_START_GROUP_END, 12, 5, 3),
    "040c050307": LocationFilter(T.ABSOLUTE_RANGE, 12, 5, 3, 7),
    "02812c00": LocationFilter(T.ABSOLUTE_START, 300, 0),
}


@pytest.mark.parametrize("text", LOCATION_OCTETS)
def test_location_filter_octets(text: str) -> None:
    """Each published form of draft-22 is read and written."""
    octets = bytes.fromhex(text)
    assert LOCATION_OCTETS[text] == decode_location_filter(Cursor(octets), DRAFT_22)
    assert octets == encode_location_filter(LOCATION_OCTETS[text], DRAFT_22)


@pytest.mark.parametrize("text", ["06", "8080", "0301 00 ffffffffffffffffff"])
def test_location_filters_that_close(text: str) -> None:
    """Unknown types and a last group above 2^64-1 close (R084, R085)."""
    with pytest.raises(RemoteProtocolError) as caught:
        decode_location_filter(Cursor(bytes.fromhex(text)), DRAFT_22)
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code


LARGEST = Location(12, 7)
OPEN = None


@pytest.mark.parametrize(
    ("one", "start", "end", "bounded_end"),
    [
        (None, (0, 0), OPEN, LARGEST),
        (NONE, (0, 0), OPEN, LARGEST),
        (LocationFilter(T.RELATIVE_START, 0), (13, 0), OPEN, LARGEST),
        (LocationFilter(T.RELATIVE_START, 1), (12, 0), OPEN, LARGEST),
        (LocationFilter(T.RELATIVE_START, 3), (10, 0), OPEN, LARGEST),
        (LocationFilter(T.RELATIVE_START, 14), (0, 0), OPEN, LARGEST),
        (LocationFilter(T.RELATIVE_START, U64), (0, 0), OPEN, LARGEST),
        (LocationFilter(T.ABSOLUTE_START, 5, 6), (5, 6), OPEN, LARGEST),
        (LocationFilter(T.ABSOLUTE_START, 20, 0), (20, 0), OPEN, LARGEST),
        (LocationFilter(T.ABSOLUTE_START_GROUP_END, 5, 6, 2), (5, 6), (7, U64), (7, U64)),
        (LocationFilter(T.ABSOLUTE_START_GROUP_END, 5, 6, 7), (5, 6), (12, U64), LARGEST),
        (LocationFilter(T.ABSOLUTE_RANGE, 5, 6, 2, 3), (5, 6), (7, 3), (7, 3)),
        (LocationFilter(T.ABSOLUTE_RANGE, 5, 6, 0, 3), (5, 6), (5, 3), (5, 3)),
        (LocationFilter(T.ABSOLUTE_RANGE, 5, 6, 9, 3), (5, 6), (14, 3), LARGEST),
        (NEXT_OBJECT, (12, 8), OPEN, LARGEST),
    ],
)
def test_what_a_location_filter_selects(
    one: LocationFilter | None,
    start: tuple[int, int],
    end: tuple[int, int] | None,
    bounded_end: tuple[int, int],
) -> None:
    """Start and end of each type, for a subscription and for FETCH and fill (R130)."""
    assert (start, end) == resolve(one, LARGEST, bounded=False)
    assert (start, bounded_end) == resolve(one, LARGEST, bounded=True)


def test_what_a_filter_selects_of_an_empty_track() -> None:
    """Next Object and Next Group are {0,0} when nothing was published."""
    assert ((0, 0), None) == resolve(NEXT_OBJECT, None, bounded=False)
    assert ((0, 0), None) == resolve(LocationFilter(T.RELATIVE_START, 0), None, bounded=False)


def test_relative_start_is_clamped() -> None:
    """Next Group behind the last possible group stays at 2^64-1."""
    start, _ = resolve(LocationFilter(T.RELATIVE_START, 0), Location(U64, 0), bounded=False)
    assert (U64, 0) == start


@pytest.mark.parametrize(
    ("one", "largest"),
    [
        (None, None),
        (NEXT_OBJECT, LARGEST),
        (LocationFilter(T.RELATIVE_START, 0), LARGEST),
        (LocationFilter(T.ABSOLUTE_START, 12, 8), LARGEST),
        (LocationFilter(T.ABSOLUTE_RANGE, 5, 6, 0, 5), LARGEST),
    ],
)
def test_fetches_of_nothing(one: LocationFilter | None, largest: Location | None) -> None:
    """An empty Track, a start behind Largest or behind the end is refused (R141, R142)."""
    with pytest.raises(RequestRefused) as caught:
        fetch_range(one, largest)
    assert RequestErrorCode.INVALID_RANGE == caught.value.code


def test_fetches_of_something() -> None:
    """A range ends at Largest when it would go on, and one Object is a range."""
    assert ((0, 0), LARGEST) == fetch_range(None, LARGEST)
    assert ((12, 7), LARGEST) == fetch_range(LocationFilter(T.ABSOLUTE_START, 12, 7), LARGEST)
    one = LocationFilter(T.ABSOLUTE_RANGE, 5, 6, 0, 6)
    assert ((5, 6), (5, 6)) == fetch_range(one, LARGEST)


def test_fills() -> None:
    """A fill takes its own filter or the subscription's, and may be empty (R133, R134)."""
    current = LocationFilter(T.RELATIVE_START, 1)
    assert ((12, 0), LARGEST) == fill_range(current, NEXT_OBJECT, LARGEST)
    assert ((12, 0), LARGEST) == fill_range(None, current, LARGEST)
    assert ((0, 0), LARGEST) == fill_range(None, None, LARGEST)
    assert ((0, 0), LARGEST) == fill_range(NONE, NEXT_OBJECT, LARGEST)
    assert None is fill_range(None, NEXT_OBJECT, LARGEST)
    assert None is fill_range(FROM_START, NEXT_OBJECT, None)
    assert None is fill_range(LocationFilter(T.ABSOLUTE_RANGE, 5, 6, 0, 5), None, LARGEST)


@given(locations)
def test_join_meets_without_gap_or_overlap(largest: Location) -> None:
    """A fill from the start ends right before a Next Object subscription (R138)."""
    start, end = resolve(NEXT_OBJECT, largest, bounded=False)
    assert ((0, 0), largest) == fill_range(FROM_START, NEXT_OBJECT, largest)
    assert ((largest.group, largest.object + 1), None) == (start, end)


@given(location_filters(), st.none() | locations)
def test_bounded_ranges_stay_below_largest(one: LocationFilter, largest: Location | None) -> None:
    """FETCH and fill never pass the Largest Object, and agree with each other."""
    found = fill_range(one, None, largest)
    if found is None:
        with pytest.raises(RequestRefused):
            fetch_range(one, largest)
    else:
        assert largest is not None
        assert found[0] <= found[1] <= largest
        assert found == fetch_range(one, largest)


RANGE_OCTETS: dict[str, RangeFilter] = {
    "25 05 0003020505": RangeFilter(K.SUBGROUP, 0, None, ((3, 5), (10, 15))),
    "28 03 011064": RangeFilter(K.OBJECT_PROPERTY, 1, 0x10, ((100, None),)),
    "26 00": RangeFilter(K.OBJECT_ID),
    "27 04 ff00 80ff": RangeFilter(K.PRIORITY, 255, None, ((0, 255),)),
    "29 04 02 04 00 00": RangeFilter(K.TRACK_PROPERTY, 2, 4, ((0, 0),)),
    "26 01 07": RangeFilter(K.OBJECT_ID, 7),
}


@pytest.mark.parametrize("text", RANGE_OCTETS)
def test_range_filter_octets(text: str) -> None:
    """Range Filters are read and written as the text lays them out."""
    raw = bytes.fromhex(text)
    value = raw[2:]
    assert len(value) == raw[1]
    assert RANGE_OCTETS[text] == decode_range_filter(K(raw[0]), value)
    assert value == encode_range_filter(RANGE_OCTETS[text])


@given(st.sampled_from(K).flatmap(range_filters))
def test_range_filter_round_trip(one: RangeFilter) -> None:
    """Every legal Range Filter comes back from its octets."""
    assert one == decode_range_filter(one.type, encode_range_filter(one))


@pytest.mark.parametrize(
    ("kind", "text"),
    [(K.SUBGROUP, "0080"), (K.OBJECT_PROPERTY, "00"), (K.TRACK_PROPERTY, "00 ff")],
)
def test_range_filters_that_do_not_parse(kind: RangeFilterType, text: str) -> None:
    """A Range Filter that is cut inside its length closes the session."""
    with pytest.raises(RemoteProtocolError) as caught:
        decode_range_filter(kind, bytes.fromhex(text))
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (K.OBJECT_ID, "00 01 ffffffffffffffffff"),
        (K.OBJECT_ID, "00 00 01 ffffffffffffffffff"),
        (K.PRIORITY, "00 8100"),
        (K.PRIORITY, "00 01 80ff"),
        (K.OBJECT_PROPERTY, "00 11 00"),
        (K.TRACK_PROPERTY, "00 11 00"),
    ],
)
def test_range_filters_with_illegal_values(kind: RangeFilterType, text: str) -> None:
    """Overflow, priority above 255 and odd types refuse the request only.

    R086, R087, R088, R097.
    """
    one = decode_range_filter(kind, bytes.fromhex(text))
    assert one.invalid is not None
    with pytest.raises(RequestRefused) as caught:
        check_range_filters([one], 100)
    assert RequestErrorCode.INVALID_FILTER == caught.value.code
    with pytest.raises(LocalProtocolError):
        encode_range_filter(one)


def test_limit_of_ranges() -> None:
    """As many Ranges as announced are accepted, one more is refused (R037)."""
    filters = [
        RangeFilter(K.SUBGROUP, 0, None, ((0, 1), (3, 4))),
        RangeFilter(K.OBJECT_ID, 0, None, ((5, None),)),
    ]
    check_range_filters(filters, 3)
    check_range_filters([RangeFilter(K.OBJECT_ID)], 0)
    with pytest.raises(RequestRefused) as caught:
        check_range_filters(filters, 2)
    assert RequestErrorCode.INVALID_FILTER == caught.value.code


def test_repeated_range_filter() -> None:
    """The same type, SetID and Property Type twice is refused; any difference is legal (R098)."""
    one = RangeFilter(K.OBJECT_PROPERTY, 0, 2, ((0, 1),))
    check_range_filters([one, RangeFilter(K.OBJECT_PROPERTY, 0, 4, ((0, 1),))], 9)
    check_range_filters([one, RangeFilter(K.OBJECT_PROPERTY, 1, 2, ((0, 1),))], 9)
    with pytest.raises(RequestRefused, match="repeated"):
        check_range_filters([one, RangeFilter(K.OBJECT_PROPERTY, 0, 2, ((7, 8),))], 9)


@pytest.mark.parametrize(
    "one",
    [
        RangeFilter(K.OBJECT_ID, 256, None, ((0, 1),)),
        RangeFilter(K.OBJECT_ID, 0, 2, ((0, 1),)),
        RangeFilter(K.OBJECT_PROPERTY, 0, None, ((0, 1),)),
        RangeFilter(K.OBJECT_ID, 0, None, ((5, 4),)),
        RangeFilter(K.OBJECT_ID, 0, None, ((5, 6), (4, 9))),
        RangeFilter(K.OBJECT_ID, 0, None, ((5, None), (7, 9))),
        RangeFilter(K.OBJECT_ID, None, None, ((5, 6),)),
        RangeFilter(K.PRIORITY, 0, None, ((5, 256),)),
        RangeFilter(K.TRACK_PROPERTY, 0, 3, ((5, 6),)),
    ],
)
def test_range_filters_that_cannot_be_written(one: RangeFilter) -> None:
    """A filter that a receiver would refuse is not sent."""
    with pytest.raises(LocalProtocolError):
        encode_range_filter(one)


ITEM = Object(
    Location(1, 10),
    subgroup=3,
    priority=64,
    properties=encode_properties([(0x78, 100), (0x0B, encode_properties([(0x7A, 7)]))]),
)
DATAGRAM = Object(Location(1, 10), subgroup=None, priority=64)


def _one(kind: RangeFilterType, *ranges: tuple[int, int | None], **more: int) -> RangeFilter:
    return RangeFilter(kind, more.get("set_id", 0), more.get("on"), ranges)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], True),
        ([_one(K.SUBGROUP, (0, 2), (3, 3))], True),
        ([_one(K.SUBGROUP, (0, 2), (4, None))], False),
        ([_one(K.OBJECT_ID, (10, None))], True),
        ([_one(K.OBJECT_ID, (11, None))], False),
        ([_one(K.PRIORITY, (64, 64))], True),
        ([_one(K.PRIORITY, (0, 63), (65, 255))], False),
        ([_one(K.OBJECT_PROPERTY, (100, 100), on=0x78)], True),
        ([_one(K.OBJECT_PROPERTY, (7, 7), on=0x7A)], True),
        ([_one(K.OBJECT_PROPERTY, (0, None), on=0x7C)], False),
        ([_one(K.TRACK_PROPERTY, (1, 1), on=0x30)], True),
        ([_one(K.TRACK_PROPERTY, (0, 0), on=0x30)], False),
        ([_one(K.OBJECT_ID)], False),
        ([RangeFilter(K.OBJECT_ID)], True),
        # One SetID: all must match.
        ([_one(K.SUBGROUP, (3, 3)), _one(K.OBJECT_ID, (0, 9))], False),
        ([_one(K.OBJECT_ID, (0, 9)), _one(K.SUBGROUP, (3, 3))], False),
        ([_one(K.SUBGROUP, (3, 3)), _one(K.OBJECT_ID, (0, 10))], True),
        # Two SetIDs: one is enough.
        ([_one(K.SUBGROUP, (3, 3)), _one(K.OBJECT_ID, (0, 9), set_id=1)], True),
        ([_one(K.SUBGROUP, (4, 4)), _one(K.OBJECT_ID, (0, 9), set_id=1)], False),
        (
            [
                _one(K.SUBGROUP, (4, 4)),
                _one(K.OBJECT_ID, (10, 10), set_id=1),
                _one(K.PRIORITY, (0, 1), set_id=1),
            ],
            False,
        ),
    ],
)
def test_which_objects_pass(filters: list[RangeFilter], expected: bool) -> None:
    """Ranges are alternatives, filters of a SetID must all match, SetIDs are alternatives.

    R131, R174.
    """
    assert expected == passes(filters, ITEM, encode_properties([(0x30, 1)]))


def test_a_datagram_has_no_subgroup() -> None:
    """A datagram Object fails every SUBGROUP filter."""
    assert not passes([_one(K.SUBGROUP, (0, None))], DATAGRAM)
    assert passes([_one(K.OBJECT_ID, (10, 10))], DATAGRAM)


def test_which_tracks_pass() -> None:
    """Only Track Property filters decide about a Track."""
    properties = encode_properties([(0x0B, encode_properties([(0x0E, 9)]))])
    wanted = _one(K.TRACK_PROPERTY, (0, 9), on=0x0E)
    unwanted = _one(K.TRACK_PROPERTY, (10, None), on=0x0E)
    assert track_passes([wanted, _one(K.SUBGROUP, (99, 99))], properties)
    assert not track_passes([unwanted], properties)
    assert not track_passes([wanted], b"")
    assert track_passes([unwanted, _one(K.TRACK_PROPERTY, (9, 9), set_id=1, on=0x0E)], properties)
    assert track_passes([], b"")


def test_update_of_range_filters() -> None:
    """A type in an update replaces all of that type, zero length removes, others stay."""
    subgroup, object_id = _one(K.SUBGROUP, (0, 1)), _one(K.OBJECT_ID, (0, 1))
    other = _one(K.SUBGROUP, (5, 6), set_id=3)
    assert (object_id, other) == updated_range_filters([subgroup, object_id], [other])
    removal = RangeFilter(K.SUBGROUP)
    assert (object_id,) == updated_range_filters([subgroup, other, object_id], [removal])
    assert (subgroup,) == updated_range_filters([subgroup], [])
