"""Options that several programs share, and the checks of what a user gives them."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from kvcs.errors import InputError, JsonError, KvcsError
from kvcs.strict_json import JsonValue, parse_json

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")


class Seconds(click.FloatRange):
    """A finite number of seconds within a range: `nan` and `inf` are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; the range alone lets `nan` pass."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Refusal(click.ClickException):
    """What the user gave cannot be worked with: one line on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"error: {' '.join(self.message.split())}", file=file, err=file is None)


class InputCommand(click.Command):
    """A command whose refused input ends in one line and exit code 2, never in a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an InputError or another KvcsError that leaves it is a Refusal."""
        try:
            return super().invoke(ctx)
        except KvcsError as error:
            raise Refusal(str(error)) from None


def client_options(command: Command) -> Command:
    """How to reach a server: verification, datagram size, and what to record."""
    for option in (
        click.option(
            "--ca",
            type=FILE,
            metavar="FILE",
            help="Trust the certificate authority in FILE (PEM) instead of the system's.",
        ),
        click.option(
            "--insecure",
            is_flag=True,
            help="Accept any certificate, such as the throw-away one that `kvcs relay` makes.",
        ),
        click.option(
            "--token",
            metavar="TEXT",
            help="Authorization token to send with every request (see `kvcs relay --token`).",
        ),
    ):
        command = option(command)
    return transport_options(command)


def transport_options(command: Command) -> Command:
    """Datagram size, what peers are told, and recordings."""
    for option in (
        click.option(
            "--anonymous",
            is_flag=True,
            help="Do not tell peers this program's name and version (MOQT_IMPLEMENTATION).",
        ),
        click.option(
            "--datagram-size",
            type=click.IntRange(1200, 16383),
            default=1200,
            show_default=True,
            metavar="OCTETS",
            help="Largest UDP payload to send. Over 1452 is for loopback and jumbo frames.",
        ),
        click.option(
            "--events",
            metavar="FILE|-",
            help="Write what happens as JSON lines to FILE, or to standard output with '-'.",
        ),
        click.option(
            "--keylog",
            type=FILE,
            metavar="FILE",
            help="Append TLS secrets to FILE, so that Wireshark can decrypt a capture.",
        ),
        click.option(
            "--qlog",
            type=FILE,
            metavar="DIR",
            help="Write a qlog file per connection into DIR.",
        ),
    ):
        command = option(command)
    return command


def identity_options(command: Command) -> Command:
    """Under which identity a cache is published and found."""
    for option in (
        click.option(
            "--scope-key",
            metavar="HEX",
            help="The scope's secret key in hexadecimal, at least 16 octets.",
        ),
        click.option(
            "--scope-key-file",
            type=FILE,
            metavar="FILE",
            help="Read the scope key from FILE instead: its hexadecimal form, one line.",
        ),
        click.option(
            "--profile",
            default="kvsp-p0",
            show_default=True,
            metavar="NAME",
            help="How names derive from tokens, key and descriptor.",
        ),
        click.option(
            "--descriptor",
            type=FILE,
            metavar="FILE.json",
            help="Compatibility Descriptor: the model, its geometry and element type.",
        ),
        click.option(
            "--tokens",
            type=FILE,
            metavar="FILE.json",
            help="Token ids of the context, a JSON array.",
        ),
    ):
        command = option(command)
    return command


def scope_key_of(text: str | None, file: Path | None) -> bytes:
    """The scope key from one of its two options; InputError for none, both, or a bad one."""
    if (text is None) == (file is None):
        raise InputError("give the scope key with either --scope-key HEX or --scope-key-file FILE")
    where = "--scope-key" if file is None else str(file)
    if file is not None:
        text = read_text(file).strip()
    key = hex_of(text or "", where)
    if len(key) < 16:
        raise InputError(f"{where}: a scope key has at least 16 octets, this one has {len(key)}")
    return key


def hex_of(text: str, where: str) -> bytes:
    """Octets from hexadecimal; InputError names `where` it stood."""
    if not _HEX.fullmatch(text):
        raise InputError(f"{where}: not hexadecimal digits, two per octet")
    return bytes.fromhex(text)


def read_text(file: Path) -> str:
    """The text of a file; InputError when it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise InputError(f"{file}: not text in UTF-8") from None


def read_json(file: Path) -> JsonValue:
    """The JSON value in a file; InputError when there is none."""
    try:
        return parse_json(read_text(file).encode())
    except JsonError as error:
        raise InputError(f"{file}: {error}") from None


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    value = read_json(file)
    if not isinstance(value, dict):
        raise InputError(f"{file}: a JSON object is needed, this is another value")
    return value


def address_of(text: str) -> tuple[str, int]:
    """HOST:PORT taken apart, `[...]` round an IPv6 address; port 0 asks for any free one."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{text!r} is not an address: write HOST:PORT, such as 127.0.0.1:4433")
    return host, int(port)


def check_files(*files: Path | None) -> None:
    """InputError for the first file that cannot be read, before anything else happens."""
    for file in files:
        if file is not None:
            try:
                file.open("rb").close()
            except OSError as error:
                raise InputError(f"{file}: {(error.strerror or str(error)).lower()}") from None


def check_url(url: str) -> str:
    """The URL itself; InputError when it is no moqt URI."""
    from moqt.drivers.urls import parse_url

    try:
        parse_url(url)
    except ValueError as error:
        raise InputError(str(error)) from None
    return url


def range_of(text: str, where: str) -> range:
    """'A-B', both inclusive, or a single 'A', as a range."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", text)
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise InputError(f"{where}: {text!r} is not a range: write A-B with A at most B, or A")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


class Events:
    """JSON lines to a file, to standard output, or nowhere.

    Whoever reads them may go away, and a disk may be full: that is said once, and the program goes
    on without.
    """

    def __init__(self, target: str | None) -> None:
        self._file: TextIO | None = None
        self._target = "standard output" if target == "-" else target
        if target == "-":
            self._file = sys.stdout
        elif target is not None:
            try:
                self._file = open(target, "w", encoding="utf-8")  # noqa: SIM115
            except OSError as error:
                raise InputError(
                    f"cannot write {target}: {(error.strerror or str(error)).lower()}"
                ) from None

    def __call__(self, event: dict[str, Any]) -> None:
        """Write one event."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event, default=_plain) + "\n")
            self._file.flush()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            click.echo(f"no more events are written to {self._target}: {why}", err=True)
            # What is still in the buffer must not fail again when the interpreter flushes it.
            with suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._file.fileno())
                os.close(null)
            self._file = None


def _plain(value: object) -> str:
    return value.hex() if isinstance(value, (bytes, memoryview)) else str(value)
