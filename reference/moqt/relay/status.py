"""TRACK_STATUS that a relay passes on (MOQT-22 §7.4)."""

from __future__ import annotations

from moqt.relay.track import RelayTrack
from moqt.session import Request, Session
from moqt.session.events import Event, RequestAccepted, RequestCancelled, RequestFailed
from moqt.tracks.serving import sent_properties
from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import Parameters, RequestError, RequestOk

GONE = RequestError(RequestErrorCode.INTERNAL_ERROR, 0, "the publisher is gone")


class StatusForward:
    """Context of our TRACK_STATUS: its answer goes to the peer that asked."""

    def __init__(self, track: RelayTrack, asked: Request) -> None:
        self._track = track
        self._asked = asked
        self._tried: frozenset[Session] = frozenset()

    def ask(self, error: RequestError) -> None:
        """Ask the next publisher; `error` is the answer when there is none left."""
        track, asked = self._track, self._asked
        session = track.gaps.next_publisher(self._tried)
        if session is None:
            asked.session.refuse(
                asked, error.code, error.reason, retry_interval=error.retry_interval
            )
            return
        self._tried |= {session}
        tokens = track.context.tokens(session)
        request = session.track_status(track.name, Parameters(authorization_tokens=tokens))
        request.context = self

    def handle(self, event: Event) -> None:
        """One event of our request."""
        match event:
            case RequestAccepted(response=RequestOk() as answer):
                properties = sent_properties(self._asked.parameters, answer.track_properties)
                largest = Parameters(largest_object=answer.parameters.largest_object)
                self._asked.session.accept(self._asked, largest, properties)
            case RequestFailed(error=error):
                self.ask(error or GONE)
            case RequestCancelled():
                self.ask(GONE)
            case _:
                pass

    def session_closed(self) -> None:
        """The publisher is gone."""
        self.ask(GONE)
