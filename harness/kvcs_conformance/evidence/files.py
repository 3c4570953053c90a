"""Where the parts of a result folder are, and writing them whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from kvcs_conformance.errors import UsageError

RESULTS = "results.json"
MAIN_JOB = "main-job.json"
CASES = "cases"
KILL_MATRIX = "kill-matrix.json"
CASE = "case.json"
RUN = "run.json"
LOG_SUFFIX = ".sqlog"
REQUESTS = "requests"
REPORTS = "reports"
KEYLOG = "keylog.txt"
QUIC_LOGS = "quic"
FILES = "files.json"
"""The list of an evidence folder's files with their SHA-256."""
MOST_OCTETS = 1 << 30
"""No file of a result folder is larger."""
REPORT_FILES = {
    "html": "report.html",
    "junit": "junit.xml",
    "tap": "results.tap",
    "markdown": "summary.md",
}
"""Reports by format; they are made from the rest of the folder."""


def case_folder(out: Path, case: str, *, twin: bool = False) -> Path:
    """The evidence folder of one case, or of its twin."""
    folder = out / CASES / case
    return folder / "twin" if twin else folder


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one, the new one, or none.

    Raises UsageError when it cannot be written.
    """
    try:
        _write(path, text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write JSON that people read too."""
    write_atomically(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_octets(path: Path) -> bytes:
    """Read a file of a result folder, which whoever made the folder may have chosen to harm.

    Raises UsageError for what is no regular file, such as a device that never ends, for one beyond
    1 GiB, and when it cannot be read.
    """
    try:
        if not path.is_file():
            why = "not a file" if path.exists() else "No such file or directory"
            raise UsageError(f"{path}: cannot be read: {why}")
        if path.stat().st_size > MOST_OCTETS:
            raise UsageError(f"{path}: cannot be read: over {MOST_OCTETS} octets")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error


def read_json(path: Path) -> Any:
    """Read JSON; raises UsageError when the file is absent or not JSON."""
    octets = read_octets(path)
    try:
        return json.loads(octets.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}") from error


def check_files(folder: Path, needed: Iterable[str] = ()) -> None:
    """Whether the files of an evidence folder are those that its list names, octet for octet.

    `needed` are the names of files that must be in the list. Raises UsageError that names the first
    file that is not as it should be.
    """
    listed = read_json(folder / FILES)
    try:
        entries = [(str(e["path"]), int(e["octets"]), str(e["sha256"])) for e in listed["files"]]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{folder / FILES}: not a list of files with their SHA-256") from error
    for name, octets, digest in entries:
        parts = PurePosixPath(name).parts
        if PurePosixPath(name).is_absolute() or ".." in parts or not parts:
            raise UsageError(f"{folder / FILES}: lists {name!r}, which is not in this folder")
        content = read_octets(folder / name)
        if hashlib.sha256(content).hexdigest() != digest:
            raise UsageError(
                f"{folder / name}: not the file that the run wrote: {len(content)} octets with "
                f"another SHA-256 than {FILES} lists ({octets} octets)"
            )
    missing = sorted(set(needed) - {name for name, _, _ in entries})
    if missing:
        raise UsageError(f"{folder / FILES}: does not list {missing[0]}")


def clear_run(out: Path) -> None:
    """Take away what an earlier run left in its folder; only what has its marks: whoever writes
    a run into a folder of his own keeps what is his."""
    if (out / RESULTS).is_file():
        for saved in sorted((out / CASES).rglob(CASE)):
            shutil.rmtree(saved.parent, ignore_errors=True)
        for folder in sorted((out / CASES).rglob(""), reverse=True):
            with suppress(OSError):
                folder.rmdir()  # those that are empty now
        for name in (RESULTS, MAIN_JOB, *REPORT_FILES.values()):
            (out / name).unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make an output folder; raises UsageError when that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be made: {error.strerror}") from error
