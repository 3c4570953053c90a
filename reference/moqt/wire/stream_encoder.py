"""Headers of data streams and the octets before each payload (MOQT-22 §11.3, §11.4).

The encoders return what stands before a payload, so that a payload is never copied: the caller
sends both. They remember the Object before, as the deltas need.
"""

from __future__ import annotations

from moqt.wire.errors import LocalProtocolError
from moqt.wire.names import Location
from moqt.wire.objects import FetchHeader, Object, ObjectStatus, RangeMarker, SubgroupHeader
from moqt.wire.stream_types import StreamType
from moqt.wire.varint import U64, encode_vi64

PROPERTIES = 0x01
SUBGROUP_ID_IS_FIRST_OBJECT = 0x02
SUBGROUP_ID_PRESENT = 0x04
SUBGROUP_ID_MASK = 0x06
END_OF_GROUP = 0x08
SUBGROUP = 0x10
DEFAULT_PRIORITY = 0x20
FIRST_OBJECT = 0x40

FETCH_SUBGROUP_MASK = 0x03
FETCH_SUBGROUP_PRIOR = 0x01
FETCH_SUBGROUP_NEXT = 0x02
FETCH_SUBGROUP_PRESENT = 0x03
FETCH_OBJECT_ID = 0x04
FETCH_GROUP_ID = 0x08
FETCH_PRIORITY = 0x10
FETCH_PROPERTIES = 0x20
FETCH_DATAGRAM = 0x40


def encode_subgroup_header(header: SubgroupHeader) -> bytes:
    """Type Flags, Track Alias, Group ID, [Subgroup ID] (vi64 each), [Publisher Priority (8)].

    Raises LocalProtocolError for a priority outside 0 .. 255.
    """
    flags = SUBGROUP
    tail = b""
    if header.subgroup is None:
        flags |= SUBGROUP_ID_IS_FIRST_OBJECT
    elif header.subgroup:
        flags |= SUBGROUP_ID_PRESENT
        tail = encode_vi64(header.subgroup)
    if header.priority is None:
        flags |= DEFAULT_PRIORITY
    else:
        tail += encode_priority(header.priority)
    if header.properties:
        flags |= PROPERTIES
    if header.end_of_group:
        flags |= END_OF_GROUP
    if header.first_object:
        flags |= FIRST_OBJECT
    return bytes((flags,)) + encode_vi64(header.track_alias) + encode_vi64(header.group) + tail


def encode_fetch_header(header: FetchHeader) -> bytes:
    """The stream type and the Request ID (vi64 each)."""
    return encode_vi64(StreamType.FETCH) + encode_vi64(header.request_id)


def encode_priority(priority: int) -> bytes:
    """One octet; LocalProtocolError outside 0 .. 255."""
    if not 0 <= priority <= 0xFF:
        raise LocalProtocolError(f"a Publisher Priority is 0 .. 255, not {priority}")
    return bytes((priority,))


class SubgroupObjectEncoder:
    """Writes the Objects of one subgroup stream, whose header stands before them."""

    __slots__ = ("_header", "_next", "_subgroup")

    def __init__(self, header: SubgroupHeader) -> None:
        self._header = header
        self._subgroup = header.subgroup
        self._next = 0

    def encode(self, item: Object) -> bytes:
        """Object ID Delta, [Properties], Payload Length (vi64 each), [Status]; not the payload.

        Raises LocalProtocolError for an Object that cannot follow on this stream.
        """
        header = self._header
        group, object_id = item.location
        if group != header.group:
            raise LocalProtocolError(f"Group {group} is not on a stream of Group {header.group}")
        if not self._next <= object_id <= U64:
            raise LocalProtocolError(f"Object {object_id} cannot follow on this stream")
        subgroup = object_id if self._subgroup is None else self._subgroup
        if item.subgroup != subgroup:
            raise LocalProtocolError(
                f"subgroup {item.subgroup} is not on a stream of subgroup {subgroup}"
            )
        if header.priority is not None and item.priority != header.priority:
            raise LocalProtocolError(
                f"priority {item.priority} differs from the {header.priority} of the stream"
            )
        octets = encode_vi64(object_id - self._next)
        if header.properties:
            octets += encode_vi64(len(item.properties)) + item.properties
        elif item.properties:
            raise LocalProtocolError("this stream's header rules Properties out")
        size = len(item.payload)
        if item.status is not ObjectStatus.NORMAL and (size or item.properties):
            raise LocalProtocolError(f"{item.status.name} has no payload and no Properties")
        octets += encode_vi64(size) if size else bytes((0, item.status))
        self._next = object_id + 1
        self._subgroup = subgroup
        return octets


class FetchObjectEncoder:
    """Writes the Objects and End of Range markers of one fetch stream, after its header.

    After a marker every field that can be is written out: receivers differ in what they take
    over from it.
    """

    __slots__ = ("_ascending", "_last", "_priority", "_subgroup")

    def __init__(self, ascending: bool = True) -> None:
        self._ascending = ascending
        self._last: Location | None = None
        self._priority: int | None = None
        self._subgroup: int | None = None

    def encode(self, item: Object) -> bytes:
        """Serialization Flags and their fields, Payload Length (vi64); not the payload.

        Raises LocalProtocolError for an Object that cannot follow, and for a status other than
        Normal, which a fetch stream does not carry.
        """
        if item.status is not ObjectStatus.NORMAL:
            raise LocalProtocolError(f"a fetch stream does not carry {item.status.name}")
        flags, fields = self._place(item.location)
        if item.subgroup is None:
            flags |= FETCH_DATAGRAM
            middle = b""
        else:
            mode, middle = self._subgroup_field(item.subgroup)
            flags |= mode
        after_object = b""
        if item.priority != self._priority:
            flags |= FETCH_PRIORITY
            after_object = encode_priority(item.priority)
        if item.properties:
            flags |= FETCH_PROPERTIES
            after_object += encode_vi64(len(item.properties)) + item.properties
        group, object_id = fields
        octets = b"".join(
            (
                bytes((flags,)),
                group,
                middle,
                object_id,
                after_object,
                encode_vi64(len(item.payload)),
            )
        )
        self._last = item.location
        self._priority = item.priority
        self._subgroup = item.subgroup
        return octets

    def marker(self, marker: RangeMarker) -> bytes:
        """The marker's number, Group ID and Object ID (vi64 each, absolute).

        Raises LocalProtocolError for an end that does not follow what was written.
        """
        if self._last is not None:
            self._group_step(marker.end)
            if marker.end.group == self._last.group and marker.end.object <= self._last.object:
                raise self._cannot_follow(marker.end)
        octets = (
            encode_vi64(marker.kind)
            + encode_vi64(marker.end.group)
            + encode_vi64(marker.end.object)
        )
        self._last = marker.end
        self._priority = None
        self._subgroup = None
        return octets

    def _place(self, location: Location) -> tuple[int, tuple[bytes, bytes]]:
        last = self._last
        group, object_id = location
        if last is None:
            return FETCH_GROUP_ID | FETCH_OBJECT_ID, (encode_vi64(group), encode_vi64(object_id))
        step = self._group_step(location)
        if step:
            return (
                FETCH_GROUP_ID | FETCH_OBJECT_ID,
                (encode_vi64(step - 1), encode_vi64(object_id)),
            )
        distance = object_id - last.object
        if distance == 1:
            return 0, (b"", b"")
        if distance < 1:
            raise self._cannot_follow(location)
        return FETCH_OBJECT_ID, (b"", encode_vi64(distance))

    def _group_step(self, location: Location) -> int:
        assert self._last is not None
        step = location.group - self._last.group
        if not self._ascending:
            step = -step
        if step < 0:
            raise self._cannot_follow(location)
        return step

    def _cannot_follow(self, location: Location) -> LocalProtocolError:
        order = "ascending" if self._ascending else "descending"
        last = None if self._last is None else tuple(self._last)
        return LocalProtocolError(f"{tuple(location)} cannot follow {last} with {order} Groups")

    def _subgroup_field(self, subgroup: int) -> tuple[int, bytes]:
        if subgroup == 0:
            return 0, b""
        if self._subgroup is not None:
            if subgroup == self._subgroup:
                return FETCH_SUBGROUP_PRIOR, b""
            if subgroup == self._subgroup + 1:
                return FETCH_SUBGROUP_NEXT, b""
        return FETCH_SUBGROUP_PRESENT, encode_vi64(subgroup)
