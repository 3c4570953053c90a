"""The manifest of one publication over one route (KVCS 7.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from moqt.session import Request
from moqt.session.events import (
    Event,
    ObjectReceived,
    RequestCancelled,
    RequestFailed,
    SubscriptionEnded,
    TrackMalformed,
)
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.objects import ObjectStatus

from kvcs.consumer.request import ConsumeRequest
from kvcs.consumer.routes import Route
from kvcs.names import MANIFEST, MANIFEST_COSE, ManifestTrack

CURRENT_GROUP = LocationFilter(LocationFilterType.RELATIVE_START, 1)
"""From the first Object of the newest Group: the current version (KVCS-7.2-6)."""


class Reader(Protocol):
    """Who reads manifests."""

    def manifest_arrived(self, feed: ManifestFeed) -> None:
        """A version was verified."""

    def manifest_refused(self, feed: ManifestFeed, reason: str, detail: str, fatal: bool) -> None:
        """A version was not; `fatal` costs the publication."""

    def feed_over(self, feed: ManifestFeed, reason: str) -> None:
        """No further version comes over this route."""

    def emit(self, event: str, **details: Any) -> None:
        """Report."""


def manifest_tracks(request: ConsumeRequest) -> tuple[ManifestTrack, ...]:
    """Tracks to try, in order (KVCS-7.2-4, KVCS-7.2-5)."""
    return (MANIFEST_COSE,) if request.authentic else (MANIFEST_COSE, MANIFEST)


def manifest_parameters(request: ConsumeRequest) -> Parameters:
    """Later versions from the subscription, the current one from the fill (KVCS-7.2-6)."""
    return Parameters(
        authorization_tokens=request.authorization,
        location_filter=NEXT_OBJECT,
        fill=Parameters(location_filter=CURRENT_GROUP),
    )


class ManifestFeed:
    """The subscription to "manifest.cose", or to "manifest" where the former does not exist.

    Only DOES_NOT_EXIST leads from one to the other (KVCS-7.2-5): refusal, silence or a reset
    would otherwise be a way to make a consumer give up authenticity (reading A13).
    """

    def __init__(
        self,
        reader: Reader,
        route: Route,
        tracks: Sequence[ManifestTrack],
        parameters: Parameters,
    ) -> None:
        self.route = route
        self.over = False
        self._reader = reader
        self._tracks = list(tracks)
        self._parameters = parameters
        self._track = self._tracks.pop(0)
        self._request: Request | None = None

    def start(self) -> None:
        """SUBSCRIBE to the track whose turn it is."""
        session = self.route.source.session
        self._request = session.subscribe(self.route.track_name(self._track), self._parameters)
        self._request.context = self

    def cancel(self) -> None:
        """No more versions are wanted."""
        if not self.over:
            self.route.source.cancel(self._request)
        self.over = True

    def on_event(self, event: Event) -> None:
        """What the route brings."""
        if self.over or event.request is not self._request:  # type: ignore[union-attr]
            return
        match event:
            case ObjectReceived():
                self._object(event)
            case RequestFailed(error=error):
                code = None if error is None else error.code
                missing = code == RequestErrorCode.DOES_NOT_EXIST
                if missing and self._tracks and self.route.source.asks:
                    self._track = self._tracks.pop(0)
                    self.start()
                else:
                    self._end("manifest.refused")
            case TrackMalformed(reason=reason):
                self._reader.manifest_refused(self, "object.conflict", reason, True)
                self._end("object.conflict")
            case SubscriptionEnded(message=message) if (
                message.status_code == PublishDoneCode.MALFORMED_TRACK
            ):
                reason = "the source found the manifest track malformed"
                self._reader.manifest_refused(self, "object.conflict", reason, True)
                self._end("object.conflict")
            case RequestCancelled() | SubscriptionEnded():
                self._end("manifest.ended")

    def _object(self, event: ObjectReceived) -> None:
        item, log = event.object, self.route.publication.log
        if item.status is not ObjectStatus.NORMAL:
            return
        version = item.location.group
        if item.location.object != 0:
            detail = f"a version is Object 0 of its Group, not {item.location}"
            self._reader.manifest_refused(self, "manifest.invalid", detail, False)
            return
        if log.seen(version) == item.payload:
            return
        refusal = log.offer(version, self._track, item.payload)
        if refusal is None:
            self._reader.emit(
                "manifest",
                publication=self.route.publication.id.hex(),
                track=str(self._track),
                version=version,
                current=log.version,
                octets=len(item.payload),
                via=event.stream.via.value,
            )
            self._reader.manifest_arrived(self)
        else:
            self._reader.manifest_refused(self, refusal.reason, refusal.detail, refusal.fatal)

    def _end(self, reason: str) -> None:
        self.over = True
        self._reader.feed_over(self, reason)
