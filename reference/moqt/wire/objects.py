"""Objects and the headers of the streams that carry them, as values (MOQT-22 §11)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from moqt.wire.names import Location


class ObjectStatus(IntEnum):
    """Object Status (MOQT-22 §11.1.1)."""

    NORMAL = 0x0
    END_OF_GROUP = 0x3
    END_OF_TRACK = 0x4


class RangeKind(IntEnum):
    """End of Range markers of a fetch stream (MOQT-22 §11.4.1)."""

    NON_EXISTENT = 0x8C
    UNKNOWN = 0x10C
    TIMED_OUT = 0x20C


@dataclass(frozen=True, slots=True)
class Object:
    """One Object as published; never changed afterwards.

    `subgroup` is None for Delivery Mode Datagram. `priority` is the Publisher Priority in force
    (track default resolved), 0 .. 255. `properties` are the exact octets of its Key-Value-Pairs.
    `payload` is `bytes` or a read-only view of octets that nobody changes any more.
    """

    location: Location
    subgroup: int | None
    priority: int
    payload: bytes | memoryview = b""
    status: ObjectStatus = ObjectStatus.NORMAL
    properties: bytes = b""


@dataclass(frozen=True, slots=True)
class ObjectHeader:
    """What a stream says of an Object before its payload, `payload_length` octets, is here.

    `priority` None: the track's default applies.
    """

    location: Location
    subgroup: int | None
    priority: int | None
    status: ObjectStatus
    properties: bytes
    payload_length: int


@dataclass(frozen=True, slots=True)
class RangeMarker:
    """End of Range: everything after the last item, up to and including `end`, is `kind`."""

    kind: RangeKind
    end: Location


@dataclass(frozen=True, slots=True)
class SubgroupHeader:
    """SUBGROUP_HEADER (MOQT-22 §11.3.1).

    `subgroup` None: the Subgroup ID is the first Object ID on the stream. `priority` None: the
    track's default applies.
    """

    track_alias: int
    group: int
    subgroup: int | None
    priority: int | None
    properties: bool = False
    end_of_group: bool = False
    first_object: bool = False


@dataclass(frozen=True, slots=True)
class FetchHeader:
    """FETCH_HEADER (MOQT-22 §11.4)."""

    request_id: int


@dataclass(frozen=True, slots=True)
class ObjectDatagram:
    """OBJECT_DATAGRAM (MOQT-22 §11.2.1); `priority` None: the track's default applies."""

    track_alias: int
    group: int
    object: int
    priority: int | None
    payload: bytes = b""
    status: ObjectStatus = ObjectStatus.NORMAL
    properties: bytes = b""
    end_of_group: bool = False
