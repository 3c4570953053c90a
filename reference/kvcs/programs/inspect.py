"""`kvcs inspect`: octets explained one field at a time, and what is wrong with them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvcs.errors import InputError, KvcsError
from kvcs.programs.options import InputCommand

if TYPE_CHECKING:
    from kvcs.names import DataTrack

_NOT_HEX = re.compile(r"0[xX]|[\s:,]")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})*")
_ODD_HEX = re.compile(r"[0-9a-fA-F]+")
_FIELDS = re.compile(r"(?:[0-9a-fA-F]{2})+(?:/(?:[0-9a-fA-F]{2})+)+")
_LOCATION = re.compile(r"(\d{1,20})/(\d{1,20})")
_TEXT_KINDS = (None, "track-name", "manifest")
_MAX_OCTETS = 256 * 2**20


@click.command(cls=InputCommand)
@click.argument("words", nargs=-1, required=True, metavar="[KIND] HEX|@FILE|-")
@click.option("--json", "machine", is_flag=True, help="Print one JSON object instead of a table.")
@click.option(
    "--at", metavar="GROUP/OBJECT", help="Location of the Object that the payload came in."
)
@click.option(
    "--track", metavar="NAME", help="Track Name that the payload or stream belongs to: k.raw.s0."
)
@click.option(
    "--key",
    "key_files",
    multiple=True,
    metavar="KID=FILE",
    help="Producer key (public, PEM) that verifies a signed manifest; KID as its signer wrote it "
    "(--kid), or 0x and hexadecimal digits.",
)
def inspect(
    words: tuple[str, ...],
    machine: bool,
    at: str | None,
    track: str | None,
    key_files: tuple[str, ...],
) -> None:
    """Explain octets: what each one is, what it means, what is wrong with it.

    KIND is namespace, track-name, payload, manifest, manifest.cose, message (MOQT control
    messages) or stream (an MOQT subgroup or fetch stream). Without it the octets decide.

    The octets are hexadecimal digits (spaces and colons are fine), @FILE (raw octets, or a text of
    hexadecimal digits), or - for the same from standard input. A Track Name and a JSON manifest may
    be typed as they are, a namespace as `kvcs publish` prints it, fields in hexadecimal with / in
    between.

    Exit codes: 0 nothing is wrong, 1 something is, 2 usage error.

    \b
    kvcs inspect k.raw.s0
    kvcs inspect payload @object.bin --at 3/17 --track k.raw.s0
    kvcs inspect 0300100001046c69766505766964656f012105
    """
    from kvcs.inspection import KINDS, as_json, as_text, explain
    from kvcs.programs.keys import public_keys

    if len(words) > 2 or (len(words) == 2 and words[0] not in KINDS):
        raise InputError(
            f"give an optional KIND ({', '.join(KINDS)}) and one HEX, @FILE or -; quote HEX with "
            "spaces"
        )
    kind = words[0] if len(words) == 2 else None
    octets = _octets_of(words[-1], kind)
    report = explain(
        octets,
        kind,
        location=_location_of(at),
        track=_track_of(track),
        keys=public_keys("--key", key_files) or None,
    )
    click.echo(json.dumps(as_json(report), indent=2) if machine else as_text(report))
    sys.exit(1 if report.defects else 0)


def _octets_of(word: str, kind: str | None) -> bytes:
    if word == "-":
        return _from_file(sys.stdin.buffer.read(_MAX_OCTETS + 1), "standard input")
    if word.startswith("@"):
        path = Path(word[1:])
        try:
            with path.open("rb") as file:
                return _from_file(file.read(_MAX_OCTETS + 1), str(path))
        except OSError as error:
            raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if kind in (None, "namespace") and _FIELDS.fullmatch(word):
        return _namespace_of(word)
    digits = _NOT_HEX.sub("", word)
    if _HEX.fullmatch(digits) and digits:
        return bytes.fromhex(digits)
    if _ODD_HEX.fullmatch(digits):
        raise InputError(f"an odd number of hexadecimal digits, {len(digits)}: one is missing")
    if kind in _TEXT_KINDS:
        return word.encode(errors="surrogateescape")
    raise InputError(f"not hexadecimal, two digits per octet: {word[:40]!a}")


def _namespace_of(word: str) -> bytes:
    from moqt.wire.errors import LocalProtocolError
    from moqt.wire.names import encode_namespace

    try:
        return encode_namespace(tuple(map(bytes.fromhex, word.split("/"))))
    except LocalProtocolError as error:
        raise InputError(f"no namespace: {error}") from None


def _from_file(content: bytes, name: str) -> bytes:
    """Raw octets, unless the content is nothing but hexadecimal text."""
    if len(content) > _MAX_OCTETS:
        raise InputError(f"{name}: more than {_MAX_OCTETS} octets")
    if content.isascii():
        digits = _NOT_HEX.sub("", content.decode())
        if digits and _HEX.fullmatch(digits):
            return bytes.fromhex(digits)
        # A text file ends with a line feed that a Track Name has not.
        line = content.removesuffix(b"\n")
        return line if line.decode().isprintable() else content
    return content


def _location_of(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = _LOCATION.fullmatch(text)
    if match is None:
        raise InputError(f"--at is GROUP/OBJECT, such as 3/17, not {text[:40]!a}")
    return int(match[1]), int(match[2])


def _track_of(text: str | None) -> DataTrack | None:
    from kvcs.names import DataTrack, parse_track_name

    if text is None:
        return None
    try:
        track = parse_track_name(text.encode(errors="surrogateescape"))
    except KvcsError as error:
        raise InputError(f"--track: {error.reason}") from None
    if not isinstance(track, DataTrack):
        raise InputError(f"--track: {track} is no data track, its Objects have no KVCS payload")
    return track
