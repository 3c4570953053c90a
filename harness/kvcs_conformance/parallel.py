"""Many jobs on several cores: one process per core, one job per process at a time.

A pool of `concurrent.futures` is lost whole when one of its processes dies, and cannot end a job
that hangs. Here each process has a pipe of its own, so the parent always knows which job a process
has: one that dies or takes too long is a lost job, its process is replaced, and the others go on.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, resource_tracker
from multiprocessing.context import BaseContext
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Context = TypeVar("Context")
Item = TypeVar("Item")
Result = TypeVar("Result")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 60.0
"""Seconds that a process has to start, and to be gone once its pipe has ended."""

_READY, _DONE, _RAISED = "ready", "done", "raised"
_STARTING = -1


@dataclass(frozen=True)
class Lost:
    """What there is of a job that did not come to its end: why."""

    text: str


class Watch(Protocol):
    """Who is told which jobs run now, by their place in the list."""

    def started(self, index: int) -> None:
        """A job has begun."""

    def ended(self, index: int) -> None:
        """A job has come to its end, or is lost."""


class Unwatched:
    """Nobody is told."""

    def started(self, index: int) -> None:
        """A job has begun."""

    def ended(self, index: int) -> None:
        """A job is over."""


def run_all(
    function: Callable[[Context, Item], Result],
    context: Context,
    items: Sequence[Item],
    *,
    workers: int,
    limit: Callable[[Item], float],
    watch: Watch,
) -> Generator[tuple[int, Result | Lost], None, None]:
    """Call `function(context, item)` for each item; index and result, in the order of their ends.

    With one worker in this process, with more in as many others: function, context, items and
    results are then pickled, and a job that goes on for more than `limit(item)` seconds is lost.
    An exception that `function` raises is raised here, and ends what still runs. Whoever does not
    take all results must close the generator: processes that run do not hear SIGTERM.
    """
    workers = min(workers, len(items))
    if workers > 1:
        return _Crew(function, context, items, limit, watch).run(workers)
    return _alone(function, context, items, watch)


def _alone(
    function: Callable[[Context, Item], Result],
    context: Context,
    items: Sequence[Item],
    watch: Watch,
) -> Generator[tuple[int, Result | Lost], None, None]:
    for index, item in enumerate(items):
        watch.started(index)
        result = function(context, item)
        watch.ended(index)
        yield index, result


@dataclass
class _Worker:
    """A process with the job that it has (None: no more, -1: it starts), and when that must be
    over."""

    process: BaseProcess
    pipe: Connection[Any, Any]
    index: int | None = None
    ends: float = 0.0


class _Crew(Generic[Context, Item, Result]):
    """The processes of one list of jobs."""

    def __init__(
        self,
        function: Callable[[Context, Item], Result],
        context: Context,
        items: Sequence[Item],
        limit: Callable[[Item], float],
        watch: Watch,
    ) -> None:
        self._function = function
        self._context = context
        self._items = items
        self._limit = limit
        self._watch = watch
        self._next = 0
        self._workers: list[_Worker] = []
        self._processes: BaseContext = multiprocessing.get_context("forkserver")
        # Imported once, by the process that all workers are forked from.
        multiprocessing.set_forkserver_preload(["kvcs_conformance.casework"])

    def run(self, count: int) -> Generator[tuple[int, Result | Lost], None, None]:
        try:
            for _ in range(count):
                self._hire()
            while busy := [worker for worker in self._workers if worker.index is not None]:
                first = min(worker.ends for worker in busy)
                pipes = [worker.pipe for worker in busy]
                ready = connection.wait(pipes, max(0.0, first - time.monotonic()))
                for worker in busy:
                    if worker.pipe in ready:
                        yield from self._heard(worker)
                    elif worker.ends <= time.monotonic():
                        yield self._lost(worker, "it went on for too long")
        finally:
            for worker in self._workers:
                _dismiss(worker)

    def _hire(self) -> None:
        ours, theirs = self._processes.Pipe()
        process = self._processes.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, self._function, self._context), daemon=True
        )
        with _deaf():
            process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours, _STARTING, time.monotonic() + _PATIENCE))

    def _give(self, worker: _Worker) -> None:
        """Hand over the next job, or send the worker home."""
        worker.index = None
        if self._next == len(self._items):
            return
        worker.index = self._next
        worker.ends = time.monotonic() + self._limit(self._items[self._next])
        self._next += 1
        self._watch.started(worker.index)
        try:
            worker.pipe.send(self._items[worker.index])
        except OSError:
            """It has died; the end of its pipe says so."""

    def _heard(self, worker: _Worker) -> Iterator[tuple[int, Result | Lost]]:
        assert worker.index is not None
        try:
            word, value = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(_PATIENCE)
            yield self._lost(worker, f"its process ended: {_ending(worker.process.exitcode)}")
            return
        if word == _RAISED:
            raise value
        index = worker.index
        if word == _DONE:
            self._watch.ended(index)
        self._give(worker)
        if word == _DONE:
            yield index, value

    def _lost(self, worker: _Worker, why: str) -> tuple[int, Lost]:
        assert worker.index is not None
        index = worker.index
        if index == _STARTING:
            raise RuntimeError(f"a process for cases did not start: {why}")
        _dismiss(worker)
        self._workers.remove(worker)
        self._watch.ended(index)
        if self._next < len(self._items):
            self._hire()
        return index, Lost(why)


def _work(
    pipe: Connection[Any, Any], function: Callable[[Context, Item], Result], context: Context
) -> None:
    """What a worker does: one job after the other, until its pipe ends."""
    gc.freeze()  # what was imported stays; jobs leave little behind, so look for it seldom
    gc.set_threshold(100_000, 20, 50)
    with suppress(EOFError, OSError):
        pipe.send((_READY, None))
        while True:
            item = pipe.recv()
            try:
                said: tuple[str, object] = (_DONE, function(context, item))
            except Exception as error:  # raised where the jobs come from
                said = (_RAISED, error)
            pipe.send(said)


def _dismiss(worker: _Worker) -> None:
    worker.pipe.close()
    worker.process.kill()
    worker.process.join()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start within do not hear Ctrl-C: the parent does, and ends them."""
    resource_tracker.ensure_running()  # it would open the ears again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
