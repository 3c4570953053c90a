"""Control messages against published octets (MOQT-22 §6, §7, Appendix A)."""

from __future__ import annotations

import pytest
from moqt.wire import messages as m
from moqt.wire.codec import MessageReader, encode_message
from moqt.wire.drafts import DRAFT_22
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location
from moqt.wire.tokens import AliasType, Token

LIVE = (b"live",)
VIDEO = FullTrackName(LIVE, b"video")
T = LocationFilterType


def _subscribe(location_filter: LocationFilter) -> m.Subscribe:
    return m.Subscribe(9, VIDEO, Parameters(location_filter=location_filter))


SETUPS: dict[str, m.Message] = {
    "af00001901042f6d6f71041172656c61792e6578616d706c652e636f6d": m.Setup(
        m.SetupOptions(path=b"/moq", authority=b"relay.example.com")
    ),
    "af000026 01042f6d6f71 039000 011172656c61792e6578616d706c652e636f6d 02066b7663732f31 0110": (
        m.Setup(
            m.SetupOptions(
                path=b"/moq",
                max_auth_token_cache_size=4096,
                authority=b"relay.example.com",
                implementation=b"kvcs/1",
                max_request_updates=16,
            )
        )
    ),
    "af00000f 049000 0210 01066b7663732f31 0104": m.Setup(
        m.SetupOptions(
            max_auth_token_cache_size=4096,
            max_filter_ranges=16,
            implementation=b"kvcs/1",
            max_request_updates=4,
        )
    ),
    "af00000406100204": m.Setup(m.SetupOptions(max_filter_ranges=16, max_request_updates=4)),
}

SUBSCRIPTIONS: dict[str, m.Message] = {
    "030010 00 01046c697665 05766964656f 01 2105": m.Subscribe(
        0, VIDEO, Parameters(location_filter=NEXT_OBJECT)
    ),
    "04000e 07 01090307 0287d002c0ea600a40": m.SubscribeOk(
        7,
        Parameters(largest_object=Location(3, 7)),
        bytes.fromhex("0287d002c0ea600a40"),
    ),
    "0400020700": m.SubscribeOk(7),
    "0400020100": m.SubscribeOk(1),
    "0400050101090307": m.SubscribeOk(1, Parameters(largest_object=Location(3, 7))),
    "0300100901046c69766505766964656f012100": _subscribe(LocationFilter(T.NONE)),
    "0300110901046c69766505766964656f01210100": _subscribe(LocationFilter(T.RELATIVE_START)),
    "0300110901046c69766505766964656f01210103": _subscribe(LocationFilter(T.RELATIVE_START, 3)),
    "0300100901046c69766505766964656f012105": _subscribe(NEXT_OBJECT),
    "0300120901046c69766505766964656f0121020c05": _subscribe(
        LocationFilter(T.ABSOLUTE_START, 12, 5)
    ),
    "0300130901046c69766505766964656f0121030c0503": _subscribe(
        LocationFilter(T.ABSOLUTE_START_GROUP_END, 12, 5, 3)
    ),
    "0300140901046c69766505766964656f0121040c050307": _subscribe(
        LocationFilter(T.ABSOLUTE_RANGE, 12, 5, 3, 7)
    ),
    "03001b 00 01046c697665 05766964656f 04 1001 1080 0105 02050121020000": m.Subscribe(
        0,
        VIDEO,
        Parameters(
            forward=1,
            subscriber_priority=128,
            location_filter=NEXT_OBJECT,
            fill=Parameters(location_filter=LocationFilter(T.ABSOLUTE_START)),
        ),
    ),
    "030016 02 01046c697665 05766964656f 02 2105 020401210101": m.Subscribe(
        2,
        VIDEO,
        Parameters(
            location_filter=NEXT_OBJECT,
            fill=Parameters(location_filter=LocationFilter(T.RELATIVE_START, 1)),
        ),
    ),
    "1d0016 02 01046c697665 05766964656f 01 020903070700 0e20": m.Publish(
        2,
        VIDEO,
        1,
        Parameters(largest_object=Location(3, 7), forward=0),
        bytes.fromhex("0e20"),
    ),
    "1d000f0201046c69766505766964656f0100": m.Publish(2, VIDEO, 1),
    "02000404011000": m.RequestUpdate(4, Parameters(forward=0)),
    "0b00070205 04646f6e65": m.PublishDone(2, 5, "done"),
    "0b000f02ffffffffffffffffff04646f6e65": m.PublishDone(2, None, "done"),
    "220006020903070700": m.PublishStateNotify(
        Parameters(largest_object=Location(3, 7), forward=0)
    ),
}

ANSWERS: dict[str, m.Message] = {
    "07000100": m.RequestOk(),
    "07000401090307": m.RequestOk(Parameters(largest_object=Location(3, 7))),
    "0700050108c07530": m.RequestOk(Parameters(expires=30000)),
    "070006010903070e40": m.RequestOk(
        Parameters(largest_object=Location(3, 7)), bytes.fromhex("0e40")
    ),
    "050010 10 00 0d6e6f207375636820747261636b": m.RequestError(0x10, 0, "no such track"),
    "05000809938904 62757379": m.RequestError(0x9, 5001, "busy"),
    "050025 340100 156d6f71743a2f2f72322e6578616d706c652f6d6f71 01046c697665 05766964656f": (
        m.RequestError(0x34, 1, "", m.Redirect(b"moqt://r2.example/moq", VIDEO))
    ),
    "100003009388": m.Goaway(b"", 5000),
}

FETCHES: dict[str, m.Message] = {
    "160016 06 01046c697665 05766964656f 02 21040c050309 0102": m.Fetch(
        6,
        VIDEO,
        Parameters(location_filter=LocationFilter(T.ABSOLUTE_RANGE, 12, 5, 3, 9), group_order=2),
    ),
    "16000e 06 01046c697665 05766964656f 00": m.Fetch(6, VIDEO),
    "1600140701046c69766505766964656f0121040c050309": m.Fetch(
        7, VIDEO, Parameters(location_filter=LocationFilter(T.ABSOLUTE_RANGE, 12, 5, 3, 9))
    ),
    "180004000f0900": m.FetchOk(False, Location(15, 9)),
}

DISCOVERY: dict[str, m.Message] = {
    "0600080001046c69766500": m.PublishNamespace(0, LIVE),
    "06000f 00 01046c697665 01 03 05 0300616263": m.PublishNamespace(
        0, LIVE, Parameters(authorization_tokens=(Token(AliasType.USE_VALUE, None, 0, b"abc"),))
    ),
    "5000080a 01046c697665 00": m.SubscribeNamespace(10, LIVE),
    "5000030a0000": m.SubscribeNamespace(10, ()),
    "080007 0105726f6f6d31": m.Namespace((b"room1",)),
    "08000100": m.Namespace(()),
    "51000a0c 01046c697665 01 1000": m.SubscribeTracks(12, LIVE, Parameters(forward=0)),
    "51000c5d01046c6976650221050102": m.SubscribeTracks(
        93, LIVE, Parameters(location_filter=NEXT_OBJECT, group_order=2)
    ),
    "0f000c010463616d3205766964656f": m.PublishSkipped((b"cam2",), b"video"),
}

BOTH_WAYS: dict[str, m.Message] = {**SETUPS, **SUBSCRIPTIONS, **ANSWERS, **FETCHES, **DISCOVERY}


def decode(octets: bytes) -> m.Message:
    """The only message in `octets`."""
    reader = MessageReader(DRAFT_22)
    reader.feed(octets)
    found = reader.next()
    assert found is not None
    message, frame = found
    assert octets == frame
    assert not reader.pending
    return message


@pytest.mark.parametrize("text", BOTH_WAYS)
def test_published_octets_decode(text: str) -> None:
    """Each published frame is read as the message that the text says it is."""
    assert BOTH_WAYS[text] == decode(bytes.fromhex(text))


@pytest.mark.parametrize("text", BOTH_WAYS)
def test_published_octets_are_what_we_write(text: str) -> None:
    """Each message is written as its published frame, parameters ascending (R074, R125)."""
    assert bytes.fromhex(text).hex() == encode_message(BOTH_WAYS[text], DRAFT_22).hex()
