"""Relays that set no limit, or tell of namespaces and Tracks otherwise than they must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from moqt.relay import Relay, RelayConfig
from moqt.relay.limits import SessionLimits
from moqt.session import Request, RequestKind, Session
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.messages import NamespaceDone
from moqt.wire.names import TrackNamespace

from kvcs_conformance.mutants.registry import mutant
from kvcs_conformance.verdicts import Reason

LEAKED = (Reason.AUTH_LEAKED,)
UNLIMITED = (Reason.LIMIT_ABSENT,)
CODE = (Reason.REQUEST_CODE,)


class _Unbounded(Relay):
    """A relay without one of its limits."""

    without: ClassVar[dict[str, Any]] = {}

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(replace(config or RelayConfig(), **self.without))


@mutant(
    "relay/takes-any-number-of-requests",
    requires=("KVCS-10-10", "MOQT-R230"),
    reasons=UNLIMITED,
)
class TakesAnyNumberOfRequests(_Unbounded):
    """One session may have any number of requests open."""

    without: ClassVar[dict[str, Any]] = {"max_requests": None}


@mutant("relay/takes-requests-at-any-rate", requires=("KVCS-10-10", "MOQT-R230"), reasons=UNLIMITED)
class TakesRequestsAtAnyRate(_Unbounded):
    """One session may ask as fast as it likes."""

    without: ClassVar[dict[str, Any]] = {"request_rate": None}


@mutant(
    "relay/takes-any-number-of-namespaces",
    requires=("KVCS-10-10", "MOQT-R230"),
    reasons=UNLIMITED,
)
class TakesAnyNumberOfNamespaces(_Unbounded):
    """One session may announce any number of namespaces."""

    without: ClassVar[dict[str, Any]] = {"max_namespaces": None}


@mutant("relay/lists-any-number-of-namespaces", requires=("KVCS-10-10",), reasons=CODE)
class ListsAnyNumberOfNamespaces(_Unbounded):
    """A prefix may match any number of namespaces."""

    without: ClassVar[dict[str, Any]] = {"max_listed_namespaces": None}


@mutant(
    "relay/shares-one-limit",
    requires=("KVCS-10-10",),
    reasons=(Reason.REQUEST_REFUSED, Reason.OBJECT_MISSING),
)
class SharesOneLimit(Relay):
    """The requests of all sessions count against one limit."""

    def _limits(self, session: Session) -> SessionLimits:
        return super()._limits(next(iter(self.sessions), session))


@mutant("relay/refuses-load-for-ever", requires=("KVCS-10-10",), reasons=CODE)
class RefusesLoadForEver(_Unbounded):
    """EXCESSIVE_LOAD comes without a Retry Interval."""

    without: ClassVar[dict[str, Any]] = {"retry_interval": 0}


@mutant(
    "relay/closes-on-load",
    requires=("KVCS-10-10", "MOQT-R230"),
    reasons=(Reason.REQUEST_CODE, Reason.CLOSE_UNEXPECTED),
)
class ClosesOnLoad(Relay):
    """Requests beyond the limit are refused as internal errors."""

    def _serve(self, request: Request, now: float) -> None:
        limits = self._limits(request.session)
        admit = limits.admit

        def admitted(one: Request, at: float) -> None:
            try:
                admit(one, at)
            except RequestRefused as refusal:
                code = RequestErrorCode.INTERNAL_ERROR
                raise RequestRefused(refusal.reason, code) from None

        limits.admit = admitted  # type: ignore[method-assign, assignment]
        try:
            super()._serve(request, now)
        finally:
            limits.admit = admit  # type: ignore[method-assign]


class _Telling(Relay):
    """A relay that tells of namespaces otherwise."""

    def __init__(self, config: RelayConfig | None = None) -> None:
        super().__init__(config)
        self.change(self._discovery)

    def change(self, discovery: Any) -> None:
        """Put the defect in its place."""


@mutant(
    "relay/never-takes-namespaces-back",
    requires=("MOQT-R193", "KVCS-7.1-2"),
    reasons=(Reason.NAMESPACE_ABSENT,),
)
class NeverTakesNamespacesBack(Relay):
    """NAMESPACE_DONE is never sent."""

    def withdraw(self, request: Request) -> None:
        self._routes.remove(request)


@mutant(
    "relay/lists-only-what-was-there",
    requires=("MOQT-R193", "KVCS-3.1-7"),
    reasons=(Reason.NAMESPACE_ABSENT,),
)
class ListsOnlyWhatWasThere(_Telling):
    """A namespace that is announced later is not told of."""

    def change(self, discovery: Any) -> None:
        tell = discovery._tell

        def add(namespace: TrackNamespace) -> None:
            discovery._known[namespace] += 1

        discovery.add = add
        discovery._tell = tell


@mutant(
    "relay/takes-back-what-it-never-told",
    requires=("MOQT-R196",),
    reasons=(Reason.NAMESPACE_ABSENT, Reason.CLOSE_UNEXPECTED),
)
class TakesBackWhatItNeverTold(Relay):
    """NAMESPACE_DONE comes for namespaces of which no NAMESPACE came."""

    def withdraw(self, request: Request) -> None:
        super().withdraw(request)
        for session in self.sessions:
            for interest in list(self._discovery._interests):
                if interest.session is session and interest.kind is RequestKind.SUBSCRIBE_NAMESPACE:
                    stream = session._registry.of(interest)
                    stream.send(NamespaceDone((b"never", b"told")))


@mutant(
    "relay/lists-one-per-prefix",
    requires=("KVCS-3.1-7", "KVCS-7.1-2", "MOQT-R193"),
    reasons=(Reason.NAMESPACE_ABSENT,),
)
class ListsOnePerPrefix(_Telling):
    """Of the publications of one token prefix only the first one is told of."""

    def change(self, discovery: Any) -> None:
        tell = discovery._tell

        def first(interest: Any, namespace: TrackNamespace) -> None:
            if not any(one[:4] == namespace[:4] for one in interest.told):
                tell(interest, namespace)

        discovery._tell = first


@mutant(
    "relay/ignores-the-last-field-of-a-prefix",
    requires=("KVCS-3.1-7", "KVCS-7.1-2"),
    reasons=(Reason.NAMESPACE_LEAKED,),
)
class IgnoresTheLastFieldOfAPrefix(_Telling):
    """A prefix of four fields shows what matches three of them (with the right suffix)."""

    def change(self, discovery: Any) -> None:
        listed = discovery._list

        def more(interest: Any) -> None:
            listed(interest)
            prefix = interest.prefix
            if len(prefix) == 4:
                for namespace in list(discovery._known):
                    if namespace[:3] == prefix[:3] and namespace[:4] != prefix:
                        shown = (*prefix, *namespace[4:])
                        if shown not in interest.told:
                            interest.told.add(shown)
                            interest.request.session.namespace(interest.request, shown)

        discovery._list = more


@mutant(
    "relay/takes-one-namespace-of-five-fields",
    requires=("KVCS-3.1-1", "KVCS-10-10"),
    reasons=(Reason.REQUEST_REFUSED, Reason.REQUEST_CODE),
)
class TakesOneNamespaceOfFiveFields(Relay):
    """Of a session's namespaces of five fields only the first one is taken; others are too long."""

    def _dispatch(self, request: Request) -> None:
        whole = request.kind is RequestKind.PUBLISH_NAMESPACE and len(request.namespace or ()) == 5
        if whole and self._routes.of_session(request.session):
            raise RequestRefused("too many fields", RequestErrorCode.NAMESPACE_TOO_LARGE)
        super()._dispatch(request)


@mutant(
    "relay/publishes-to-everyone",
    requires=("KVCS-8-4", "MOQT-R113", "MOQT-R198"),
    reasons=LEAKED,
)
class PublishesToEveryone(Relay):
    """A Track that has a publisher now is published to sessions that never asked for Tracks."""

    def _established(self, track: Any, first: bool) -> None:
        super()._established(track, first)
        for session in tuple(self.sessions):
            asked = any(one.session is session for one in track.subscribers.senders)
            if first and session not in track.upstreams and not asked:
                session.publish(track.name)
