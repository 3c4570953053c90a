"""Publishers whose sessions forgive what must close them."""

from __future__ import annotations

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.mutants.sessions import OPEN, Forgiving


@mutant("publisher/accepts-any-name", requires=("MOQT-R009",), reasons=OPEN)
class AcceptsAnyName(Forgiving):
    """A name beyond the limits does not close the session."""

    forgives = "at most 32 fields|field has at least"


@mutant("publisher/lets-any-message-open", requires=("MOQT-R020",), reasons=OPEN)
class LetsAnyMessageOpen(Forgiving):
    """A request stream may begin with any message."""

    forgives = "cannot open a request stream"


@mutant("publisher/passes-over-a-second-request", requires=("MOQT-R025",), reasons=OPEN)
class PassesOverASecondRequest(Forgiving):
    """A second request on a stream is passed over."""

    forgives = "from the opener"


@mutant("publisher/skips-unknown-messages", requires=("MOQT-R026",), reasons=OPEN)
class SkipsUnknownMessages(Forgiving):
    """A message of an unknown type is no reason to close."""

    forgives = "control message type"


@mutant("publisher/tolerates-long-messages", requires=("MOQT-R027",), reasons=OPEN)
class ToleratesLongMessages(Forgiving):
    """Octets behind the fields of a message are no reason to close."""

    forgives = "octets behind its fields"


@mutant("publisher/takes-any-parity", requires=("MOQT-R056",), reasons=OPEN)
class TakesAnyParity(Forgiving):
    """A request under an ID of the publisher's own parity is dropped."""

    forgives = "has our parity"


@mutant("publisher/takes-used-ids", requires=("MOQT-R057",), reasons=OPEN)
class TakesUsedIds(Forgiving):
    """A request under a used ID is dropped."""

    forgives = "was used before"


@mutant("publisher/ignores-unknown-parameters", requires=("MOQT-R076",), reasons=OPEN)
class IgnoresUnknownParameters(Forgiving):
    """A request with an unknown parameter is dropped."""

    forgives = "parameter 0x"


@mutant("publisher/takes-misplaced-parameters", requires=("MOQT-R079",), reasons=OPEN)
class TakesMisplacedParameters(Forgiving):
    """A parameter where it may not stand is no reason to close."""

    forgives = "may not stand in"


@mutant("publisher/takes-unknown-filters", requires=("MOQT-R085",), reasons=OPEN)
class TakesUnknownFilters(Forgiving):
    """A Location Filter of an unknown type is no reason to close."""

    forgives = "Location Filter Type"


@mutant("publisher/takes-any-parameter-in-a-fill", requires=("MOQT-R089",), reasons=OPEN)
class TakesAnyParameterInAFill(Forgiving):
    """FILL_PARAMETERS may hold what it must not."""

    forgives = "FILL_PARAMETERS holds"
