"""What a user can get wrong: one clear line and exit code 2 instead of a traceback."""

from __future__ import annotations

from pathlib import Path


class UsageError(Exception):
    """A request that cannot be served as it was put; the message is one plain line."""


class DataError(UsageError):
    """A data file breaks its rules; names the file and the line."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path = path
        self.line = line


class SetupFailed(Exception):
    """A step before the judged behaviour did not come to be; the case is blocked."""
