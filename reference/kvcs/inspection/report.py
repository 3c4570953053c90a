"""What an inspection found, and how it is shown."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as changed
from itertools import islice

from kvcs.errors import Defect

_ROW = 8
_MAX_ROWS = 4
_WHERE = re.compile(r"octets? (\d+)(?:\.\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Line:
    """One field: octets `start` to `end` (exclusive), or none where text has no fixed place."""

    name: str
    value: str = ""
    meaning: str = ""
    start: int = 0
    end: int = 0
    depth: int = 0


@dataclass(slots=True)
class Report:
    """The explanation of some octets; they are right when nothing is in `defects`."""

    kind: str
    octets: bytes
    lines: list[Line] = field(default_factory=list)
    defects: list[Defect] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(
        self,
        name: str,
        value: object = "",
        meaning: str = "",
        start: int = 0,
        end: int = 0,
        depth: int = 0,
    ) -> None:
        """Append a line."""
        self.lines.append(Line(name, str(value), meaning, start, end, depth))

    def include(self, other: Report, offset: int, depth: int) -> None:
        """Take over what was found in octets that start at `offset` of ours."""
        for line in other.lines:
            self.lines.append(
                changed(
                    line,
                    start=line.start + offset,
                    end=line.end + offset,
                    depth=line.depth + depth,
                )
            )
        self.defects += [shifted(defect, offset) for defect in other.defects]
        self.notes += [note for note in other.notes if note not in self.notes]

    def wrong_lines(self) -> list[bool]:
        """For each line, whether a defect lies in its octets or names its path."""
        paths = {defect.where for defect in self.defects}
        spans: list[list[int]] = []
        for start, end in sorted(_range_of(defect) for defect in self.defects):
            if spans and start <= spans[-1][1]:
                spans[-1][1] = max(end, spans[-1][1])
            else:
                spans.append([start, end])
        ends = [end for _, end in spans]
        return [line.name in paths or _overlaps(line, spans, ends) for line in self.lines]


def _overlaps(line: Line, spans: list[list[int]], ends: list[int]) -> bool:
    first = bisect_right(ends, line.start)
    return line.end > line.start and first < len(spans) and spans[first][0] < line.end


def where(start: int, end: int) -> str:
    """A range of octets in the words of a Defect; `end` is exclusive."""
    return f"octet {start}" if end - start <= 1 else f"octets {start}..{end - 1}"


def shifted(defect: Defect, offset: int) -> Defect:
    """The defect of inner octets, told in the octets around them."""
    start, end = _range_of(defect)
    return changed(defect, where=where(start + offset, end + offset)) if end else defect


def _range_of(defect: Defect) -> tuple[int, int]:
    match = _WHERE.fullmatch(defect.where)
    if match is None:
        return 0, 0
    start = int(match[1])
    return start, int(match[2] or start) + 1


def printable(text: str) -> str:
    """The text with every control, format and surrogate character escaped."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def as_json(report: Report) -> dict[str, object]:
    """The report as JSON members; long octet strings are cut to 1024 octets."""
    return {
        "kind": report.kind,
        "octets": len(report.octets),
        "right": not report.defects,
        "lines": [
            {
                "name": line.name,
                "value": line.value,
                "meaning": line.meaning,
                "depth": line.depth,
                "wrong": wrong,
            }
            | (
                {
                    "start": line.start,
                    "end": line.end,
                    "hex": report.octets[line.start : min(line.end, line.start + 1024)].hex(),
                }
                if line.end > line.start
                else {}
            )
            for line, wrong in zip(report.lines, report.wrong_lines(), strict=True)
        ],
        "defects": [
            {
                "name": defect.name,
                "clause": defect.clause,
                "what": defect.what,
                "where": defect.where,
                "mandatory": defect.mandatory,
            }
            for defect in report.defects
        ],
        "notes": report.notes,
    }


def as_text(report: Report) -> str:
    """The report for a reader at a terminal; nothing of the input reaches it raw."""
    count = len(report.octets)
    rows = [f"{report.kind}, {count} octet{'' if count == 1 else 's'}", ""]
    shown = [("", "offset", "octets", "field", "value", "meaning"), *_rows(report)]
    # A few very long names or values do not push everything else off the screen.
    widths = [min(36, max(len(row[column]) for row in shown)) for column in range(6)]
    if not any(row[1] for row in shown[1:]):
        shown = [(row[0], "", "", *row[3:]) for row in shown]
        widths[1] = widths[2] = 0
    for mark, offset, octets, *rest in shown:
        cells = [f"{mark:1}"]
        if widths[1]:
            cells += [f"{offset:>{widths[1]}}", f"{octets:<{widths[2]}}"]
        cells += [f"{text:<{width}}" for text, width in zip(rest, widths[3:], strict=True)]
        rows.append("  ".join(cells).rstrip())
    rows += ["", *(f"note: {printable(note)}" for note in report.notes)]
    if not report.defects:
        return "\n".join([*rows, "right: nothing is wrong with it"])
    number = len(report.defects)
    rows.append(f"wrong: {number} defect{'' if number == 1 else 's'}")
    for defect in report.defects:
        weight = "" if defect.mandatory else ", not demanded by a MUST"
        rows.append(
            printable(f"  {defect.where}: {defect.what} [{defect.name}, {defect.clause}{weight}]")
        )
    return "\n".join(rows)


def _rows(report: Report) -> Iterator[tuple[str, str, str, str, str, str]]:
    for line, wrong in zip(report.lines, report.wrong_lines(), strict=True):
        mark = "!" if wrong else ""
        name = printable("  " * line.depth + line.name)
        pieces = list(_hex_rows(report.octets, line))
        offset, octets = pieces[0] if pieces else ("", "")
        yield mark, offset, octets, name, printable(line.value), printable(line.meaning)
        for offset, octets in pieces[1:]:
            yield mark, offset, octets, "", "", ""


def _hex_rows(octets: bytes, line: Line) -> Iterable[tuple[str, str]]:
    starts = range(line.start, line.end, _ROW)
    for start in islice(starts, _MAX_ROWS):
        yield str(start), octets[start : min(start + _ROW, line.end)].hex(" ")
    left = line.end - line.start - _ROW * _MAX_ROWS
    if left > 0:
        yield "", f"... {left} more"
