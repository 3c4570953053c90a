"""Error registries and the exceptions of the codec (MOQT-22 §12)."""

from __future__ import annotations

from enum import IntEnum
from typing import Any


class SessionError(IntEnum):
    """Session termination codes (MOQT-22 §12.2)."""

    NO_ERROR = 0x0
    INTERNAL_ERROR = 0x1
    UNAUTHORIZED = 0x2
    PROTOCOL_VIOLATION = 0x3
    INVALID_REQUEST_ID = 0x4
    DUPLICATE_TRACK_ALIAS = 0x5
    KEY_VALUE_FORMATTING_ERROR = 0x6
    INVALID_PATH = 0x8
    MALFORMED_PATH = 0x9
    GOAWAY_TIMEOUT = 0x10
    CONTROL_MESSAGE_TIMEOUT = 0x11
    DATA_STREAM_TIMEOUT = 0x12
    AUTH_TOKEN_CACHE_OVERFLOW = 0x13
    DUPLICATE_AUTH_TOKEN_ALIAS = 0x14
    MALFORMED_AUTH_TOKEN = 0x16
    UNKNOWN_AUTH_TOKEN_ALIAS = 0x17
    EXPIRED_AUTH_TOKEN = 0x18
    INVALID_AUTHORITY = 0x19
    MALFORMED_AUTHORITY = 0x1A
    TOO_MANY_REQUEST_UPDATES = 0x1B


class RequestErrorCode(IntEnum):
    """REQUEST_ERROR codes (MOQT-22 §12.3)."""

    INTERNAL_ERROR = 0x0
    UNAUTHORIZED = 0x1
    TIMEOUT = 0x2
    NOT_SUPPORTED = 0x3
    MALFORMED_AUTH_TOKEN = 0x4
    EXPIRED_AUTH_TOKEN = 0x5
    GOING_AWAY = 0x6
    EXCESSIVE_LOAD = 0x9
    DOES_NOT_EXIST = 0x10
    INVALID_RANGE = 0x11
    MALFORMED_TRACK = 0x12
    # §8.9 asks for this answer, the registry has no row for it: the session table's number.
    UNKNOWN_AUTH_TOKEN_ALIAS = 0x17
    UNINTERESTED = 0x20
    PREFIX_OVERLAP = 0x30
    NAMESPACE_TOO_LARGE = 0x31
    UNSUPPORTED_EXTENSION = 0x33
    REDIRECT = 0x34
    CONFLICTING_FILTERS = 0x35
    INVALID_FILTER = 0x36


class PublishDoneCode(IntEnum):
    """PUBLISH_DONE status codes (MOQT-22 §12.4)."""

    INTERNAL_ERROR = 0x0
    UNAUTHORIZED = 0x1
    TRACK_ENDED = 0x2
    GOING_AWAY = 0x4
    TOO_FAR_BEHIND = 0x5
    EXPIRED = 0x6
    UPDATE_FAILED = 0x8
    EXCESSIVE_LOAD = 0x9
    MALFORMED_TRACK = 0x12


class StreamError(IntEnum):
    """RESET_STREAM and STOP_SENDING codes (MOQT-22 §12.5)."""

    INTERNAL_ERROR = 0x0
    CANCELLED = 0x1
    DELIVERY_TIMEOUT = 0x2
    SESSION_CLOSED = 0x3
    GOING_AWAY = 0x4
    TOO_FAR_BEHIND = 0x5
    UNKNOWN_OBJECT_STATUS = 0x6
    EXPIRED_AUTH_TOKEN = 0x7
    EXCESSIVE_LOAD = 0x9
    MALFORMED_TRACK = 0x12


class NeedMore(Exception):
    """The octets end before the structure does; not an error on a stream that goes on."""


class ProtocolError(Exception):
    """A rule of MOQT was broken; `reason` is one plain sentence that names the rule."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class LocalProtocolError(ProtocolError):
    """We were asked to break the rule: nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer broke the rule: the session closes with `code` (MOQT-22 §12.2)."""

    def __init__(self, reason: str, code: SessionError = SessionError.PROTOCOL_VIOLATION) -> None:
        super().__init__(reason)
        self.code = code


class RequestRefused(ProtocolError):
    """The request is answered with REQUEST_ERROR `code`; the session goes on (MOQT-22 §12.3)."""

    def __init__(self, reason: str, code: RequestErrorCode, retry_interval: int = 0) -> None:
        super().__init__(reason)
        self.code = code
        self.retry_interval = retry_interval


class ObjectTooLarge(ProtocolError):
    """An Object of a stream is larger than we hold: the stream is stopped, the session goes on.

    `location` is (Group ID, Object ID); `size` counts Properties and payload in octets; `items`
    are the stream items that the same call completed before.
    """

    def __init__(self, location: tuple[int, int], size: int, limit: int) -> None:
        super().__init__(f"Object {tuple(location)} has {size} octets, more than {limit}")
        self.location = location
        self.size = size
        self.items: list[Any] = []
