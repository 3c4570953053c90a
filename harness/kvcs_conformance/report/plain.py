"""Text from peers made safe to show: nothing invisible, nothing that a terminal obeys, no flood."""

from __future__ import annotations

from typing import Any

from kvcs.inspection.report import printable

_LONGEST = 2000


def plain(text: str, longest: int = _LONGEST) -> str:
    """The text with control, format and surrogate characters written as escapes, cut when long.

    A direction override or a lone surrogate cannot reach a terminal or a file this way, and what is
    left is legal in XML.
    """
    if len(text) > longest:
        return f"{printable(text[:longest])} … ({len(text)} characters)"
    return printable(text)


def short(text: str, longest: int) -> str:
    """Plain text on a line that has room for `longest` characters."""
    told = plain(text)
    return told if len(told) <= longest else f"{told[: longest - 1].rstrip()}…"


def plain_values(value: Any) -> Any:
    """JSON with every text in it, keys too, made plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): plain_values(part) for key, part in value.items()}
    if isinstance(value, list):
        return [plain_values(part) for part in value]
    return value
