"""What a user may give the programs, and the one line that everything else is refused with."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from kvcs.errors import InputError
from kvcs.programs.keys import private_key, public_keys
from kvcs.programs.options import (
    Events,
    InputCommand,
    Seconds,
    address_of,
    check_files,
    check_url,
    hex_of,
    range_of,
    read_json,
    read_object,
    scope_key_of,
)


def refused(*arguments: object, by: object) -> str:
    """The message of the refusal, which must be one line."""
    assert callable(by)
    with pytest.raises(InputError) as caught:
        by(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_addresses_are_taken_apart() -> None:
    """Names, IPv4 and bracketed IPv6 addresses, and port 0 for any free port."""
    assert ("127.0.0.1", 4433) == address_of("127.0.0.1:4433")
    assert ("::1", 0) == address_of("[::1]:0")
    assert ("relay.example", 443) == address_of("relay.example:443")


@pytest.mark.parametrize("text", ["", "localhost", ":443", "h:", "h:65536", "h:-1", "h:٣", "h:1x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """The refusal shows what would be right."""
    assert "write HOST:PORT, such as 127.0.0.1:4433" in refused(text, by=address_of)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "soon"])
def test_seconds_are_a_finite_number(text: str) -> None:
    """A time that never comes, or that no clock knows, is refused like one out of range."""
    assert 0.5 == Seconds(min=0).convert("0.5", None, None)
    with pytest.raises(click.BadParameter):
        Seconds(min=0).convert(text, None, None)


@pytest.mark.parametrize("url", ["http://x", "moqt://", "moqt://h:0", "relay.example:443"])
def test_what_is_no_moqt_uri_is_refused(url: str) -> None:
    """Another scheme, no host, a bad port, no scheme at all."""
    assert repr(url) in refused(url, by=check_url)


def test_the_scope_key_comes_from_exactly_one_place(tmp_path: Path) -> None:
    """From the command line or from a file; a short one is refused by its length in octets."""
    file = tmp_path / "scope.key"
    file.write_text("00" * 32 + "\n")
    assert bytes(32) == scope_key_of(None, file)
    assert bytes(16) == scope_key_of("00" * 16, None)
    assert "at least 16 octets, this one has 15" in refused("00" * 15, None, by=scope_key_of)
    assert "either --scope-key HEX or --scope-key-file" in refused(None, None, by=scope_key_of)
    assert "either --scope-key HEX or --scope-key-file" in refused("00", file, by=scope_key_of)
    assert "not hexadecimal" in refused("zz" * 16, None, by=scope_key_of)
    assert "no such file" in refused(None, tmp_path / "absent", by=scope_key_of)


def test_hexadecimal_is_whole_octets() -> None:
    """An odd number of digits, and separators, are refused."""
    assert b"\x0a\xff" == hex_of("0aFF", "--x")
    for text in ("", "0", "0a f", "0x0a"):
        assert "--x: not hexadecimal digits, two per octet" == refused(text, "--x", by=hex_of)


def test_ranges_are_inclusive() -> None:
    """A-B with both ends, or one number; reversed and open ones are refused."""
    assert range(2, 6) == range_of("2-5", "--layers")
    assert range(3, 4) == range_of("3", "--layers")
    for text in ("5-2", "-3", "3-", "a", "1-2-3", "9" * 30):
        assert "is not a range" in refused(text, "--layers", by=range_of)


def test_json_files_are_read_strictly(tmp_path: Path) -> None:
    """Not there, not UTF-8, not JSON, duplicate members, not an object: the file is named."""
    file = tmp_path / "d.json"
    file.write_text('{"a": 1}')
    assert {"a": 1} == read_object(file)
    file.write_text("[1]")
    assert [1] == read_json(file)
    assert "a JSON object is needed" in refused(file, by=read_object)
    for octets in (b"\xff", b"{", b'{"a": 1, "a": 2}'):
        file.write_bytes(octets)
        assert refused(file, by=read_json).startswith(f"{file}: ")
    assert f"{tmp_path / 'absent'}: no such file or directory" == refused(
        tmp_path / "absent", by=read_json
    )
    assert "is a directory" in refused(tmp_path, by=check_files)


def test_keys_of_another_kind_are_refused(tmp_path: Path) -> None:
    """Something that is no PEM key, and an argument without its KID, say so."""
    file = tmp_path / "key.pem"
    file.write_text("no key")
    assert "not an unencrypted private key" in refused(file, by=private_key)
    keys = partial(public_keys, "--key")
    assert "not a public key" in refused((f"kid={file}",), by=keys)
    assert "write KID=FILE" in refused((str(file),), by=keys)


def test_events_are_json_lines(tmp_path: Path) -> None:
    """One object per line, octets in hexadecimal; nowhere without a target."""
    file = tmp_path / "events.jsonl"
    tell = Events(str(file))
    tell({"event": "a", "id": b"\x01\x02"})
    tell({"event": "b", "locations": (1, 2)})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [{"event": "a", "id": "0102"}, {"event": "b", "locations": [1, 2]}] == lines
    Events(None)({"event": "lost"})
    assert "cannot write" in refused(str(tmp_path / "no" / "x"), by=Events)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_events_that_cannot_be_written_stop_no_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whoever reads them is gone, or the disk is full: said once, and it goes on without."""
    tell = Events("/dev/full")
    tell({"event": "a"})
    tell({"event": "b"})
    told = "no more events are written to /dev/full: no space left on device\n"
    assert ("", told) == tuple(capsys.readouterr())


def test_a_refused_input_is_one_line_and_exit_code_2() -> None:
    """No usage text, no traceback: the message alone, on stderr."""

    @click.command(cls=InputCommand)
    def command() -> None:
        raise InputError("this is\nwrong")

    result = CliRunner().invoke(command)
    assert 2 == result.exit_code
    assert ("", "error: this is wrong\n") == (result.stdout, result.stderr)
