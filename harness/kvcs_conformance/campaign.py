"""Running many cases: over cores, from where an earlier run stopped, with a result at any time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.casework import Orders, lost_entry, work_on
from kvcs_conformance.outcome import Outcome, not_run
from kvcs_conformance.parallel import Lost, Watch, run_all
from kvcs_conformance.report.results import row, whole, write
from kvcs_conformance.runner import save

Finish = Callable[[dict[str, Any]], dict[str, Any]]

_FEW = {"memory": 50, "quic": 3}
"""With so many runs of cases at most, starting other processes costs more than it saves."""

_WRITE_EVERY = 2.0


def workers_for(jobs: int | None, link: str, runs: int) -> int:
    """How many processes to use: as many as asked for, or one per core if that pays."""
    if jobs is not None:
        return jobs
    if runs <= _FEW[link]:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Campaign:
    """A run of cases; `entries` are those of the result that are known, by case id."""

    def __init__(
        self, cases: Iterable[Case], orders: Orders, known: Mapping[str, dict[str, Any]]
    ) -> None:
        self.cases = tuple(cases)
        self.orders = orders
        self.entries = {case.id: known[case.id] for case in self.cases if case.id in known}
        self._written = 0.0

    @property
    def remaining(self) -> tuple[Case, ...]:
        """The cases that have not been run."""
        return tuple(case for case in self.cases if case.id not in self.entries)

    def run(self, *, workers: int, watch: Watch) -> None:
        """Run what remains.

        KeyboardInterrupt passes through: what was run by then is kept, the rest is not run.
        """
        todo = self.remaining
        self._write()
        finished = run_all(
            work_on, self.orders, todo, workers=workers, limit=self.orders.longest, watch=watch
        )
        with closing(finished):
            for index, entry in finished:
                if isinstance(entry, Lost):
                    self.lose(todo[index], entry.text)
                else:
                    self.entries[todo[index].id] = entry
                if self.orders.out and time.monotonic() > self._written + _WRITE_EVERY:
                    self._write()

    def lose(self, case: Case, why: str) -> None:
        """Give up a case whose process did not come to an end with it."""
        self.entries[case.id] = lost_entry(self.orders, case, why)

    def close(self, finish: Finish) -> dict[str, Any]:
        """The result as `finish` marks it, written; with the cases that were not run."""
        if self.orders.out is not None:
            for case in self.remaining:
                save(self._not_run(case), self.orders.out)
        return self._write(finish)

    def _not_run(self, case: Case) -> Outcome:
        return not_run(case, self.orders.link, self.orders.sides.remote)

    def result(self, entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """The result of this run, with these entries."""
        orders = self.orders
        return whole(
            entries,
            orders.catalogue,
            link=orders.link,
            seed=orders.seed,
            peers=orders.sides.names,
            more=orders.more,
        )

    def _write(self, finish: Finish = lambda result: result) -> dict[str, Any]:
        orders = self.orders
        missing = [row(self._not_run(case), orders.link) for case in self.remaining]
        result = finish(self.result([*self.entries.values(), *missing]))
        if orders.out is not None:
            write(orders.out, result)
            self._written = time.monotonic()
        return result
