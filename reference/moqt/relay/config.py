"""What a relay is told once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from moqt.session import Request, SessionConfig
from moqt.wire.tokens import Token


def allow(request: Request) -> None:
    """The open policy: every request is authorised."""


@dataclass(frozen=True, kw_only=True)
class RelayConfig:
    """Limits and neighbours of a relay; sizes in octets, times in seconds.

    `authorise` raises RequestRefused; it is asked for every request and update, before the cache
    is. `cache_budget` bounds all stored Objects together. A Track's upstream is held back while
    every subscription to it has a backlog above `high_water`, until one is below `low_water`;
    fetches from upstream likewise. `subscriber_budget` is the backlog at which a subscription is
    ended TOO_FAR_BEHIND. `upstreams` are the moqt URIs of relays to ask for what has no publisher
    here, with `upstream_tokens` of the relay's own and `upstream_session` for the sessions.
    `upstream_timeout` bounds the wait for a publisher's answer or its next octets,
    `reconnect_delay` is the pause before an upstream session is opened again. Of more than
    `max_upstream_namespaces` on one upstream session the prefix that brings them is given up.

    Limits per session of a peer: `request_rate` per second with bursts of `request_burst`,
    `max_requests` that are open at once, `max_namespaces` that it may announce; beyond them
    EXCESSIVE_LOAD with `retry_interval` (milliseconds plus one). A discovery prefix that matches
    more than `max_listed_namespaces` gets NAMESPACE_TOO_LARGE.
    """

    authorise: Callable[[Request], None] = allow
    cache_budget: int = 1 << 30
    high_water: int = 8 << 20
    low_water: int = 4 << 20
    subscriber_budget: int | None = 256 << 20
    upstreams: tuple[str, ...] = ()
    upstream_tokens: tuple[Token, ...] = ()
    upstream_session: SessionConfig = field(default_factory=SessionConfig)
    upstream_timeout: float = 10.0
    reconnect_delay: float = 1.0
    max_upstream_namespaces: int = 1 << 16
    request_rate: float | None = None
    request_burst: int = 100
    max_requests: int | None = None
    max_namespaces: int | None = None
    max_listed_namespaces: int | None = None
    retry_interval: int = 1001
