"""Answers to SUBSCRIBE_NAMESPACE and SUBSCRIBE_TRACKS (MOQT-22 §3.6, §4.2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from moqt.session import Request, RequestKind, Session
from moqt.tracks.answering import alive, answerable
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.filters import RangeFilterType, track_passes
from moqt.wire.names import FullTrackName, TrackNamespace, is_prefix


@dataclass(slots=True, eq=False)
class Interest:
    """One accepted discovery request and the namespaces that it was told of."""

    request: Request
    prefix: TrackNamespace
    told: set[TrackNamespace] = field(default_factory=set)


class Discovery:
    """The namespaces that exist here, and who wants to hear of them or of their Tracks.

    Authorisation comes before: whatever arrives here may be answered. `max_namespaces` bounds how
    many namespaces one prefix may match when it is asked for (NAMESPACE_TOO_LARGE).
    """

    def __init__(self, max_namespaces: int | None = None) -> None:
        self._max_namespaces = max_namespaces
        self._known: Counter[TrackNamespace] = Counter()
        self._interests: dict[Request, Interest] = {}

    @property
    def asked(self) -> list[tuple[Session, TrackNamespace]]:
        """Session and prefix of every SUBSCRIBE_NAMESPACE in force."""
        return [
            (request.session, interest.prefix)
            for request, interest in self._interests.items()
            if request.kind is RequestKind.SUBSCRIBE_NAMESPACE
        ]

    def add(self, namespace: TrackNamespace) -> None:
        """One more publisher has the namespace."""
        self._known[namespace] += 1
        if self._known[namespace] == 1:
            for interest in self._listeners(namespace):
                self._tell(interest, namespace)

    def remove(self, namespace: TrackNamespace) -> None:
        """One publisher less has it."""
        self._known[namespace] -= 1
        if self._known[namespace] > 0:
            return
        del self._known[namespace]
        for interest in self._listeners(namespace):
            if namespace in interest.told and alive(interest.request):
                interest.request.session.namespace_done(interest.request, namespace)
            interest.told.discard(namespace)

    def subscribe(self, request: Request) -> None:
        """Accept a SUBSCRIBE_NAMESPACE or SUBSCRIBE_TRACKS, and list what matches.

        Raises RequestRefused NAMESPACE_TOO_LARGE. Overlapping prefixes of one session are refused
        by the session.
        """
        prefix = request.namespace or ()
        self.check(request, prefix)
        if answerable(request):
            interest = self._interests[request] = Interest(request, prefix)
            request.session.accept(request)
            self._list(interest)

    def check(self, request: Request, prefix: TrackNamespace | None) -> None:
        """Raises RequestRefused NAMESPACE_TOO_LARGE if too much matches the (new) prefix."""
        limit = self._max_namespaces
        if (
            prefix is not None
            and limit is not None
            and request.kind is RequestKind.SUBSCRIBE_NAMESPACE
            and sum(is_prefix(prefix, namespace) for namespace in self._known) > limit
        ):
            raise RequestRefused(
                f"the prefix matches more than {limit} namespaces",
                RequestErrorCode.NAMESPACE_TOO_LARGE,
            )

    def updated(self, request: Request, prefix: TrackNamespace | None) -> None:
        """The update of the request was accepted."""
        interest = self._interests.get(request)
        if interest is not None and prefix is not None and prefix != interest.prefix:
            interest.prefix = prefix
            interest.told = {one for one in interest.told if is_prefix(prefix, one)}
            self._list(interest)

    def ended(self, request: Request) -> None:
        """The request was cancelled or refused."""
        self._interests.pop(request, None)

    def session_closed(self, session: Session) -> None:
        """Forget all requests of the session."""
        for request in [one for one in self._interests if one.session is session]:
            del self._interests[request]

    def wants_track(self, track: FullTrackName, properties: bytes) -> list[Request]:
        """The SUBSCRIBE_TRACKS that match a Track, TRACK_PROPERTY_FILTER included."""
        return [
            request
            for request, interest in self._interests.items()
            if request.kind is RequestKind.SUBSCRIBE_TRACKS
            and is_prefix(interest.prefix, track.namespace)
            and self._property_match(request, properties)
        ]

    def _property_match(self, request: Request, properties: bytes) -> bool:
        filters = [
            one
            for one in request.parameters.range_filters
            if one.type is RangeFilterType.TRACK_PROPERTY
        ]
        return not filters or track_passes(filters, properties)

    def _listeners(self, namespace: TrackNamespace) -> list[Interest]:
        return [
            interest
            for request, interest in self._interests.items()
            if request.kind is RequestKind.SUBSCRIBE_NAMESPACE
            and is_prefix(interest.prefix, namespace)
        ]

    def _list(self, interest: Interest) -> None:
        if interest.request.kind is RequestKind.SUBSCRIBE_NAMESPACE:
            for namespace in list(self._known):
                if is_prefix(interest.prefix, namespace):
                    self._tell(interest, namespace)

    def _tell(self, interest: Interest, namespace: TrackNamespace) -> None:
        if namespace not in interest.told and alive(interest.request):
            interest.told.add(namespace)
            interest.request.session.namespace(interest.request, namespace)
