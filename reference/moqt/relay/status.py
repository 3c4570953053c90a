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


class StatusWaiter:
    """One that wants to know: `answered` gets the publisher's answer, `failed` the last error."""

    def __init__(
        self,
        request: StatusRequest,
        answered: Callable[[Session, RequestOk], None],
        failed: Callable[[RequestError], None],
    ) -> None:
        self.answered = answered
        self.failed = failed
        self._request = request

    def stop(self) -> None:
        """Wait for no answer any more."""
        self._request.leave(self)


class StatusRequest:
    """Context of TRACK_STATUS that we send, to one publisher after the other.

    A Track has one at a time, whoever waits: relays that ask each other in a circle end it so.
    """

    def __init__(self, track: RelayTrack, asking: Session) -> None:
        self._track = track
        self._asking = asking
        self._waiters: list[StatusWaiter] = []
        self._tried: frozenset[Session] = frozenset()
        self._request: Request | None = None
        self._timer: Timer | None = None

    @property
    def session(self) -> Session | None:
        """Whom we asked last."""
        return None if self._request is None else self._request.session

    def join(self, waiter: StatusWaiter) -> None:
        """One more waits."""
        self._waiters.append(waiter)

    def leave(self, waiter: StatusWaiter) -> None:
        """One waits no more; without any the request is cancelled."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
            if not self._waiters:
                self._end()

    def ask(self, error: RequestError = NO_PUBLISHER) -> None:
        """Ask the next publisher; `error` is the outcome when there is none left."""
        self._stop()
        track = self._track
        context = track.context
        for session in track.gaps.publishers(self._tried, self._asking):
            self._tried |= {session}
            parameters = Parameters(authorization_tokens=context.tokens(session))
            self._request = ask(partial(session.track_status, track.name, parameters))
            if self._request is not None:
                self._request.context = self
                due = context.now() + context.config.upstream_timeout
                self._timer = context.timers.at(due, lambda: self.ask(TIMED_OUT))
                return
        for waiter in self._end():
            waiter.failed(error)

    def handle(self, event: Event) -> None:
        """One event of our request."""
        match event:
            case RequestAccepted(response=RequestOk() as answer):
                for waiter in self._end():
                    waiter.answered(event.request.session, answer)
            case RequestFailed(error=error):
                self.ask(error or GONE)
            case RequestCancelled():
                self.ask(GONE)
            case _:
                pass

    def session_closed(self) -> None:
        """The publisher is gone."""
        self.ask(GONE)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._request is not None:
            cancel(self._request)

    def _end(self) -> list[StatusWaiter]:
        """It is over; who waited."""
        self._stop()
        if self._track.status is self:
            self._track.status = None
        waiters, self._waiters = self._waiters, []
        return waiters


def await_status(
    track: RelayTrack,
    asking: Session,
    answered: Callable[[Session, RequestOk], None],
    failed: Callable[[RequestError], None],
) -> StatusWaiter:
    """Ask a publisher for the Track's status on behalf of the session `asking`."""
    running = track.status
    request = running or StatusRequest(track, asking)
    waiter = StatusWaiter(request, answered, failed)
    request.join(waiter)
    if running is None:
        track.status = request
        request.ask()
    return waiter


def forward_status(track: RelayTrack, asked: Request) -> None:
    """Answer a peer's TRACK_STATUS with what a publisher says."""

    def answered(session: Session, answer: RequestOk) -> None:
        if answerable(asked):
            largest = Parameters(largest_object=answer.parameters.largest_object)
            asked.session.accept(asked, largest, answer.track_properties)
        track.release()

    def failed(error: RequestError) -> None:
        refuse(asked, error.code, error.reason, error.retry_interval)
        track.release()

    await_status(track, asked.session, answered, failed)
