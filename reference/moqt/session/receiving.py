"""Data that the peer sends: streams and datagrams, to the requests that they are for (§6.4.1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from moqt.session.core import Core
from moqt.session.events import ObjectReceived, StreamInfo, Via
from moqt.session.requests import Request
from moqt.session.streams import DataStream, FetchReader, FetchTarget, OutOfRange, SubgroupReader
from moqt.session.subscription import Aliases, Binding
from moqt.session.timers import Timer
from moqt.wire.datagrams import decode_datagram
from moqt.wire.errors import (
    NeedMore,
    ObjectTooLarge,
    RemoteProtocolError,
    SessionError,
    StreamError,
)
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectDatagram
from moqt.wire.stream_types import StreamKind, classify_stream
from moqt.wire.varint import read_vi64

PIECE_COST = 64
"""What holding one piece costs besides its octets."""

HELD_FACTOR = 2
"""Times the early data budget at which a stream is not only paused but given up."""


def _cost(pieces: Sequence[bytes | memoryview]) -> int:
    return sum(len(piece) + PIECE_COST for piece in pieces)


class Receiver:
    """All data streams and datagrams from the peer."""

    def __init__(
        self,
        core: Core,
        control: Callable[[int, bytes | memoryview, bool], None],
        malformed: Callable[[FullTrackName, str], None],
    ) -> None:
        self._core = core
        self._control = control
        self._malformed = malformed
        self.aliases = Aliases()
        self.targets: dict[int, FetchTarget] = {}
        """Fetch streams that may come, by Request ID."""
        self._streams: dict[int, DataStream] = {}
        self._postponed: list[DataStream] = []
        """Streams that wait for SETUP or for the answer to their subscription."""
        self._waiting: defaultdict[int, list[DataStream]] = defaultdict(list)
        self._early_datagrams: defaultdict[int, list[ObjectDatagram]] = defaultdict(list)
        self._held = 0
        self._paused: set[Request] = set()
        self._headless: dict[DataStream, float] = {}
        """Streams whose header is incomplete, and until when it may be, the earliest first."""
        self._header_timer: Timer | None = None

    # Streams.

    def data(self, stream_id: int, data: bytes | memoryview, fin: bool) -> None:
        """Octets of a unidirectional stream of the peer's."""
        stream = self._streams.get(stream_id)
        if stream is None:
            stream = self._streams[stream_id] = DataStream(stream_id)
        if fin:
            self._core.note("moqt:fin_received", stream=stream_id)
        if stream.discarding:
            if fin:
                del self._streams[stream_id]
        elif stream.reader is not None:
            self._feed(stream, data, fin)
        elif stream.kind is StreamKind.CONTROL:
            self._control(stream_id, data, fin)
        elif stream.waiting:
            self._hold(stream, data, fin)
        else:
            stream.head += data
            self._classify(stream, fin)

    def _classify(self, stream: DataStream, fin: bool) -> None:
        head = stream.head
        try:
            if stream.kind is None:
                stream.type, stream.body = read_vi64(head, 0, len(head))
                stream.kind = classify_stream(stream.type, self._core.draft)
                if stream.kind is StreamKind.CONTROL:
                    self._headless.pop(stream, None)
                    stream.head = bytearray()
                    self._control(stream.id, bytes(head), fin)
                    return
                if stream.kind is StreamKind.PADDING:
                    self._discard(stream, fin)
                    return
            # Both headers start with what decides for whom the stream is.
            key, _ = read_vi64(head, stream.body, len(head))
        except NeedMore:
            if fin:
                raise RemoteProtocolError("a data stream ends inside its header") from None
            self._await_header(stream)
            return
        octets = bytes(head[stream.body :])
        stream.head = bytearray()
        if self._core.peer_setup is None:
            self._postponed.append(stream)
            stream.waiting = True
            self._hold(stream, octets, fin)
        elif self._route(stream, key):
            self._feed(stream, octets, fin)
        elif stream.waiting:
            self._hold(stream, octets, fin)
        else:
            self._discard(stream, fin, StreamError.CANCELLED)

    def _route(self, stream: DataStream, key: int) -> bool:
        """Give the stream its reader; False when it has to wait or nobody wants it."""
        if stream.kind is StreamKind.SUBGROUP:
            binding = self.aliases.find(key)
            if binding is None:
                if not self.aliases.retired(key):
                    stream.waiting = True
                    self._wait_for(key).append(stream)
                return False
            stream.reader = SubgroupReader(self._core, stream.id, stream.type, binding)
        else:
            target = self.targets.get(key)
            if target is None:
                if not self._core.ids.is_ours(key):
                    raise RemoteProtocolError(f"a fetch stream names the unknown request {key}")
                self._core.note("moqt:stream_unclaimed", stream=stream.id, request=key)
                return False
            if target.stream_id is not None:
                raise RemoteProtocolError(f"a second fetch stream came for request {key}")
            if target.ascending is None:
                subscription = target.subscription
                if subscription is not None and subscription.binding is None:
                    stream.waiting = True
                    self._postponed.append(stream)
                    return False
                target.ascending = subscription is None or subscription.ascending
            stream.reader = FetchReader(self._core, stream.id, target, key)
        if self._paused and self._paused.issuperset(stream.reader.requests):
            stream.paused = True
            self._core.transport.pause(stream.id)
        return True

    def _feed(self, stream: DataStream, data: bytes | memoryview, fin: bool) -> None:
        reader = stream.reader
        assert reader is not None
        if fin:
            self._streams.pop(stream.id, None)
        try:
            breach = reader.feed(data, fin)
        except ObjectTooLarge:
            reader.ended(StreamError.EXCESSIVE_LOAD)
            self._discard(stream, fin, StreamError.EXCESSIVE_LOAD)
            return
        except OutOfRange:
            reader.ended(StreamError.CANCELLED)
            self._discard(stream, fin, StreamError.CANCELLED)
            return
        if breach is not None:
            self._malformed(reader.track, breach)
        elif not reader.headed:
            self._await_header(stream)
        elif self._headless:
            self._headless.pop(stream, None)

    def _discard(self, stream: DataStream, fin: bool, code: int | None = None) -> None:
        """Read and drop the rest; with `code`, ask the peer to stop."""
        stream.reader = None
        stream.discarding = True
        stream.waiting = False
        self._headless.pop(stream, None)
        if fin:
            self._streams.pop(stream.id, None)
            return
        self._streams[stream.id] = stream
        if stream.paused:
            stream.paused = False
            self._core.transport.resume(stream.id)
        if code is not None:
            self._core.stop(stream.id, code)

    def reset(self, stream_id: int, code: int) -> None:
        """RESET_STREAM of the peer on a unidirectional stream."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if stream.kind is StreamKind.CONTROL:
            raise RemoteProtocolError("the peer reset its control stream")
        if stream.waiting:
            stream.reset_code = code
            return
        del self._streams[stream_id]
        self._headless.pop(stream, None)
        if stream.reader is not None:
            stream.reader.ended(code)

    # Headers that do not come.

    def _await_header(self, stream: DataStream) -> None:
        """The header is incomplete: watch the time from its first octet."""
        if stream not in self._headless:
            self._headless[stream] = self._core.later(self._core.config.data_stream_timeout)
            self._watch_headers()

    def _watch_headers(self) -> None:
        if self._header_timer is None or not self._header_timer.live:
            deadline = next(iter(self._headless.values()))
            self._header_timer = self._core.timers.at(deadline, self._headers_due)

    def _headers_due(self) -> None:
        """Raises RemoteProtocolError for a header that took too long (MOQT-22 §19.3)."""
        timeout = self._core.config.data_stream_timeout
        for stream, deadline in tuple(self._headless.items()):
            if deadline > self._core.now:
                break
            if not stream.paused:
                raise RemoteProtocolError(
                    f"the header of stream {stream.id} was incomplete for {timeout:g} s",
                    SessionError.DATA_STREAM_TIMEOUT,
                )
            # It is we who hold it back.
            del self._headless[stream]
            self._headless[stream] = self._core.later(timeout)
        if self._headless:
            self._watch_headers()

    # Data that comes before what explains it.

    def _hold(self, stream: DataStream, data: bytes | memoryview, fin: bool) -> None:
        self._headless.pop(stream, None)
        budget = self._core.config.early_data_budget
        self._held += len(data) + PIECE_COST
        stream.held.append(data)
        stream.held_fin = fin
        if self._held > HELD_FACTOR * budget:
            self._give_up(stream, StreamError.EXCESSIVE_LOAD)
        elif self._held > budget and not stream.paused:
            stream.paused = True
            self._core.transport.pause(stream.id)

    def _give_up(self, stream: DataStream, code: int) -> None:
        self._held -= _cost(stream.held)
        stream.held.clear()
        self._discard(stream, stream.held_fin or stream.reset_code is not None, code)

    def _wait_for(self, alias: int) -> list[DataStream]:
        if alias not in self._waiting and alias not in self._early_datagrams:
            core = self._core
            core.timers.at(core.later(core.config.done_timeout), lambda: self._waited(alias))
        return self._waiting[alias]

    def _waited(self, alias: int) -> None:
        """Nothing bound the alias in time."""
        for stream in self._waiting.pop(alias, ()):
            if stream.waiting:
                self._give_up(stream, StreamError.CANCELLED)
        self._held -= _cost([one.payload for one in self._early_datagrams.pop(alias, ())])

    def setup_received(self) -> None:
        """The peer's SETUP came: what it sent before can be read."""
        self._release_postponed()

    def _release_postponed(self) -> None:
        streams, self._postponed = self._postponed, []
        for stream in streams:
            self._release(stream)

    def unwanted(self, alias: int) -> None:
        """A PUBLISH with this alias was refused before it was bound: stop its streams."""
        if self.aliases.find(alias) is None:
            self.aliases.retire(alias)
            for stream in self._waiting.pop(alias, ()):
                self._release(stream)

    def bound(self, binding: Binding) -> None:
        """An alias means something now."""
        streams = self._waiting.pop(binding.alias, ())
        datagrams = self._early_datagrams.pop(binding.alias, ())
        for stream in streams:
            self._release(stream)
        self._release_postponed()
        self._held -= _cost([one.payload for one in datagrams])
        for datagram in datagrams:
            self._deliver_datagram(datagram, binding)

    def _release(self, stream: DataStream) -> None:
        if not stream.waiting:
            return
        held, stream.held = stream.held, []
        self._held -= _cost(held)
        stream.waiting = False
        if stream.paused:
            stream.paused = False
            self._core.transport.resume(stream.id)
        fin, code = stream.held_fin, stream.reset_code
        stream.held_fin = False
        stream.head = bytearray(b"".join(held))
        stream.body = 0
        self._classify(stream, fin)
        if code is not None:
            self.reset(stream.id, code)

    # Datagrams.

    def datagram(self, data: bytes) -> None:
        """One datagram; padding and what nobody wants is dropped."""
        datagram = decode_datagram(data, self._core.draft)
        self._core.note("moqt:datagram_received", raw=data)
        if datagram is None:
            return
        alias = datagram.track_alias
        binding = self.aliases.find(alias)
        if binding is not None:
            self._deliver_datagram(datagram, binding)
        elif not self.aliases.retired(alias):
            size = _cost([datagram.payload])
            if self._held + size <= self._core.config.early_data_budget:
                self._wait_for(alias)
                self._held += size
                self._early_datagrams[alias].append(datagram)

    def _deliver_datagram(self, datagram: ObjectDatagram, binding: Binding) -> None:
        priority = binding.default_priority if datagram.priority is None else datagram.priority
        item = Object(
            Location(datagram.group, datagram.object),
            None,
            priority,
            datagram.payload,
            datagram.status,
            datagram.properties,
        )
        breach = binding.rules.received(item)
        if breach is None and datagram.end_of_group:
            breach = binding.rules.group_ends(datagram.group, datagram.object + 1)
        if breach is not None:
            self._malformed(binding.track, breach)
            return
        core = self._core
        for subscription in tuple(binding.subscriptions):
            if subscription.wants(item):
                request = subscription.request
                info = StreamInfo(
                    Via.SUBSCRIPTION,
                    None,
                    request.id,
                    datagram.group,
                    end_of_group=datagram.end_of_group,
                )
                core.emit(ObjectReceived(request, item, info))
                core.note_item("moqt:object_received", request, None, item, Via.SUBSCRIPTION)

    # What requests ask for.

    def drop(self, request: Request, code: int) -> None:
        """A request is over: stop its streams, forget what could still come."""
        self._paused.discard(request)
        for request_id in [id_ for id_, one in self.targets.items() if one.request is request]:
            del self.targets[request_id]
        self._release_postponed()
        for stream in tuple(self._streams.values()):
            reader = stream.reader
            if reader is not None and request in reader.requests and reader.leave(request):
                self._discard(stream, False, code)

    def pause(self, request: Request) -> None:
        """Hold back the request's data streams, later ones included."""
        self._paused.add(request)
        for stream in self._streams.values():
            if (
                stream.reader is not None
                and not stream.paused
                and self._paused.issuperset(stream.reader.requests)
            ):
                stream.paused = True
                self._core.transport.pause(stream.id)

    def resume(self, request: Request) -> None:
        """Undo `pause`."""
        self._paused.discard(request)
        for stream in tuple(self._streams.values()):
            if stream.paused and stream.reader is not None and request in stream.reader.requests:
                stream.paused = False
                self._core.transport.resume(stream.id)
