"""How a driver makes a session; replaceable, so that a driver can be tested without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from moqt.session import Session, SessionConfig, Transport

SessionFactory: TypeAlias = Callable[[bool, Transport, SessionConfig], Session]


def make_session(is_client: bool, transport: Transport, config: SessionConfig) -> Session:
    """The session that every driver runs unless it is told another."""
    session_class: type[Session] = config.session_class or Session
    return session_class(is_client, transport, config)
