"""Track Namespaces and Track Names: the example, every defect, arbitrary octets."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.errors import InputError, KvcsError, NamespaceError, TrackNameError
from kvcs.names import (
    MANIFEST,
    MANIFEST_COSE,
    Component,
    DataTrack,
    KvcsNamespace,
    check_namespace,
    parse_namespace,
    parse_track_name,
)
from moqt.wire.names import decode_namespace, encode_namespace
from moqt.wire.varint import Cursor

from tests.kvcs import vectors as v

EXAMPLE = KvcsNamespace(
    v.EXAMPLE_SCOPE_ID, v.EXAMPLE_COMPAT_ID, v.EXAMPLE_ANCHOR_KEY, v.EXAMPLE_PUBLICATION_ID
)


def test_the_example_namespace_is_read() -> None:
    """The five fields of the 108 octets are the example's identifiers (KVCS-A-1, KVCS-3.1-2)."""
    assert len(v.EXAMPLE_NAMESPACE) == 108
    assert EXAMPLE == parse_namespace(v.fields_of(v.EXAMPLE_NAMESPACE))


def test_the_example_namespace_is_built() -> None:
    """Our fields are those of the 108 octets (KVCS-A-1, KVCS-3.1-1, KVCS-3.1-4)."""
    assert v.fields_of(v.EXAMPLE_NAMESPACE) == EXAMPLE.fields


def test_the_example_namespace_octet_for_octet() -> None:
    """The MOQT form of the namespace is the 108 octets, both ways (KVCS-A-1)."""
    assert v.EXAMPLE_NAMESPACE == encode_namespace(EXAMPLE.fields)
    assert EXAMPLE == parse_namespace(decode_namespace(Cursor(v.EXAMPLE_NAMESPACE)))


def test_the_profile_namespace_vector() -> None:
    """The namespace of kvsp-p0 §10 is built from its identifiers."""
    built = KvcsNamespace(
        v.EXAMPLE_SCOPE_ID, v.P0_COMPAT_ID, v.P0_KEYS[-1], v.EXAMPLE_PUBLICATION_ID
    )
    assert v.fields_of(v.P0_NAMESPACE) == built.fields


def test_prefixes() -> None:
    """Two fields are the scope, four one token prefix (KVCS-3.1-7)."""
    assert (b"kvcs-1", v.EXAMPLE_SCOPE_ID) == EXAMPLE.prefix(2)
    assert EXAMPLE.fields[:4] == EXAMPLE.prefix(4)
    for count in (0, 6, -1):
        with pytest.raises(InputError, match="1 to 5"):
            EXAMPLE.prefix(count)


def test_printable_form() -> None:
    """The identifiers as hexadecimal, with slashes between the fields."""
    assert str(EXAMPLE).startswith("kvcs-1/6d1c6481cd428737da312c089db3832a/5ed5c2f2")


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_another_number_of_fields_is_named(count: int) -> None:
    """Exactly five fields (KVCS-3.1-1)."""
    fields = (*EXAMPLE.fields, b"x")[:count]
    assert "namespace-field-count" in [defect.name for defect in check_namespace(fields)]


@pytest.mark.parametrize("index", [1, 2, 3, 4])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_field_one_octet_off_is_named(index: int, change: int) -> None:
    """Each field has its length, and the defect says which one has not (KVCS-3.1-2)."""
    fields = list(EXAMPLE.fields)
    fields[index] = (fields[index] + b"\x00")[: len(fields[index]) + change]
    defects = check_namespace(fields)
    assert [("namespace-field-length", f"field {index}")] == [(d.name, d.where) for d in defects]
    with pytest.raises(NamespaceError, match=f"field {index}"):
        parse_namespace(fields)


@pytest.mark.parametrize("first", [b"KVCS-1", b"kvcs-2", b"kvcs-1\x00", b""])
def test_another_first_field_is_named(first: bytes) -> None:
    """Only "kvcs-1", octet by octet (KVCS-3.1-3)."""
    defects = check_namespace((first, *EXAMPLE.fields[1:]))
    assert ["namespace-protocol"] == [defect.name for defect in defects]


def test_hexadecimal_fields_are_recognised() -> None:
    """Text where raw octets belong gets the clause that says so (KVCS-3.1-4)."""
    fields = (b"kvcs-1", *(field.hex().encode() for field in EXAMPLE.fields[1:]))
    assert ["KVCS-3.1-4"] * 4 == [defect.clause for defect in check_namespace(fields)]


def test_a_namespace_cannot_be_built_wrong() -> None:
    """The value refuses identifiers of the wrong length."""
    with pytest.raises(NamespaceError, match="Anchor Key has 32 octets, not 16"):
        KvcsNamespace(bytes(16), bytes(32), bytes(16), bytes(16))


@pytest.mark.parametrize(
    ("name", "track"),
    [
        (b"manifest", MANIFEST),
        (b"manifest.cose", MANIFEST_COSE),
        (b"k.raw.s0", DataTrack(Component.K, "raw", 0)),
        (b"v.raw.s10", DataTrack(Component.V, "raw", 10)),
        (b"kv.x.s4294967296", DataTrack(Component.KV, "x", 4294967296)),
        (b"k." + b"a-9z" * 8 + b".s1", DataTrack(Component.K, "a-9z" * 8, 1)),
    ],
)
def test_track_names_both_ways(name: bytes, track: DataTrack) -> None:
    """The grammar's names are read and written (KVCS-3.2-1, KVCS-12-4)."""
    assert track == parse_track_name(name)
    assert name == track.octets
    assert name.decode() == str(track)


@pytest.mark.parametrize(
    ("name", "defect", "where"),
    [
        (b"k.raw.s00", "track-name-segment", "octets 6..8"),
        (b"k.raw.s01", "track-name-segment", "octets 6..8"),
        (b"K.raw.s0", "track-name-component", "octet 0"),
        (b"k.RAW.s0", "track-name-codec", "octets 2..4"),
        (b"k.raw.S0", "track-name-segment", "octets 6..7"),
        (b"k..s0", "track-name-codec", "octet 2"),
        (b"k." + b"a" * 33 + b".s0", "track-name-codec", "octets 2..34"),
        (b"k.raw.s", "track-name-segment", "octet 6"),
        (b"kv.raw.s0 ", "track-name-segment", "octets 7..9"),
        (b"v.raw.s-1", "track-name-segment", "octets 6..8"),
        (b"q.raw.s0", "track-name-component", "octet 0"),
        (b"k.raw.s0.x", "track-name-parts", "octets 0..9"),
        (b"MANIFEST", "track-name-parts", "octets 0..7"),
        (b"manifest.COSE", "track-name-parts", "octets 0..12"),
        (b"", "track-name-parts", "octet 0"),
        (b"k.raw.s0\n", "track-name-segment", "octets 6..8"),
        (b"k.raw.s\xd9\xa1", "track-name-segment", "octets 6..8"),
        (b"k.raw.s" + b"1" * 5000, "track-name-length", "octets 0..5006"),
    ],
)
def test_defects_of_track_names(name: bytes, defect: str, where: str) -> None:
    """Each departure from the grammar is named with its octets; case matters (KVCS-3.2-1, A3)."""
    with pytest.raises(TrackNameError) as caught:
        parse_track_name(name)
    assert [(defect, where)] == [(d.name, d.where) for d in caught.value.defects]


@pytest.mark.parametrize(("codec", "segment"), [("RAW", 0), ("", 0), ("a" * 33, 0), ("raw", -1)])
def test_a_track_name_cannot_be_built_wrong(codec: str, segment: int) -> None:
    """The value refuses what the grammar does not have (KVCS-3.2-1)."""
    with pytest.raises(TrackNameError):
        DataTrack(Component.K, codec, segment)


def test_messages_are_safe_to_print() -> None:
    """Control octets of a name never reach a terminal through the error."""
    with pytest.raises(TrackNameError) as caught:
        parse_track_name(b"k.\x1b[31m.s0")
    assert str(caught.value).isprintable()


@given(
    st.sampled_from(Component),
    st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=32),
    st.integers(0, 2**64),
)
@settings(max_examples=100, deadline=None)
def test_every_track_round_trips(component: Component, codec: str, segment: int) -> None:
    """Every name of the grammar survives writing and reading (KVCS-3.2-1)."""
    track = DataTrack(component, codec, segment)
    assert track == parse_track_name(track.octets)


@given(st.lists(st.binary(max_size=40), max_size=7), st.binary(max_size=40))
@settings(max_examples=150, deadline=None)
def test_any_octets_give_a_value_or_our_error(fields: list[bytes], name: bytes) -> None:
    """Nothing but KvcsError comes out of the parsers, and what is accepted is the same octets."""
    with contextlib.suppress(KvcsError):
        assert tuple(fields) == parse_namespace(fields).fields
    with contextlib.suppress(KvcsError):
        assert name == parse_track_name(name).octets
