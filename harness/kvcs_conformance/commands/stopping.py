"""Being stopped once, and then writing down what there is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def wrapping_up() -> Iterator[None]:
    """What runs within is short, and no second Ctrl-C cuts it off half-way."""
    before = {}
    with suppress(ValueError):  # not the main thread, where no signal arrives
        for number in _SIGNALS:
            before[number] = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
