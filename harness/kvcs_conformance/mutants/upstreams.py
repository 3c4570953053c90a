"""Relays whose sessions forgive what a publisher must not send them."""

from __future__ import annotations

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.mutants.sessions import OPEN, Forgiving


@mutant("relay/takes-long-reasons", requires=("MOQT-R050",), reasons=OPEN)
class TakesLongReasons(Forgiving):
    """A Reason Phrase of more than 1024 octets is no reason to close."""

    forgives = "a Reason Phrase has at most"


@mutant("relay/takes-second-answers", requires=("MOQT-R112",), reasons=OPEN)
class TakesSecondAnswers(Forgiving):
    """A publisher may answer a request twice."""

    forgives = "from the responder"


@mutant("relay/takes-early-fetch-end", requires=("MOQT-R148",), reasons=OPEN)
class TakesEarlyFetchEnd(Forgiving):
    """FETCH_OK may end before what was asked for starts."""

    forgives = "FETCH_OK ends at"


@mutant("relay/takes-relative-first-object", requires=("MOQT-R150",), reasons=OPEN)
class TakesRelativeFirstObject(Forgiving):
    """The first Object of a fetch may leave its Group or Object ID to one before it."""

    forgives = "the first Object of a fetch"


@mutant("relay/lets-group-ids-leave-their-range", requires=("MOQT-R151",), reasons=OPEN)
class LetsGroupIdsLeaveTheirRange(Forgiving):
    """A Group ID of a fetch may leave 0 to 2^64-1."""

    forgives = "a Group ID leaves"


@mutant("relay/lets-fetch-object-ids-overflow", requires=("MOQT-R152",), reasons=OPEN)
class LetsFetchObjectIdsOverflow(Forgiving):
    """An Object ID of a fetch may exceed 2^64-1."""

    forgives = "Object ID of a fetch"


@mutant("relay/takes-unknown-fetch-flags", requires=("MOQT-R155",), reasons=OPEN)
class TakesUnknownFetchFlags(Forgiving):
    """Unknown Serialization Flags are no reason to close."""

    forgives = "Serialization Flags"


@mutant("relay/takes-undefined-status", requires=("MOQT-R157",), reasons=OPEN)
class TakesUndefinedStatus(Forgiving):
    """An undefined Object Status is no reason to close."""

    forgives = "Object Status 0x"


@mutant("relay/takes-properties-of-ends", requires=("MOQT-R159",), reasons=OPEN)
class TakesPropertiesOfEnds(Forgiving):
    """An End of Group may have Properties."""

    forgives = "has Properties"


@mutant("relay/takes-malformed-datagrams", requires=("MOQT-R160",), reasons=OPEN)
class TakesMalformedDatagrams(Forgiving):
    """A malformed Object datagram is dropped."""

    forgives = "datagram type 0x[123]|of length 0"


@mutant("relay/takes-streams-that-stop-short", requires=("MOQT-R161",), reasons=OPEN)
class TakesStreamsThatStopShort(Forgiving):
    """A data stream may end inside an Object."""

    forgives = "ends inside"


@mutant("relay/takes-subgroup-mode-3", requires=("MOQT-R162",), reasons=OPEN)
class TakesSubgroupMode3(Forgiving):
    """A subgroup header of the invalid mode is no reason to close."""

    forgives = "stream type 0x[1357][67ef] "


@mutant("relay/lets-object-ids-overflow", requires=("MOQT-R163",), reasons=OPEN)
class LetsObjectIdsOverflow(Forgiving):
    """An Object ID of a subgroup may exceed 2^64-1."""

    forgives = "an Object ID exceeds"


@mutant("relay/takes-any-default-order", requires=("MOQT-R171",), reasons=OPEN)
class TakesAnyDefaultOrder(Forgiving):
    """DEFAULT_PUBLISHER_GROUP_ORDER may be anything."""

    forgives = "DEFAULT_PUBLISHER_GROUP_ORDER must"


@mutant("relay/takes-any-dynamic-groups", requires=("MOQT-R172",), reasons=OPEN)
class TakesAnyDynamicGroups(Forgiving):
    """DYNAMIC_GROUPS may be more than 1."""

    forgives = "DYNAMIC_GROUPS must"


@mutant("relay/forgets-aliases-of-other-tracks", requires=("MOQT-R120",), reasons=OPEN)
class ForgetsAliasesOfOtherTracks(Forgiving):
    """One Track Alias may stand for two Tracks."""

    forgives = "Track Alias"
