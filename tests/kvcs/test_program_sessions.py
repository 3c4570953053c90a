"""What a program makes of the ends of its sessions."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from kvcs.errors import InputError
from kvcs.programs.options import Events
from kvcs.programs.running import Watched
from moqt.session.events import SessionClosed

URL = "moqt://relay.example"


class Silent:
    """A role that does nothing."""

    def handle_event(self, *event: Any) -> None:
        """Take the event."""


def watched(*, complain: bool = False) -> Watched:
    return Watched(Silent(), Events(None), complain=complain)  # type: ignore[arg-type]


def end(program: Watched, reason: str, *, url: str = URL, came_up: bool = False) -> None:
    """A session of ours to `url` ends."""
    session: Any = Mock(url=url, is_client=True, peer_setup=came_up or None)
    program.handle_event(session, SessionClosed(None, reason, False), 0.0)


def test_a_failure_is_told_once_per_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """Not again at each attempt, but for another reason, and after the session was up."""
    program = watched(complain=True)
    end(program, "refused")
    end(program, "refused")
    end(program, "unreachable")
    end(program, "unreachable", url="moqt://other.example")
    end(program, "unreachable", came_up=True)
    told = capsys.readouterr().err.splitlines()
    assert [
        f"{URL}: refused; trying again",
        f"{URL}: unreachable; trying again",
        "moqt://other.example: unreachable; trying again",
        f"{URL}: unreachable; trying again",
    ] == told


def test_nothing_is_told_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    """A program that ends with its session gives the reason itself."""
    end(watched(), "refused")
    assert "" == capsys.readouterr().err


def test_all_relays_must_fail_before_that_is_an_error() -> None:
    """The first one's reason, with its own URL."""
    program, other = watched(), "moqt://other.example"
    end(program, "unreachable", url=other)
    program.check_reached(URL, other)
    end(program, "refused")
    with pytest.raises(InputError, match=f"^{URL}: refused$"):
        program.check_reached(URL, other)
