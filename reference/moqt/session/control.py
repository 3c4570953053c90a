"""The control streams: SETUP in both directions, GOAWAY, and nothing else (MOQT-22 §6.3, §9.1)."""

from __future__ import annotations

import re
from collections.abc import Callable

from moqt.session.core import Core
from moqt.session.events import GoawayReceived, SetupReceived
from moqt.session.timers import Timer
from moqt.session.tokens import ReceivedTokens, SentTokens
from moqt.wire.codec import MessageReader
from moqt.wire.errors import LocalProtocolError, RemoteProtocolError, SessionError
from moqt.wire.messages import Goaway, Message, Setup, SetupOptions
from moqt.wire.tokens import AliasType, Token

_PATH = re.compile(
    rb"(?:/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*)?"
    rb"(?:\?(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*)?"
)
_AUTHORITY = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+)(?::[0-9]*)?"
)


class Control:
    """Our control stream and the peer's."""

    def __init__(self, core: Core, on_setup: Callable[[], None]) -> None:
        """Raises LocalProtocolError for Setup Options that our side may not send."""
        self._core = core
        self._on_setup = on_setup
        self._ours: int | None = None
        self._peers: int | None = None
        self._reader = MessageReader(core.draft)
        self._timer: Timer | None = None
        self.goaway_sent = False
        self.goaway_received = False
        self.peer_tokens: tuple[Token, ...] = ()
        self.received_tokens = ReceivedTokens(core.config.setup.max_auth_token_cache_size)
        self.sent_tokens = SentTokens()
        options = core.config.setup
        if not core.is_client and (options.path is not None or options.authority is not None):
            raise LocalProtocolError("a server sends neither PATH nor AUTHORITY")
        if any(
            token.alias_type in (AliasType.DELETE, AliasType.USE_ALIAS)
            for token in options.authorization_tokens
        ):
            raise LocalProtocolError("SETUP carries no token with DELETE or USE_ALIAS")
        self._frame = core.encode(Setup(options))

    def start(self) -> None:
        """Open our control stream with SETUP on it, and wait for the peer's."""
        self._expect()
        self._open()

    def _open(self) -> None:
        core = self._core
        self._ours = core.transport.open_stream(unidirectional=True)
        if self._ours is not None:
            core.note("moqt:stream_opened", stream=self._ours, kind="control", header=None)
            core.write(self._ours, Setup(core.config.setup), self._frame)

    def flush(self) -> None:
        """Stream credit may have come."""
        if self._ours is None:
            self._open()

    @property
    def stream_id(self) -> int | None:
        """Our control stream."""
        return self._ours

    def stopped(self) -> None:
        """The peer does not want our control stream: it ends it as much as a reset would."""
        raise RemoteProtocolError("the peer sent STOP_SENDING for our control stream")

    @property
    def started(self) -> bool:
        """Whether our SETUP went out: nothing else goes before it."""
        return self._ours is not None

    def _expect(self) -> None:
        core = self._core
        if self._timer is None or not self._timer.live:
            self._timer = core.timers.at(
                core.later(core.config.control_message_timeout), core.control_timeout
            )

    # What the peer sends.

    def data(self, stream_id: int, data: bytes | memoryview, fin: bool) -> None:
        """Octets of a stream that began as a control stream."""
        if self._peers is None:
            self._peers = stream_id
            self._core.note("moqt:stream_accepted", stream=stream_id, kind="control", header=None)
        elif self._peers != stream_id:
            raise RemoteProtocolError("the peer opened a second control stream")
        self._reader.feed(data)
        while (found := self._reader.next()) is not None:
            if self._timer is not None:
                self._timer.cancel()
            message, raw = found
            self._core.note("moqt:message_received", stream=stream_id, message=message, raw=raw)
            self._receive(message)
            if self._core.closed:
                return
        if fin:
            raise RemoteProtocolError("the peer ended its control stream")
        if self._reader.pending:
            self._expect()

    def _receive(self, message: Message) -> None:
        match message:
            case Setup(options=options) if self._core.peer_setup is None:
                self._setup(options)
            case Goaway() if self._core.peer_setup is not None:
                if self.goaway_received:
                    raise RemoteProtocolError("a second GOAWAY came on the control stream")
                check_goaway(self._core, message)
                self.goaway_received = True
                self._core.emit(GoawayReceived(None, message))
            case _:
                raise RemoteProtocolError(
                    f"{type(message).__name__} may not stand on a control stream here"
                )

    def _setup(self, options: SetupOptions) -> None:
        core = self._core
        check_options(options, from_client=not core.is_client)
        self.peer_tokens = self.received_tokens.from_setup(options.authorization_tokens)
        self.sent_tokens.peer_limit(
            options.max_auth_token_cache_size, core.config.setup.authorization_tokens
        )
        core.peer_setup = options
        core.emit(SetupReceived(options))
        self._on_setup()

    # GOAWAY.

    def goaway(self, message: Goaway, on_time: Callable[[], None]) -> None:
        """Send GOAWAY for the session; `on_time` is called when its time is over."""
        core = self._core
        if self.goaway_sent:
            raise LocalProtocolError("GOAWAY was sent already")
        if self._ours is None:
            raise LocalProtocolError("GOAWAY cannot go before SETUP")
        if core.is_client and message.uri:
            raise LocalProtocolError("the GOAWAY of a client has no URI")
        core.write(self._ours, message, core.encode(message))
        self.goaway_sent = True
        if message.timeout:
            core.timers.at(core.later(message.timeout / 1000), on_time)


def check_goaway(core: Core, message: Goaway) -> None:
    """Raise RemoteProtocolError for a URI from a client (MOQT-22 §9.2)."""
    if message.uri and not core.is_client:
        raise RemoteProtocolError("the GOAWAY of a client has a URI")


def check_options(options: SetupOptions, *, from_client: bool) -> None:
    """Refuse PATH and AUTHORITY from a server, and malformed ones (MOQT-22 §9.1.1, §9.1.2)."""
    if options.path is not None:
        if not from_client:
            raise RemoteProtocolError("a server sent PATH", SessionError.INVALID_PATH)
        if not _PATH.fullmatch(options.path):
            raise RemoteProtocolError("PATH is no path and query", SessionError.MALFORMED_PATH)
    if options.authority is not None:
        if not from_client:
            raise RemoteProtocolError("a server sent AUTHORITY", SessionError.INVALID_AUTHORITY)
        if not _AUTHORITY.fullmatch(options.authority):
            raise RemoteProtocolError(
                "AUTHORITY is no host and port", SessionError.MALFORMED_AUTHORITY
            )
