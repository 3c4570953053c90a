"""A publisher whose every Object, answer and omission is in the hands of the steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kvcs.authorization import bearer
from kvcs.identity import P0
from kvcs.names import KvcsNamespace
from moqt.origin import LocalTrack, Origin
from moqt.session import Request, RequestKind
from moqt.session.events import RequestCancelled
from moqt.tracks import MalformedTrack, TrackStore
from moqt.tracks.answering import answerable
from moqt.wire.errors import LocalProtocolError, PublishDoneCode, RequestErrorCode
from moqt.wire.messages import FetchOk
from moqt.wire.names import FullTrackName, Location, TrackNamespace
from moqt.wire.objects import Object
from moqt.wire.properties import PropertyType, encode_properties

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.nodes.node import PATIENCE, Node, Setting, why_closed
from kvcs_conformance.nodes.origin_steps import STEPS
from kvcs_conformance.scenario import seconds

if TYPE_CHECKING:
    from moqt.session import Session
    from moqt.session.events import Event

HOLDABLE = {
    "subscribe": RequestKind.SUBSCRIBE,
    "fetch": RequestKind.FETCH,
    "track-status": RequestKind.TRACK_STATUS,
}


class ScriptedTrack(LocalTrack):
    """A Track whose Objects are offered as they are, whatever rule they break."""

    def __init__(
        self, name: FullTrackName, properties: bytes = b"", default_priority: int | None = None
    ) -> None:
        super().__init__(name, properties, default_priority)
        self.forced: Location | None = None
        """Largest Object that is reported in place of the true one."""
        self._unended: set[tuple[int, int]] = set()
        self._begun: set[tuple[int, int | None]] = set()

    @property
    def largest(self) -> Location | None:
        return self.forced or super().largest

    def publish(
        self, item: Object, *, end_of_group: bool = False, first: bool | None = None
    ) -> None:
        """Publish one Object; `first` None: FIRST_OBJECT as it is right."""
        place = (item.location.group, item.subgroup)
        if first is None:
            first = place not in self._begun
        self._begun.add(place)
        with suppress(MalformedTrack):  # a case may be about that; our store keeps the first one
            self.store.add(item)
        self.store.published(item.location)
        if item.subgroup is not None:
            self._unended.add((item.location.group, item.subgroup))
        for sender in self.senders.values():
            try:
                sender.offer(item, first=first, end_of_group=end_of_group)
            except LocalProtocolError as error:
                raise SetupFailed(f"the step cannot be sent: {error.reason}") from error

    def fin(self, group: int, subgroup: int) -> None:
        """All Objects of the subgroup are published."""
        self._unended.discard((group, subgroup))
        for sender in self.senders.values():
            sender.end_subgroup(group, subgroup)

    def reset(self, group: int, subgroup: int, code: int) -> None:
        """Give up the subgroup's streams."""
        self._unended.discard((group, subgroup))
        for sender in self.senders.values():
            sender.reset_subgroup(group, subgroup, code)

    def finish(self, code: int = PublishDoneCode.TRACK_ENDED, reason: str = "") -> None:
        """End what is not ended, then the subscriptions."""
        for group, subgroup in sorted(self._unended):
            self.fin(group, subgroup)
        super().finish(code, reason)


class ScriptedOrigin(Origin):
    """Serves as an Origin does, but for what steps hold back, refuse or do not know."""

    def __init__(self, node: OriginNode) -> None:
        super().__init__()
        self.node = node
        self.held: dict[str, list[Request]] = {}
        self.held_oks: list[tuple[Request, FetchOk]] | None = None
        self.refusals: dict[RequestKind, int] = {}

    def handle_event(self, session: Session, event: Event, now: float) -> None:
        super().handle_event(session, event, now)
        if isinstance(event, RequestCancelled):
            self.node.recorder.trace("kvcs:cancelled", {"request": event.request.id})

    def on_announced(self, session: Session, namespace: TrackNamespace) -> None:
        self.node.accepted(namespace)

    def add_track(
        self, track: FullTrackName, *, properties: bytes = b"", default_priority: int | None = None
    ) -> ScriptedTrack:
        local = self.tracks[track] = ScriptedTrack(track, properties, default_priority)
        return local

    def _serve(self, request: Request) -> None:
        for word, waiting in self.held.items():
            if request.kind is HOLDABLE[word]:
                waiting.append(request)
                return
        if request.kind in self.refusals:
            code = self.refusals[request.kind]
            request.session.refuse(request, RequestErrorCode(code), "as the steps say")
            return
        super()._serve(request)

    def answer_fetch(self, request: Request, message: FetchOk) -> None:
        """FETCH_OK, now or when the steps let it go."""
        if self.held_oks is None:
            super().answer_fetch(request, message)
        else:
            self.held_oks.append((request, message))

    def release(self, word: str) -> None:
        """Answer what was held."""
        if word == "fetch-ok":
            oks, self.held_oks = self.held_oks or [], None
            for request, message in oks:
                super().answer_fetch(request, message)
            return
        for request in self.held.pop(word, []):
            if answerable(request):
                self._serve(request)


class OriginNode(Node):
    """An Origin that announces the publication of the node `publisher`, unless a step says what
    it is to `announce`. Its data tracks are there from the start, with the scenario's retention."""

    def __init__(self, name: str, part: Part, setting: Setting, recorder: Recorder) -> None:
        super().__init__(name, part, setting, recorder)
        self.endpoint = ScriptedOrigin(self)
        self._namespace = self.namespace_of("publisher")
        self._accepted: set[TrackNamespace] = set()
        self.when_accepted: dict[TrackNamespace, Callable[[], None]] = {}

    def put_up(self) -> None:
        self.link.client(self.name, self.endpoint)
        urls = [self.setting.address(name, self.name) for name in self.part.to]
        tokens = (bearer(self.token),) if self.token else ()
        waits = any("announce" in step.get(self.name, {}) for step in self.setting.case.steps)

        def start() -> None:
            for component in self.scenario.values["components"]:
                self.track(f"{component}.raw.s0")
            if not waits:
                self.endpoint.announce(self._namespace, tokens)
            for url in urls:
                self.endpoint.connect(url, self.setting.config(self.name))

        self._waits, self._tokens = waits, tokens
        self.link.act(self.name, start)

    def await_ready(self) -> None:
        if self._waits:
            ready = self.link.wait(
                lambda: any(one.peer_setup for one in self.endpoint.sessions), PATIENCE
            )
        else:
            ready = self.link.wait(lambda: bool(self._accepted), PATIENCE)
        if not ready:
            closed = why_closed(self.recorder.records)
            raise SetupFailed(f"the relay did not accept {self.name}{closed}")

    def play(self, word: str, body: Mapping[str, Any], label: str) -> None:
        def act() -> None:
            STEPS[word](self, body, label)

        if "after" in body:
            self.link.later(self.name, seconds(body["after"]), act)
        else:
            self.link.act(self.name, act)

    def sessions(self) -> Iterable[Session]:
        return self.endpoint.sessions

    def namespaces(self) -> tuple[tuple[bytes, ...], ...]:
        return (self._namespace,)

    # What steps call.

    def namespace_of(self, publisher: str) -> TrackNamespace:
        """Five fields of the scenario's scope; the same for every origin that is asked."""
        scenario = self.scenario
        anchor = hashlib.sha256(f"{scenario.seed}/anchor".encode()).digest()
        return KvcsNamespace(
            scenario.scope_id,
            P0.compat_id(scenario.descriptor),
            anchor,
            scenario.publication_id(publisher),
        ).fields

    @property
    def tokens(self) -> Any:
        """The bearer tokens for announcements."""
        return self._tokens

    def accepted(self, namespace: TrackNamespace) -> None:
        """The relay accepted an announcement."""
        self._accepted.add(namespace)
        self.when_accepted.pop(namespace, _nothing)()
        self.recorder.trace("kvcs:announce-accepted", {"namespace": list(namespace)})

    def track(
        self, name: str, properties: bytes | None = None, namespace: TrackNamespace | None = None
    ) -> ScriptedTrack:
        """The Track of that name; it is made when it is not there."""
        full = FullTrackName(namespace or self._namespace, name.encode())
        local = self.endpoint.tracks.get(full)
        if local is None:
            if properties is None:
                retention = self.scenario.retention_ms
                properties = encode_properties([(PropertyType.MAX_CACHE_DURATION, retention)])
            local = self.endpoint.add_track(full, properties=properties)
        assert isinstance(local, ScriptedTrack)
        return local

    def remake(self, name: str, properties: bytes, *, knows_all: bool) -> None:
        """The Track anew, with these Track Properties."""
        self.endpoint.tracks.pop(FullTrackName(self._namespace, name.encode()), None)
        self.track(name, properties).store = TrackStore(complete=knows_all)

    def publish(
        self,
        local: ScriptedTrack,
        item: Object,
        *,
        end_of_group: bool = False,
        first: bool | None = None,
    ) -> None:
        """Publish one Object, and keep a record of what was published."""
        self.recorder.trace(
            "moqt:object_published",
            {
                "track": local.name,
                "group": item.location.group,
                "object": item.location.object,
                "subgroup": item.subgroup,
                "priority": item.priority,
                "status": item.status,
                "properties": item.properties,
                "payload": item.payload,
                "end_of_group": end_of_group,
                "first": first is not False,
            },
        )
        local.publish(item, end_of_group=end_of_group, first=first)

    def payload(self, local: ScriptedTrack, at: Location, octets: int, version: str) -> bytes:
        """A payload that says where it belongs, filled up to so many octets; KVCS reads none of it.

        Another `version` is another payload for the same Location.
        """
        name = f"{local.name.namespace[-1].hex()}/{local.name.name.decode()}"
        place = f"{name}/{at.group}/{at.object}"
        label = f"{self.scenario.seed}/{version}/{place}".encode()
        filler = hashlib.shake_128(label).digest(octets)
        return (place.encode() + b" " + filler)[:octets]


def _nothing() -> None:
    """What follows the acceptance of most announcements."""
