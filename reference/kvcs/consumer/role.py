"""The consumer's role: sources, discovery, one restore after another, and the end (KVCS 7).

A consumer serves one request and always ends with `done`, within the request's budgets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from moqt.endpoint import Host
from moqt.session import RequestKind, Session, SessionConfig
from moqt.session.events import Event, GoawayReceived, RequestReceived, SessionClosed, SetupReceived
from moqt.wire.errors import RequestErrorCode, SessionError

from kvcs.consumer.discovery import Discovery
from kvcs.consumer.feed import ManifestFeed
from kvcs.consumer.questions import Questions
from kvcs.consumer.request import ConsumeRequest
from kvcs.consumer.restore import Restore
from kvcs.consumer.result import Result, conclusion
from kvcs.consumer.routes import Publications, PublicationView, Route, Source
from kvcs.consumer.sources import Sources
from kvcs.consumer.timers import Timers
from kvcs.names import KvcsNamespace

Report: TypeAlias = Callable[[dict[str, Any]], None]


class Consumer(Questions):
    """An End Subscriber that restores one prompt's cache.

    `report` gets one dict per event; `kvcs.consumer.reports` lists them.
    """

    def __init__(
        self,
        request: ConsumeRequest,
        report: Report | None = None,
        config: SessionConfig | None = None,
    ) -> None:
        super().__init__(request)
        self.timers = Timers()
        self.now = 0.0
        self.done = False
        self.publications = Publications(request, self.keys)
        self._report = report
        self._sources = Sources(self, config if config is not None else SessionConfig())
        self._restore: Restore | None = None
        self._finished: list[Restore] = []
        self._feed: ManifestFeed | None = None
        self._fed: set[Route] = set()
        self._discovery: Discovery | None = None

    @property
    def result(self) -> Result | None:
        """The best restore so far; None while nothing was retrieved."""
        best = self._best()
        return None if best is None else Result(best)

    # Endpoint

    def attach(self, host: Host) -> None:
        """Connect to all sources."""
        self.now = host.now()
        self.timers.set("total", self.now + self.request.budgets.total, self._out_of_time)
        self._sources.connect(host)

    def session_opened(self, session: Session, now: float) -> None:
        """Nobody has business with a consumer."""
        session.close(SessionError.NO_ERROR, "a consumer takes no sessions")

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        """One event of one of our sessions."""
        self.now = now
        source = self._sources.of(session)
        if source is None or self.done:
            return
        match event:
            case SetupReceived():
                self._sources.up(source)
            case SessionClosed(reason=reason):
                self._sources.closed(source, reason)
            case GoawayReceived(request=None, message=message):
                self._sources.move(source, message.uri)
            case GoawayReceived():
                pass
            case RequestReceived(request=request) if request.kind is RequestKind.PUBLISH_NAMESPACE:
                session.accept(request)
            case RequestReceived(request=request):
                session.refuse(request, RequestErrorCode.NOT_SUPPORTED, "a consumer only asks")
            case _:
                if event.request.context is not None:
                    event.request.context.on_event(event)

    def next_timer(self) -> float | None:
        """The earliest deadline."""
        return self.timers.next()

    def handle_timer(self, now: float) -> None:
        """A deadline has come."""
        self.now = now
        self.timers.fire(now)

    def emit(self, event: str, **details: Any) -> None:
        """Report one event."""
        if self._report is not None:
            self._report({"event": event, "time": self.now, **details})

    # Sources

    def sources_up(self) -> None:
        """Begin: with what an index named, or with the longest prefix."""
        named = self.request.namespaces
        anchors = self.anchors() if self.request.probing and not named else []
        self._discovery = Discovery(self, self.request, anchors, self.timers)
        ready = self._sources.ready
        for namespace in named:
            if self.publications.ours(namespace):
                self.publications.add(namespace, vouched=True)
            else:
                self.emit("namespace-ignored", namespace=str(namespace), detail="not of our scope")
        if not ready or not (anchors or self.publications):
            self._finish("nothing to ask for" if ready else "no source")
        elif anchors:
            self._discovery.start(ready)
        else:
            self._exhausted()

    def source_ready(self, source: Source) -> None:
        """One more way to what is missing."""
        if self._restore is not None:
            for publication in self._restore.supply.publications:
                publication.route(source)
            self._restore.supply.retry()

    def source_failed(self, source: Source) -> None:
        """Everything on it is over."""
        if self._restore is not None:
            self._restore.supply.source_closed(source)
        feed = self._feed
        if feed is not None and feed.route.source is source and not feed.over:
            feed.over = True
            self.feed_over(feed, "session.closed")
        if self._discovery is not None:
            self._discovery.source_closed(source)
        self.check()

    # Discovery

    def found(self, source: Source, namespace: KvcsNamespace, depth: int) -> None:
        """A probe was answered."""
        if self.publications.full and self.publications.get(namespace) is None:
            detail = "more publications than a restore looks at"
            self.emit("namespace-ignored", source=source.url, detail=detail)
        else:
            view = self.publications.add(namespace, vouched=False)
            view.route(source)
            self.emit("publication", publication=view.id.hex(), source=source.url, blocks=depth)
        if self._feed is None and self._restore is None:
            self._exhausted()
        elif self._restore is not None:
            self._restore.supply.retry()

    def gone(self, source: Source, namespace: KvcsNamespace) -> None:
        """What is under way goes on; nothing new is asked for (KVCS-7.1-2)."""
        view = self.publications.get(namespace)
        if view is not None:
            view.withdrawn = True
            self.emit("publication-withdrawn", publication=view.id.hex(), source=source.url)

    def nothing_found(self) -> None:
        """No (further) anchor is published."""
        self._exhausted()

    # Publications

    def _begin(self, view: PublicationView) -> bool:
        """Ask for a publication's manifest over the next route; False: there is none."""
        view.tried = True
        for source in self._sources.ready:
            view.route(source)
        routes = [route for route in view.usable_routes() if route not in self._fed]
        if not routes:
            self._drop(view, "manifest.unavailable", "no source gave a manifest of it")
            return False
        self._start_feed(routes[0])
        self.timers.set("manifest", self.now + self.request.budgets.manifest, self._manifest_late)
        return True

    def _start_feed(self, route: Route) -> None:
        if self._feed is not None:
            self._feed.cancel()
        self._fed.add(route)
        self._feed = ManifestFeed(self, route, self.manifest_tracks(), self.manifest_parameters())
        self._feed.start()

    def _manifest_late(self) -> None:
        feed = self._feed
        if feed is not None:
            feed.cancel()
            self.feed_over(feed, "manifest.timeout")

    def manifest_arrived(self, feed: ManifestFeed) -> None:
        """A version was verified: restore, combine, or go on."""
        view = feed.route.publication
        self.timers.cancel("manifest")
        restore = self._restore
        if restore is not None and view not in restore.supply.publications:
            mine = restore.publication.log.current
            if self.may_combine(mine, view.log.current) and restore.admit(view):
                return
            self._set_aside(restore)
            restore = None
        if restore is None:
            wanted = min(len(self.keys), self.request.blocks or len(self.keys))
            restore = self._restore = Restore(self, view, wanted)
        restore.manifest_changed()

    def manifest_refused(self, feed: ManifestFeed, reason: str, detail: str, fatal: bool) -> None:
        """A version was not verified; the next may be, perhaps over another route."""
        view = feed.route.publication
        self.emit(
            "manifest-refused",
            publication=view.id.hex(),
            source=feed.route.source.url,
            reason=reason,
            detail=detail,
        )
        if fatal:
            self.discard(view, reason, detail)
        elif view.log.current is None and any(
            route not in self._fed for route in view.usable_routes()
        ):
            feed.cancel()
            self.feed_over(feed, reason)

    def feed_over(self, feed: ManifestFeed, reason: str) -> None:
        """No further version comes this way: try another, as long as one may be needed."""
        view = feed.route.publication
        if feed is not self._feed or view.discarded is not None:
            return
        self.emit(
            "manifest-ended",
            publication=view.id.hex(),
            source=feed.route.source.url,
            reason=reason,
        )
        current = view.log.current
        if current is None:
            feed.route.failed = feed.route.failed or reason
            if not self._begin(view):
                self._exhausted()
        elif not all(segment.complete for segment in current.segments):
            others = [route for route in view.usable_routes() if route not in self._fed]
            if others:
                self._start_feed(others[0])
        self.check()

    def discard(self, publication: PublicationView, reason: str, detail: str) -> None:
        """Nothing of a publication is used, whatever was received of it."""
        if publication.discarded is None:
            self._drop(publication, reason, detail)
            if self._restore is None or self._feed is None:
                self._exhausted()

    def _drop(self, publication: PublicationView, reason: str, detail: str) -> None:
        publication.discarded = reason
        self.emit(
            "publication-discarded",
            publication=publication.id.hex(),
            reason=reason,
            detail=detail,
        )
        restore, feed = self._restore, self._feed
        if feed is not None and feed.route.publication is publication:
            feed.cancel()
            self.timers.cancel("manifest")
            self._feed = None
        if restore is not None and publication in restore.supply.publications:
            if restore.publication is publication:
                restore.close()
                self._restore = None
            else:
                restore.forget(publication)

    def _set_aside(self, restore: Restore) -> None:
        """Another publication takes over; what this one gave stays a possible result."""
        restore.close()
        self._finished.append(restore)
        self._restore = None

    # The end

    def check(self) -> None:
        """Whether the restore is whole, still at work, or at a stop."""
        restore = self._restore
        if self.done or restore is None:
            return
        if restore.whole:
            self._check_whole(restore)
            return
        self.timers.cancel("append")
        self.timers.cancel("completion")
        if restore.supply.working or self._sources.connecting:
            self.timers.cancel("held")
            return
        feed = self._feed
        if feed is not None and not feed.over:
            if feed.route.publication not in restore.supply.publications:
                return
            if restore.waits_for_manifest:
                self._bound_waiting(restore)
                return
        self._exhausted()

    def _bound_waiting(self, restore: Restore) -> None:
        """A production may take its time to complete, but digests of what came are due soon."""
        if not restore.waits_for_completion and "held" not in self.timers:
            at = self.now + self.request.budgets.recovery
            self.timers.set("held", at, self._held_too_long)

    def _held_too_long(self) -> None:
        restore = self._restore
        if restore is not None and restore.waits_for_manifest and not restore.supply.working:
            self._exhausted()

    def _check_whole(self, restore: Restore) -> None:
        budgets = self.request.budgets
        restore.supply.settle()
        if not restore.covers_all and budgets.append > 0:
            if "append" not in self.timers:
                self.timers.set("append", self.now + budgets.append, self._finish_whole)
        elif restore.tracks_complete:
            self._finish_whole()
        elif "completion" not in self.timers:
            self.timers.set("completion", self.now + budgets.completion, self._finish_whole)

    def _exhausted(self) -> None:
        """The current publication gives no more: another, a shorter prefix, or the end."""
        discovery, restore = self._discovery, self._restore
        if self.done or discovery is None:
            return
        while (view := self.publications.untried()) is not None:
            if self._begin(view):
                return
        spent = restore is not None and restore.supply.spent
        if not spent and (discovery.asking or self._replacement_expected()):
            return
        if not spent and discovery.can_descend(self._reused_blocks()):
            discovery.descend()
        else:
            self._finish("nothing more can be had")

    def _replacement_expected(self) -> bool:
        """A stopped publication may come again under a new ID (KVCS-3.4-4): wait, bounded."""
        restore, discovery = self._restore, self._discovery
        if restore is None or discovery is None or not discovery.listening:
            return False
        return restore.publication.withdrawn and restore.supply.recovering

    def _reused_blocks(self) -> int:
        best = self._best()
        return 0 if best is None else best.assembly.reused_blocks

    def _best(self) -> Restore | None:
        candidates = [item for item in self._finished if item.publication.discarded is None]
        if self._restore is not None:
            candidates.append(self._restore)
        return max(candidates, key=lambda item: item.assembly.reused_blocks, default=None)

    def _finish_whole(self) -> None:
        self._finish("complete")

    def _out_of_time(self) -> None:
        self.emit("out-of-time", budget=self.request.budgets.total)
        self._finish("out of time")

    def _finish(self, outcome: str) -> None:
        """Say what is reused and what is to be computed; stop everything."""
        if self.done:
            return
        self.done = True
        for event, details in conclusion(self.request, len(self.keys), self._best(), outcome):
            self.emit(event, **details)
        self._stop()

    def _stop(self) -> None:
        if self._feed is not None:
            self._feed.cancel()
        if self._restore is not None:
            self._restore.close()
        if self._discovery is not None:
            self._discovery.stop()
        self.timers.clear()
        self._sources.close()
