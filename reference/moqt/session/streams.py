"""One data stream that the peer writes, from its first octet to its end (MOQT-22 §11.3, §11.4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from moqt.session.core import Core
from moqt.session.events import (
    ObjectReceived,
    ObjectStarted,
    RangeReceived,
    StreamEnded,
    StreamInfo,
    Via,
)
from moqt.session.requests import Request
from moqt.session.subscription import Binding, Subscription
from moqt.wire.errors import ObjectTooLarge
from moqt.wire.names import Location
from moqt.wire.objects import (
    FetchHeader,
    Object,
    ObjectHeader,
    ObjectStatus,
    RangeMarker,
    SubgroupHeader,
)
from moqt.wire.properties import object_defect
from moqt.wire.stream_decoder import FetchDecoder, StreamItem, SubgroupDecoder
from moqt.wire.stream_types import StreamKind

Breach: TypeAlias = str | None
"""Why the Track is malformed."""


class OutOfRange(Exception):
    """A fetch stream has an Object that nobody asked for: what it leaves out means nothing."""


@dataclass(eq=False, slots=True)
class FetchTarget:
    """What a fetch stream with some Request ID is for.

    `ascending` None: the Track's own order, which SUBSCRIBE_OK tells. `start` and `end`: first and
    last Location of the range, None when only the publisher knows it. `subscription` is that of a
    fill.
    """

    request: Request
    via: Via
    ascending: bool | None
    start: Location | None = None
    end: Location | None = None
    subscription: Subscription | None = None
    stream_id: int | None = None

    def includes(self, location: Location) -> bool:
        """Whether the range, as far as we know it, has this Location."""
        return (self.start is None or location >= self.start) and (
            self.end is None or location <= self.end
        )


@dataclass(eq=False, slots=True)
class DataStream:
    """A unidirectional stream of the peer's.

    `head` gathers type and first field; `held` what waits for SETUP or a Track Alias.
    """

    id: int
    kind: StreamKind | None = None
    type: int = 0
    head: bytearray = field(default_factory=bytearray)
    body: int = 0
    """Where the octets behind the type start in `head`."""
    held: list[bytes | memoryview] = field(default_factory=list)
    held_fin: bool = False
    reset_code: int | None = None
    paused: bool = False
    waiting: bool = False
    discarding: bool = False
    reader: SubgroupReader | FetchReader | None = None


class SubgroupReader:
    """Delivers the Objects of a subgroup stream to the subscriptions of its alias."""

    def __init__(self, core: Core, stream_id: int, stream_type: int, binding: Binding) -> None:
        self._core = core
        self._stream_id = stream_id
        self._binding = binding
        self._decoder = SubgroupDecoder(
            core.draft,
            stream_type,
            max_object_size=core.config.max_object_size,
            default_priority=lambda alias: binding.default_priority,
        )
        self.track = binding.track
        self._header: SubgroupHeader | None = None
        self._last: ObjectHeader | Object | None = None
        self._infos = {
            subscription: StreamInfo(Via.SUBSCRIPTION, stream_id, subscription.request.id)
            for subscription in binding.subscriptions
        }
        for subscription in self._infos:
            subscription.stream_opened(stream_id)

    @property
    def headed(self) -> bool:
        """Whether the stream's header is complete."""
        return self._header is not None

    @property
    def requests(self) -> list[Request]:
        """Whom it delivers to."""
        return [subscription.request for subscription in self._infos]

    def feed(self, data: bytes | memoryview, fin: bool) -> Breach:
        """Octets of the stream; ObjectTooLarge comes after what stood before that Object."""
        for subscription in self._infos:
            subscription.active()
            subscription.request.heard = self._core.now
        try:
            breach = self._deliver(self._decoder.feed(data, fin))
        except ObjectTooLarge as error:
            if breach := self._deliver(error.items):
                return breach
            raise
        return breach or (self._finish() if fin else None)

    def _deliver(self, items: list[StreamItem]) -> Breach:
        for item in items:
            match item:
                case Object():
                    if breach := self._object(item):
                        return breach
                case ObjectHeader():
                    if self._last is None:
                        self._learn_subgroup(item)
                    self._last = item
                case SubgroupHeader():
                    self._begin(item)
        if items and isinstance(items[-1], ObjectHeader):
            self._announce(items[-1])
        return None

    def _begin(self, header: SubgroupHeader) -> None:
        self._header = header
        self._core.note(
            "moqt:stream_accepted", stream=self._stream_id, kind="subgroup", header=header
        )
        self._infos = {
            subscription: replace(
                info,
                group=header.group,
                subgroup=header.subgroup,
                first_object=header.first_object,
                end_of_group=header.end_of_group,
            )
            for subscription, info in self._infos.items()
        }

    def _learn_subgroup(self, first: ObjectHeader) -> None:
        if self._header is not None and self._header.subgroup is None:
            self._infos = {
                subscription: replace(info, subgroup=first.subgroup)
                for subscription, info in self._infos.items()
            }

    def _announce(self, header: ObjectHeader) -> None:
        for subscription, info in self._infos.items():
            if subscription.start <= header.location:
                self._core.emit(ObjectStarted(subscription.request, header.location, info))

    def _object(self, item: Object) -> Breach:
        self._last = item
        if breach := self._binding.rules.received(item):
            return breach
        core = self._core
        wanted = False
        for subscription, info in self._infos.items():
            if subscription.wants(item):
                wanted = True
                core.emit(ObjectReceived(subscription.request, item, info))
                self._note("moqt:object_received", subscription, item)
        if not wanted:
            for subscription in self._infos:
                self._note("moqt:object_unwanted", subscription, item)
        return None

    def _note(self, name: str, subscription: Subscription, item: Object) -> None:
        core = self._core
        if core.trace is not None:
            core.note_item(name, subscription.request, self._stream_id, item, Via.SUBSCRIPTION)

    def _finish(self) -> Breach:
        header, last = self._header, self._last
        if header is not None and last is not None and last.subgroup is not None:
            filtered = any(subscription.filtered for subscription in self._infos)
            object_id = last.location.object
            rules = self._binding.rules
            breach = None
            if not filtered:
                breach = rules.subgroup_ends(header.group, last.subgroup, object_id)
                if not breach and header.end_of_group and last.status is ObjectStatus.NORMAL:
                    breach = rules.group_ends(header.group, object_id + 1)
            if breach:
                return breach
        self.ended(None)
        return None

    def ended(self, code: int | None) -> None:
        """FIN, or a reset with `code`."""
        for subscription, info in self._infos.items():
            self._core.emit(StreamEnded(subscription.request, info, code))
            subscription.stream_ended(self._stream_id)

    def leave(self, request: Request) -> bool:
        """A request is over; True when nobody is left."""
        for subscription in [one for one in self._infos if one.request is request]:
            del self._infos[subscription]
            subscription.streams.discard(self._stream_id)
        return not self._infos


class FetchReader:
    """Delivers the items of a fetch or fill stream to its request."""

    def __init__(self, core: Core, stream_id: int, target: FetchTarget, request_id: int) -> None:
        self._core = core
        self._stream_id = stream_id
        self._target = target
        self._decoder = FetchDecoder(
            core.draft, target.ascending is not False, max_object_size=core.config.max_object_size
        )
        self._info = StreamInfo(target.via, stream_id, request_id)
        self._previous: Location | None = None
        assert target.request.track is not None
        self.track = target.request.track
        target.stream_id = stream_id
        if target.subscription is not None:
            target.subscription.stream_opened(stream_id)

    @property
    def headed(self) -> bool:
        """The Request ID that it was found by is all its header has."""
        return True

    @property
    def requests(self) -> list[Request]:
        """Whom it delivers to."""
        return [self._target.request]

    def feed(self, data: bytes | memoryview, fin: bool) -> Breach:
        """Octets of the stream; ObjectTooLarge and OutOfRange come after what stood before."""
        self._target.request.heard = self._core.now
        if self._target.subscription is not None:
            self._target.subscription.active()
        try:
            breach = self._deliver(self._decoder.feed(data, fin))
        except ObjectTooLarge as error:
            if breach := self._deliver(error.items):
                return breach
            raise
        if fin and not breach:
            self.ended(None)
        return breach

    def _deliver(self, items: list[StreamItem]) -> Breach:
        request = self._target.request
        core = self._core
        for item in items:
            match item:
                case Object():
                    if not self._target.includes(item.location):
                        core.note_item(
                            "moqt:object_unwanted", request, self._stream_id, item, self._target.via
                        )
                        raise OutOfRange
                    if item.properties and (
                        breach := object_defect(item.location, item.properties)
                    ):
                        return breach
                    self._previous = item.location
                    core.emit(ObjectReceived(request, item, self._info))
                    core.note_item(
                        "moqt:object_received", request, self._stream_id, item, self._target.via
                    )
                case RangeMarker():
                    self._range(item)
                case FetchHeader():
                    core.note(
                        "moqt:stream_accepted", stream=self._stream_id, kind="fetch", header=item
                    )
        if items and isinstance(items[-1], ObjectHeader):
            if not self._target.includes(items[-1].location):
                raise OutOfRange
            core.emit(ObjectStarted(request, items[-1].location, self._info))
        return None

    def _range(self, marker: RangeMarker) -> None:
        end = marker.end
        if self._previous is not None:
            start = Location(self._previous.group, self._previous.object + 1)
        else:
            # Where only the publisher knows the range's start, claim no more than the group.
            start = self._target.start or Location(end.group, 0)
        self._previous = end
        request = self._target.request
        self._core.emit(RangeReceived(request, marker.kind, start, end, self._info))
        self._core.note_item(
            "moqt:range_received", request, self._stream_id, marker, self._target.via
        )

    def ended(self, code: int | None) -> None:
        """FIN, or a reset with `code`."""
        target = self._target
        self._core.emit(StreamEnded(target.request, self._info, code))
        if target.subscription is not None:
            target.subscription.stream_ended(self._stream_id)
        self._core.session.fetch_stream_over(self._info.request_id, target)

    def leave(self, request: Request) -> bool:
        """A request is over; True when nobody is left."""
        if self._target.subscription is not None:
            self._target.subscription.streams.discard(self._stream_id)
        return True
