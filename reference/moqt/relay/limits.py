"""How much one session may ask of a relay (MOQT-22 §15.1)."""

from __future__ import annotations

from moqt.relay.config import RelayConfig
from moqt.session import Request, RequestKind, RequestState
from moqt.wire.errors import RequestErrorCode, RequestRefused

SWEEP = 64
"""Requests that are remembered before looking for ended ones."""


class SessionLimits:
    """A bucket of requests that refills with time, and the requests that are open."""

    def __init__(self, config: RelayConfig, now: float) -> None:
        self._config = config
        self._tokens = float(config.request_burst)
        self._filled_at = now
        # Not every end of a request is told; those that ended are swept out now and then.
        self._open: set[Request] = set()
        self._sweep_at = SWEEP

    def admit(self, request: Request, now: float) -> None:
        """Count a new request. Raises RequestRefused EXCESSIVE_LOAD beyond a limit (R230)."""
        config = self._config
        if config.request_rate is not None:
            gained = (now - self._filled_at) * config.request_rate
            self._tokens = min(float(config.request_burst), self._tokens + gained)
            self._filled_at = now
            if self._tokens < 1:
                self._refuse(f"more than {config.request_rate} requests per second")
            self._tokens -= 1
        limit = config.max_requests
        if len(self._open) >= self._sweep_at or (limit is not None and len(self._open) >= limit):
            self._open = {one for one in self._open if one.state is not RequestState.TERMINATED}
            self._sweep_at = max(SWEEP, 2 * len(self._open))
        if limit is not None and len(self._open) >= limit:
            self._refuse(f"{limit} requests are open on this session")
        if request.kind is RequestKind.PUBLISH_NAMESPACE and config.max_namespaces is not None:
            announced = sum(one.kind is RequestKind.PUBLISH_NAMESPACE for one in self._open)
            if announced >= config.max_namespaces:
                self._refuse(f"{config.max_namespaces} namespaces are announced by this session")
        self._open.add(request)

    def ended(self, request: Request) -> None:
        """The request is over."""
        self._open.discard(request)

    def _refuse(self, reason: str) -> None:
        raise RequestRefused(reason, RequestErrorCode.EXCESSIVE_LOAD, self._config.retry_interval)
