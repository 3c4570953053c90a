"""The Compatibility Descriptor of the profile kvsp-p0 (profile §4), and its canonical form.

KVCS leaves the descriptor to KVSP, whose text is not public; everything here is the profile's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import rfc8785

from kvcs.errors import Defect, DescriptorError, refuse
from kvcs.strict_json import MAX_DEPTH, MAX_INTEGER, JsonValue

Descriptor: TypeAlias = Mapping[str, Any]

CLAUSE = "kvsp-p0 §4"
ELEMENT_OCTETS: Mapping[str, int] = {
    "fp32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "int8": 1,
}
"""Octets of one element of each `dtype`."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(\.[0-9]+)?")
_MAX_U32 = 2**32 - 1

Check: TypeAlias = Callable[[Any], str | None]
"""None when a member's value is right, else what would be right."""


def canonical(descriptor: Descriptor) -> bytes:
    """The RFC 8785 form of a descriptor, which the Compatibility ID is computed over.

    Raises DescriptorError for what P0 keeps out so that every implementation agrees: non-integer
    numbers (1.0 too), integers beyond 2^53-1, member names that are not ASCII, lone surrogates.
    """
    defects = list(_uncanonical(descriptor, "$", 0))
    if defects:
        raise refuse(DescriptorError, "no canonical form", defects)
    try:
        return rfc8785.dumps(dict(descriptor))
    except rfc8785.CanonicalizationError as error:
        raise DescriptorError(f"no canonical form: {error}") from None


def _uncanonical(value: JsonValue, path: str, depth: int) -> Iterator[Defect]:
    if depth > MAX_DEPTH:
        yield _defect("descriptor-depth", f"nested deeper than {MAX_DEPTH} levels", path)
    elif isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield _defect("descriptor-string", "half of a surrogate pair", path)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            yield _defect("descriptor-number", "an integer is within +-(2^53-1)", path)
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if not isinstance(name, str) or not name.isascii():
                yield _defect("descriptor-name", f"the member name {name!a} is not ASCII", path)
            else:
                yield from _uncanonical(member, f"{path}.{name}", depth + 1)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _uncanonical(item, f"{path}[{index}]", depth + 1)
    else:
        what = f"{type(value).__name__} is not a JSON type"
        if isinstance(value, float):
            what = f"a number is an integer here, not {value!r}"
        yield _defect("descriptor-number", what, path)


def check_descriptor(descriptor: JsonValue, path: str = "$") -> list[Defect]:
    """Everything in which a descriptor departs from the table of the profile.

    Members that the table does not have are permitted and hashed, so they are no defect here;
    `unknown_members` lists them, because a consumer must then treat the publication as
    incompatible.
    """
    if not isinstance(descriptor, Mapping):
        return [_defect("descriptor-type", "a Compatibility Descriptor is a JSON object", path)]
    defects = list(_uncanonical(descriptor, path, 0))
    defects += _check_members(descriptor, _MEMBERS, path)
    if not defects:
        defects += _check_between(descriptor, path)
    return defects


def unknown_members(descriptor: Descriptor) -> tuple[str, ...]:
    """JSON paths of the members that this profile does not define."""
    unknown = [f"$.{name}" for name in descriptor if name not in _MEMBERS]
    for name, members in _NESTED.items():
        inner = descriptor.get(name)
        if isinstance(inner, Mapping):
            unknown += [f"$.{name}.{key}" for key in inner if key not in members]
    return tuple(unknown)


def _check_members(
    value: Mapping[str, Any], members: Mapping[str, Check], path: str
) -> Iterator[Defect]:
    for name, check in members.items():
        where = f"{path}.{name}"
        if name not in value:
            yield _defect("descriptor-member-missing", f"the member {name!r} is missing", where)
            continue
        nested = _NESTED.get(name)
        if nested is not None and isinstance(value[name], Mapping):
            yield from _check_members(value[name], nested, where)
            continue
        right = check(value[name])
        if right is not None:
            found = repr(value[name])
            short = found if len(found) <= 60 else found[:57] + "..."
            what = f"{name} is {right}, not {short}"
            yield _defect("descriptor-member", what, where)


def _check_between(descriptor: Descriptor, path: str) -> Iterator[Defect]:
    """Rules that bind two members to each other."""
    mla = descriptor["attention"] == "mla"
    if mla and (descriptor["kv_heads"], descriptor["v_head_dim"]) != (1, 0):
        what = "attention mla has one latent: kv_heads 1 and v_head_dim 0"
        yield _defect("descriptor-mla", what, f"{path}.attention")
    if not mla and descriptor["v_head_dim"] == 0:
        what = f"v_head_dim is 0 only for attention mla, not {descriptor['attention']}"
        yield _defect("descriptor-v-head-dim", what, f"{path}.v_head_dim")
    windows = descriptor["windows"]
    if windows is not None and len(windows) != descriptor["layers"]:
        what = f"windows has one entry per layer: {descriptor['layers']}, not {len(windows)}"
        yield _defect("descriptor-windows", what, f"{path}.windows")


def _defect(name: str, what: str, where: str) -> Defect:
    return Defect(name, CLAUSE, what, where)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(low: int, high: int = _MAX_U32) -> Check:
    right = f"an integer from {low} to {high}"
    return lambda value: None if _is_integer(value) and low <= value <= high else right


def _one_of(*names: str) -> Check:
    right = "one of " + ", ".join(names)
    return lambda value: None if isinstance(value, str) and value in names else right


def _string(value: Any) -> str | None:
    return None if isinstance(value, str) else "a string"


def _digest(value: Any) -> str | None:
    ok = isinstance(value, str) and _DIGEST.fullmatch(value)
    return None if ok else "'sha256:' and 64 lower-case hexadecimal digits"


def _digests(value: Any) -> str | None:
    ok = isinstance(value, (list, tuple)) and all(_digest(item) is None for item in value)
    return None if ok else "an array of 'sha256:...' digests"


def _bool(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _decimal(value: Any) -> str | None:
    ok = isinstance(value, str) and _DECIMAL.fullmatch(value)
    return None if ok else "a decimal string such as '10000'"


def _object(value: Any) -> str | None:
    return None if isinstance(value, Mapping) else "an object"


def _object_or_null(value: Any) -> str | None:
    return None if value is None or isinstance(value, Mapping) else "null or an object"


def _scaling(value: Any) -> str | None:
    ok = value is None or (
        isinstance(value, Mapping)
        and all(isinstance(item, str) or _is_integer(item) for item in value.values())
    )
    return None if ok else "null or an object of strings and integers"


def _windows(value: Any) -> str | None:
    ok = value is None or (
        isinstance(value, (list, tuple)) and all(_is_integer(item) and item >= 0 for item in value)
    )
    return None if ok else "null or an array of integers, 0 for full attention"


_MEMBERS: Mapping[str, Check] = {
    "kvsp_profile": _one_of("p0"),
    "model": _object,
    "tokenizer": _digest,
    "adapters": _digests,
    "layers": _integer(1),
    "attention": _one_of("mha", "gqa", "mqa", "mla"),
    "kv_heads": _integer(1),
    "head_dim": _integer(1),
    "v_head_dim": _integer(0),
    "dtype": _one_of(*ELEMENT_OCTETS),
    "quant": _object_or_null,
    "block_tokens": _integer(1),
    "layout": _one_of("thd", "htd"),
    "byte_order": _one_of("little"),
    "position": _object,
    "windows": _windows,
}
_NESTED: Mapping[str, Mapping[str, Check]] = {
    "model": {"id": _string, "weights": _digest},
    "quant": {
        "scheme": _string,
        "scale_dtype": _one_of(*ELEMENT_OCTETS),
        "granularity": _string,
    },
    "position": {
        "type": _one_of("rope", "alibi", "none"),
        "applied": _bool,
        "base": _decimal,
        "rotary_dim": _integer(0),
        "scaling": _scaling,
        "origin": _integer(0, MAX_INTEGER),
    },
}
