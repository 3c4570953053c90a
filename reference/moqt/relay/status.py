"""TRACK_STATUS that a relay passes on (MOQT-22 §7.4)."""

from __future__ import annotations

from functools import partial

from moqt.relay.track import RelayTrack
from moqt.session import Request, Session
from moqt.session.events import Event, RequestAccepted, RequestCancelled, RequestFailed
from moqt.tracks.answering import answerable, ask, refuse
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
        for session in track.gaps.publishers(self._tried):
            self._tried |= {session}
            parameters = Parameters(authorization_tokens=track.context.tokens(session))
            request = ask(partial(session.track_status, track.name, parameters))
            if request is not None:
                request.context = self
                return
        refuse(asked, error.code, error.reason, error.retry_interval)

    def handle(self, event: Event) -> None:
        """One event of our request."""
        match event:
            case RequestAccepted(response=RequestOk() as answer):
                asked = self._asked
                largest = Parameters(largest_object=answer.parameters.largest_object)
                if answerable(asked):
                    asked.session.accept(asked, largest, answer.track_properties)
            case RequestFailed(error=error):
                self.ask(error or GONE)
            case RequestCancelled():
                self.ask(GONE)
            case _:
                pass

    def session_closed(self) -> None:
        """The publisher is gone."""
        self.ask(GONE)
