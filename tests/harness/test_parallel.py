"""Jobs on several cores: every job is accounted for, whatever becomes of its process."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from kvcs_conformance.alarm import TookTooLong, alarm
from kvcs_conformance.campaign import workers_for
from kvcs_conformance.errors import UsageError
from kvcs_conformance.parallel import Lost, run_all


class Log:
    """Who is told what runs."""

    def __init__(self) -> None:
        self.now: set[int] = set()
        self.seen: list[int] = []

    def started(self, index: int) -> None:
        """Begun."""
        self.now.add(index)
        self.seen.append(index)

    def ended(self, index: int) -> None:
        """Over."""
        self.now.remove(index)


def job(context: str, item: str) -> str:
    """A job that does what its item says."""
    if item == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    elif item == "leaves":
        os._exit(7)
    elif item == "hangs":
        threading.Event().wait()
    elif item == "refuses":
        raise UsageError("not here")
    return f"{context} {item}"


def outcome(items: list[str], workers: int = 2, limit: float = 60.0) -> dict[str, object]:
    """What became of each item."""
    log = Log()
    results = run_all(job, "did", items, workers=workers, limit=lambda item: limit, watch=log)
    told = {items[index]: result for index, result in results}
    assert (set(), list(range(len(items)))) == (log.now, sorted(log.seen))
    return told


@pytest.mark.slow
def test_a_job_whose_process_dies_is_lost_and_the_others_go_on() -> None:
    """The job is named with how its process ended; another process does the rest."""
    items = ["dies", "a", "leaves", "b", "c"]
    assert {
        "dies": Lost("its process ended: SIGKILL"),
        "a": "did a",
        "leaves": Lost("its process ended: exit code 7"),
        "b": "did b",
        "c": "did c",
    } == outcome(items)


@pytest.mark.slow
def test_a_job_that_hangs_is_lost_and_the_others_go_on() -> None:
    """Past its limit its process is ended and replaced."""
    assert {"hangs": Lost("it went on for too long"), "a": "did a", "b": "did b"} == outcome(
        ["hangs", "a", "b"], limit=1.5
    )


@pytest.mark.slow
def test_what_a_job_refuses_is_raised_where_the_jobs_come_from() -> None:
    """In this process or in another, the same error ends all."""
    for workers in (1, 2):
        with pytest.raises(UsageError, match="not here"):
            outcome(["a", "refuses", "b"], workers)


def test_one_worker_is_this_process() -> None:
    """With one worker or one item no other process is started."""
    assert {"a": "did a", "b": "did b"} == outcome(["a", "b"], workers=1)
    assert {"a": "did a"} == outcome(["a"], workers=8)


def test_other_processes_are_used_where_that_is_faster() -> None:
    """As many as asked for; else one for a few cases on the simulated network."""
    assert 5 == workers_for(5, "memory", 1)
    assert 1 == workers_for(None, "memory", 20)
    assert len(os.sched_getaffinity(0)) == workers_for(None, "memory", 200)


def forever() -> None:
    """Goes on for too long."""
    while True:
        pass


def test_an_alarm_ends_what_goes_on_for_too_long() -> None:
    """TookTooLong is raised within, and nothing rings afterwards."""
    with pytest.raises(TookTooLong, match=r"not over after 0\.02 s"), alarm(0.02):
        forever()
    with alarm(60.0):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
    with alarm(None):
        assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)


class Poison:
    """A value that no other process can take in."""

    def __setstate__(self, state: object) -> None:
        """Never well."""
        raise ValueError("poison")

    def __getstate__(self) -> str:
        """Something, so that it is taken in."""
        return "poison"


def taken(context: Poison, item: str) -> str:
    """A job that is never reached."""
    return item


@pytest.mark.slow
def test_processes_that_cannot_start_end_all() -> None:
    """Nothing is lost one by one: the fault is that of the harness as a whole."""
    with pytest.raises(RuntimeError, match="did not start: its process ended: exit code 1"):
        next(
            run_all(
                taken,
                Poison(),
                ["a", "b"],
                workers=2,
                limit=lambda item: 60.0,
                watch=Log(),
            )
        )
