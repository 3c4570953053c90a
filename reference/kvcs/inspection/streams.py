"""MOQT data streams explained field by field: subgroup and fetch streams (MOQT-22 §11)."""

from __future__ import annotations

from moqt.wire.drafts import Draft
from moqt.wire.errors import RemoteProtocolError
from moqt.wire.objects import Object, ObjectStatus, RangeKind
from moqt.wire.properties import object_defect
from moqt.wire.stream_decoder import FetchDecoder, SubgroupDecoder
from moqt.wire.stream_encoder import (
    DEFAULT_PRIORITY,
    END_OF_GROUP,
    FETCH_DATAGRAM,
    FETCH_GROUP_ID,
    FETCH_OBJECT_ID,
    FETCH_PRIORITY,
    FETCH_PROPERTIES,
    FETCH_SUBGROUP_MASK,
    FETCH_SUBGROUP_PRESENT,
    FIRST_OBJECT,
    PROPERTIES,
    SUBGROUP_ID_MASK,
    SUBGROUP_ID_PRESENT,
)
from moqt.wire.stream_types import StreamType
from moqt.wire.varint import U64

from kvcs.errors import Defect
from kvcs.inspection.messages import property_name, trace_pairs
from kvcs.inspection.payloads import explain_payload
from kvcs.inspection.report import Report, where
from kvcs.inspection.trace import Stop, Trace
from kvcs.names import DataTrack
from kvcs.payload import MAGIC

_FIRST = FETCH_GROUP_ID | FETCH_OBJECT_ID | FETCH_PRIORITY
_STATUS = {
    ObjectStatus.NORMAL: "an empty Object",
    ObjectStatus.END_OF_GROUP: "End of Group: no Object from this ID on",
    ObjectStatus.END_OF_TRACK: "End of Track: no Object from this Location on",
}
_RANGES = {
    RangeKind.NON_EXISTENT: "do not exist",
    RangeKind.UNKNOWN: "unknown here",
    RangeKind.TIMED_OUT: "timed out",
}


def explain_stream(octets: bytes, draft: Draft, track: DataTrack | None = None) -> Report:
    """A data stream from its first octet: header, then Objects; KVCS payloads are opened.

    `track` is the data track that the stream carries, if that is known.
    """
    report = Report(f"MOQT data stream ({draft.alpn})", octets)
    trace = Trace(report)
    start = trace.offset
    try:
        kind = trace.integer(
            "Stream Type", lambda value: stream_name(value, draft) or "unknown", "#x"
        )
        if kind == StreamType.FETCH:
            report.kind = f"MOQT fetch stream ({draft.alpn})"
            trace.integer("Request ID", "of the FETCH, or of the request with a fill")
            report.notes.append(
                "Group IDs are shown in ascending order; the FETCH may ask the other"
            )
            _FetchStream(trace, draft, track).objects()
        elif kind in draft.subgroup_types:
            report.kind = f"MOQT subgroup stream ({draft.alpn})"
            _subgroup(trace, kind, track)
        else:
            what = f"{draft.alpn} has no data stream of type {kind:#x}"
            trace.stop("stream-type", "MOQT-22 §6.4.1", what, start)
    except Stop:
        return report
    _ask_decoder(report, kind, draft)
    return report


def _ask_decoder(report: Report, kind: int, draft: Draft) -> None:
    """What the walk cannot know better than the codec: the session's rules, malformed Tracks."""
    start = report.lines[0].end
    decoder = FetchDecoder(draft) if kind == StreamType.FETCH else SubgroupDecoder(draft, kind)
    place = where(start, len(report.octets))
    try:
        items = decoder.feed(report.octets[start:], fin=True)
    except RemoteProtocolError as error:
        clause = f"MOQT-22 §12.2 {error.code.name}"
        report.defects.append(Defect("stream", clause, error.reason, place))
        return
    for item in items:
        if isinstance(item, Object) and (what := object_defect(item.location, item.properties)):
            at = f"Object {item.location.group}/{item.location.object}: {what}"
            report.defects.append(Defect("malformed-track", "MOQT-22 §12.1", at, place))


def stream_name(kind: int, draft: Draft) -> str | None:
    """What a stream type starts, or None when it is none."""
    if kind == StreamType.FETCH:
        return "FETCH_HEADER"
    return f"SUBGROUP_HEADER: {_header_flags(kind)}" if kind in draft.subgroup_types else None


def _header_flags(kind: int) -> str:
    words = [
        ("Subgroup ID 0", "Subgroup ID is the first Object ID", "Subgroup ID follows")[
            (kind & SUBGROUP_ID_MASK) >> 1
        ]
    ]
    words += ["Properties"] if kind & PROPERTIES else []
    words += ["holds the end of its Group"] if kind & END_OF_GROUP else []
    words += ["default priority"] if kind & DEFAULT_PRIORITY else []
    words += ["from the first Object on"] if kind & FIRST_OBJECT else []
    return ", ".join(words)


def _subgroup(trace: Trace, kind: int, track: DataTrack | None) -> None:
    trace.integer("Track Alias", "which Track; SUBSCRIBE_OK or PUBLISH tells")
    group = trace.integer("Group ID", "the layer, in a data track of KVCS")
    if kind & SUBGROUP_ID_MASK == SUBGROUP_ID_PRESENT:
        trace.integer("Subgroup ID")
    if not kind & DEFAULT_PRIORITY:
        trace.octet("Publisher Priority", "lower is sent first")
    object_id = -1
    while trace.left:
        start, base = trace.offset, object_id + 1
        trace.heading("Object")
        with trace.deeper():
            object_id = _object_id(trace, group, base)
            if object_id > U64:
                what = "the Object ID is beyond 2^64-1"
                trace.stop("object-id", "MOQT-22 §11.3.1", what, start)
            properties = kind & PROPERTIES and _properties(trace)
            length = trace.integer("Payload Length")
            if length:
                _payload(trace, length, (group, object_id), track)
                continue
            _status(trace, bool(properties))


def _object_id(trace: Trace, group: int, base: int) -> int:
    return base + trace.integer("Object ID delta", lambda delta: f"Location {group}/{base + delta}")


def _status(trace: Trace, properties: bool) -> None:
    start = trace.offset
    known = {int(status): meaning for status, meaning in _STATUS.items()}
    status = trace.integer("Object Status", lambda value: known.get(value, "unknown"))
    if status not in known:
        trace.stop("object-status", "MOQT-22 §11.1.1", f"there is no status {status:#x}", start)
    if properties and status != ObjectStatus.NORMAL:
        what = "only a Normal Object has Properties"
        trace.stop("status-properties", "MOQT-22 §11.1", what, start)


def _properties(trace: Trace) -> int:
    length = trace.integer("Properties length")
    trace_pairs(trace.inner(length), "Property", property_name)
    return length


def _payload(trace: Trace, length: int, location: tuple[int, int], track: DataTrack | None) -> None:
    start = trace.offset
    if length > trace.left:
        what = f"the payload has {length} octets, {trace.left} are left"
        trace.stop("truncated", "MOQT-22 §11", what, start, start + trace.left)
    payload = trace.report.octets[start : start + length]
    if payload[:4] != MAGIC:
        trace.raw("Payload", length, "no KVCS payload", lambda value: f"{len(value)} octets")
        return
    trace.inner(length)
    trace.heading("Payload", f"{length} octets", "KVCS Object payload")
    trace.report.include(explain_payload(payload, location, track), start, trace.depth + 1)


class _FetchStream:
    """Objects of a fetch stream; each may refer to the one before (MOQT-22 §11.4.1)."""

    def __init__(self, trace: Trace, draft: Draft, track: DataTrack | None) -> None:
        self._trace = trace
        self._track = track
        self._markers = draft.range_markers
        self._group: int | None = None
        self._object = -1
        self._subgroup: int | None = None
        self._priority = False

    def objects(self) -> None:
        """All items up to the end."""
        while self._trace.left:
            self._trace.heading("Item")
            with self._trace.deeper():
                self._item()

    def _item(self) -> None:
        trace, start = self._trace, self._trace.offset
        flags = trace.integer("Serialization Flags", self._flags, "#x")
        if flags in self._markers:
            self._group = trace.integer("Group ID", "up to this Group")
            self._object = trace.integer("Object ID", "up to and including this Object")
            return
        if flags > 0x7F:
            trace.stop("fetch-flags", "MOQT-22 §11.4.1", f"there are no flags {flags:#x}", start)
        if self._group is None and flags & _FIRST != _FIRST:
            what = "the first Object spells out Group ID, Object ID and priority"
            trace.stop("fetch-first-object", "MOQT-22 §11.4.1", what, start)
        group = self._read_group(bool(flags & FETCH_GROUP_ID))
        if not flags & FETCH_DATAGRAM:
            self._read_subgroup(flags & FETCH_SUBGROUP_MASK, start)
        self._read_object(flags, group)
        if not 0 <= group <= U64 or self._object > U64:
            what = "the Location is beyond 2^64-1"
            trace.stop("object-id", "MOQT-22 §11.4.1", what, start)
        self._group = group
        if flags & FETCH_PRIORITY:
            trace.octet("Publisher Priority", "lower is sent first")
            self._priority = True
        elif not self._priority:
            what = "the priority of an Object before is meant, there is none"
            trace.stop("fetch-priority", "MOQT-22 §11.4.1", what, start)
        if flags & FETCH_PROPERTIES:
            _properties(trace)
        length = trace.integer("Payload Length")
        if length:
            _payload(trace, length, (group, self._object), self._track)

    def _flags(self, flags: int) -> str:
        kind = self._markers.get(flags)
        if kind is not None:
            return f"End of Range: Objects up to here {_RANGES[kind]}"
        words = [
            ("Subgroup ID 0", "same Subgroup", "next Subgroup", "Subgroup ID follows")[
                flags & FETCH_SUBGROUP_MASK
            ]
            if not flags & FETCH_DATAGRAM
            else "Delivery Mode Datagram",
            "Group ID delta" if flags & FETCH_GROUP_ID else "same Group",
            "Object ID delta" if flags & FETCH_OBJECT_ID else "next Object",
            "priority" if flags & FETCH_PRIORITY else "same priority",
        ]
        return ", ".join([*words, "Properties"] if flags & FETCH_PROPERTIES else words)

    def _read_group(self, present: bool) -> int:
        before = self._group
        if not present:
            return before or 0
        delta = self._trace.integer("Group ID delta", "the layer, in a data track of KVCS")
        # Descending order shows only in the request: the ascending reading is shown.
        return delta if before is None else before + delta + 1

    def _read_subgroup(self, mode: int, start: int) -> None:
        if mode == FETCH_SUBGROUP_PRESENT:
            self._subgroup = self._trace.integer("Subgroup ID")
        elif mode == 0:
            self._subgroup = 0
        elif self._subgroup is None:
            what = "the Subgroup of an Object before is meant, there is none"
            self._trace.stop("fetch-subgroup", "MOQT-22 §11.4.1", what, start)
        else:
            self._subgroup += mode - 1

    def _read_object(self, flags: int, group: int) -> None:
        if not flags & FETCH_OBJECT_ID:
            self._object += 1
            return
        base = 0 if flags & FETCH_GROUP_ID else self._object
        self._object = base + self._trace.integer(
            "Object ID delta", lambda delta: f"Location {group}/{base + delta}"
        )
