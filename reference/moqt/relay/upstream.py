"""A relay's subscription to a Track at one publisher."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moqt.session import Request, Session
from moqt.session.events import (
    Event,
    ObjectReceived,
    ObjectStarted,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    StateNotified,
    StreamEnded,
    StreamInfo,
    SubscriptionEnded,
    TrackMalformed,
    UpdateAnswered,
    UpdateReceived,
)
from moqt.tracks.answering import accept_update
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, RequestErrorCode
from moqt.wire.messages import Parameters, RequestError, RequestOk, SubscribeOk
from moqt.wire.names import Location
from moqt.wire.objects import Object

if TYPE_CHECKING:
    from moqt.relay.track import RelayTrack


@dataclass(slots=True)
class Ending:
    """Why a publisher is lost to a Track: REQUEST_ERROR or PUBLISH_DONE code, and its reason."""

    request_code: int
    done_code: int
    reason: str
    retry_interval: int = 0


# GOING_AWAY, and no error: what came before is still delivered.
LOST = Ending(RequestErrorCode.INTERNAL_ERROR, PublishDoneCode.GOING_AWAY, "the publisher is gone")


@dataclass(slots=True)
class UpstreamStream:
    """A subgroup stream of the publisher: its last Object, and the one that has started."""

    last: Location | None = None
    subgroup: int | None = None
    arriving: Location | None = None


class Upstream:
    """Context of a SUBSCRIBE that we sent, or of a PUBLISH that we received.

    `largest` is the largest Location that this publisher told of, `paused` whether its Forward
    State is 0.
    """

    def __init__(self, track: RelayTrack, request: Request, *, paused: bool) -> None:
        self.track = track
        self.request = request
        self.paused = paused
        self.established = False
        self.held = False
        self.largest: Location | None = None
        self._streams: dict[int | None, UpstreamStream] = {}

    @property
    def session(self) -> Session:
        """The publisher's session."""
        return self.request.session

    def learn_largest(self, location: Location | None) -> None:
        """The publisher reported this as Largest Object, or sent it (R211)."""
        if location is not None:
            if self.largest is None or location > self.largest:
                self.largest = location
            self.track.store.published(location)

    def resume(self) -> None:
        """Forward State 1, if it is 0 (R206, R219)."""
        if self.paused:
            self.paused = not self.update(Parameters(forward=1))

    def update(self, parameters: Parameters) -> bool:
        """Send REQUEST_UPDATE; False where the publisher takes none now."""
        with suppress(LocalProtocolError):
            self.session.update(self.request, parameters)
            return True
        return False

    def hold(self, held: bool) -> None:
        """Hold the data streams back, or let them flow."""
        if held != self.held:
            self.held = held
            act = self.session.pause_request if held else self.session.resume_request
            act(self.request)

    def handle(self, event: Event) -> None:
        """One event of the request; some may still come when it was given up."""
        if self.track.upstreams.get(self.session) is not self:
            return
        match event:
            case ObjectReceived(_, item, stream):
                self._received(item, stream)
            case ObjectStarted(_, location, stream):
                self._stream(stream).arriving = location
                self.learn_largest(location)
                self.track.store.started(location)
            case StreamEnded(_, stream):
                self._stream_ended(event)
            case RequestAccepted(response=SubscribeOk() as response):
                self.learn_largest(response.parameters.largest_object)
                self.track.upstream_established(self, response.track_properties)
            case RequestFailed(error=error):
                self.gone(LOST if error is None else _refused(error))
            case SubscriptionEnded(message=message):
                self.gone(
                    Ending(RequestErrorCode.DOES_NOT_EXIST, message.status_code, message.reason)
                )
            case RequestCancelled():
                self.gone(LOST)
            case TrackMalformed(reason=reason):
                self.track.malformed([self.session], reason)
            case StateNotified(message=message):
                self.learn_largest(message.parameters.largest_object)
                if message.parameters.forward is not None:
                    self.paused = message.parameters.forward == 0
                self.track.adjust_forward()
            case UpdateAnswered(response=RequestOk() as answer):
                self.learn_largest(answer.parameters.largest_object)
            case UpdateReceived(update=update):
                accept_update(self.request, update)
                if update.parameters.forward is not None:
                    self.paused = update.parameters.forward == 0
                self.track.adjust_forward()
            case _:
                pass

    def session_closed(self) -> None:
        """The publisher's session is gone."""
        self.gone(LOST)

    def gone(self, ending: Ending) -> None:
        """The subscription is over."""
        self.abandon_streams()
        self.track.upstream_gone(self, ending)

    def abandon_streams(self) -> None:
        """What was on its way does not come; streams that continue it downstream are reset."""
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            if stream.arriving is not None:
                self.track.store.abandoned(stream.arriving)
            if stream.last is not None and stream.subgroup is not None:
                self.track.subgroup_broken(stream.last.group, stream.subgroup, None)

    def carries(self, group: int, subgroup: int) -> bool:
        """Whether a stream of the subgroup is open."""
        return any(
            stream.last is not None and stream.last.group == group and stream.subgroup == subgroup
            for stream in self._streams.values()
        )

    def _stream(self, info: StreamInfo) -> UpstreamStream:
        stream = self._streams.get(info.stream_id)
        if stream is None:
            stream = self._streams[info.stream_id] = UpstreamStream()
        return stream

    def _received(self, item: Object, info: StreamInfo) -> None:
        self.learn_largest(item.location)
        if info.stream_id is None:
            self.track.received(self, item, None, info)
            return
        stream = self._stream(info)
        previous, stream.last = stream.last, item.location
        stream.subgroup = item.subgroup
        stream.arriving = None
        self.track.received(self, item, previous, info)

    def _stream_ended(self, event: StreamEnded) -> None:
        stream = self._streams.pop(event.stream.stream_id, None)
        if stream is None:
            return
        if stream.arriving is not None:
            self.track.store.abandoned(stream.arriving)
        if stream.last is None or stream.subgroup is None:
            return
        if event.complete:
            self.track.subgroup_complete(
                self, stream.last, stream.subgroup, end_of_group=event.stream.end_of_group
            )
        else:
            self.track.subgroup_broken(stream.last.group, stream.subgroup, event.code)


def _refused(error: RequestError) -> Ending:
    return Ending(error.code, PublishDoneCode.INTERNAL_ERROR, error.reason, error.retry_interval)
