"""TRACK_STATUS that a relay passes on (MOQT-22 §7.4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from moqt.session import Request, Session
from moqt.session.events import Event, RequestAccepted, RequestCancelled, RequestFailed
from moqt.session.timers import Timer
from moqt.tracks.answering import answerable, ask, cancel, refuse
from moqt.wire.errors import RequestErrorCode
from moqt.wire.messages import Parameters, RequestError, RequestOk

if TYPE_CHECKING:
    from moqt.relay.track import RelayTrack

GONE = RequestError(RequestErrorCode.INTERNAL_ERROR, 0, "the publisher is gone")
TIMED_OUT = RequestError(RequestErrorCode.TIMEOUT, 1, "the publisher did not answer in time")
NO_PUBLISHER = RequestError(RequestErrorCode.DOES_NOT_EXIST, 0, "no publisher of this track")


class StatusRequest:
    """Context of TRACK_STATUS that we send, to one publisher after the other.

    `answered` gets the first positive answer, and `failed` the last error, `nobody` when there is
    no publisher to ask.
    """

    def __init__(
        self,
        track: RelayTrack,
        answered: Callable[[Session, RequestOk], None],
        failed: Callable[[RequestError], None],
    ) -> None:
        self._track = track
        self._answered = answered
        self._failed = failed
        self._tried: frozenset[Session] = frozenset()
        self._request: Request | None = None
        self._timer: Timer | None = None

    @property
    def session(self) -> Session | None:
        """Whom we asked last."""
        return None if self._request is None else self._request.session

    def ask(self, error: RequestError = NO_PUBLISHER) -> None:
        """Ask the next publisher; `error` is the outcome when there is none left."""
        self.stop()
        track = self._track
        context = track.context
        for session in track.gaps.publishers(self._tried):
            self._tried |= {session}
            parameters = Parameters(authorization_tokens=context.tokens(session))
            self._request = ask(partial(session.track_status, track.name, parameters))
            if self._request is not None:
                self._request.context = self
                track.statuses.add(self)
                due = context.now() + context.config.upstream_timeout
                self._timer = context.timers.at(due, lambda: self.ask(TIMED_OUT))
                return
        self._failed(error)

    def stop(self) -> None:
        """Wait for no answer any more."""
        self._track.statuses.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            cancel(self._request)

    def handle(self, event: Event) -> None:
        """One event of our request."""
        match event:
            case RequestAccepted(response=RequestOk() as answer):
                self.stop()
                self._answered(event.request.session, answer)
            case RequestFailed(error=error):
                self.ask(error or GONE)
            case RequestCancelled():
                self.ask(GONE)
            case _:
                pass

    def session_closed(self) -> None:
        """The publisher is gone."""
        self.ask(GONE)


def forward_status(track: RelayTrack, asked: Request) -> None:
    """Answer a peer's TRACK_STATUS with what a publisher says."""

    def answered(session: Session, answer: RequestOk) -> None:
        if answerable(asked):
            largest = Parameters(largest_object=answer.parameters.largest_object)
            asked.session.accept(asked, largest, answer.track_properties)

    def failed(error: RequestError) -> None:
        refuse(asked, error.code, error.reason, error.retry_interval)
        track.release()

    StatusRequest(track, answered, failed).ask()
