"""Relays whose sessions forgive what must close them, or close for what they must bear."""

from __future__ import annotations

from moqt.session import Session
from moqt.wire.errors import RemoteProtocolError, SessionError

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

OPEN = (Reason.CLOSE_ABSENT,)
CODE = (Reason.CLOSE_CODE,)
CLOSED = (Reason.CLOSE_UNEXPECTED,)


class Forgiving(Session):
    """A session that goes on after a breach whose description contains `forgives`."""

    forgives = ""

    def fail(self, error: RemoteProtocolError) -> None:
        """See `Session.fail`."""
        if self.forgives not in error.reason:
            super().fail(error)


@mutant("relay/accepts-33-fields", requires=("MOQT-R009",), reasons=OPEN)
class Accepts33Fields(Forgiving):
    """A namespace of more than 32 fields does not close the session."""

    forgives = "at most 32 fields"


@mutant("relay/accepts-empty-field", requires=("MOQT-R009",), reasons=OPEN)
class AcceptsEmptyField(Forgiving):
    """A namespace field without octets does not close the session."""

    forgives = "field has at least one octet"


@mutant("relay/accepts-long-names", requires=("MOQT-R009",), reasons=OPEN)
class AcceptsLongNames(Forgiving):
    """A name of more than 4096 octets does not close the session."""

    forgives = "at most 4096 octets"
