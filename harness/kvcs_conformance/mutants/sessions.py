"""Relays whose sessions forgive what must close them: requests, parameters, options, tokens."""

from __future__ import annotations

import re

from moqt.session import Session
from moqt.wire.errors import RemoteProtocolError
from moqt.wire.messages import SetupOptions

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

OPEN = (Reason.CLOSE_ABSENT,)


class Forgiving(Session):
    """A session that goes on after a breach whose description has the pattern `forgives`."""

    forgives = ""

    def fail(self, error: RemoteProtocolError) -> None:
        """See `Session.fail`; a SETUP that is forgiven counts as one without options."""
        if not re.search(self.forgives, error.reason):
            super().fail(error)
        elif self.peer_setup is None:
            self._control._setup(SetupOptions())


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


@mutant("relay/lets-any-message-open", requires=("MOQT-R020",), reasons=OPEN)
class LetsAnyMessageOpen(Forgiving):
    """A request stream may begin with any message; what is no request is passed over."""

    forgives = "cannot open a request stream"


@mutant("relay/passes-over-a-second-request", requires=("MOQT-R025",), reasons=OPEN)
class PassesOverASecondRequest(Forgiving):
    """A message of the requester that has no place on its stream is passed over."""

    forgives = "^(?!RequestUpdate).* from the opener"


@mutant("relay/skips-unknown-messages", requires=("MOQT-R026",), reasons=OPEN)
class SkipsUnknownMessages(Forgiving):
    """A message of an unknown type is no reason to close."""

    forgives = "control message type"


@mutant("relay/ignores-unknown-streams", requires=("MOQT-R024",), reasons=OPEN)
class IgnoresUnknownStreams(Forgiving):
    """A unidirectional stream of an unknown type is not read and closes nothing."""

    forgives = "stream type 0x(?![1357][67ef] )"


@mutant("relay/ignores-unknown-datagrams", requires=("MOQT-R051",), reasons=OPEN)
class IgnoresUnknownDatagrams(Forgiving):
    """A datagram of an unknown type is dropped."""

    forgives = "datagram type 0x(?![123]. )"


@mutant("relay/tolerates-short-messages", requires=("MOQT-R027",), reasons=OPEN)
class ToleratesShortMessages(Forgiving):
    """A message that is shorter than its fields is dropped."""

    forgives = "is shorter than its fields"


@mutant("relay/tolerates-long-messages", requires=("MOQT-R027",), reasons=OPEN)
class ToleratesLongMessages(Forgiving):
    """Octets behind the fields of a message are no reason to close."""

    forgives = "octets behind its fields"


@mutant("relay/lets-control-stream-end", requires=("MOQT-R021",), reasons=OPEN)
class LetsControlStreamEnd(Forgiving):
    """The session goes on when the peer ends its control stream with FIN."""

    forgives = "ended its control stream"


@mutant("relay/lets-control-stream-be-reset", requires=("MOQT-R021",), reasons=OPEN)
class LetsControlStreamBeReset(Forgiving):
    """The session goes on when the peer resets its control stream."""

    forgives = "reset its control stream"


@mutant("relay/lets-types-overflow", requires=("MOQT-R047",), reasons=OPEN)
class LetsTypesOverflow(Forgiving):
    """Types of Key-Value-Pairs may sum to more than 2^64-1; the options count as absent then."""

    forgives = "Key-Value-Pair exceeds"


@mutant("relay/takes-long-options", requires=("MOQT-R048",), reasons=OPEN)
class TakesLongOptions(Forgiving):
    """A Key-Value-Pair that claims more than 65535 octets is no reason to close."""

    forgives = "has at most 65535 octets"


@mutant("relay/takes-any-parity", requires=("MOQT-R056",), reasons=OPEN)
class TakesAnyParity(Forgiving):
    """A request under an ID of the relay's own parity is dropped, and the session goes on."""

    forgives = "has our parity"


@mutant("relay/takes-used-ids", requires=("MOQT-R057",), reasons=OPEN)
class TakesUsedIds(Forgiving):
    """A request under a used ID is dropped, and the session goes on."""

    forgives = "was used before"


@mutant("relay/lets-parameter-types-overflow", requires=("MOQT-R075",), reasons=OPEN)
class LetsParameterTypesOverflow(Forgiving):
    """Types of parameters may sum to more than 2^64-1; the request is dropped."""

    forgives = "type of a parameter exceeds"


@mutant("relay/ignores-unknown-parameters", requires=("MOQT-R076",), reasons=OPEN)
class IgnoresUnknownParameters(Forgiving):
    """A request with an unknown parameter is dropped, and the session goes on."""

    forgives = "parameter 0x"


@mutant("relay/takes-repeated-parameters", requires=("MOQT-R077",), reasons=OPEN)
class TakesRepeatedParameters(Forgiving):
    """A parameter that comes twice is no reason to close."""

    forgives = "is repeated"


@mutant("relay/takes-misplaced-parameters", requires=("MOQT-R079",), reasons=OPEN)
class TakesMisplacedParameters(Forgiving):
    """A parameter in a message that may not carry it is no reason to close."""

    forgives = "may not stand in"


@mutant("relay/takes-any-group-order", requires=("MOQT-R083",), reasons=OPEN)
class TakesAnyGroupOrder(Forgiving):
    """GROUP_ORDER 0 and 3 are no reason to close."""

    forgives = "GROUP_ORDER cannot be"


@mutant("relay/lets-filters-overflow", requires=("MOQT-R084",), reasons=OPEN)
class LetsFiltersOverflow(Forgiving):
    """A Location Filter may end beyond 2^64-1."""

    forgives = "StartGroup \\+"


@mutant("relay/takes-unknown-filters", requires=("MOQT-R085",), reasons=OPEN)
class TakesUnknownFilters(Forgiving):
    """A Location Filter of an unknown type is no reason to close."""

    forgives = "Location Filter Type"


@mutant("relay/takes-any-parameter-in-a-fill", requires=("MOQT-R089",), reasons=OPEN)
class TakesAnyParameterInAFill(Forgiving):
    """FILL_PARAMETERS may hold what it must not."""

    forgives = "FILL_PARAMETERS holds"


@mutant("relay/takes-any-forward", requires=("MOQT-R092",), reasons=OPEN)
class TakesAnyForward(Forgiving):
    """FORWARD may be more than 1."""

    forgives = "FORWARD cannot be"


@mutant("relay/takes-any-inclusion", requires=("MOQT-R096",), reasons=OPEN)
class TakesAnyInclusion(Forgiving):
    """INCLUDE_PROPERTIES may be more than 1."""

    forgives = "INCLUDE_PROPERTIES cannot be"


@mutant("relay/ignores-undecodable-tokens", requires=("MOQT-R049", "MOQT-R101"), reasons=OPEN)
class IgnoresUndecodableTokens(Forgiving):
    """A request with a Token that does not decode is dropped."""

    forgives = "a Token does not decode"


@mutant("relay/lets-live-aliases-be-replaced", requires=("MOQT-R102",), reasons=OPEN)
class LetsLiveAliasesBeReplaced(Forgiving):
    """A token alias that is in use may be registered again."""

    forgives = "is registered already"


@mutant("relay/keeps-any-number-of-aliases", requires=("MOQT-R107",), reasons=OPEN)
class KeepsAnyNumberOfAliases(Forgiving):
    """Token aliases beyond the announced cache are no reason to close."""

    forgives = "the token aliases exceed"


@mutant("relay/takes-any-number-of-updates", requires=("MOQT-R039",), reasons=OPEN)
class TakesAnyNumberOfUpdates(Forgiving):
    """More updates than announced may wait for their answer."""

    forgives = "updates have no answer yet"


@mutant("relay/takes-two-goaways", requires=("MOQT-R042",), reasons=OPEN)
class TakesTwoGoaways(Forgiving):
    """A second GOAWAY is passed over."""

    forgives = "a second GOAWAY"


@mutant("relay/takes-goaway-uri-of-clients", requires=("MOQT-R041",), reasons=OPEN)
class TakesGoawayUriOfClients(Forgiving):
    """A client may name a URI in GOAWAY."""

    forgives = "GOAWAY of a client"


@mutant("relay/takes-long-uris", requires=("MOQT-R044",), reasons=OPEN)
class TakesLongUris(Forgiving):
    """A URI of more than 8192 octets is no reason to close."""

    forgives = "a URI has at most"


@mutant("relay/forgives-alias-in-setup", requires=("MOQT-R100",), reasons=OPEN)
class ForgivesAliasInSetup(Forgiving):
    """A token with DELETE or USE_ALIAS in SETUP is passed over."""

    forgives = "SETUP carries a token"
