"""Anchor probing: from the longest wanted prefix down, one anchor at a time (KVCS 7.1).

The descent is linear: publications may exist for 2 and 7 blocks and none for 4, so nothing can be
skipped. Each step asks every ready source for the four fields of one prefix and nothing wider
(KVCS-7.1-1, reading A19). "None" has no answer in MOQT: a step ends when every source refused or
its time is over (reading A20). The step that found something stays open, for further publications
and for the end of those that it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from moqt.session import Request
from moqt.session.events import (
    Event,
    NamespaceEnded,
    NamespaceReceived,
    RequestCancelled,
    RequestFailed,
)
from moqt.wire.messages import Parameters, RequestError
from moqt.wire.names import TrackNamespace, is_prefix

from kvcs.consumer.request import ConsumeRequest
from kvcs.consumer.routes import Source
from kvcs.consumer.timers import Timers
from kvcs.errors import KvcsError
from kvcs.names import KVCS_1, KvcsNamespace, parse_namespace


class Finder(Protocol):
    """Who wants to know."""

    now: float

    def found(self, source: Source, namespace: KvcsNamespace, depth: int) -> None:
        """A publication of the first `depth` blocks exists at `source`."""

    def gone(self, source: Source, namespace: KvcsNamespace) -> None:
        """It was withdrawn there."""

    def nothing_found(self) -> None:
        """The descent is at its end."""

    def emit(self, event: str, **details: Any) -> None:
        """Report."""


class Probe:
    """One SUBSCRIBE_NAMESPACE at one source; the context of its request."""

    def __init__(self, discovery: Discovery, source: Source, depth: int, prefix: TrackNamespace):
        self.discovery = discovery
        self.source = source
        self.depth = depth
        self.prefix = prefix
        self.over = False
        self.request: Request | None = None

    def on_event(self, event: Event) -> None:
        """What the source says."""
        match event:
            case NamespaceReceived():
                self.discovery.heard(self, event.namespace)
            case NamespaceEnded():
                self.discovery.withdrawn(self, event.namespace)
            case RequestFailed(error=error):
                self.end()
                self.discovery.refused(self, error)
            case RequestCancelled():
                self.end()
                self.discovery.refused(self)

    def end(self) -> None:
        """The request is over, or we no longer listen."""
        self.over = True


class Discovery:
    """The descent over the consumer's own Block Keys."""

    def __init__(
        self,
        finder: Finder,
        request: ConsumeRequest,
        anchors: Sequence[tuple[int, bytes]],
        timers: Timers,
    ) -> None:
        self._finder = finder
        self._request = request
        self._anchors = list(anchors)
        self._timers = timers
        self._sources: list[Source] = []
        self._probes: list[Probe] = []
        self._hit = False
        self.finished = not self._anchors

    @property
    def listening(self) -> bool:
        """Whether a publication may still turn up without another step."""
        return any(not probe.over for probe in self._probes)

    @property
    def asking(self) -> bool:
        """Whether a step is under way that has found nothing yet."""
        return "probe" in self._timers

    def start(self, sources: Sequence[Source]) -> None:
        """Begin at the longest prefix."""
        self._sources = list(sources)
        self.descend()

    def descend(self) -> None:
        """Ask for the next shorter prefix, or end the descent."""
        if "discovery" not in self._timers:
            at = self._finder.now + self._request.budgets.discovery
            self._timers.set("discovery", at, self._out_of_time)
        self._timers.cancel("probe")
        self._hit = False
        self._cancel()
        ready = [source for source in self._sources if source.asks]
        if self.finished or not self._anchors or not ready:
            self._finish()
            return
        depth, key = self._anchors.pop(0)
        profile, scope_key = self._request.profile, self._request.scope_key
        prefix = (
            KVCS_1,
            profile.scope_id(scope_key),
            profile.compat_id(self._request.descriptor),
            key,
        )
        self._finder.emit("probe", blocks=depth)
        for source in ready:
            probe = Probe(self, source, depth, prefix)
            session = source.session
            probe.request = session.subscribe_namespace(
                prefix, Parameters(authorization_tokens=self._request.authorization)
            )
            probe.request.context = probe
            self._probes.append(probe)
        self._timers.set("probe", self._finder.now + self._request.budgets.probe, self._step_over)

    def can_descend(self, reused_blocks: int) -> bool:
        """Whether a shorter prefix that is still worth more than `reused_blocks` is unasked."""
        return not self.finished and bool(self._anchors) and self._anchors[0][0] > reused_blocks

    def source_closed(self, source: Source) -> None:
        """Its probes are over."""
        for probe in self._probes:
            if probe.source is source and not probe.over:
                probe.end()
                self.refused(probe)
                return

    def stop(self) -> None:
        """No further step; what was found stays open."""
        self.finished = True
        self._timers.cancel("probe")
        self._timers.cancel("discovery")

    # What the probes hear

    def heard(self, probe: Probe, namespace: TrackNamespace) -> None:
        """NAMESPACE: taken when it is the prefix that was asked for and a Publication ID."""
        if probe.over:
            return
        try:
            if not is_prefix(probe.prefix, namespace):
                raise KvcsError("it does not begin with the prefix that was asked for")
            parsed = parse_namespace(namespace)
        except KvcsError as error:
            self._finder.emit("namespace-ignored", source=probe.source.url, detail=error.reason)
            return
        self._hit = True
        self._timers.cancel("probe")
        self._timers.cancel("discovery")
        self._finder.found(probe.source, parsed, probe.depth)

    def withdrawn(self, probe: Probe, namespace: TrackNamespace) -> None:
        """NAMESPACE_DONE for something announced before."""
        try:
            parsed = parse_namespace(namespace)
        except KvcsError:
            return
        self._finder.gone(probe.source, parsed)

    def refused(self, probe: Probe, error: RequestError | None = None) -> None:
        """A source will not answer this step: the step ends when all of them did."""
        if error is not None:
            details = {"code": error.code, "reason": error.reason}
            self._finder.emit("probe-refused", source=probe.source.url, **details)
        if probe in self._probes and not self._hit and not self.listening:
            self.descend()

    def _step_over(self) -> None:
        if not self._hit:
            self.descend()

    def _out_of_time(self) -> None:
        if not self._hit:
            self._cancel()
            self._finish()

    def _finish(self) -> None:
        self.stop()
        self._finder.nothing_found()

    def _cancel(self) -> None:
        for probe in self._probes:
            if not probe.over:
                probe.source.cancel(probe.request)
            probe.end()
        self._probes.clear()
