"""The console that tables are printed on."""

from __future__ import annotations

from rich.console import Console


class Page(Console):
    """A console that lets the command line say that nobody reads its output any more."""

    def on_broken_pipe(self) -> None:
        """Raise the BrokenPipeError on; rich would exit with 1, which means fail."""
        raise
