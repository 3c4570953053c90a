"""MOQT control messages explained field by field, along the tables of their draft (MOQT-22 §9).

The walk names fields and offsets; whether a message is legal is then asked of the codec itself, so
that the two can never disagree about right and wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from moqt.wire.codec import MessageReader
from moqt.wire.drafts import (
    Draft,
    FieldForm,
    MessageLayout,
    ParameterContext,
    ParameterForm,
    ParameterSpec,
)
from moqt.wire.errors import PublishDoneCode, RemoteProtocolError, RequestErrorCode
from moqt.wire.filters import LocationFilterType, RangeFilterType
from moqt.wire.parameters import decode_fill
from moqt.wire.properties import PropertyType
from moqt.wire.tokens import AliasType

from kvcs.errors import Defect
from kvcs.inspection.naming import trace_namespace, trace_track_name
from kvcs.inspection.report import Report, where
from kvcs.inspection.trace import Meaning, Stop, Trace

_FIELDS: dict[str, tuple[str, Meaning]] = {
    "request_id": (
        "Request ID",
        lambda value: "from a client" if value % 2 == 0 else "from a server",
    ),
    "track_alias": ("Track Alias", "stands for the Track in data streams"),
    "retry_interval": (
        "Retry Interval",
        lambda value: "do not retry as sent" if value == 0 else f"retry after {value - 1} ms",
    ),
    "stream_count": ("Stream Count", "data streams opened for this subscription"),
    "timeout": ("Timeout", lambda value: f"{value} ms" if value else "no particular time"),
    "end_of_track": ("End Of Track", "1: the range ends with the last Object ever"),
    "code": ("Error Code", lambda value: _member(RequestErrorCode, value)),
    "status_code": ("Status Code", lambda value: _member(PublishDoneCode, value)),
    "uri": ("URI", ""),
    "reason": ("Reason Phrase", ""),
    "end": ("End", "inclusive"),
    "suffix": ("Namespace Suffix", ""),
    "prefix": ("Namespace Prefix", ""),
    "namespace": ("Track Namespace", ""),
}
_FILTER_MEANINGS = {
    LocationFilterType.NONE: "everything",
    LocationFilterType.RELATIVE_START: "from so many Groups before the next one",
    LocationFilterType.ABSOLUTE_START: "from a Location on",
    LocationFilterType.ABSOLUTE_START_GROUP_END: "from a Location to the end of a Group",
    LocationFilterType.ABSOLUTE_RANGE: "from a Location to a Location",
    LocationFilterType.NEXT_OBJECT: "what comes after the Largest Object",
}
_ORDERS = {1: "ascending", 2: "descending"}


def explain_messages(octets: bytes, draft: Draft) -> Report:
    """One or more whole control messages."""
    several = "s" if _count(octets) > 1 else ""
    report = Report(f"MOQT control message{several} ({draft.alpn})", octets)
    trace = Trace(report)
    try:
        while trace.left:
            _trace_message(trace, draft)
    except Stop:
        return report
    if not report.defects:
        _ask_codec(report, draft)
    return report


def _count(octets: bytes) -> int:
    """How many frames the lengths make of the octets."""
    trace, count = Trace(Report("", octets)), 0
    try:
        while trace.left:
            trace.integer("")
            trace.inner(trace.short(""))
            count += 1
    except Stop:
        pass
    return count


def is_message(octets: bytes, draft: Draft) -> bool:
    """Whether the octets are cut into known messages by their lengths, exactly."""
    trace = Trace(Report("", octets))
    try:
        while trace.left:
            if trace.integer("") not in draft.layout_of_type:
                return False
            trace.inner(trace.short(""))
    except Stop:
        return False
    return True


def message_name(layout: MessageLayout) -> str:
    """SUBSCRIBE_OK for SubscribeOk."""
    name = layout.message.__name__
    return "".join(f"_{c}" if c.isupper() else c.upper() for c in name).removeprefix("_")


def _trace_message(trace: Trace, draft: Draft) -> None:
    start = trace.offset
    kind = trace.integer("Message Type", lambda value: _type_name(value, draft), "#x")
    layout = draft.layout_of_type.get(kind)
    if layout is None:
        what = f"{draft.alpn} has no message of type {kind:#x}"
        trace.stop("message-type", "MOQT-22 §9", what, start)
    place = trace.offset
    length = trace.short("Message Length", "octets of the body")
    if length > trace.left:
        what = f"the body has {length} octets, {trace.left} are left"
        trace.wrong("message-length", "MOQT-22 §9", what, place)
    body = trace.inner(min(length, trace.left))
    for name, form in layout.fields:
        _trace_field(body, name, form, layout, draft)
    if body.left:
        what = f"{body.left} octets of the body belong to no field"
        body.stop("message-length", "MOQT-22 §9", what, body.offset, body.offset + body.left)


def _ask_codec(report: Report, draft: Draft) -> None:
    reader = MessageReader(draft)
    reader.feed(report.octets)
    before = 0
    try:
        while (found := reader.next()) is not None:
            before += len(found[1])
    except RemoteProtocolError as error:
        place = where(before, len(report.octets))
        clause = f"MOQT-22 §12.2 {error.code.name}"
        report.defects.append(Defect("message", clause, error.reason, place))


def _trace_field(
    trace: Trace, name: str, form: FieldForm, layout: MessageLayout, draft: Draft
) -> None:
    label, meaning = _FIELDS.get(name, (name.replace("_", " ").title(), ""))
    match form:
        case FieldForm.INTEGER:
            trace.integer(label, meaning, "#x" if label.endswith("Code") else "d")
        case FieldForm.STREAM_COUNT:
            unknown = draft.unknown_stream_count
            trace.integer(label, lambda n: "unknown" if n == unknown else str(meaning))
        case FieldForm.FLAG:
            trace.octet(label, meaning)
        case FieldForm.LOCATION:
            trace_location(trace, label)
        case FieldForm.NAMESPACE:
            trace_namespace(trace, label)
        case FieldForm.NAME:
            _trace_name(trace)
        case FieldForm.TRACK:
            trace_namespace(trace)
            _trace_name(trace)
        case FieldForm.URI | FieldForm.REASON:
            trace.raw(label, trace.integer(f"{label} length"), show=_text)
        case FieldForm.REDIRECT:
            if trace.left:
                trace.raw("Connect URI", trace.integer("Connect URI length"), show=_text)
                trace_namespace(trace)
                _trace_name(trace)
        case FieldForm.PARAMETERS:
            count = trace.integer("Parameters", "how many follow")
            _trace_parameters(trace, draft, count)
        case FieldForm.TRACK_PROPERTIES:
            if trace.left:
                trace.heading("Track Properties")
                with trace.deeper():
                    trace_pairs(trace, "Property", property_name)
        case FieldForm.SETUP_OPTIONS:
            trace_pairs(trace, "Setup Option", lambda kind: _option_name(kind, draft))


def _trace_name(trace: Trace) -> None:
    length = trace.integer("Track Name length")
    start = trace.offset
    inner = trace.inner(length)
    if length:
        trace_track_name(trace.report, start, inner.offset + length, trace.depth)


def trace_location(trace: Trace, name: str) -> None:
    """Group ID and Object ID (MOQT-22 §8.2)."""
    trace.integer(f"{name} Group")
    trace.integer(f"{name} Object")


def _trace_parameters(trace: Trace, draft: Draft, count: int | None) -> None:
    """`count` parameters, or as many as there are."""
    kind = done = 0
    while done < count if count is not None else trace.left:
        start = trace.offset
        kind = _trace_type(trace, "Parameter", kind, lambda kind: _parameter_name(kind, draft))
        spec = draft.parameters.get(kind)
        if spec is None:
            what = f"parameter {kind:#x} is unknown and cannot be skipped"
            trace.stop("parameter-type", "MOQT-22 §9.20.1", what, start)
        with trace.deeper():
            _trace_parameter(trace, kind, spec, draft)
        done += 1


def _trace_type(trace: Trace, what: str, previous: int, name_of: Callable[[int], str]) -> int:
    """A type that is written as the difference to the one before it."""

    def meaning(delta: int) -> str:
        return f"type {previous + delta:#04x}, {name_of(previous + delta)}"

    return previous + trace.integer(f"{what} type delta", meaning)


def _trace_parameter(trace: Trace, kind: int, spec: ParameterSpec, draft: Draft) -> None:
    match spec.form:
        case ParameterForm.INTEGER:
            unit = "milliseconds" if spec.name.endswith(("TIMEOUT", "EXPIRES")) else ""
            trace.integer(spec.name, unit)
        case ParameterForm.OCTET:
            orders = _ORDERS if spec.name == "GROUP_ORDER" else {}
            trace.octet(spec.name, lambda value: orders.get(value, ""))
        case ParameterForm.LOCATION:
            trace_location(trace, spec.name)
        case ParameterForm.NAMESPACE:
            trace_namespace(trace, spec.name)
        case ParameterForm.LOCATION_FILTER:
            _trace_location_filter(trace, draft)
        case ParameterForm.TOKEN:
            _trace_token(trace.inner(trace.integer(f"{spec.name} length")))
        case ParameterForm.RANGE_FILTER:
            inner = trace.inner(trace.integer(f"{spec.name} length"))
            _trace_range_filter(inner, RangeFilterType(kind))
        case ParameterForm.FILL:
            _trace_fill(trace, trace.integer(f"{spec.name} length"), draft)


def _trace_location_filter(trace: Trace, draft: Draft) -> None:
    start = trace.offset
    known = {int(kind): kind for kind in draft.location_filter_fields}

    def meaning(value: int) -> str:
        kind = known.get(value)
        return "unknown" if kind is None else f"{kind.name}: {_FILTER_MEANINGS[kind]}"

    kind = known.get(trace.integer("LOCATION_FILTER type", meaning))
    if kind is None:
        what = f"{draft.alpn} has no such Location Filter Type"
        trace.stop("location-filter-type", "MOQT-22 §9.20.9", what, start)
    for field in draft.location_filter_fields[kind]:
        trace.integer(field.replace("_", " ").title().replace(" ", ""))


def _trace_range_filter(trace: Trace, kind: RangeFilterType) -> None:
    if not trace.left:
        return
    trace.octet("SetID")
    if kind in (RangeFilterType.OBJECT_PROPERTY, RangeFilterType.TRACK_PROPERTY):
        trace.integer("Property Type")
    previous: int | None = 0
    while trace.left and previous is not None:
        previous = _trace_range(trace, previous)


def _trace_range(trace: Trace, previous: int) -> int | None:
    """One Range: its last value, or None when it is open."""
    first = previous + trace.integer("Range start delta", lambda delta: f"from {previous + delta}")
    if not trace.left:
        return None
    return first + trace.integer("Range length delta", lambda delta: f"to {first + delta}")


def _trace_fill(trace: Trace, length: int, draft: Draft) -> None:
    inner = trace.inner(length)
    if not length:
        return
    octets = trace.report.octets[inner.offset : inner.offset + length]
    try:
        decode_fill(octets, draft)
    except RemoteProtocolError as error:
        clause = "MOQT-22 §9.20.15"
        inner.stop("fill-parameters", clause, error.reason, inner.offset, inner.offset + length)
    allowed = draft.allowed_parameters[ParameterContext.FILL]
    # The first octet is a count or, in the other reading, a type: a count is never an allowed type.
    counted = octets[0] not in allowed
    count = inner.integer("Parameters", "how many follow, inside the fill") if counted else None
    _trace_parameters(inner, draft, count)


def _trace_token(trace: Trace) -> None:
    names = {alias.value: alias.name for alias in AliasType}
    kind = trace.integer("Alias Type", lambda value: names.get(value, "unknown"))
    if kind in (AliasType.DELETE, AliasType.REGISTER, AliasType.USE_ALIAS):
        trace.integer("Token Alias")
    if kind in (AliasType.REGISTER, AliasType.USE_VALUE):
        trace.integer("Token Type")
        trace.raw("Token Value", trace.left, show=lambda value: f"{len(value)} octets")


def trace_pairs(trace: Trace, what: str, name_of: Callable[[int], str]) -> None:
    """Key-Value-Pairs up to the end (MOQT-22 §8.3); `name_of` a type."""
    kind = 0
    while trace.left:
        kind = _trace_type(trace, what, kind, name_of)
        name = name_of(kind)
        with trace.deeper():
            if kind % 2 == 0:
                trace.integer(name)
                continue
            length = trace.integer(f"{name} length")
            if kind == PropertyType.IMMUTABLE_PROPERTIES and what == "Property":
                trace_pairs(trace.inner(length), what, name_of)
            else:
                trace.raw(name, length, show=_text)


def property_name(kind: int) -> str:
    """The name of a property type."""
    return _member(PropertyType, kind)


def _parameter_name(kind: int, draft: Draft) -> str:
    spec = draft.parameters.get(kind)
    return spec.name if spec else "unknown"


def _option_name(kind: int, draft: Draft) -> str:
    spec = draft.setup_options.get(kind)
    return spec.name if spec else "unknown, ignored"


def _type_name(kind: int, draft: Draft) -> str:
    layout = draft.layout_of_type.get(kind)
    return "unknown" if layout is None else message_name(layout)


def _member(registry: type[IntEnum], value: int) -> str:
    known = {member.value: member.name for member in registry}
    return known.get(value, "unknown")


def _text(octets: bytes) -> str:
    return ascii(octets.decode("latin-1"))
