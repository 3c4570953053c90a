"""What the parts of a relay share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moqt.relay.config import RelayConfig
from moqt.relay.suspects import Suspects
from moqt.session import Session
from moqt.session.events import Event
from moqt.session.timers import Timers
from moqt.tracks import CacheBudget
from moqt.wire.names import TrackNamespace
from moqt.wire.tokens import Token

if TYPE_CHECKING:
    from moqt.relay.track import RelayTrack


class Handler(Protocol):
    """The `context` of a request in a relay: what its events are handed to."""

    def handle(self, event: Event) -> None:
        """One event of the request."""


@dataclass(frozen=True)
class RelayContext:
    """Config, time, the common cache budget, whom not to trust, and ways back to the relay.

    `now` gives the time in seconds. `publishers(namespace, asking)` lists the sessions to ask for
    a namespace on behalf of the session `asking`. `tokens(session)` are the relay's own tokens
    for requests on that session. `established(track, first)` is called when a publisher accepted,
    `first` if there was none before, `idle(track)` when the Track may be forgotten.
    """

    config: RelayConfig
    budget: CacheBudget
    suspects: Suspects
    timers: Timers
    now: Callable[[], float]
    publishers: Callable[[TrackNamespace, Session | None], list[Session]]
    tokens: Callable[[Session], tuple[Token, ...]]
    established: Callable[[RelayTrack, bool], None]
    idle: Callable[[RelayTrack], None]
