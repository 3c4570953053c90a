"""A timeline as a sequence diagram: inline SVG, styled by the page that it stands in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from kvcs_conformance.report.explanation import Bearing, Explanation
from kvcs_conformance.report.plain import short
from kvcs_conformance.report.timeline import Kind, Row, Timeline

_GUTTER = 70
_FIRST = _GUTTER + 64
_HEAD = 44
_STEP = 30
_FOLD = 24
_STUB = 70
_CHARACTER = 6.2
"""About the width of one character of a label."""

_GAPS = {1: 320, 2: 340, 3: 276}
SIGNS = {Bearing.EXACT: "▶", Bearing.NEAREST: "≈", Bearing.LAST: "■"}
"""How the deciding event is marked, without colour."""

_CLASSES = {Kind.MESSAGE: "a", Kind.OBJECTS: "a o", Kind.RESET: "a r", Kind.CLOSE: "a c"}


@dataclass(frozen=True, slots=True)
class _Fold:
    """So many rows that are not shown."""

    count: int


def diagram(told: Explanation, most: int) -> Markup:
    """The diagram of a case with at most `most` rows, those around the deciding event; "" when
    nothing was seen."""
    story = told.timeline
    if story is None or not story.rows:
        return Markup()
    marked = _marked(told, story)
    entries = list(_folded(story.rows, _chosen(len(story.rows), marked, most)))
    drawing = _Drawing(story, {id(story.rows[i]) for i in marked}, told)
    return drawing.draw(entries)


def _marked(told: Explanation, story: Timeline) -> list[int]:
    """The rows that decide; where nothing was found wrong, those that the findings rest on."""
    if told.decisive is not None:
        places = {told.decisive}
    else:
        logs = {f"{node}.sqlog": node for node in story.nodes}
        named = (seen.place.rpartition(":") for seen in told.seen if seen.place)
        places = {(logs[log], int(line) - 2) for log, _, line in named if log in logs}
    return [i for i, row in enumerate(story.rows) if not places.isdisjoint(row.places)]


def _chosen(count: int, marked: list[int], most: int) -> set[int]:
    """The rows to show: the marked ones, and what is near, before rather than after."""
    if count <= most:
        return set(range(count))
    centres = marked[:most] or [count - 1]
    chosen = set(centres)
    distance = 1
    while len(chosen) < most and distance < count:
        for centre in reversed(centres):
            for i in (centre - 2 * distance + 1, centre - 2 * distance, centre + distance):
                if 0 <= i < count and len(chosen) < most:
                    chosen.add(i)
        distance += 1
    return chosen


def _folded(rows: tuple[Row, ...], chosen: set[int]) -> Iterator[Row | _Fold]:
    skipped = 0
    for i, row in enumerate(rows):
        if i not in chosen:
            skipped += 1
            continue
        if skipped:
            yield _Fold(skipped)
            skipped = 0
        yield row
    if skipped:
        yield _Fold(skipped)


class _Drawing:
    """Rows to SVG; y grows downwards, one step per row."""

    def __init__(self, story: Timeline, marked: set[int], told: Explanation) -> None:
        self._nodes = story.nodes
        self._marked = marked
        self._told = told
        self._gap = _GAPS.get(len(story.nodes), 236)
        self._x = {node: _FIRST + i * self._gap for i, node in enumerate(story.nodes)}
        self._width = _FIRST + (len(story.nodes) - 1) * self._gap + self._gap
        self._time = ""

    def draw(self, entries: Iterable[Row | _Fold]) -> Markup:
        y = _HEAD
        parts: list[Markup] = []
        for entry in entries:
            if isinstance(entry, _Fold):
                parts.append(self._fold(entry, y))
                y += _FOLD
            else:
                parts.append(self._row(entry, y))
                y += _STEP
        height = y + 10
        lines = Markup().join(
            Markup('<path class="l" d="M{0} {1}V{2}"/>').format(x, _HEAD - 10, height)
            for x in self._x.values()
        )
        heads = Markup().join(self._head(node, x) for node, x in self._x.items())
        label = f"Sequence of events between {', '.join(self._nodes)} in {self._told.id}"
        return Markup(
            '<svg class="seq" role="img" aria-label="{0}" width="{1}" height="{2}" '
            'viewBox="0 0 {1} {2}">{3}{4}{5}</svg>'
        ).format(label, self._width, height, lines, heads, Markup().join(parts))

    def _head(self, node: str, x: int) -> Markup:
        under_test = node == self._told.role
        name = short(node, 20)
        kind = Markup(' class="hb s"') if under_test else Markup(' class="hb"')
        return Markup(
            '<rect{0} x="{1}" y="6" width="124" height="28" rx="6"/>'
            '<text class="h" x="{2}" y="24">{3}</text>'
        ).format(kind, x - 62, x, name)

    def _fold(self, fold: _Fold, y: int) -> Markup:
        self._time = ""
        return Markup(
            '<path class="f" d="M{0} {1}H{2}"/><text class="fl" x="{3}" y="{4}">{5}</text>'
        ).format(
            _GUTTER, y + 12, self._width, _GUTTER + 6, y + 16,
            f"⋮ {fold.count} {'row' if fold.count == 1 else 'rows'} not shown",
        )  # fmt: skip

    def _row(self, row: Row, y: int) -> Markup:
        marked = id(row) in self._marked
        time = f"{row.time:.3f} s"
        shown = "" if time == self._time else time
        self._time = time
        parts = []
        if marked:
            parts.append(self._mark(y))
        if shown:
            parts.append(Markup('<text class="m" x="60" y="{0}">{1}</text>').format(y + 19, shown))
        parts.append(self._drawn(row, y))
        weight = Markup(' class="w"') if marked else Markup()
        return Markup("<g{0}>{1}</g>").format(weight, Markup().join(parts))

    def _mark(self, y: int) -> Markup:
        """What decides is on a ground of its own, and a sign says so without colour."""
        if self._told.decisive is None:
            return Markup('<text class="ok" x="4" y="{0}">✓</text>').format(y + 19)
        sign = SIGNS[self._told.bearing]
        return Markup(
            '<rect class="d" x="0" y="{0}" width="{1}" height="{2}" rx="4"/>'
            '<text class="dm" x="3" y="{3}">{4}</text>'
        ).format(y, self._width, _STEP - 2, y + 19, sign)

    def _drawn(self, row: Row, y: int) -> Markup:
        if row.kind is Kind.NETWORK:
            return self._band(row, y)
        return self._arrow(row, y) if row.target else self._event(row, y)

    def _band(self, row: Row, y: int) -> Markup:
        """What befell the network lies across all lifelines."""
        room = self._width - _GUTTER
        return Markup('<path class="n" d="M{0} {1}H{2}"/>{3}').format(
            _GUTTER, y + 15, self._width,
            self._label(f"network: {row.text}", _GUTTER + room // 2, y + 19, room, "t"),
        )  # fmt: skip

    def _event(self, row: Row, y: int) -> Markup:
        x = self._x.get(row.source, _FIRST)
        return Markup('<circle class="e" cx="{0}" cy="{1}" r="3"/>{2}').format(
            x, y + 15, self._label(row.text, x + 9, y + 19, self._gap - 44, "te")
        )

    def _arrow(self, row: Row, y: int) -> Markup:
        start, end = self._ends(row)
        room = abs(end - start) - 8
        line = y + 21
        unknown = "" if row.source in self._x and row.target in self._x else "? "
        tip = end - 5 if end > start else end + 5
        return Markup('<path class="{0}" d="M{1} {2}H{3}"/>{4}').format(
            _CLASSES[row.kind], start, line, tip,
            self._label(unknown + row.text, (start + end) // 2, y + 15, max(room, 160), "t"),
        )  # fmt: skip

    def _ends(self, row: Row) -> tuple[int, int]:
        """Where an arrow begins and ends; a side that nobody knows is a stub."""
        start, end = self._x.get(row.source), self._x.get(row.target)
        if start is None and end is None:
            return _FIRST, _FIRST + _STUB
        if start is None and end is not None:
            return end + _STUB, end
        if end is None and start is not None:
            return start, start + _STUB
        assert start is not None
        assert end is not None
        return start, end

    @staticmethod
    def _label(text: str, x: int, y: int, room: int, style: str) -> Markup:
        shown = short(text, int(room / _CHARACTER))
        title = Markup("<title>{0}</title>").format(text) if shown != text else Markup()
        return Markup('<text class="{0}" x="{1}" y="{2}">{3}{4}</text>').format(
            style, x, y, title, escape(shown)
        )
