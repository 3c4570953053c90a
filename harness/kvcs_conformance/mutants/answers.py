"""Relays that answer requests and updates otherwise than they must."""

from __future__ import annotations

import re
from typing import Any

from kvcs.names import KVCS_1
from moqt.relay import Relay
from moqt.session import Request, RequestKind, RequestState, Session
from moqt.wire.errors import RemoteProtocolError, RequestErrorCode, RequestRefused, SessionError
from moqt.wire.messages import NO_PARAMETERS, Parameters, RequestError, RequestOk, RequestUpdate
from moqt.wire.names import TrackNamespace
from moqt.wire.tokens import AliasType, Token

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.mutants.sessions import OPEN
from kvcs_conformance.verdicts import Reason

TWICE = (Reason.ANSWER_REPEATED,)
CODE = (Reason.REQUEST_CODE,)
REFUSED = (Reason.REQUEST_REFUSED,)
END = (Reason.END_WRONG,)


class _Twice(Session):
    """A session that says REQUEST_OK once more to requests of `kind`."""

    kind = RequestKind.PUBLISH

    def accept(
        self,
        request: Request,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
    ) -> None:
        super().accept(request, parameters, track_properties)
        namespace = request.namespace if request.track is None else request.track.namespace
        if request.kind is self.kind and namespace and namespace[0] != KVCS_1:
            self._registry.of(request).send(RequestOk(NO_PARAMETERS))


@mutant("relay/answers-publish-twice", requires=("MOQT-R111",), reasons=TWICE)
class AnswersPublishTwice(_Twice):
    """PUBLISH is answered with two REQUEST_OKs, unless the name is of KVCS."""


@mutant("relay/answers-announcement-twice", requires=("MOQT-R191",), reasons=TWICE)
class AnswersAnnouncementTwice(_Twice):
    """PUBLISH_NAMESPACE is answered with two REQUEST_OKs, unless the name is of KVCS."""

    kind = RequestKind.PUBLISH_NAMESPACE


@mutant("relay/answers-subscribe-twice", requires=("MOQT-R110",), reasons=TWICE)
class AnswersSubscribeTwice(Session):
    """A SUBSCRIBE whose direction has ended gets a REQUEST_OK behind SUBSCRIBE_OK."""

    def accept_subscribe(self, request: Request, **options: Any) -> Any:
        sender = super().accept_subscribe(request, **options)
        stream = self._registry.of(request)
        if stream.fin_received:
            stream.send(RequestOk(NO_PARAMETERS))
        return sender


@mutant("relay/leaves-track-status-open", requires=("MOQT-R059",), reasons=CODE)
class LeavesTrackStatusOpen(Session):
    """TRACK_STATUS whose direction ends with it gets a FIN and no answer."""

    def accept(
        self,
        request: Request,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
    ) -> None:
        stream = self._registry.of(request)
        if request.kind is RequestKind.TRACK_STATUS and stream.fin_received:
            stream.finish()
        else:
            super().accept(request, parameters, track_properties)


class _Looking(Session):
    """A session that takes names with the first field `reserved` for any others."""

    reserved = b""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        refuse = self._answers.refuse

        def refuse_otherwise(request: Request, code: int, *more: Any) -> None:
            namespace = request.namespace if request.track is None else request.track.namespace
            if namespace and namespace[0] == self.reserved:
                code = RequestErrorCode.NOT_SUPPORTED
            refuse(request, code, *more)

        self._answers.refuse = refuse_otherwise  # type: ignore[method-assign, assignment]


@mutant("relay/looks-for-dot-names", requires=("MOQT-R011",), reasons=CODE)
class LooksForDotNames(_Looking):
    """A request for the first field . is refused as not supported."""

    reserved = b"."


@mutant("relay/looks-for-session-names", requires=("MOQT-R017",), reasons=CODE)
class LooksForSessionNames(_Looking):
    """A request below .session is refused as not supported."""

    reserved = b".session"


@mutant(
    "relay/knows-no-subscribe-tracks",
    requires=("MOQT-R001", "MOQT-R088", "MOQT-R195"),
    reasons=(*CODE, *REFUSED),
)
class KnowsNoSubscribeTracks(Session):
    """SUBSCRIBE_TRACKS is read and never answered."""

    def accept(
        self,
        request: Request,
        parameters: Parameters = NO_PARAMETERS,
        track_properties: bytes = b"",
    ) -> None:
        if request.kind is not RequestKind.SUBSCRIBE_TRACKS:
            super().accept(request, parameters, track_properties)


# Updates.


@mutant("relay/answers-updates-twice", requires=("MOQT-R064",), reasons=TWICE)
class AnswersUpdatesTwice(Session):
    """Every update that is accepted gets two REQUEST_OKs."""

    def accept_update(
        self, request: Request, update: RequestUpdate, parameters: Parameters = NO_PARAMETERS
    ) -> None:
        super().accept_update(request, update, parameters)
        self._registry.of(request).send(RequestOk(NO_PARAMETERS))


@mutant("relay/answers-no-empty-update", requires=("MOQT-R064", "MOQT-R068"), reasons=CODE)
class AnswersNoEmptyUpdate(Session):
    """An update that changes nothing gets no answer."""

    def accept_update(
        self, request: Request, update: RequestUpdate, parameters: Parameters = NO_PARAMETERS
    ) -> None:
        if update.parameters == NO_PARAMETERS:
            self._registry.of(request).received_updates.popleft()
        else:
            super().accept_update(request, update, parameters)


@mutant("relay/takes-updates-anywhere", requires=("MOQT-R063",), reasons=OPEN)
class TakesUpdatesAnywhere(Session):
    """REQUEST_UPDATE behind a TRACK_STATUS is passed over."""

    def fail(self, error: RemoteProtocolError) -> None:
        if "RequestUpdate from the opener" not in error.reason:
            super().fail(error)


class _KeepsGoing(Session):
    """A session that only answers REQUEST_ERROR when an update of `kinds` fails."""

    kinds: frozenset[RequestKind] = frozenset()

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        refuse = self._answers.refuse_update

        def refuse_update(
            request: Request, update: RequestUpdate, code: int, reason: str = ""
        ) -> None:
            if request.kind not in self.kinds:
                refuse(request, update, code, reason)
                return
            stream = self._registry.of(request)
            stream.send(RequestError(code, reason=reason))
            stream.received_updates.popleft()

        self._answers.refuse_update = refuse_update  # type: ignore[method-assign]


@mutant("relay/goes-on-after-a-failed-update", requires=("MOQT-R065",), reasons=END)
class GoesOnAfterAFailedUpdate(_KeepsGoing):
    """A subscription goes on after an update that was refused."""

    kinds = frozenset({RequestKind.SUBSCRIBE})


@mutant("relay/keeps-stream-of-a-failed-update", requires=("MOQT-R067",), reasons=END)
class KeepsStreamOfAFailedUpdate(_KeepsGoing):
    """SUBSCRIBE_NAMESPACE goes on after an update that was refused."""

    kinds = frozenset({RequestKind.SUBSCRIBE_NAMESPACE})


# What the session refuses by itself.


class _Lax(Session):
    """A session that lets pass what it would refuse for a reason with the pattern `lets`."""

    lets = ""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        incoming = self._incoming
        for name in ("_check_filters", "_check_overlap"):
            setattr(incoming, name, self._lenient(getattr(incoming, name)))

    def _lenient(self, check: Any) -> Any:
        def checked(*arguments: Any) -> None:
            try:
                check(*arguments)
            except RequestRefused as refusal:
                if not re.search(self.lets, refusal.reason):
                    raise

        return checked


@mutant(
    "relay/takes-any-number-of-ranges", requires=("MOQT-R037", "MOQT-R065"), reasons=(*CODE, *END)
)
class TakesAnyNumberOfRanges(_Lax):
    """More Ranges than announced are taken."""

    lets = "MAX_FILTER_RANGES"


@mutant("relay/takes-any-priority-range", requires=("MOQT-R086",), reasons=CODE)
class TakesAnyPriorityRange(_Lax):
    """A PRIORITY_FILTER may go beyond 255."""

    lets = "PRIORITY filter exceeds"


@mutant("relay/takes-odd-object-properties", requires=("MOQT-R087",), reasons=CODE)
class TakesOddObjectProperties(_Lax):
    """An OBJECT_PROPERTY_FILTER may name an odd Property Type."""

    lets = "OBJECT_PROPERTY filter needs"


@mutant("relay/takes-odd-track-properties", requires=("MOQT-R088",), reasons=CODE)
class TakesOddTrackProperties(_Lax):
    """A TRACK_PROPERTY_FILTER may name an odd Property Type."""

    lets = "TRACK_PROPERTY filter needs"


@mutant("relay/lets-ranges-overflow", requires=("MOQT-R097",), reasons=CODE)
class LetsRangesOverflow(_Lax):
    """A Range may go beyond 2^64-1."""

    lets = f"exceeds {2**64 - 1}"


@mutant("relay/takes-repeated-filters", requires=("MOQT-R098",), reasons=CODE)
class TakesRepeatedFilters(_Lax):
    """Two filters of one kind, set and property are taken."""

    lets = "filter is repeated"


@mutant("relay/takes-overlapping-prefixes", requires=("MOQT-R095", "MOQT-R194"), reasons=CODE)
class TakesOverlappingPrefixes(_Lax):
    """Prefixes of SUBSCRIBE_NAMESPACE may overlap, those of its updates too."""

    lets = "overlaps another SUBSCRIBE_NAMESPACE"


@mutant("relay/takes-overlapping-track-prefixes", requires=("MOQT-R195",), reasons=CODE)
class TakesOverlappingTrackPrefixes(_Lax):
    """Prefixes of SUBSCRIBE_TRACKS may overlap."""

    lets = "overlaps another SUBSCRIBE_TRACKS"


@mutant("relay/takes-overlapping-updates", requires=("MOQT-R095",), reasons=CODE)
class TakesOverlappingUpdates(Session):
    """An update may move a prefix onto the path of another one."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        check = self._incoming._check_overlap

        def checked(request: Request, prefix: TrackNamespace) -> None:
            if request.state is RequestState.PENDING:
                check(request, prefix)

        self._incoming._check_overlap = checked  # type: ignore[method-assign]


# Token aliases.


class _Aliases(Session):
    """A session with another mind about the token aliases of its peer."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        received = self._control.received_tokens
        resolve = received.resolve

        def resolved(tokens: Any) -> tuple[Token, ...]:
            return self.resolved(received, resolve, tuple(tokens))

        received.resolve = resolved  # type: ignore[method-assign]

    def resolved(self, received: Any, resolve: Any, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """The tokens of one message in USE_VALUE form."""
        found: tuple[Token, ...] = resolve(tokens)
        return found


@mutant("relay/never-deletes-aliases", requires=("MOQT-R099",), reasons=CODE)
class NeverDeletesAliases(_Aliases):
    """DELETE is passed over: the alias stays in use; registering it anew replaces it."""

    def resolved(self, received: Any, resolve: Any, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        kept = tuple(one for one in tokens if one.alias_type is not AliasType.DELETE)
        return super().resolved(received, resolve, kept)


@mutant(
    "relay/forgets-aliases-at-once",
    requires=("MOQT-R099", "MOQT-R102", "MOQT-R105", "MOQT-R107"),
    reasons=(*REFUSED, *OPEN),
)
class ForgetsAliasesAtOnce(_Aliases):
    """A token that is registered serves its own request and no other one."""

    def resolved(self, received: Any, resolve: Any, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        found = super().resolved(received, resolve, tokens)
        received._tokens.clear()
        received._size = 0
        return found


@mutant(
    "relay/closes-on-unknown-alias", requires=("MOQT-R103",), reasons=(Reason.CLOSE_UNEXPECTED,)
)
class ClosesOnUnknownAlias(_Aliases):
    """An unknown token alias closes the session."""

    def resolved(self, received: Any, resolve: Any, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        try:
            return super().resolved(received, resolve, tokens)
        except RequestRefused as refusal:
            code = SessionError.UNKNOWN_AUTH_TOKEN_ALIAS
            raise RemoteProtocolError(refusal.reason, code) from None


@mutant("relay/forgets-aliases-of-refused-requests", requires=("MOQT-R105",), reasons=REFUSED)
class ForgetsAliasesOfRefusedRequests(Relay):
    """The aliases that a request registered are forgotten when it is refused."""

    def authorise(self, request: Request) -> None:
        try:
            super().authorise(request)
        except RequestRefused:
            received: Any = request.session._control.received_tokens
            for token in request.message.parameters.authorization_tokens:
                if token.alias_type is AliasType.REGISTER:
                    received._tokens.pop(token.alias, None)
            raise


@mutant(
    "relay/refuses-invalid-tokens-as-unsupported",
    requires=("KVCS-8-4", "MOQT-R104"),
    reasons=CODE,
)
class RefusesInvalidTokensAsUnsupported(Relay):
    """A token that is not valid is refused with NOT_SUPPORTED."""

    def authorise(self, request: Request) -> None:
        try:
            super().authorise(request)
        except RequestRefused as refusal:
            if refusal.code == RequestErrorCode.MALFORMED_AUTH_TOKEN:
                raise RequestRefused(refusal.reason, RequestErrorCode.NOT_SUPPORTED) from None
            raise
