"""JSON Schema errors as one line with file and line number."""

from __future__ import annotations

import difflib
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from kvcs_conformance.errors import DataError
from kvcs_conformance.source import Document, Step


def check_schema(
    document: Document,
    schema: dict[str, Any],
    value: Any = None,
    where: tuple[Step, ...] = (),
) -> None:
    """Check `value` (the whole document by default), which stands at `where`, by `schema`.

    Raises DataError for the error that comes first in the file; a missing key comes last, because
    an unknown one is often the same key misspelt.
    """
    subject = document.data if not where else value
    errors = [
        (error.validator == "required", _explain(document, where, error))
        for error in Draft202012Validator(schema).iter_errors(subject)
    ]
    if errors:
        raise min(errors, key=lambda entry: (entry[0], entry[1].line))[1]


def _explain(document: Document, where: tuple[Step, ...], error: ValidationError) -> DataError:
    place = (*where, *error.absolute_path)
    value: Any = error.instance
    wanted: Any = error.validator_value
    schema: Any = error.schema
    if error.validator == "additionalProperties" and isinstance(error.schema, dict):
        known = list(error.schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        return document.error((*place, unknown), unknown_word("key", unknown, known))
    if error.validator == "required":
        missing = next(key for key in wanted if key not in value)
        return document.error(place, f"key {missing!r} is missing")
    if error.validator in ("minItems", "minProperties", "minLength"):
        name = place[-1] if place else "the document"
        return document.error(place, f"{name!r} is empty")
    if "examples" not in schema and (inner := _of_a_way(error)):
        return _explain(document, where, inner)
    if error.validator in ("type", "pattern", "anyOf", "oneOf"):
        if value is None and not place:
            return document.error(place, "the file is empty")
        told = "nothing" if value is None else repr(value)
        return document.error(place, f"{told} should be {_wanted(error)}")
    if error.validator == "enum":
        return document.error(place, unknown_word("value", value, wanted))
    return document.error(place, error.message)


_KINDS = ("type", "const", "enum")


def _of_a_way(error: ValidationError) -> ValidationError | None:
    """Of several ways to write a value, what is wrong with it as one of its own type."""
    inner = [one for one in error.context or () if one.path or one.validator not in _KINDS]
    inner.sort(key=lambda one: one.validator != "additionalProperties")
    return inner[0] if inner else None


_TYPES = {
    "array": "a list",
    "object": "a mapping of keys",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def _wanted(error: ValidationError) -> str:
    """What is right there: like an example, if the schema has one; else of its type or pattern."""
    schema: Any = error.schema
    if "examples" in schema:
        return f"like {' or '.join(map(str, schema['examples']))}"
    if error.validator == "pattern":
        return f"text that matches {error.validator_value}"
    ways = schema.get(error.validator) if error.validator != "type" else [schema]
    return " or ".join(dict.fromkeys(kind for way in ways for kind in _kinds(way)))


def _kinds(schema: dict[str, Any]) -> list[str]:
    """What a value of this schema is, in words."""
    if "const" in schema:
        return [repr(schema["const"])]
    if "enum" in schema:
        return [repr(value) for value in schema["enum"]]
    kinds = schema.get("type", [])
    return [_TYPES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)]


def unknown_word(kind: str, word: object, known: list[Any]) -> str:
    """`unknown key 'x'; did you mean 'y'?`, or the list of what there is."""
    near = difflib.get_close_matches(str(word), [str(k) for k in known], 1, 0.6)
    if near:
        return f"unknown {kind} {word!r}; did you mean {near[0]!r}?"
    return f"unknown {kind} {word!r}; known: {', '.join(map(str, known)) or 'none'}"
