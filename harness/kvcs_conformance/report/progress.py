"""What runs now, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """A line that says how many are done and which run now."""

    def __init__(self, names: Sequence[str], bar: Progress) -> None:
        self._names = names
        self._bar = bar
        self._task: TaskID = bar.add_task("", total=len(names))
        self._now: dict[int, str] = {}

    def started(self, index: int) -> None:
        """A job has begun."""
        self._now[index] = self._names[index]
        self._show()

    def ended(self, index: int) -> None:
        """A job is over."""
        del self._now[index]
        self._bar.advance(self._task)
        self._show()

    def _show(self) -> None:
        self._bar.update(self._task, description="  ".join(self._now.values()))


@contextmanager
def progress(names: Sequence[str]) -> Iterator[Bar]:
    """A bar over these jobs; on a terminal only, and it goes away at the end."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from kvcs_conformance.report.console import Page

    console = Page(highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as shown:
        yield Bar(names, shown)
