"""A limit of wall-clock time for what should never take long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_AGAIN = 5.0


class TookTooLong(Exception):
    """Something went on past its limit of wall-clock time."""


@contextmanager
def alarm(limit: float | None) -> Iterator[None]:
    """Raise TookTooLong in what runs within, after `limit` seconds; and again, if it goes on.

    Does nothing without a limit, outside the main thread, or where the system has no such timer.
    """
    main = threading.current_thread() is threading.main_thread()
    if limit is None or not main or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise TookTooLong(f"not over after {limit:g} s of real time")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
