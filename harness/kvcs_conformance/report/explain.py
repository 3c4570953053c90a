"""An explanation in a screenful of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.report.explanation import Bearing, Explanation, Scene, explain_case
from kvcs_conformance.report.octets import Octets
from kvcs_conformance.report.plain import short

_WIDTH = 98
_LINES = 40
_HEX_COLUMN = 47


class _Room(NamedTuple):
    """How much of each part is shown."""

    clauses: int
    fields: int
    before: int
    opposite: int
    seen: int
    text: int


_ROOMS = (
    _Room(3, 12, 7, 4, 12, 600),
    _Room(2, 8, 6, 3, 12, 400),
    _Room(2, 6, 5, 2, 9, 300),
    _Room(2, 5, 4, 2, 7, 250),
    _Room(1, 4, 3, 1, 5, 190),
    _Room(1, 3, 2, 1, 3, 95),
)


BEARINGS = {
    Bearing.EXACT: "events before it, as {0} saw them",
    Bearing.NEAREST: "no single event shows it; the nearest, as {0} saw it",
    Bearing.LAST: "the last events, as {0} saw them",
}
"""What is said of the events that are shown, by how the last of them bears on the finding."""

SIGNS = {Bearing.EXACT: ">", Bearing.NEAREST: "~", Bearing.LAST: " "}


def find(out: Path, result: dict[str, Any], name: str) -> dict[str, Any]:
    """The case of this name in a run; UsageError, with names like it, when the run has none."""
    cases: list[dict[str, Any]] = result["cases"]
    for case in cases:
        if case["id"] == name:
            return case
    ids = [case["id"] for case in cases]
    near = get_close_matches(name, ids, n=3, cutoff=0.5)
    near += [i for i in ids if name.lower() in i.lower() and i not in near][: 5 - len(near)]
    few = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
    told = f"did you mean {', '.join(near)}?" if near else f"it has {few or 'none'}"
    raise UsageError(f"the run in {out} has no case {name!r}; {told}")


def explain(out: Path, result: dict[str, Any], name: str, catalogue: Catalogue) -> str:
    """The explanation of one case as text; UsageError when the run has no such case."""
    return as_text(explain_case(out, result, find(out, result, name), catalogue), out)


def as_text(told: Explanation, out: Path) -> str:
    """At most 40 lines of at most 98 columns: the less room, the less of what is the least."""
    for room in _ROOMS:
        lines = list(_lines(told, out, room))
        if len(lines) <= _LINES:
            break
    return "\n".join(lines[:_LINES])


def known_words(known: Mapping[str, Any]) -> str:
    """What the overlay of known failures and flakes says of a case."""
    kind = known.get("kind", "failure")
    told = {
        "expired": f"known {kind}, but the entry has expired",
        "differs": f"known {kind}, but of another verdict or reason",
        "unexpected-pass": f"known {kind} that passes",
    }.get(known.get("state", "known"), f"known {kind}")
    until = f", until {known['expires']}" if known.get("expires") else ""
    return f"{told}: {known.get('link', '')}{until}"


def _lines(told: Explanation, out: Path, room: _Room) -> Iterator[str]:
    yield short(f"{told.id}: {told.verdict}" + (f" ({told.reason})" if told.reason else ""), _WIDTH)
    yield from _wrap(told.title, "  ", room.text)
    if told.meaning:
        yield from _wrap(told.meaning, "  ", room.text)
    if told.known:
        yield from _wrap(known_words(told.known), "  ", room.text)
    if told.repeats:
        yield from _wrap(told.repeats, "  ", room.text)
    yield ""
    yield "clause"
    for clause in told.clauses[: room.clauses]:
        text = f"{clause.id} {clause.level} ({clause.clause}): {clause.text}"
        yield from _wrap(text, "  ", room.text)
    rest = [clause.id for clause in told.clauses[room.clauses :]]
    if rest:
        yield from _wrap(f"and {len(rest)} more: {', '.join(rest)}", "  ", _WIDTH)
    yield ""
    if told.found:
        yield from _found(told, room)
        yield from _events(told, room)
    else:
        yield "seen"
        for seen in told.seen[: room.seen]:
            place = f" [{seen.place}]" if seen.place else ""
            yield from _wrap(seen.text + place, "  ", room.text)
        if len(told.seen) > room.seen:
            yield f"  and {len(told.seen) - room.seen} more"
        if not told.seen:
            yield "  nothing"
    if told.twin and not told.found:
        yield f"  the positive twin {told.twin}"
    if told.trouble:
        yield from _wrap(f"evidence that cannot be read: {told.trouble}", "", room.text)
    yield ""
    yield f"evidence  {out / told.evidence}"
    yield f"again     {told.again}"


def _found(told: Explanation, room: _Room) -> Iterator[str]:
    yield "found"
    if told.why and told.why != told.found:
        yield from _wrap(told.why, "  ", room.text)
    yield from _wrap(told.found, "  ", room.text)
    if told.expected:
        yield from _wrap(f"expected: {told.expected}", "  ", room.text)
    if told.observed:
        yield from _wrap(f"observed: {told.observed}", "  ", room.text)
    octets = told.octets
    if octets and not octets.fields:
        of = f" of the {octets.structure}" if octets.structure else ""
        more = f", the first 64 of {octets.count}" if octets.count > 64 else ""
        text = f"octets from {octets.offset}{of}{more}: {octets.hexadecimal}"
        yield from _wrap(text, "  ", room.text)
    elif octets:
        last = octets.offset + octets.count - 1
        yield f"  octets {octets.offset}..{last} of the {octets.structure}:"
        yield from _fields(octets, room.fields)
    for text in told.also[: room.clauses]:
        yield from _wrap(f"also: {text}", "  ", room.text)
    fault = f"at fault: {told.blame or 'nobody is named'}"
    yield f"  {fault}" + (f"; the positive twin {told.twin}" if told.twin else "")
    if told.blame_text:
        yield from _wrap(told.blame_text, "  ", room.text)


def _fields(shown: Octets, most: int) -> Iterator[str]:
    """Offset, octets, name and value. Lengths and counts go first when there is little room, then
    the end; of what was written by hand to be wrong, the middle, where the names stand."""
    fields = shown.fields
    if len(fields) > most:
        fields = tuple(f for f in fields if not f.name.endswith((" length", ": fields")))
    over = max(len(fields) - most, 0)
    head = most // 3 if over and shown.of_attempt else most
    kept = fields[:head] + fields[head + over :]
    octets = [short(field.octets, _HEX_COLUMN) for field in kept]
    column = max(map(len, octets))
    for i, (field, text) in enumerate(zip(kept, octets, strict=True)):
        if over and i == head:
            yield f"         {over} more fields"
        cells = f"{field.offset:>5}  {text:<{column}}  {field.name}"
        yield short(f"  {cells}  {field.value}".rstrip(), _WIDTH)
    if head == most and len(shown.fields) > len(kept):
        yield f"         and {len(shown.fields) - len(kept)} more fields"


def _events(told: Explanation, room: _Room) -> Iterator[str]:
    if told.before is None:
        return
    yield ""
    heading = BEARINGS[told.bearing].format(told.before.node)
    yield f"{heading} ({told.place})"
    yield from _scene(told.before, room.before, SIGNS[told.bearing])
    if told.opposite is not None:
        yield f"at the other end, {told.opposite.node} ({told.opposite.events[-1].place})"
        yield from _scene(told.opposite, room.opposite, ">")


def _scene(scene: Scene, most: int, mark: str) -> Iterator[str]:
    events = scene.events[-most - 1 :]
    for event in events:
        sign = mark if event is events[-1] else " "
        yield short(f"{sign} {event.time:9.4f} s  {event.text}", _WIDTH)


def _wrap(text: str, indent: str, longest: int) -> Iterator[str]:
    yield from textwrap.wrap(
        short(text, longest),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
