"""Names: octets, limits, prefixes, printable form (MOQT-22 §2.4, §8.7, §8.8)."""

from __future__ import annotations

import pytest
from hypothesis import given
from moqt.wire.errors import LocalProtocolError, NeedMore, RemoteProtocolError, SessionError
from moqt.wire.names import (
    FullTrackName,
    decode_namespace,
    decode_track,
    encode_namespace,
    encode_track,
    format_name,
    format_namespace,
    is_prefix,
    parse_name,
)
from moqt.wire.varint import Cursor, encode_prefixed, encode_vi64

from tests.wire.strategies import tracks

REPORT = FullTrackName((b"example.net", b"team2", b"project_x"), b"report")


def _octets(fields: list[bytes], name: bytes = b"") -> bytes:
    return encode_vi64(len(fields)) + b"".join(map(encode_prefixed, fields)) + encode_prefixed(name)


def test_published_octets() -> None:
    """("live") and "video" are the octets of the text, both ways."""
    octets = bytes.fromhex("01 04 6c697665 05 766964656f")
    track = FullTrackName((b"live",), b"video")
    assert octets == encode_track(track)
    assert track == decode_track(Cursor(octets))


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ([], b""),
        ([b"a"] * 32, b""),
        ([b"a" * 4096], b""),
        ([b"a" * 2048, b"b" * 2047], b"c"),
        ([b"\x00"], b"\xff"),
    ],
)
def test_names_at_the_limits(fields: list[bytes], name: bytes) -> None:
    """Zero and 32 fields, and exactly 4096 octets, are accepted both ways (R009)."""
    track = FullTrackName(tuple(fields), name)
    assert track == decode_track(Cursor(_octets(fields, name)))
    assert _octets(fields, name) == encode_track(track)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ([b""], b""),
        ([b"a", b"", b"b"], b""),
        ([b"a"] * 33, b""),
        ([b"a" * 4097], b""),
        ([b"a" * 2048, b"b" * 2048], b"c"),
    ],
)
def test_names_beyond_the_limits(fields: list[bytes], name: bytes) -> None:
    """Empty fields, 33 fields and 4097 octets close with PROTOCOL_VIOLATION (R009)."""
    with pytest.raises(RemoteProtocolError) as caught:
        decode_track(Cursor(_octets(fields, name)))
    assert SessionError.PROTOCOL_VIOLATION == caught.value.code
    with pytest.raises(LocalProtocolError):
        encode_track(FullTrackName(tuple(fields), name))


def test_a_cut_namespace_needs_more() -> None:
    """A namespace that ends early is not an error yet."""
    octets = encode_namespace((b"live", b"room"))
    for end in range(len(octets)):
        with pytest.raises(NeedMore):
            decode_namespace(Cursor(octets, 0, end))


def test_a_namespace_beyond_its_limits_is_not_sent() -> None:
    """A prefix or suffix is checked like a whole name."""
    with pytest.raises(LocalProtocolError, match="32 fields"):
        encode_namespace((b"a",) * 33)


def test_prefixes_match_by_field() -> None:
    """(foo) matches (foo, bar), not (foobar); the empty prefix matches everything."""
    assert is_prefix((b"foo",), (b"foo", b"bar"))
    assert is_prefix((b"foo", b"bar"), (b"foo", b"bar"))
    assert is_prefix((), (b"foo",))
    assert not is_prefix((b"foobar",), (b"foo", b"bar"))
    assert not is_prefix((b"foo",), (b"foobar",))
    assert not is_prefix((b"foo", b"bar"), (b"foo",))


def test_printable_form_of_the_text() -> None:
    """The published printable name stands for its fields and Track Name, both ways (R014)."""
    text = "example.2enet-team2-project_x--report"
    assert text == format_name(REPORT)
    assert REPORT == parse_name(text)
    assert "example.2enet-team2-project_x" == format_namespace(REPORT.namespace)


@pytest.mark.parametrize(
    "text",
    [
        "a--b.",
        "a--b.2",
        "a--b.2E",
        "a--b.zz",
        "a--b.61",
        "a--b.5f",
        "a--b c",
        "a--b-c",
        "a--b\u00e4",
        "a-b",
        "-a--b",
        "a---b",
        "a--b\n",
        "",
    ],
)
def test_other_spellings_are_refused(text: str) -> None:
    """Short, upper-case or redundant escapes, raw octets and empty fields are refused (R014)."""
    with pytest.raises(LocalProtocolError):
        parse_name(text)


@given(tracks())
def test_printable_form_round_trip(track: FullTrackName) -> None:
    """Every legal name comes back from its printable form (R014)."""
    assert track == parse_name(format_name(track))
