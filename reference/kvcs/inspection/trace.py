"""Reading octets field by field while writing down what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeAlias

from moqt.wire.errors import NeedMore
from moqt.wire.varint import Cursor

from kvcs.errors import Defect
from kvcs.inspection.report import Report, where

Meaning: TypeAlias = str | Callable[[int], str]


class Stop(Exception):
    """The defect that was just written down makes everything after it unreadable."""


class Trace:
    """A cursor over `report.octets[start:end]` that adds a line for each field it reads."""

    def __init__(self, report: Report, start: int = 0, end: int | None = None) -> None:
        self.report = report
        self.depth = 0
        self._cursor = Cursor(report.octets, start, end)
        self._end = len(report.octets) if end is None else end

    @property
    def offset(self) -> int:
        """The octet that is read next."""
        return self._cursor.offset

    @property
    def left(self) -> int:
        """Octets that are not read yet."""
        return self._cursor.left

    def integer(self, name: str, meaning: Meaning = "", form: str = "d") -> int:
        """A vi64 (MOQT-22 §8.1); `form` is how its value is shown."""
        return self._number(name, meaning, self._cursor.vi, form)

    def octet(self, name: str, meaning: Meaning = "") -> int:
        """One octet."""
        return self._number(name, meaning, self._cursor.u8)

    def short(self, name: str, meaning: Meaning = "") -> int:
        """Two octets, most significant first."""
        return self._number(name, meaning, self._cursor.u16)

    def raw(
        self, name: str, count: int, meaning: str = "", show: Callable[[bytes], str] = bytes.hex
    ) -> bytes:
        """`count` octets; an empty field adds no line."""
        start = self.offset
        if count > self.left:
            what = f"{name} has {count} octets, {self.left} are left"
            self.stop("truncated", "MOQT-22 §8", what, start, start + self.left)
        octets = self._cursor.raw(count)
        if octets:
            self._add(name, show(octets), meaning, start)
        return octets

    def inner(self, count: int) -> Trace:
        """A trace over the next `count` octets, one level deeper; we go on behind them."""
        start = self.offset
        if count > self.left:
            what = f"{count} octets are announced, {self.left} are left"
            self.stop("truncated", "MOQT-22 §8", what, start, start + self.left)
        self._cursor.raw(count)
        trace = Trace(self.report, start, start + count)
        trace.depth = self.depth + 1
        return trace

    def heading(self, name: str, value: object = "", meaning: str = "") -> None:
        """A line without octets of its own, before the fields that belong to it."""
        self.report.add(name, value, meaning, depth=self.depth)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Lines of the block are indented."""
        self.depth += 1
        yield
        self.depth -= 1

    def wrong(self, name: str, clause: str, what: str, start: int, end: int | None = None) -> None:
        """Write down a defect and go on."""
        stop = self.offset if end is None else end
        self.report.defects.append(Defect(name, clause, what, where(start, stop)))

    def stop(
        self, name: str, clause: str, what: str, start: int, end: int | None = None
    ) -> NoReturn:
        """Write down a defect after which nothing can be read; always raises Stop."""
        self.wrong(name, clause, what, start, end)
        raise Stop

    def _number(self, name: str, meaning: Meaning, read: Callable[[], int], form: str = "d") -> int:
        start = self.offset
        try:
            value = read()
        except NeedMore:
            self.stop(
                "truncated", "MOQT-22 §8", f"the octets end before {name} does", start, self._end
            )
        self._add(
            name,
            format(value, form),
            meaning if isinstance(meaning, str) else meaning(value),
            start,
        )
        return value

    def _add(self, name: str, value: str, meaning: str, start: int) -> None:
        self.report.add(name, value, meaning, start, self.offset, self.depth)
