"""Session: one MOQT connection as a state machine without I/O (MOQT-22 §3 to §9)."""

from moqt.session.config import SessionConfig
from moqt.session.fetching import FetchFailed, FetchItem, FetchSender, FetchSource, FetchState
from moqt.session.publication import SubscriptionSender
from moqt.session.requests import Request, RequestKind, RequestState
from moqt.session.session import Session
from moqt.session.transport import Transport

__all__ = [
    "FetchFailed",
    "FetchItem",
    "FetchSender",
    "FetchSource",
    "FetchState",
    "Request",
    "RequestKind",
    "RequestState",
    "Session",
    "SessionConfig",
    "SubscriptionSender",
    "Transport",
]
