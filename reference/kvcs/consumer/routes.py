"""Where Objects can be had: sources, publications, and each publication at each source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from moqt.session import Request, RequestState, Session
from moqt.wire.names import FullTrackName, Location

from kvcs.consumer.manifests import ManifestLog
from kvcs.consumer.request import ConsumeRequest
from kvcs.names import DataTrack, KvcsNamespace, TrackName

MAX_PUBLICATIONS = 256
"""Publications that one restore looks at."""

MAX_REFUSALS = 2
"""An Object that a route failed to give so often marks the route as failed."""


class SourceState(Enum):
    """Whether requests can be sent to a source."""

    CONNECTING = "connecting"
    READY = "ready"
    FAILED = "failed"


class Source:
    """One relay (or publisher) by its URL, and our session to it."""

    def __init__(self, url: str, session: Session) -> None:
        self.url = url
        self.session = session
        self.state = SourceState.CONNECTING
        self.leaving = False

    @property
    def ready(self) -> bool:
        """Whether its SETUP came and it has not failed."""
        return self.state is SourceState.READY and not self.session.closed

    @property
    def asks(self) -> bool:
        """Whether it takes a request now; a GOAWAY counts before we hear of it."""
        return self.ready and not self.leaving and self.session.takes_requests

    def cancel(self, request: Request | None) -> None:
        """Cancel a request, unless it ended before we heard of it."""
        if request is not None and self.ready and request.state is not RequestState.TERMINATED:
            self.session.cancel(request)


class Route:
    """One publication at one source; `failed` routes get no new request."""

    def __init__(self, publication: PublicationView, source: Source) -> None:
        self.publication = publication
        self.source = source
        self.failed: str | None = None
        self.not_before = 0.0
        self.refusals: Counter[tuple[DataTrack, Location]] = Counter()
        self.starts: Counter[DataTrack] = Counter()

    @property
    def usable(self) -> bool:
        """Whether a request may go this way."""
        return self.failed is None and self.source.asks and self.publication.discarded is None

    def refused(self, track: DataTrack, location: Location) -> None:
        """The route failed to give an Object that should exist."""
        self.refusals[track, location] += 1
        if self.refusals[track, location] >= MAX_REFUSALS and self.failed is None:
            self.failed = "object-refused-twice"

    def track_name(self, track: TrackName) -> FullTrackName:
        """The Full Track Name of one of the publication's tracks."""
        return FullTrackName(self.publication.namespace.fields, track.octets)


class PublicationView:
    """What the consumer knows of one publication."""

    def __init__(self, namespace: KvcsNamespace, log: ManifestLog, *, vouched: bool) -> None:
        self.namespace = namespace
        self.log = log
        self.vouched = vouched
        self.discarded: str | None = None
        self.withdrawn = False
        self.tried = False
        self.routes: dict[Source, Route] = {}

    @property
    def id(self) -> bytes:
        """The Publication ID."""
        return self.namespace.publication_id

    def route(self, source: Source) -> Route:
        """The route over `source`, made when it is first asked for."""
        return self.routes.setdefault(source, Route(self, source))

    def usable_routes(self) -> list[Route]:
        """Routes that may be asked, in order of preference."""
        return [route for route in self.routes.values() if route.usable]


class Publications:
    """All publications that turned up, in the order in which they did."""

    def __init__(self, request: ConsumeRequest, keys: Sequence[bytes]) -> None:
        self._request = request
        self._keys = keys
        self._all: dict[KvcsNamespace, PublicationView] = {}

    def __bool__(self) -> bool:
        return bool(self._all)

    @property
    def full(self) -> bool:
        """Whether no other publication is to be added: a source may list without end."""
        return len(self._all) >= MAX_PUBLICATIONS

    def get(self, namespace: KvcsNamespace) -> PublicationView | None:
        """The publication, if it turned up."""
        return self._all.get(namespace)

    def add(self, namespace: KvcsNamespace, *, vouched: bool) -> PublicationView:
        """The publication; new when it did not turn up before."""
        known = self._all.get(namespace)
        if known is None:
            request = self._request
            log = ManifestLog(
                namespace,
                request.profile,
                self._keys,
                request.producers,
                authentic=request.authentic,
                external_aad=request.external_aad,
            )
            known = self._all[namespace] = PublicationView(namespace, log, vouched=vouched)
        return known

    def ours(self, namespace: KvcsNamespace) -> bool:
        """Whether it is of our scope and our descriptor."""
        request = self._request
        profile = request.profile
        scope_id = profile.scope_id(request.scope_key)
        compat_id = profile.compat_id(request.descriptor)
        return (namespace.scope_id, namespace.compat_id) == (scope_id, compat_id)

    def untried(self) -> PublicationView | None:
        """The next one that nothing was asked of yet."""
        return next(
            (item for item in self._all.values() if not item.tried and item.discarded is None),
            None,
        )
