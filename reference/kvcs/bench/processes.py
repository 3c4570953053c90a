"""Roles in processes of their own, and what each of them used."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import resource
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from kvcs.errors import InputError

PATIENCE_S = 30.0

Role: TypeAlias = Callable[["Channel", dict[str, Any]], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far: CPU seconds, and the highest resident memory in octets."""

    cpu_s: float
    peak_octets: int

    def since(self, earlier: Usage) -> Usage:
        """CPU seconds since an earlier time of the same process, and the peak as of now."""
        return Usage(self.cpu_s - earlier.cpu_s, self.peak_octets)


def usage() -> Usage:
    """Of the calling process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Usage(used.ru_utime + used.ru_stime, peak_octets())


def peak_octets() -> int:
    """Highest resident memory of this process.

    Where /proc tells it, it is taken from there: ru_maxrss of Linux starts with the peak of the
    process that started this one.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Channel:
    """The pipe between a role and the process that measures; a message is (name, value)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tell(self, name: str, value: Any = None) -> None:
        """Send without waiting."""
        self._connection.send((name, value))

    async def heard(self) -> tuple[str, Any]:
        """The next message, without blocking the loop; EOFError when the other end is gone."""
        loop = asyncio.get_running_loop()
        arrived = asyncio.Event()
        number = self._connection.fileno()
        loop.add_reader(number, arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(number)
        message: tuple[str, Any] = self._connection.recv()
        return message

    async def answer_usage(self) -> None:
        """Answer each further message with what this process has used, until the other end goes."""
        while True:
            await self.heard()
            self.tell("usage", usage())


class Process:
    """One role at work; `wait` hears its messages in order."""

    def __init__(self, name: str, role: Role, settings: dict[str, Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_run, args=(role, theirs, settings), name=name, daemon=True
        )
        self._process.start()
        theirs.close()

    def tell(self, name: str, value: Any = None) -> None:
        """Send a message to the role."""
        self._connection.send((name, value))

    def ask_usage(self) -> Usage:
        """What the role's process has used so far."""
        self.tell("usage")
        used: Usage = self.wait("usage", PATIENCE_S)
        return used

    def wait(self, name: str, timeout_s: float) -> Any:
        """The value of the role's next message, which must be `name`.

        Raises InputError when the role failed, sent another message, or sent nothing in time.
        """
        if not self._connection.poll(timeout_s):
            raise InputError(f"the {self.name} did not say '{name}' within {timeout_s:.0f} s")
        try:
            got, value = self._connection.recv()
        except EOFError:
            raise InputError(f"the {self.name} ended before it said '{name}'") from None
        if got == "failed":
            raise InputError(f"the {self.name} failed: {value.strip().splitlines()[-1]}")
        if got != name:
            raise InputError(f"the {self.name} said '{got}' instead of '{name}': {value}")
        return value

    def end(self) -> None:
        """Stop the process, by force if it does not go."""
        self._connection.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


Start: TypeAlias = Callable[[str, Role, dict[str, Any]], Process]
"""Start a role under a name with settings."""


@contextlib.contextmanager
def processes() -> Iterator[Start]:
    """Start roles within the block; all of them end with it."""
    started: list[Process] = []

    def start(name: str, role: Role, settings: dict[str, Any]) -> Process:
        started.append(Process(name, role, settings))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            process.end()


def _run(role: Role, connection: Connection, settings: dict[str, Any]) -> None:
    channel = Channel(connection)
    try:
        asyncio.run(role(channel, settings))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass
    except Exception:
        with contextlib.suppress(OSError):
            channel.tell("failed", traceback.format_exc())


def clock() -> float:
    """Seconds on a clock that all processes of this machine share."""
    return time.monotonic()
