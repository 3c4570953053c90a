"""Message Parameters: octets, legal places, and the nested block of a fill (MOQT-22 §9.20)."""

from __future__ import annotations

from typing import Any

from moqt.wire.drafts import REPEATABLE, Draft, ParameterContext, ParameterForm, ParameterSpec
from moqt.wire.errors import LocalProtocolError, NeedMore, RemoteProtocolError
from moqt.wire.filter_codec import (
    decode_location_filter,
    decode_range_filter,
    encode_location_filter,
    encode_range_filter,
)
from moqt.wire.filters import RangeFilterType
from moqt.wire.messages import NO_PARAMETERS, Parameters
from moqt.wire.names import Location, decode_namespace, encode_namespace
from moqt.wire.tokens import decode_token, encode_token
from moqt.wire.varint import U64, Cursor, encode_prefixed, encode_vi64


def _present(parameters: Parameters, draft: Draft) -> list[tuple[int, ParameterSpec, Any]]:
    """(type, spec, one value) of everything that is present, ascending by type."""
    if parameters is NO_PARAMETERS:
        return []
    found = []
    for kind, spec in draft.parameters.items():
        value = getattr(parameters, spec.field)
        if value is None:
            continue
        if spec.form is ParameterForm.RANGE_FILTER:
            found += [(kind, spec, one) for one in value if one.type == kind]
        elif spec.form is ParameterForm.TOKEN:
            found += [(kind, spec, one) for one in value]
        else:
            found.append((kind, spec, value))
    return found


def check_parameters(parameters: Parameters, draft: Draft, context: ParameterContext) -> None:
    """Refuse received parameters that may not stand where they stood (MOQT-22 §9.20.1).

    For REQUEST_UPDATE and REQUEST_OK, where only the request tells what is allowed. Raises
    RemoteProtocolError that names the parameter and the place.
    """
    allowed = draft.allowed_parameters[context]
    for kind, spec, _ in _present(parameters, draft):
        if kind not in allowed:
            raise RemoteProtocolError(f"{spec.name} may not stand in {context.value}")


def encode_parameters(
    parameters: Parameters,
    draft: Draft,
    allowed: frozenset[int],
    *,
    fill_count: bool,
    counted: bool = True,
) -> bytes:
    """[Number of Parameters (vi64)], then Type Delta (vi64) and value of each, ascending by type.

    `fill_count`: whether nested parameters start with their number; `counted`: whether these do.
    Raises LocalProtocolError for a value out of its range or a type that is not allowed.
    """
    present = _present(parameters, draft)
    pieces = [encode_vi64(len(present))] if counted else []
    previous = 0
    for kind, spec, value in present:
        if kind not in allowed:
            raise LocalProtocolError(f"{spec.name} may not stand in this message")
        pieces.append(encode_vi64(kind - previous))
        pieces.append(_encode_value(spec, value, draft, fill_count))
        previous = kind
    return b"".join(pieces)


def _encode_value(spec: ParameterSpec, value: Any, draft: Draft, fill_count: bool) -> bytes:
    match spec.form:
        case ParameterForm.INTEGER:
            return encode_vi64(value)
        case ParameterForm.OCTET:
            if value not in (spec.values or range(256)):
                raise LocalProtocolError(f"{spec.name} cannot be {value}")
            return bytes((value,))
        case ParameterForm.LOCATION:
            return encode_vi64(value.group) + encode_vi64(value.object)
        case ParameterForm.NAMESPACE:
            return encode_namespace(value)
        case ParameterForm.TOKEN:
            return encode_prefixed(encode_token(value))
        case ParameterForm.LOCATION_FILTER:
            return encode_location_filter(value, draft)
        case ParameterForm.RANGE_FILTER:
            return encode_prefixed(encode_range_filter(value))
        case ParameterForm.FILL:
            allowed = draft.allowed_parameters[ParameterContext.FILL]
            return encode_prefixed(
                encode_parameters(value, draft, allowed, fill_count=fill_count, counted=fill_count)
            )


def decode_parameters(
    cursor: Cursor, draft: Draft, allowed: frozenset[int], *, counted: bool = True
) -> Parameters:
    """Parameters at the cursor: as many as their number says, or up to the end if not `counted`.

    Raises RemoteProtocolError for a type that is unknown, not allowed, above 2^64-1 or repeated
    without leave, and for a value that its form forbids; NeedMore when cut.
    """
    count = cursor.vi() if counted else U64
    fields: dict[str, Any] = {}
    kind = 0
    done = 0
    while done < count if counted else cursor.left:
        delta = cursor.vi()
        kind += delta
        if kind > U64:
            raise RemoteProtocolError("the type of a parameter exceeds 2^64-1")
        spec = draft.parameters.get(kind)
        if spec is None:
            raise RemoteProtocolError(f"parameter 0x{kind:x} is not known")
        if kind not in allowed:
            raise RemoteProtocolError(f"{spec.name} may not stand in this message")
        value = _decode_value(cursor, kind, spec, draft)
        if spec.form in REPEATABLE:
            fields.setdefault(spec.field, []).append(value)
        elif delta == 0 and done:
            raise RemoteProtocolError(f"{spec.name} is repeated")
        else:
            fields[spec.field] = value
        done += 1
    if not fields:
        return NO_PARAMETERS
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    return Parameters(**fields)


def _decode_value(cursor: Cursor, kind: int, spec: ParameterSpec, draft: Draft) -> Any:
    match spec.form:
        case ParameterForm.INTEGER:
            return cursor.vi()
        case ParameterForm.OCTET:
            value = cursor.u8()
            if spec.values is not None and value not in spec.values:
                raise RemoteProtocolError(f"{spec.name} cannot be {value}")
            return value
        case ParameterForm.LOCATION:
            return Location(cursor.vi(), cursor.vi())
        case ParameterForm.NAMESPACE:
            return decode_namespace(cursor)
        case ParameterForm.TOKEN:
            return decode_token(cursor.prefixed())
        case ParameterForm.LOCATION_FILTER:
            return decode_location_filter(cursor, draft)
        case ParameterForm.RANGE_FILTER:
            return decode_range_filter(RangeFilterType(kind), cursor.prefixed())
        case ParameterForm.FILL:
            return decode_fill(cursor.prefixed(), draft)


def decode_fill(octets: bytes, draft: Draft) -> Parameters:
    """The value of FILL_PARAMETERS without its length: nested parameters (MOQT-22 §9.20.15).

    The text does not say whether their number comes first: both readings are tried, the counted
    one first. Raises RemoteProtocolError when neither fills `octets` exactly.
    """
    if not octets:
        return NO_PARAMETERS
    allowed = draft.allowed_parameters[ParameterContext.FILL]
    for counted in (True, False):
        cursor = Cursor(octets)
        try:
            parameters = decode_parameters(cursor, draft, allowed, counted=counted)
        except (NeedMore, RemoteProtocolError):
            continue
        if not cursor.left:
            return parameters
    raise RemoteProtocolError(
        f"FILL_PARAMETERS holds no list of parameters that may stand there: {octets[:32].hex()}"
    )
