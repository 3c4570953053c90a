"""Relays that let in whom they should keep out, or set no limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moqt.relay import Relay, RelayConfig
from moqt.session import Request, RequestKind, Session
from moqt.session.events import UpdateReceived
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.names import FullTrackName, TrackNamespace

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

LEAKED = (Reason.AUTH_LEAKED,)
UNLIMITED = (Reason.LIMIT_ABSENT,)
CODE = (Reason.REQUEST_CODE,)


class _Negligent(Relay):
    """A relay that lets requests of the kind `unasked` pass without asking its policy."""

    unasked: RequestKind

    def authorise(self, request: Request) -> None:
        if request.kind is not self.unasked:
            super().authorise(request)


@mutant(
    "relay/authorises-no-subscribe",
    requires=("KVCS-8-4", "KVCS-10-8", "MOQT-R208"),
    reasons=LEAKED,
)
class AuthorisesNoSubscribe(_Negligent):
    """SUBSCRIBE is not authorised."""

    unasked = RequestKind.SUBSCRIBE


@mutant(
    "relay/authorises-no-fetch", requires=("KVCS-8-4", "KVCS-10-9", "MOQT-R208"), reasons=LEAKED
)
class AuthorisesNoFetch(_Negligent):
    """FETCH is not authorised."""

    unasked = RequestKind.FETCH


@mutant(
    "relay/authorises-no-track-status",
    requires=("KVCS-8-4", "MOQT-R104", "MOQT-R208"),
    reasons=(*LEAKED, Reason.REQUEST_CODE),
)
class AuthorisesNoTrackStatus(_Negligent):
    """TRACK_STATUS is not authorised."""

    unasked = RequestKind.TRACK_STATUS


@mutant("relay/authorises-no-subscribe-tracks", requires=("KVCS-8-4", "MOQT-R198"), reasons=LEAKED)
class AuthorisesNoSubscribeTracks(_Negligent):
    """SUBSCRIBE_TRACKS is not authorised."""

    unasked = RequestKind.SUBSCRIBE_TRACKS


@mutant(
    "relay/authorises-no-publish",
    requires=("KVCS-8-4", "MOQT-R213", "MOQT-R231", "MOQT-R232"),
    reasons=LEAKED,
)
class AuthorisesNoPublish(_Negligent):
    """PUBLISH is not authorised."""

    unasked = RequestKind.PUBLISH


@mutant(
    "relay/tells-status-of-what-it-has",
    requires=("KVCS-8-4", "MOQT-R104", "MOQT-R208"),
    reasons=(*LEAKED, Reason.REQUEST_CODE),
)
class TellsStatusOfWhatItHas(Relay):
    """TRACK_STATUS of a Track that the relay knows is answered to anybody."""

    def authorise(self, request: Request) -> None:
        if request.kind is not RequestKind.TRACK_STATUS or request.track not in self.tracks:
            super().authorise(request)


def _moved(request: Request, change: Any) -> Request:
    """The request as if it were about another namespace."""
    if request.track is None:
        return replace(request, namespace=change(request.namespace or ()))
    track = FullTrackName(change(request.track.namespace), request.track.name)
    return replace(request, track=track)


@mutant(
    "relay/compares-all-but-the-last-octet",
    requires=(
        *("KVCS-8-4", "KVCS-10-6", "KVCS-10-7", "KVCS-10-8", "KVCS-10-9"),
        *("MOQT-R198", "MOQT-R208", "MOQT-R213", "MOQT-R232"),
    ),
    reasons=LEAKED,
)
class ComparesAllButTheLastOctet(Relay):
    """A token opens the scope that differs from its own in the last octet, too."""

    def authorise(self, request: Request) -> None:
        try:
            super().authorise(request)
        except RequestRefused:
            super().authorise(_moved(request, _neighbour))


def _neighbour(namespace: TrackNamespace) -> TrackNamespace:
    if len(namespace) < 2:
        return namespace
    scope = namespace[1]
    return (namespace[0], scope[:-1] + bytes([scope[-1] ^ 0x01]), *namespace[2:])


@mutant(
    "relay/takes-any-token-for-one",
    requires=(
        *("KVCS-8-4", "KVCS-10-6", "KVCS-10-7", "KVCS-10-8", "KVCS-10-9", "MOQT-R104"),
        *("MOQT-R198", "MOQT-R208", "MOQT-R213"),
    ),
    reasons=(*LEAKED, Reason.REQUEST_CODE),
)
class TakesAnyTokenForOne(Relay):
    """A token that nobody was given opens everything."""

    def authorise(self, request: Request) -> None:
        try:
            super().authorise(request)
        except RequestRefused as refusal:
            if refusal.code != RequestErrorCode.MALFORMED_AUTH_TOKEN:
                raise


@mutant(
    "relay/takes-silence-for-a-token",
    requires=(
        *("KVCS-8-4", "KVCS-10-6", "KVCS-10-7", "KVCS-10-8", "KVCS-10-9"),
        *("MOQT-R198", "MOQT-R208", "MOQT-R213", "MOQT-R231"),
    ),
    reasons=LEAKED,
)
class TakesSilenceForAToken(Relay):
    """A request without a token is not authorised."""

    def authorise(self, request: Request) -> None:
        if request.tokens:
            super().authorise(request)


@mutant(
    "relay/asks-for-the-first-subscriber-only",
    requires=("KVCS-8-4", "KVCS-10-8", "MOQT-R229"),
    reasons=LEAKED,
)
class AsksForTheFirstSubscriberOnly(Relay):
    """SUBSCRIBE of a Track that is subscribed to upstream is not authorised."""

    def authorise(self, request: Request) -> None:
        track = self.tracks.get(request.track) if request.track else None
        known = track is not None and track.established
        if request.kind is not RequestKind.SUBSCRIBE or not known:
            super().authorise(request)


@mutant(
    "relay/asks-once-per-session",
    requires=("KVCS-8-4", "KVCS-10-8", "KVCS-10-9", "MOQT-R214", "MOQT-R229"),
    reasons=LEAKED,
)
class AsksOncePerSession(Relay):
    """Who was let in with one request is asked for no other one."""

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(config)
        self._trusted: set[Session] = set()

    def authorise(self, request: Request) -> None:
        if request.session not in self._trusted:
            super().authorise(request)
            self._trusted.add(request.session)


class _OfScope(Relay):
    """A relay that judges a request of `kind` above any scope as if it were about `scope`."""

    kind: RequestKind

    def authorise(self, request: Request) -> None:
        if request.kind is not self.kind or len(request.namespace or ()) >= 2 or not request.tokens:
            super().authorise(request)


@mutant("relay/lists-above-the-scope", requires=("KVCS-8-4", "KVCS-10-7"), reasons=LEAKED)
class ListsAboveTheScope(_OfScope):
    """SUBSCRIBE_NAMESPACE of fewer than two fields is open to every token."""

    kind = RequestKind.SUBSCRIBE_NAMESPACE


@mutant("relay/announces-above-the-scope", requires=("KVCS-8-4", "KVCS-10-6"), reasons=LEAKED)
class AnnouncesAboveTheScope(_OfScope):
    """PUBLISH_NAMESPACE of fewer than two fields is open to every token."""

    kind = RequestKind.PUBLISH_NAMESPACE


# Updates.


@mutant("relay/ignores-tokens-of-updates", requires=("KVCS-8-4", "MOQT-R208"), reasons=LEAKED)
class IgnoresTokensOfUpdates(Relay):
    """REQUEST_UPDATE is not authorised."""

    def _authorised_update(self, event: UpdateReceived) -> bool:
        return True


@mutant("relay/fills-before-asking", requires=("KVCS-8-4", "MOQT-R208"), reasons=LEAKED)
class FillsBeforeAsking(Relay):
    """An update that asks for a fill is taken without asking, whatever its token."""

    def _authorised_update(self, event: UpdateReceived) -> bool:
        return event.update.parameters.fill is not None or super()._authorised_update(event)


@mutant("relay/moves-prefixes-before-asking", requires=("KVCS-8-4", "MOQT-R208"), reasons=LEAKED)
class MovesPrefixesBeforeAsking(Relay):
    """An update that moves a prefix is taken without asking."""

    def _authorised_update(self, event: UpdateReceived) -> bool:
        moves = event.update.parameters.track_namespace_prefix is not None
        return moves or super()._authorised_update(event)


@mutant(
    "relay/lets-readers-publish",
    requires=("KVCS-8-4", "KVCS-10-6", "MOQT-R213", "MOQT-R232"),
    reasons=LEAKED,
)
class LetsReadersPublish(Relay):
    """Who may subscribe in a scope may publish there."""

    def authorise(self, request: Request) -> None:
        try:
            super().authorise(request)
        except RequestRefused:
            if request.kind not in (RequestKind.PUBLISH, RequestKind.PUBLISH_NAMESPACE):
                raise
            super().authorise(replace(request, kind=RequestKind.SUBSCRIBE_NAMESPACE))
