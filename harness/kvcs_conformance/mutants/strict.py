"""Relays whose sessions close for what they must bear, or close with a wrong code."""

from __future__ import annotations

from moqt.session import Session
from moqt.wire.errors import RemoteProtocolError, SessionError

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

CODE = (Reason.CLOSE_CODE,)
CLOSED = (Reason.CLOSE_UNEXPECTED,)

PADDING_STREAM = bytes.fromhex("f0132b3e28")
PADDING_DATAGRAM = bytes.fromhex("f0132b3e29")


class Coarse(Session):
    """A session that closes with PROTOCOL_VIOLATION where the rule names `code`."""

    code = SessionError.PROTOCOL_VIOLATION

    def fail(self, error: RemoteProtocolError) -> None:
        """See `Session.fail`."""
        if error.code == self.code:
            error = RemoteProtocolError(error.reason)
        super().fail(error)


@mutant(
    "relay/closes-ids-with-protocol-violation",
    requires=("MOQT-R056", "MOQT-R057"),
    reasons=CODE,
)
class ClosesIdsWithProtocolViolation(Coarse):
    """A wrong Request ID closes with PROTOCOL_VIOLATION."""

    code = SessionError.INVALID_REQUEST_ID


@mutant(
    "relay/closes-tokens-with-protocol-violation",
    requires=("MOQT-R049", "MOQT-R101"),
    reasons=CODE,
)
class ClosesTokensWithProtocolViolation(Coarse):
    """A Token that does not decode closes with PROTOCOL_VIOLATION."""

    code = SessionError.KEY_VALUE_FORMATTING_ERROR


@mutant("relay/closes-aliases-with-protocol-violation", requires=("MOQT-R102",), reasons=CODE)
class ClosesAliasesWithProtocolViolation(Coarse):
    """A token alias that is in use and registered again closes with PROTOCOL_VIOLATION."""

    code = SessionError.DUPLICATE_AUTH_TOKEN_ALIAS


@mutant("relay/closes-updates-with-protocol-violation", requires=("MOQT-R039",), reasons=CODE)
class ClosesUpdatesWithProtocolViolation(Coarse):
    """Too many updates close with PROTOCOL_VIOLATION."""

    code = SessionError.TOO_MANY_REQUEST_UPDATES


class _Choosy(Session):
    """A session that looks at the types of the peer's unknown Setup Options."""

    def _setup_received(self) -> None:
        assert self.peer_setup is not None
        if self.dislikes([kind for kind, _ in self.peer_setup.unknown]):
            self.close(SessionError.PROTOCOL_VIOLATION, "an option is not liked")
        else:
            super()._setup_received()

    def dislikes(self, kinds: list[int]) -> bool:
        """Whether it closes for these."""
        return False


@mutant("relay/closes-on-unknown-option", requires=("MOQT-R028", "MOQT-R030"), reasons=CLOSED)
class ClosesOnUnknownOption(_Choosy):
    """A Setup Option that is unknown closes the session, unless it is grease."""

    def dislikes(self, kinds: list[int]) -> bool:
        return any(not _grease(kind) for kind in kinds)


@mutant("relay/closes-on-repeated-unknown-option", requires=("MOQT-R030",), reasons=CLOSED)
class ClosesOnRepeatedUnknownOption(_Choosy):
    """A Setup Option that is unknown closes the session when it comes twice."""

    def dislikes(self, kinds: list[int]) -> bool:
        return len(set(kinds)) < len(kinds)


@mutant("relay/closes-on-grease", requires=("MOQT-R055",), reasons=CLOSED)
class ClosesOnGrease(_Choosy):
    """A Setup Option of the reserved values closes the session."""

    def dislikes(self, kinds: list[int]) -> bool:
        return any(map(_grease, kinds))


def _grease(kind: int) -> bool:
    return kind >= 0x9D and (kind - 0x9D) % 0x7F == 0


@mutant("relay/closes-on-padding-stream", requires=("MOQT-R052",), reasons=CLOSED)
class ClosesOnPaddingStream(Session):
    """A padding stream closes the session."""

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        if stream_id & 2 and bytes(data[:5]) == PADDING_STREAM:
            self.close(SessionError.PROTOCOL_VIOLATION, "padding")
        super().stream_data(stream_id, data, fin, now)


@mutant("relay/closes-on-padding-datagram", requires=("MOQT-R053",), reasons=CLOSED)
class ClosesOnPaddingDatagram(Session):
    """A padding datagram closes the session."""

    def datagram(self, data: bytes, now: float) -> None:
        if data.startswith(PADDING_DATAGRAM):
            self.close(SessionError.PROTOCOL_VIOLATION, "padding")
        super().datagram(data, now)


@mutant("relay/refuses-32-fields", requires=("MOQT-R009",), reasons=CLOSED)
class Refuses32Fields(Session):
    """A namespace of 32 fields closes the session."""

    def stream_data(self, stream_id: int, data: bytes | memoryview, fin: bool, now: float) -> None:
        if not stream_id & 2 and b"\x20" + b"\x01a" * 32 in bytes(data):
            self.close(SessionError.PROTOCOL_VIOLATION, "too many fields")
        super().stream_data(stream_id, data, fin, now)
