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
    if error.validator == "type":
        if value is None and not place:
            return document.error(place, "the file is empty")
        return document.error(place, f"{value!r} should be of type {wanted}")
    if error.validator == "enum":
        return document.error(place, unknown_word("value", value, wanted))
    return document.error(place, error.message)


def unknown_word(kind: str, word: object, known: list[Any]) -> str:
    """`unknown key 'x'; did you mean 'y'?`, or the list of what there is."""
    near = difflib.get_close_matches(str(word), [str(k) for k in known], 1, 0.6)
    if near:
        return f"unknown {kind} {word!r}; did you mean {near[0]!r}?"
    return f"unknown {kind} {word!r}; known: {', '.join(map(str, known)) or 'none'}"
