"""What the first integer of a unidirectional stream says (MOQT-22 §6.4.1)."""

from __future__ import annotations

from enum import Enum, IntEnum

from moqt.wire.drafts import Draft
from moqt.wire.errors import RemoteProtocolError


class StreamType(IntEnum):
    """Stream and datagram types that stand alone; SUBGROUP_HEADER types carry flags instead."""

    FETCH = 0x05
    CONTROL = 0x2F00
    PADDING = 0x132B3E28
    PADDING_DATAGRAM = 0x132B3E29


class StreamKind(Enum):
    """What a unidirectional stream carries."""

    SUBGROUP = "subgroup"
    FETCH = "fetch"
    CONTROL = "control"
    PADDING = "padding"


_ALONE = {
    StreamType.FETCH: StreamKind.FETCH,
    StreamType.CONTROL: StreamKind.CONTROL,
    StreamType.PADDING: StreamKind.PADDING,
}


def classify_stream(stream_type: int, draft: Draft) -> StreamKind:
    """What a stream that starts with this vi64 carries.

    Raises RemoteProtocolError for any type that the draft does not define.
    """
    if stream_type in draft.subgroup_types:
        return StreamKind.SUBGROUP
    for known, kind in _ALONE.items():
        if stream_type == known:
            return kind
    raise RemoteProtocolError(f"stream type 0x{stream_type:x} is not known")
