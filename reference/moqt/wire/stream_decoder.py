"""Data streams to Objects, in any chunking and in linear time (MOQT-22 §11.3, §11.4).

One `StreamDecoder` holds what the two kinds have in common: an Object's header is parsed when
all of it is here, and its payload is gathered as the pieces that came and joined once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from moqt.wire.drafts import Draft
from moqt.wire.errors import NeedMore, ObjectTooLarge, RemoteProtocolError
from moqt.wire.names import Location
from moqt.wire.objects import (
    FetchHeader,
    Object,
    ObjectHeader,
    ObjectStatus,
    RangeMarker,
    SubgroupHeader,
)
from moqt.wire.properties import decode_properties
from moqt.wire.stream_encoder import (
    DEFAULT_PRIORITY,
    END_OF_GROUP,
    FETCH_DATAGRAM,
    FETCH_GROUP_ID,
    FETCH_OBJECT_ID,
    FETCH_PRIORITY,
    FETCH_PROPERTIES,
    FETCH_SUBGROUP_MASK,
    FETCH_SUBGROUP_NEXT,
    FETCH_SUBGROUP_PRESENT,
    FIRST_OBJECT,
    PROPERTIES,
    SUBGROUP_ID_IS_FIRST_OBJECT,
    SUBGROUP_ID_MASK,
    SUBGROUP_ID_PRESENT,
)
from moqt.wire.varint import U64, read_vi64

StreamItem: TypeAlias = SubgroupHeader | FetchHeader | ObjectHeader | Object | RangeMarker

DEFAULT_PUBLISHER_PRIORITY = 128
_SMALL_PIECE = 512


class _Pieces:
    """Octets that came in pieces; small ones are packed, so that memory stays near their sum."""

    __slots__ = ("_pieces", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes | bytearray | memoryview] = []
        self.size = 0

    def add(self, piece: memoryview) -> None:
        self.size += len(piece)
        if len(piece) < _SMALL_PIECE:
            if not self._pieces or type(self._pieces[-1]) is not bytearray:
                self._pieces.append(bytearray())
            last = self._pieces[-1]
            assert isinstance(last, bytearray)
            last += piece
        elif type(piece.obj) is bytes:
            self._pieces.append(piece)
        else:
            self._pieces.append(piece.tobytes())

    def take(self) -> bytes:
        octets = b"".join(self._pieces)
        self._pieces.clear()
        self.size = 0
        return octets


class StreamDecoder(ABC):
    """What subgroup and fetch streams have in common; see the subclasses."""

    def __init__(self, draft: Draft, max_object_size: int | None) -> None:
        self._draft = draft
        self._max_object_size = max_object_size
        self._pieces = _Pieces()
        self._needed = 1
        self._object: ObjectHeader | None = None
        self._has_header = False

    @property
    def pending(self) -> bool:
        """Whether octets of a structure that is not complete are held."""
        return self._object is not None or self._pieces.size > 0

    def feed(self, data: bytes | memoryview, fin: bool = False) -> list[StreamItem]:
        """What the next octets of the stream complete, in order; the same for any chunking.

        Raises RemoteProtocolError for octets that break a rule and for a FIN inside a structure,
        ObjectTooLarge for an Object above the limit. The decoder is of no use afterwards.
        """
        items: list[StreamItem] = []
        view = memoryview(data)
        offset = 0
        if self._object is not None:
            offset = self._gather(self._object, view, 0, items)
        elif self._pieces.size:
            self._pieces.add(view)
            if self._pieces.size >= self._needed:
                view = memoryview(self._pieces.take())
            else:
                offset = len(view)
        end = len(view)
        while offset < end:
            start = offset
            self._needed = 0
            try:
                if self._has_header:
                    offset = self._read_item(view, start, end, items)
                else:
                    offset = self._read_header(view, start, end, items)
                    self._has_header = True
            except NeedMore:
                self._pieces.add(view[start:])
                self._needed = max(self._needed, self._pieces.size + 1)
                break
            except ObjectTooLarge as error:
                error.items = items
                raise
        if fin and (self.pending or not self._has_header):
            raise RemoteProtocolError("a data stream ends inside a header or an Object")
        return items

    @abstractmethod
    def _read_header(self, view: memoryview, offset: int, end: int, items: list[StreamItem]) -> int:
        """Read the stream's header; where it ends. NeedMore when it is not all here."""

    @abstractmethod
    def _read_item(self, view: memoryview, offset: int, end: int, items: list[StreamItem]) -> int:
        """Read what follows, an Object's header or a marker; where it ends."""

    def _properties(
        self, view: memoryview, start: int, offset: int, end: int, location: Location
    ) -> tuple[bytes, int]:
        """Properties Length (vi64) and Properties; `start` is where the structure began."""
        length, offset = read_vi64(view, offset, end)
        if not length:
            return b"", offset
        if self._max_object_size is not None and length > self._max_object_size:
            raise ObjectTooLarge(location, length, self._max_object_size)
        after = offset + length
        if after > end:
            self._needed = after - start
            raise NeedMore
        octets = view[offset:after].tobytes()
        decode_properties(octets)
        return octets, after

    def _begin(
        self,
        header: ObjectHeader,
        view: memoryview,
        offset: int,
        items: list[StreamItem],
    ) -> int:
        """An Object's header is complete: take what is here of its payload."""
        if self._max_object_size is not None:
            size = header.payload_length + len(header.properties)
            if size > self._max_object_size:
                raise ObjectTooLarge(header.location, size, self._max_object_size)
        items.append(header)
        return self._gather(header, view, offset, items)

    def _gather(
        self, header: ObjectHeader, view: memoryview, offset: int, items: list[StreamItem]
    ) -> int:
        missing = header.payload_length - self._pieces.size
        piece = view[offset : offset + missing]
        if len(piece) < missing:
            self._object = header
            if piece:
                self._pieces.add(piece)
            return len(view)
        if self._pieces.size:
            self._pieces.add(piece)
            payload = self._pieces.take()
        else:
            payload = piece.tobytes()
        self._object = None
        items.append(
            Object(
                header.location,
                header.subgroup,
                self._priority_in_force(header),
                payload,
                header.status,
                header.properties,
            )
        )
        return offset + missing

    def _priority_in_force(self, header: ObjectHeader) -> int:
        return DEFAULT_PUBLISHER_PRIORITY if header.priority is None else header.priority


class SubgroupDecoder(StreamDecoder):
    """Reads a subgroup stream from behind its type, which carries the flags of the header.

    `default_priority` gives the Publisher Priority of the track with this alias, for Objects
    whose header leaves it out; without it that is 128. Raises RemoteProtocolError for a type
    that is no SUBGROUP_HEADER.
    """

    def __init__(
        self,
        draft: Draft,
        stream_type: int,
        *,
        max_object_size: int | None = None,
        default_priority: Callable[[int], int] | None = None,
    ) -> None:
        if stream_type not in draft.subgroup_types:
            raise RemoteProtocolError(f"0x{stream_type:x} is no SUBGROUP_HEADER type")
        super().__init__(draft, max_object_size)
        self._flags = stream_type
        self._default_priority = default_priority
        self._group = 0
        self._subgroup: int | None = None
        self._priority: int | None = None
        self._resolved_priority = DEFAULT_PUBLISHER_PRIORITY
        self._next_object = 0

    def _read_header(self, view: memoryview, offset: int, end: int, items: list[StreamItem]) -> int:
        flags = self._flags
        alias, offset = read_vi64(view, offset, end)
        group, offset = read_vi64(view, offset, end)
        mode = flags & SUBGROUP_ID_MASK
        subgroup: int | None = None if mode == SUBGROUP_ID_IS_FIRST_OBJECT else 0
        if mode == SUBGROUP_ID_PRESENT:
            subgroup, offset = read_vi64(view, offset, end)
        priority = None
        if not flags & DEFAULT_PRIORITY:
            if offset >= end:
                raise NeedMore
            priority = view[offset]
            offset += 1
        self._group, self._subgroup, self._priority = group, subgroup, priority
        if priority is not None:
            self._resolved_priority = priority
        elif self._default_priority is not None:
            self._resolved_priority = self._default_priority(alias)
        items.append(
            SubgroupHeader(
                alias,
                group,
                subgroup,
                priority,
                properties=bool(flags & PROPERTIES),
                end_of_group=bool(flags & END_OF_GROUP),
                first_object=bool(flags & FIRST_OBJECT),
            )
        )
        return offset

    def _read_item(self, view: memoryview, offset: int, end: int, items: list[StreamItem]) -> int:
        start = offset
        delta, offset = read_vi64(view, offset, end)
        object_id = self._next_object + delta
        if object_id > U64:
            raise RemoteProtocolError("an Object ID exceeds 2^64-1")
        location = Location(self._group, object_id)
        properties = b""
        if self._flags & PROPERTIES:
            properties, offset = self._properties(view, start, offset, end, location)
        length, offset = read_vi64(view, offset, end)
        status = ObjectStatus.NORMAL
        if not length:
            number, offset = read_vi64(view, offset, end)
            if number:
                status = read_status(number, properties)
        self._next_object = object_id + 1
        if self._subgroup is None:
            self._subgroup = object_id
        header = ObjectHeader(location, self._subgroup, self._priority, status, properties, length)
        return self._begin(header, view, offset, items)

    def _priority_in_force(self, header: ObjectHeader) -> int:
        return self._resolved_priority


def read_status(number: int, properties: bytes) -> ObjectStatus:
    """The Object Status of a number; RemoteProtocolError when it or the Properties are illegal."""
    if number not in ObjectStatus._value2member_map_:
        raise RemoteProtocolError(f"Object Status 0x{number:x} is not known")
    status = ObjectStatus(number)
    if properties and status is not ObjectStatus.NORMAL:
        raise RemoteProtocolError(f"an Object with status {status.name} has Properties")
    return status


class FetchDecoder(StreamDecoder):
    """Reads a fetch stream from behind its type; `ascending`: the Group Order of the fetch.

    The Objects and markers follow MOQT-22 §11.4.1 with absolute IDs in markers. After a marker
    its Location is the prior one; the prior subgroup and priority stay those of the last Object
    that had them.
    """

    def __init__(
        self, draft: Draft, ascending: bool = True, *, max_object_size: int | None = None
    ) -> None:
        super().__init__(draft, max_object_size)
        self._ascending = ascending
        self._last: Location | None = None
        self._subgroup: int | None = None
        self._priority: int | None = None

    def _read_header(self, view: memoryview, offset: int, end: int, items: list[StreamItem]) -> int:
        request_id, offset = read_vi64(view, offset, end)
        items.append(FetchHeader(request_id))
        return offset

    def _read_item(self, view: memoryview, offset: int, end: int, items: list[StreamItem]) -> int:
        start = offset
        flags, offset = read_vi64(view, offset, end)
        if flags >= 0x80:
            return self._read_marker(flags, view, offset, end, items)
        last = self._last
        if last is None and flags & 0x0C != FETCH_GROUP_ID | FETCH_OBJECT_ID:
            raise RemoteProtocolError("the first Object of a fetch needs its Group and Object ID")
        group = 0 if last is None else last.group
        if flags & FETCH_GROUP_ID:
            delta, offset = read_vi64(view, offset, end)
            if last is None:
                group = delta
            else:
                group += delta + 1 if self._ascending else -delta - 1
            if not 0 <= group <= U64:
                raise RemoteProtocolError("a Group ID leaves 0 .. 2^64-1")
        subgroup: int | None = None
        if not flags & FETCH_DATAGRAM:
            mode = flags & FETCH_SUBGROUP_MASK
            if mode == FETCH_SUBGROUP_PRESENT:
                subgroup, offset = read_vi64(view, offset, end)
            elif not mode:
                subgroup = 0
            elif self._subgroup is None:
                raise RemoteProtocolError("a fetch Object refers to a prior Subgroup ID: none")
            else:
                subgroup = self._subgroup + (mode == FETCH_SUBGROUP_NEXT)
                if subgroup > U64:
                    raise RemoteProtocolError("a Subgroup ID exceeds 2^64-1")
        object_id = 0 if last is None else last.object
        if flags & FETCH_OBJECT_ID:
            delta, offset = read_vi64(view, offset, end)
            object_id = delta if flags & FETCH_GROUP_ID else object_id + delta
        else:
            object_id += 1
        if object_id > U64:
            raise RemoteProtocolError("an Object ID of a fetch exceeds 2^64-1")
        location = Location(group, object_id)
        priority = self._priority
        if flags & FETCH_PRIORITY:
            if offset >= end:
                raise NeedMore
            priority = view[offset]
            offset += 1
        elif priority is None:
            raise RemoteProtocolError("a fetch Object refers to a prior priority: none")
        properties = b""
        if flags & FETCH_PROPERTIES:
            properties, offset = self._properties(view, start, offset, end, location)
        length, offset = read_vi64(view, offset, end)
        self._last, self._priority = location, priority
        if subgroup is not None:
            self._subgroup = subgroup
        header = ObjectHeader(location, subgroup, priority, ObjectStatus.NORMAL, properties, length)
        return self._begin(header, view, offset, items)

    def _read_marker(
        self, number: int, view: memoryview, offset: int, end: int, items: list[StreamItem]
    ) -> int:
        kind = self._draft.range_markers.get(number)
        if kind is None:
            raise RemoteProtocolError(f"Serialization Flags 0x{number:x} are not known")
        group, offset = read_vi64(view, offset, end)
        object_id, offset = read_vi64(view, offset, end)
        self._last = Location(group, object_id)
        items.append(RangeMarker(kind, self._last))
        return offset
