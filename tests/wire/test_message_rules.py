"""Control messages that break a rule, each beside its legal neighbour (MOQT-22 §7 to §9)."""

from __future__ import annotations

import pytest
from moqt.wire import messages as m
from moqt.wire.codec import MessageReader, encode_message
from moqt.wire.drafts import DRAFT_22, ParameterContext
from moqt.wire.errors import LocalProtocolError, RemoteProtocolError, SessionError
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import ObjectStatus
from moqt.wire.parameters import check_parameters
from moqt.wire.tokens import AliasType, Token
from moqt.wire.varint import U64

from tests.wire.test_message_vectors import LIVE, VIDEO, decode

NAME = "01046c697665 05766964656f"
V = SessionError.PROTOCOL_VIOLATION


def frame(message_type: str, body: str) -> bytes:
    """A frame with the right length around a body given in hex."""
    octets = bytes.fromhex(body)
    return bytes.fromhex(message_type) + len(octets).to_bytes(2, "big") + octets


def refusal(octets: bytes) -> RemoteProtocolError:
    """The violation in one frame."""
    reader = MessageReader(DRAFT_22)
    reader.feed(octets)
    with pytest.raises(RemoteProtocolError) as caught:
        reader.next()
    return caught.value


def subscribe(parameters: str) -> bytes:
    """SUBSCRIBE 0 of the track with these parameters."""
    return frame("03", f"00 {NAME} {parameters}")


ILLEGAL = {
    "unknown filter type": (subscribe("01 2106"), "Location Filter Type 0x6"),
    "FORWARD 2": (subscribe("01 1002"), "FORWARD cannot be 2"),
    "unknown parameter 0x01": (subscribe("01 0100"), "parameter 0x1 is not known"),
    "last group above 2^64-1, type 3": (
        subscribe("01 2103 01 00 ffffffffffffffffff"),
        "EndGroupDelta",
    ),
    "last group above 2^64-1, type 4": (
        subscribe("01 2104 01 00 ffffffffffffffffff 00"),
        "EndGroupDelta",
    ),
    "field of length 0": (frame("03", "00 0100 05766964656f 00"), "at least one octet"),
    "GROUP_ORDER 0": (subscribe("01 2200"), "GROUP_ORDER cannot be 0"),
    "GROUP_ORDER 3": (subscribe("01 2203"), "GROUP_ORDER cannot be 3"),
    "INCLUDE_PROPERTIES 2": (subscribe("01 3502"), "INCLUDE_PROPERTIES cannot be 2"),
    "parameter that may not stand here": (subscribe("01 0800"), "EXPIRES may not"),
    "parameter repeated": (subscribe("02 1001 0001"), "FORWARD is repeated"),
    "parameter type above 2^64-1": (
        subscribe("02 1001 ffffffffffffffffff 00"),
        "type of a parameter",
    ),
    "fewer parameters than counted": (subscribe("02 1001"), "shorter"),
    "more parameters than counted": (subscribe("01 1001 1080"), "behind its fields"),
    "nested parameter that may not stand there": (subscribe("01 23 03 01 1001"), "FILL_PARAMETERS"),
    "nested parameter of neither reading": (subscribe("01 23 02 05 ff"), "FILL_PARAMETERS"),
    "octet behind the nested parameters": (subscribe("01 23 02 00 00"), "FILL_PARAMETERS"),
    "range filter that ends inside an integer": (
        subscribe("01 25 02 00 80"),
        "SUBGROUP filter ends",
    ),
    "range filter without Property Type": (subscribe("01 28 01 00"), "OBJECT_PROPERTY filter ends"),
    "fill in FETCH": (frame("16", f"06 {NAME} 01 230100"), "FILL_PARAMETERS may not"),
    "EXPIRES in PUBLISH_STATE_NOTIFY": (frame("22", "01 0801"), "EXPIRES may not"),
    "parameter in FETCH_OK": (frame("18", "00 0f09 01 0801"), "EXPIRES may not"),
    "LARGEST_OBJECT in PUBLISH_NAMESPACE": (
        frame("06", "00 01046c697665 01 090307"),
        "LARGEST_OBJECT may not",
    ),
    "FORWARD in any REQUEST_OK": (frame("07", "01 1000"), "FORWARD may not"),
    "GROUP_ORDER in any REQUEST_UPDATE": (frame("02", "04 01 2201"), "GROUP_ORDER may not"),
    "End Of Track 2": (frame("18", "02 0f09 00"), "flag of FetchOk is 2"),
    "body too short": (frame("04", "01"), "SubscribeOk is shorter"),
    "empty body": (frame("03", ""), "Subscribe is shorter"),
    "octet behind the fields": (frame("08", "00 00"), "1 octets behind"),
    "reason cut": (frame("0b", "02 05 04 646f6e"), "PublishDone is shorter"),
    "Redirect without its code": (frame("05", "10 00 00 00 01046c697665 00"), "behind its fields"),
    "code REDIRECT without Redirect": (frame("05", "34 01 00"), "RequestError is shorter"),
    "33 prefix fields": (frame("50", "0a 21" + "0161" * 33 + "00"), "at most 32 fields"),
    "empty field in a suffix": (frame("08", "01 00"), "at least one octet"),
    "empty field in a Redirect": (frame("05", "34 01 00 00 0100 00 "), "at least one octet"),
    "namespace and name above 4096": (
        frame("03", "00 01 8fff" + "61" * 4095 + "02 6161 00"),
        "not 4097",
    ),
    "Key-Value-Pair type above 2^64-1": (
        frame("04", "07 00 0200 ffffffffffffffffff 00"),
        "type of a Key-Value-Pair",
    ),
    "Key-Value-Pair cut": (frame("04", "07 00 0d 05 00"), "ends inside a pair"),
    "Key-Value-Pair of 65536 octets": (frame("04", "07 00 0d c10000"), "not 65536"),
    "DEFAULT_PUBLISHER_GROUP_ORDER 0": (
        frame("04", "07 00 2200"),
        "GROUP_ORDER must be 1 or 2, not 0",
    ),
    "DEFAULT_PUBLISHER_GROUP_ORDER 3": (
        frame("04", "07 00 2203"),
        "GROUP_ORDER must be 1 or 2, not 3",
    ),
    "DYNAMIC_GROUPS 2": (frame("04", "07 00 3002"), "DYNAMIC_GROUPS must be"),
    "DYNAMIC_GROUPS 2 inside IMMUTABLE_PROPERTIES": (
        frame("04", "07 00 0b023002"),
        "DYNAMIC_GROUPS must be",
    ),
    "known setup option repeated": (frame("af00", "0610 0010"), "MAX_FILTER_RANGES is repeated"),
    "reserved type 0x01": (bytes.fromhex("01"), "type 0x1 "),
    "reserved type 0x1E": (bytes.fromhex("1e0000"), "type 0x1e "),
    "reserved type 0x20": (bytes.fromhex("20"), "type 0x20 "),
    "reserved type 0x40": (bytes.fromhex("40"), "type 0x40 "),
    "unknown type of nine octets": (b"\xff" * 9, "type 0xffffffffffffffff "),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_violations_close_the_session(name: str) -> None:
    """Each of these frames closes with PROTOCOL_VIOLATION and says why.

    R009, R026, R027, R047, R048, R075, R076, R077, R079, R083, R084, R085, R089, R092, R096, R171,
    R172.
    """
    octets, why = ILLEGAL[name]
    error = refusal(octets)
    assert V == error.code
    assert why in error.reason


LEGAL = {
    "FORWARD 1": (subscribe("01 1001"), Parameters(forward=1)),
    "GROUP_ORDER 1": (subscribe("01 2201"), Parameters(group_order=1)),
    "INCLUDE_PROPERTIES 0": (subscribe("01 3500"), Parameters(include_properties=0)),
    "last group 2^64-1": (
        subscribe("01 2103 01 00 fffffffffffffffffe"),
        Parameters(
            location_filter=LocationFilter(
                LocationFilterType.ABSOLUTE_START_GROUP_END, 1, 0, U64 - 1
            )
        ),
    ),
    "last Object before the first one": (
        subscribe("01 2104 0c 05 00 04"),
        Parameters(location_filter=LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 12, 5, 0, 4)),
    ),
    "filter with values above 127": (
        subscribe("01 2102 812c 00"),
        Parameters(location_filter=LocationFilter(LocationFilterType.ABSOLUTE_START, 300, 0)),
    ),
    "token twice": (
        subscribe("02 03 02 0207 00 02 0208"),
        Parameters(
            authorization_tokens=(Token(AliasType.USE_ALIAS, 7), Token(AliasType.USE_ALIAS, 8))
        ),
    ),
    "integers longer than necessary": (
        bytes.fromhex("8003 0014 8000") + bytes.fromhex(NAME) + bytes.fromhex("8001 8021 8005"),
        Parameters(location_filter=NEXT_OBJECT),
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_neighbours_are_read(name: str) -> None:
    """Values just inside each limit are accepted (R083, R084, R092, R096)."""
    octets, parameters = LEGAL[name]
    assert m.Subscribe(0, VIDEO, parameters) == decode(octets)


@pytest.mark.parametrize(
    ("parameters", "fill"),
    [
        ("01 23 05 01 21020000", Parameters(location_filter=LocationFilter(LocationFilterType(2)))),
        ("01 23 04 21020000", Parameters(location_filter=LocationFilter(LocationFilterType(2)))),
        ("01 23 00", Parameters()),
        ("01 23 01 00", Parameters()),
        ("01 23 05 02 0a05 1601", Parameters(fill_timeout=5, subscriber_priority=1)),
        ("01 23 04 0a05 1601", Parameters(fill_timeout=5, subscriber_priority=1)),
    ],
)
def test_both_readings_of_a_fill(parameters: str, fill: Parameters) -> None:
    """FILL_PARAMETERS with and without a count inside are the same fill (R089)."""
    message = decode(subscribe(parameters))
    assert m.Subscribe(0, VIDEO, Parameters(fill=fill)) == message


@pytest.mark.parametrize(
    ("fill_count", "text"),
    [
        (None, "03001b 00 01046c697665 05766964656f 04 1001 1080 0105 02050121020000"),
        (True, "03001b 00 01046c697665 05766964656f 04 1001 1080 0105 02050121020000"),
        (False, "03001a 00 01046c697665 05766964656f 04 1001 1080 0105 020421020000"),
    ],
)
def test_both_ways_to_send_a_fill(fill_count: bool | None, text: str) -> None:
    """The count inside FILL_PARAMETERS is written unless a peer wants it left out."""
    message = m.Subscribe(
        0,
        VIDEO,
        Parameters(
            forward=1,
            subscriber_priority=128,
            location_filter=NEXT_OBJECT,
            fill=Parameters(location_filter=LocationFilter(LocationFilterType.ABSOLUTE_START)),
        ),
    )
    assert bytes.fromhex(text) == encode_message(message, DRAFT_22, fill_count=fill_count)


def test_published_fill_without_count() -> None:
    """The published SUBSCRIBE with reading B and the published empty fill are read."""
    octets = bytes.fromhex("0300170901046c69766505766964656f03210502032101011200")
    expected = Parameters(
        location_filter=NEXT_OBJECT,
        fill=Parameters(location_filter=LocationFilter(LocationFilterType.RELATIVE_START, 1)),
        include_properties=0,
    )
    assert m.Subscribe(9, VIDEO, expected) == decode(octets)
    update = m.RequestUpdate(95, Parameters(fill=Parameters()))
    assert update == decode(bytes.fromhex("0200045f012300"))
    assert bytes.fromhex("0200045f012300") == encode_message(update, DRAFT_22, fill_count=False)
    assert bytes.fromhex("0200055f01230100") == encode_message(update, DRAFT_22)


def test_reason_of_1024_octets() -> None:
    """A Reason Phrase of 1024 octets is accepted, one of 1025 closes (R050)."""
    body = "61" * 1024
    assert m.RequestError(1, 0, "a" * 1024) == decode(frame("05", "01 00 8400" + body))
    assert V == refusal(frame("05", "01 00 8401" + body + "61")).code


def test_reason_that_is_not_utf8() -> None:
    """Octets of a reason that are not UTF-8 are replaced, the message counts."""
    assert m.RequestError(1, 0, "a\ufffdb") == decode(frame("05", "01 00 03 61ff62"))


def test_uri_of_8192_octets() -> None:
    """A GOAWAY URI of 8192 octets is accepted, one of 8193 closes (R044)."""
    body = "61" * 8192
    assert m.Goaway(b"a" * 8192, 7) == decode(frame("10", "a000" + body + "07"))
    assert V == refusal(frame("10", "a001" + body + "61 07")).code


def test_grease_is_ignored() -> None:
    """Unknown setup options, even repeated, and unknown error codes are no violation.

    R028, R030, R055.
    """
    unknown = ((0x9D, b"\x07"), (0x9D, b""), (0x11C, 5))
    setup = decode(frame("af00", "0610 8097 01 07 00 00 807f 05"))
    assert m.Setup(m.SetupOptions(max_filter_ranges=16, unknown=unknown)) == setup
    assert m.RequestError(0x11C, 0, "") == decode(frame("05", "811c 00 00"))
    assert m.PublishDone(0x9D, 0, "") == decode(frame("0b", "809d 00 00"))


def test_undecodable_token_closes() -> None:
    """A Token that does not decode closes with KEY_VALUE_FORMATTING_ERROR (R101)."""
    for token in ("", "04", "00", "0001 00", "01 01", "03", "8003"):
        raw = bytes.fromhex(token)
        error = refusal(subscribe(f"01 03 {len(raw):02x} {token}"))
        assert SessionError.KEY_VALUE_FORMATTING_ERROR == error.code
        options = frame("af00", f"03 {len(raw):02x} {token}")
        assert SessionError.KEY_VALUE_FORMATTING_ERROR == refusal(options).code


def test_known_option_of_the_wrong_form() -> None:
    """MOQT_IMPLEMENTATION that is not UTF-8 closes with KEY_VALUE_FORMATTING_ERROR (R049)."""
    assert SessionError.KEY_VALUE_FORMATTING_ERROR == refusal(frame("af00", "07 01 ff")).code
    expected = m.Setup(m.SetupOptions(implementation="ä".encode()))
    assert expected == decode(frame("af00", "07 02 c3a4"))


def test_unknown_type_is_known_at_once() -> None:
    """The type alone is enough to refuse a message; its length is not awaited (R026)."""
    reader = MessageReader(DRAFT_22)
    reader.feed(b"\x80")
    assert reader.next() is None
    assert reader.pending
    reader.feed(b"\x01")
    with pytest.raises(RemoteProtocolError, match="0x1 "):
        reader.next()


@pytest.mark.parametrize(
    ("parameters", "context"),
    [
        (Parameters(expires=1), ParameterContext.PUBLISH_OK),
        (Parameters(largest_object=Location(1, 1)), ParameterContext.REQUEST_UPDATE_OK),
        (Parameters(expires=1), ParameterContext.TRACK_STATUS_OK),
        (Parameters(subscriber_priority=1), ParameterContext.FETCH_UPDATE),
        (Parameters(track_namespace_prefix=LIVE), ParameterContext.SUBSCRIBE_NAMESPACE_UPDATE),
        (Parameters(fill=Parameters()), ParameterContext.SUBSCRIBE_TRACKS),
    ],
)
def test_parameters_where_they_belong(parameters: Parameters, context: ParameterContext) -> None:
    """Parameters that the request allows pass the check of the session."""
    assert check_parameters(parameters, DRAFT_22, context) is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    ("parameters", "context"),
    [
        (Parameters(largest_object=Location(1, 1)), ParameterContext.PUBLISH_OK),
        (Parameters(location_filter=NEXT_OBJECT), ParameterContext.FETCH_UPDATE),
        (Parameters(forward=0), ParameterContext.PUBLISH_NAMESPACE_UPDATE),
        (Parameters(track_namespace_prefix=LIVE), ParameterContext.SUBSCRIPTION_UPDATE),
        (Parameters(group_order=1), ParameterContext.SUBSCRIPTION_UPDATE),
        (Parameters(expires=0), ParameterContext.FETCH_OK),
    ],
)
def test_parameters_of_another_request(parameters: Parameters, context: ParameterContext) -> None:
    """What only the request rules out is refused by the check of the session (R079)."""
    with pytest.raises(RemoteProtocolError, match=context.value) as caught:
        check_parameters(parameters, DRAFT_22, context)
    assert V == caught.value.code


UNSENDABLE: list[m.Message] = [
    m.Subscribe(-1, VIDEO),
    m.Subscribe(2**64, VIDEO),
    m.Subscribe(0, FullTrackName((b"",), b"x")),
    m.Subscribe(0, VIDEO, Parameters(forward=2)),
    m.Subscribe(0, VIDEO, Parameters(subscriber_priority=256)),
    m.Subscribe(0, VIDEO, Parameters(group_order=0)),
    m.Subscribe(0, VIDEO, Parameters(expires=1)),
    m.Subscribe(0, VIDEO, Parameters(fill=Parameters(forward=1))),
    m.Subscribe(0, VIDEO, Parameters(authorization_tokens=(Token(AliasType.USE_ALIAS),))),
    m.Subscribe(
        0,
        VIDEO,
        Parameters(
            location_filter=LocationFilter(LocationFilterType.ABSOLUTE_START_GROUP_END, 1, 0, U64)
        ),
    ),
    m.SubscribeOk(1, track_properties=b"\x22\x03"),
    m.SubscribeOk(1, track_properties=b"\x0d\x05"),
    m.RequestOk(Parameters(forward=1)),
    m.RequestError(1, 0, "a" * 1025),
    m.RequestError(0x34, 0, ""),
    m.RequestError(1, 0, "", m.Redirect(b"", VIDEO)),
    m.Goaway(b"a" * 8193),
    m.Namespace((b"a",) * 33),
    m.SubscribeOk(1, track_properties=b"\x0d\xc0\xff\xfc" + b"a" * 65532),
    m.Setup(m.SetupOptions(unknown=((0x06, 1),))),
    m.Setup(m.SetupOptions(unknown=((0x9D, 1),))),
    m.Setup(m.SetupOptions(unknown=((0x9E, b"a"),))),
    m.Setup(m.SetupOptions(path=b"a" * 65536)),
]


@pytest.mark.parametrize("message", UNSENDABLE, ids=range(len(UNSENDABLE)))
def test_we_do_not_break_the_rules(message: m.Message) -> None:
    """A message that a receiver would refuse is not written; the error says why."""
    with pytest.raises(LocalProtocolError) as caught:
        encode_message(message, DRAFT_22)
    assert caught.value.reason


def test_what_is_no_message_is_not_written() -> None:
    """An object of another kind is refused by name."""
    with pytest.raises(LocalProtocolError, match="ObjectStatus"):
        encode_message(ObjectStatus.NORMAL, DRAFT_22)  # type: ignore[arg-type]
