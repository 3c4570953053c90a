"""Octets as a case writes them down: by hand from the standard, never by an encoder of ours.

    03 [00 01 (6c697665) ('video') 01 21 05] fin

Hex octets stand for themselves and 'text' for its ASCII; [ … ] puts the 16-bit length before what
it holds, as control messages have it, ( … ) the length as vi64; *9 repeats what stands before it;
$name is something that only the run knows; | separates for the eye. `fin` or `reset` at the end
ends the stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s+|\||(?P<hex>(?:[0-9a-f]{2})+)(?![0-9a-z])|'(?P<text>[^']*)'|\$(?P<name>[a-z]+)"
    r"|\*(?P<times>\d+)|(?P<open>[\[(])|(?P<close>[\])])|(?P<end>fin|reset)\b"
)
_LENGTHS = {"[": "]", "(": ")"}


class NotationError(ValueError):
    """The notation says nothing; the text says where."""


@dataclass(frozen=True, slots=True)
class Written:
    """Octets, and what ends their stream: `fin`, `reset`, or nothing."""

    octets: bytes
    end: str = ""


def vi64(value: int) -> bytes:
    """An integer in as few octets as may be: the leading ones count those that follow the first
    (MOQT-22 §8.1)."""
    for length in range(1, 9):
        if value < 1 << (7 * length):
            ones = 0xFF & (0xFF << (9 - length)) if length > 1 else 0
            return (value | ones << 8 * (length - 1)).to_bytes(length, "big")
    return b"\xff" + value.to_bytes(8, "big")


def octets(notation: str, known: Mapping[str, bytes]) -> Written:
    """What the notation stands for; raises NotationError."""
    items: list[list[bytes]] = [[]]
    brackets: list[str] = []
    end = ""
    position = 0
    while position < len(notation):
        found = _TOKEN.match(notation, position)
        if found is None or (end and found.lastgroup):
            raise NotationError(f"{notation!r} says nothing at {notation[position:][:12]!r}")
        position = found.end()
        match found.lastgroup, found[found.lastgroup or 0]:
            case "hex", digits:
                items[-1] += [bytes.fromhex(digits)]
            case "text", text:
                items[-1] += [text.encode("ascii")]
            case "name", name:
                if name not in known:
                    raise NotationError(f"${name} is unknown; known: {', '.join(known)}")
                items[-1] += [known[name]]
            case "times", times:
                if not items[-1]:
                    raise NotationError(f"*{times} has nothing before it")
                items[-1][-1] *= int(times)
            case "open", bracket:
                brackets.append(bracket)
                items.append([])
            case "close", bracket:
                if not brackets or _LENGTHS[brackets[-1]] != bracket:
                    raise NotationError(f"{notation!r}: {bracket} closes nothing")
                inner = b"".join(items.pop())
                length = len(inner)
                head = length.to_bytes(2, "big") if brackets.pop() == "[" else vi64(length)
                items[-1] += [head + inner]
            case "end", word:
                end = word
    if brackets:
        raise NotationError(f"{notation!r}: {brackets[-1]} is not closed")
    return Written(b"".join(items[0]), end)
