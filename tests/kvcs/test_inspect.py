"""`kvcs inspect`: every kind explained, wrong octets found, the terminal kept safe."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.cose import sign
from kvcs.errors import InputError
from kvcs.inspection import KINDS, Report, as_json, as_text, explain
from kvcs.inspection.detect import detect
from kvcs.inspection.report import printable
from kvcs.names import Component, DataTrack
from kvcs.programs.inspect import inspect

from tests.kvcs import vectors as v

ED25519 = Ed25519PrivateKey.from_private_bytes(bytes(32))
MANIFEST = json.dumps(v.EXAMPLE_MANIFEST).encode()
SIGNED = sign(MANIFEST, ED25519, b"ed")

# MOQT-22 reference, appendix A: octets of other implementations.
MESSAGES = {
    "af00001901042f6d6f71041172656c61792e6578616d706c652e636f6d": "SETUP",
    "af00000406100204": "SETUP",
    "0600080001046c69766500": "PUBLISH_NAMESPACE",
    "1d000f0201046c69766505766964656f0100": "PUBLISH",
    "0400020100": "SUBSCRIBE_OK",
    "0400050101090307": "SUBSCRIBE_OK",
    "0700050108c07530": "REQUEST_OK",
    "0300100901046c69766505766964656f012100": "SUBSCRIBE",
    "0300140901046c69766505766964656f0121040c050307": "SUBSCRIBE",
    "0300170901046c69766505766964656f03210502032101011200": "SUBSCRIBE",
    "51000c5d01046c6976650221050102": "SUBSCRIBE_TRACKS",
    "0200045f012300": "REQUEST_UPDATE",
    "1600140701046c69766505766964656f0121040c050309": "FETCH",
    "180004000f0900": "FETCH_OK",
    "0b000f02ffffffffffffffffff04646f6e65": "PUBLISH_DONE",
    "220006020903070700": "PUBLISH_STATE_NOTIFY",
    "0f000c010463616d3205766964656f": "PUBLISH_SKIPPED",
    "100003009388": "GOAWAY",
}
FETCH_STREAM = bytes.fromhex("0506 1c0c0580026161 00026262 0c0000026363 810c0d09")
SUBGROUP_STREAM = bytes.fromhex("700703 000568656c6c6f 0005776f726c64 000003")
PROPERTY_STREAM = bytes.fromhex("5507030240 05023e02026869")


def run(*words: str, octets: bytes = b"") -> Result:
    """The program as a user would start it."""
    return CliRunner().invoke(inspect, list(words), input=octets)


def fields(octets: bytes, kind: str | None = None) -> dict[str, str]:
    """Field names and values of the explanation."""
    return {line.name: line.value for line in explain(octets, kind).lines}


def marked(report: Report) -> list[str]:
    """Names of the lines that a defect lies in."""
    pairs = zip(report.lines, report.wrong_lines(), strict=True)
    return [line.name for line, wrong in pairs if wrong]


@pytest.mark.parametrize(
    ("octets", "kind"),
    [
        (v.EXAMPLE_NAMESPACE, "namespace"),
        (b"kv.zstd.s12", "track-name"),
        (b"manifest", "track-name"),
        (b"k.raw.s00", "track-name"),
        (v.EXAMPLE_PAYLOAD, "payload"),
        (v.EXAMPLE_HEADER[:10], "payload"),
        (MANIFEST, "manifest"),
        (b" \n{", "manifest"),
        (SIGNED, "manifest.cose"),
        (SIGNED[1:], "manifest.cose"),
        (FETCH_STREAM, "stream"),
        (SUBGROUP_STREAM, "stream"),
        (bytes.fromhex("0506"), "stream"),
        (bytes.fromhex("03001000"), "message"),
        (b"", None),
        (b"\x00", None),
        (b"\xff", None),
    ],
)
def test_the_kind_is_guessed(octets: bytes, kind: str | None) -> None:
    """The first octets tell the kinds apart; octets of none are left alone."""
    assert kind == detect(octets)


@pytest.mark.parametrize(("octets", "name"), MESSAGES.items())
def test_messages_of_other_implementations_are_right(octets: str, name: str) -> None:
    """Each public vector is a message, explained to its last octet."""
    report = explain(bytes.fromhex(octets))
    assert [] == report.defects
    assert name == report.lines[0].meaning
    assert len(report.octets) == max(line.end for line in report.lines)


@pytest.mark.parametrize("octets", MESSAGES)
def test_every_octet_of_a_message_has_one_line(octets: str) -> None:
    """Lines cover the octets in order, without gap or overlap."""
    report = explain(bytes.fromhex(octets))
    places = [(line.start, line.end) for line in report.lines if line.end > line.start]
    assert [0, *(end for _, end in places)][:-1] == [start for start, _ in places]
    assert len(report.octets) == places[-1][1]


def test_a_subscribe_reads_as_a_table() -> None:
    """Offsets, octets, names, values and meanings of a whole SUBSCRIBE."""
    result = run("0300100901046c69766505766964656f012105")
    assert result.exit_code == 0
    assert [
        "MOQT control message (moqt-22), 19 octets",
        "",
        "   offset  octets          field                      value    meaning",
        "        0  03              Message Type               0x3      SUBSCRIBE",
        "        1  00 10           Message Length             16       octets of the body",
        "        3  09                Request ID               9        from a server",
        "        4  01                Track Namespace: fields  1",
        "        5  04                  Field 0 length         4",
        "        6  6c 69 76 65         Field 0                'live'",
        "       10  05                Track Name length        5",
        "       11  76 69 64 65 6f    Track Name               'video'  not a name of KVCS",
        "       16  01                Parameters               1        how many follow",
        "       17  21                Parameter type delta     33       type 0x21, LOCATION_FILTER",
        "       18  05                  LOCATION_FILTER type   5        "
        "NEXT_OBJECT: what comes after the Largest Object",
        "",
        "right: nothing is wrong with it",
    ] == result.output.splitlines()


@pytest.mark.parametrize(
    ("octets", "name", "where"),
    [
        ("0300100001046c69766505766964656f012106", "location-filter-type", "octet 18"),
        ("0300110001046c69766505766964656f01011002", "parameter-type", "octet 17"),
        ("0300110001046c69766505766964656f01100200", "message-length", "octet 19"),
        ("0300100001046c69766505766964656f011002", "message", "octets 0..18"),
        ("06000600010000", "message-length", "octets 1..2"),
        ("06000400010000", "namespace-field-empty", "octet 5"),
        ("2500020000", "message-type", "octet 0"),
        ("0300100001046c", "message-length", "octets 1..2"),
    ],
)
def test_wrong_messages(octets: str, name: str, where: str) -> None:
    """The first defect is named with the octets that hold it."""
    report = explain(bytes.fromhex(octets), "message")
    assert (name, where) == (report.defects[0].name, report.defects[0].where)


def test_several_messages_in_one_go() -> None:
    """A request stream's messages are explained one after the other."""
    report = explain(bytes.fromhex("07000100" + "0400020100"))
    kinds = [line.meaning for line in report.lines if line.name == "Message Type"]
    assert ["REQUEST_OK", "SUBSCRIBE_OK"] == kinds


def test_a_fetch_stream() -> None:
    """Items with their Locations, and the End of Range (MOQT-22 §11.4.1)."""
    report = explain(FETCH_STREAM)
    assert [] == report.defects
    meanings = [line.meaning for line in report.lines]
    assert "Location 12/5" in meanings
    assert "Location 13/0" in meanings
    assert "End of Range: Objects up to here unknown here" in meanings


def test_a_subgroup_stream() -> None:
    """Two Objects and End of Group, each with its Location (MOQT-22 §11.3.1)."""
    report = explain(SUBGROUP_STREAM)
    assert [] == report.defects
    ids = [line.meaning for line in report.lines if line.name == "Object ID delta"]
    assert ["Location 3/0", "Location 3/1", "Location 3/2"] == ids
    assert "End of Group" in report.lines[-1].meaning


def test_object_properties_are_named() -> None:
    """PRIOR_OBJECT_ID_GAP 2 on Object 5."""
    assert "2" == fields(PROPERTY_STREAM)["PRIOR_OBJECT_ID_GAP"]


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        ("7007", "truncated"),
        ("700703 0005 6865", "truncated"),
        ("700703 0000 05", "object-status"),
        ("550703024000023e020003", "status-properties"),
        ("0506 18 05", "fetch-first-object"),
        ("0506 1d0c0580026161", "fetch-subgroup"),
        ("0506 8080", "fetch-flags"),
        ("700703 ff ffffffffffffffff 0161 00 0161", "object-id"),
        ("16", "stream-type"),
    ],
)
def test_wrong_streams(octets: str, name: str) -> None:
    """What MOQT forbids on a data stream is named."""
    report = explain(bytes.fromhex(octets), "stream")
    assert [name] == [defect.name for defect in report.defects]


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        ("710703 00 0c ffffffffffffffffff000200 0161", "stream"),
        ("710703 01 023e05 0161", "malformed-track"),
    ],
)
def test_what_only_the_codec_knows(octets: str, name: str) -> None:
    """Property types beyond 2^64-1, and a gap larger than its Object ID (MOQT-22 §8.3, §12.1)."""
    report = explain(bytes.fromhex(octets), "stream")
    assert [name] == [defect.name for defect in report.defects]


def test_payloads_inside_a_stream_are_checked_at_their_location() -> None:
    """An Object whose Layer is not its Group is found, in the stream's octets (KVCS-4-19)."""
    payload = v.EXAMPLE_PAYLOAD
    stream = bytes.fromhex("700701 01") + bytes([len(payload)]) + payload
    report = explain(stream)
    assert [("layer-mismatch", "octets 13..16")] == [(d.name, d.where) for d in report.defects]
    assert ["Layer"] == marked(report)


@pytest.mark.parametrize("header", ["700700 01 54", "0506 1c00018054"])
def test_payloads_inside_a_stream_are_checked_against_their_track(header: str) -> None:
    """A k payload on a v track is found in subgroup and fetch streams (KVCS-4-5)."""
    stream = bytes.fromhex(header) + v.EXAMPLE_PAYLOAD
    assert [] == explain(stream, track=DataTrack(Component.K, "raw", 0)).defects
    report = explain(stream, track=DataTrack(Component.V, "raw", 0))
    assert ["component-mismatch"] == [defect.name for defect in report.defects]


def test_the_example_payload() -> None:
    """All fields of the example with their meaning; nothing is wrong (KVCS-A-2)."""
    report = explain(v.EXAMPLE_PAYLOAD)
    assert [] == report.defects
    values = {line.name: (line.value, line.start) for line in report.lines}
    assert ("4", 16) == values["Token Start"]
    assert ("be45cb2605bf36be...", 36) == values["Data Digest"]
    assert ("16 octets", 68) == values["Data"]


def test_a_wrong_payload_is_marked_line_by_line() -> None:
    """Each wrong field has its mark, and the exit code is 1 (KVCS-4-19, KVCS-4-5, KVCS-4-12)."""
    result = run("payload", v.EXAMPLE_PAYLOAD.hex(" "), "--at", "3/1", "--track", "v.zstd.s0")
    assert result.exit_code == 1
    marked = [line.split()[:2] for line in result.output.splitlines() if line.startswith("!")]
    assert [["!", "5"], ["!", "8"], ["!", "28"]] == marked
    assert "octets 8..11: Layer is 0, should be 3 [layer-mismatch, KVCS-4-19]" in result.output
    assert "wrong: 3 defects" in result.output


@pytest.mark.parametrize("octets", [4, 10, 36, 67])
def test_a_short_payload_shows_what_is_there(octets: int) -> None:
    """The fields that arrived, and that the header ends early (KVCS-4-21)."""
    report = explain(v.EXAMPLE_HEADER[:octets])
    assert ["header-truncated"] == [defect.name for defect in report.defects]
    assert octets == report.lines[-1].end


def test_the_expected_track_reaches_the_checks() -> None:
    """A codec that the profile does not know still leaves the component to check."""
    track = DataTrack(Component.V, "unheard-of", 0)
    report = explain(v.EXAMPLE_PAYLOAD, track=track)
    assert ["component-mismatch"] == [defect.name for defect in report.defects]


def test_the_example_namespace() -> None:
    """Fields by their KVCS names (KVCS-A-1)."""
    report = explain(v.EXAMPLE_NAMESPACE)
    assert [] == report.defects
    assert v.EXAMPLE_SCOPE_ID.hex() == fields(v.EXAMPLE_NAMESPACE)["Field 1, Scope ID"]


@pytest.mark.parametrize(
    ("octets", "found"),
    [
        (v.EXAMPLE_NAMESPACE + b"\x00", [("trailing", "octet 108")]),
        (v.EXAMPLE_NAMESPACE[:-1], [("truncated", "octets 92..106")]),
        (
            v.EXAMPLE_NAMESPACE.replace(b"kvcs-1", b"kvcs-2"),
            [("namespace-protocol", "octets 2..7")],
        ),
        (
            v.EXAMPLE_NAMESPACE[:91] + b"\x0f" + v.EXAMPLE_NAMESPACE[92:-1],
            [("namespace-field-length", "octets 92..106")],
        ),
        (b"\x04" + v.EXAMPLE_NAMESPACE[1:91], [("namespace-field-count", "octet 0")]),
    ],
)
def test_wrong_namespaces(octets: bytes, found: list[tuple[str, str]]) -> None:
    """The defect names the octets of the field (KVCS-3.1-1 to KVCS-3.1-3)."""
    report = explain(octets, "namespace")
    assert found == [(defect.name, defect.where) for defect in report.defects]


def test_track_names() -> None:
    """A right name falls into its parts; a wrong one is told where (KVCS-3.2-1)."""
    assert {"Component": "kv", "Codec": "zstd", "Segment": "12"} == fields(b"kv.zstd.s12")
    assert ["octets 6..8"] == [defect.where for defect in explain(b"k.raw.s01").defects]


def test_a_manifest_member_by_member() -> None:
    """Paths, values and meanings; unknown members are told to be ignored (KVCS-5-5)."""
    report = explain(json.dumps(v.EXAMPLE_MANIFEST | {"x": 1}).encode())
    assert [] == report.defects
    lines = {line.name: (line.value, line.meaning) for line in report.lines}
    assert ("64", "blocks, the Objects of each Group") == lines["$.segments[0].blocks"]
    assert ("1", "not a member that KVCS defines: ignored") == lines["$.x"]
    assert any("Compatibility ID" in note for note in report.notes)


def test_a_wrong_manifest_marks_its_member() -> None:
    """The path of the defect is the line that is marked (KVCS-5-6)."""
    document = json.dumps(v.EXAMPLE_MANIFEST).replace('"complete": false', '"complete": 0')
    report = explain(document.encode())
    assert ["$.segments[1].complete"] == marked(report)


def test_a_signed_manifest_is_verified_with_a_key(tmp_path: Path) -> None:
    """CBOR octet by octet, then the JSON; the signature is checked when a key is given."""
    pem = ED25519.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "ed.pem").write_bytes(pem)
    (tmp_path / "signed").write_bytes(SIGNED)
    source, key = f"@{tmp_path / 'signed'}", f"ed={tmp_path / 'ed.pem'}"
    for same in (key, f"0x6564={tmp_path / 'ed.pem'}"):
        result = run(source, "--key", same)
        assert (0, True) == (result.exit_code, "note: the signature is right" in result.output)
    assert "not verified" in run(source).output
    (tmp_path / "signed").write_bytes(SIGNED[:-1] + bytes([SIGNED[-1] ^ 1]))
    result = run(source, "--key", key)
    assert (1, True) == (result.exit_code, "the signature is wrong" in result.output)


def test_trailing_octets_after_a_signed_manifest() -> None:
    """Field case 29 in the explanation."""
    assert ["cbor-trailing"] == [d.name for d in explain(SIGNED + b"\x00").defects]


def test_json_output() -> None:
    """The same content for programs."""
    result = run("payload", v.EXAMPLE_PAYLOAD.hex(), "--json", "--at", "1/1")
    found: dict[str, Any] = json.loads(result.output)
    assert (1, False, 84) == (result.exit_code, found["right"], found["octets"])
    assert ["layer-mismatch"] == [defect["name"] for defect in found["defects"]]
    assert {
        "name": "Layer",
        "value": "0",
        "meaning": "the Group ID of its Object",
        "depth": 0,
        "wrong": True,
        "start": 8,
        "end": 12,
        "hex": "00000000",
    } == found["lines"][4]


def test_hexadecimal_with_decoration_files_and_standard_input(tmp_path: Path) -> None:
    """Spaces, colons, 0x, @FILE raw or in hex, and - are the same octets."""
    expected = run("payload", v.EXAMPLE_PAYLOAD.hex()).output
    raw, text = tmp_path / "raw", tmp_path / "text"
    raw.write_bytes(v.EXAMPLE_PAYLOAD)
    text.write_text(v.EXAMPLE_PAYLOAD.hex("\n", 4) + "\n")
    assert expected == run(v.EXAMPLE_PAYLOAD.hex(":")).output
    assert expected == run("0x" + v.EXAMPLE_PAYLOAD.hex()).output
    assert expected == run(f"@{raw}").output
    assert expected == run(f"@{text}").output
    assert expected == run("-", octets=v.EXAMPLE_PAYLOAD).output
    assert expected == run("payload", "-", octets=v.EXAMPLE_PAYLOAD.hex().encode()).output
    assert run("k.raw.s0").output == run("-", octets=b"k.raw.s0\n").output


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("payload", "zz"),
        ("0",),
        ("abcde",),
        ("00",),
        ("nonsense", "00"),
        ("payload", "00", "00"),
        ("@/no/such/file",),
        ("4b564f31", "--at", "1"),
        ("4b564f31", "--at", "1/x"),
        ("4b564f31", "--track", "manifest"),
        ("4b564f31", "--track", "K"),
        ("4b564f31", "--key", "x"),
        ("4b564f31", "--key", "00=/no/such/file"),
        ("4b564f31", "--key", "0x1=/dev/null"),
        ("--nonsense", "00"),
    ],
)
def test_usage_errors(words: tuple[str, ...]) -> None:
    """What cannot be worked with is one line on stderr and exit code 2."""
    result = run(*words)
    assert 2 == result.exit_code
    assert "Traceback" not in result.output
    assert result.stderr


def test_a_key_file_without_a_key(tmp_path: Path) -> None:
    """A file that is no PEM is a usage error."""
    (tmp_path / "key").write_bytes(b"nothing")
    result = run("payload", "00", "--key", f"00={tmp_path / 'key'}")
    assert (2, True) == (result.exit_code, "not a public key in PEM form" in result.stderr)


HOSTILE = "\x1b]0;x\x07\x9b31m\u202e\u2066\r"


def test_control_characters_never_reach_the_terminal() -> None:
    """Escape sequences and bidirectional controls in any kind are shown escaped."""
    raw = HOSTILE.encode()
    manifest = json.dumps(v.EXAMPLE_MANIFEST | {HOSTILE: HOSTILE}, ensure_ascii=False)
    reason = bytes([len(raw)]) + raw
    message = b"\x05" + (2 + len(reason)).to_bytes(2) + b"\x10\x00" + reason
    for octets, kind in (
        (b"k." + raw, "track-name"),
        (b"\x01" + bytes([len(raw)]) + raw, "namespace"),
        (manifest.encode(), "manifest"),
        (manifest.replace("64", "-1").encode(), "manifest"),
        (b'{"' + raw + b'": 1, "' + raw + b'": 1}', "manifest"),
        (message, "message"),
        (sign(b"{}", ED25519, raw), "manifest.cose"),
        (b"\xd2\x84\x40\xa1\x65\x1b[31m\x00\x40\x40", "manifest.cose"),
    ):
        text = as_text(explain(octets, kind))
        assert all(line.isprintable() for line in text.split("\n")), kind
        assert json.dumps(as_json(explain(octets, kind))).isascii()


def test_printable() -> None:
    """Letters of any script stay, what steers a terminal does not."""
    assert "é漢 \\x1b\\u202e\\ud800" == printable("é漢 \x1b\u202e\ud800")


def test_a_namespace_is_taken_as_publish_prints_it() -> None:
    """Fields in hexadecimal with / in between are the same namespace as its octets."""
    octets = v.EXAMPLE_NAMESPACE.hex()
    parts = [(4, 16), (18, 50), (52, 116), (118, 182), (184, 216)]
    printed = "/".join(octets[start:end] for start, end in parts)
    assert run("namespace", octets).stdout == run(printed).stdout
    assert 2 == run("/".join(["00"] * 40)).exit_code


def test_unknown_kinds_are_refused() -> None:
    """The error lists the kinds there are."""
    with pytest.raises(InputError, match="namespace, track-name"):
        explain(b"", "x")


SEEDS = [
    v.EXAMPLE_NAMESPACE,
    v.EXAMPLE_PAYLOAD,
    MANIFEST,
    SIGNED,
    FETCH_STREAM,
    SUBGROUP_STREAM,
    PROPERTY_STREAM,
    *map(bytes.fromhex, MESSAGES),
]


@given(
    st.binary(max_size=60)
    | st.builds(
        lambda seed, at, octets: seed[:at] + octets + seed[at + len(octets) :],
        st.sampled_from(SEEDS),
        st.integers(0, 90),
        st.binary(min_size=1, max_size=3),
    ),
    st.sampled_from(sorted(KINDS)),
)
@settings(max_examples=200, deadline=None)
def test_any_octets_are_explained(octets: bytes, kind: str) -> None:
    """Whatever the octets, there is a printable explanation within their bounds."""
    report = explain(octets, kind)
    assert all(line.isprintable() for line in as_text(report).split("\n"))
    assert all(0 <= line.start <= line.end <= len(octets) for line in report.lines)
