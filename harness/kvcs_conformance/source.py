"""YAML with line numbers, so that an error can name the place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kvcs_conformance.errors import DataError

try:
    from yaml import CSafeLoader as Loader
except ImportError:  # PyYAML without libyaml: the same, slower
    from yaml import SafeLoader as Loader  # type: ignore[assignment]

Step = str | int
_MOST_VALUES = 200_000


@dataclass(frozen=True)
class Document:
    """One parsed file: plain values, and the line of each key and element by its path."""

    path: Path
    data: Any
    lines: dict[tuple[Step, ...], int]

    def error(self, where: Iterable[Step], message: str) -> DataError:
        """A DataError at `where`, or at the nearest place above it that has a line."""
        place = tuple(where)
        while place and place not in self.lines:
            place = place[:-1]
        return DataError(self.path, self.lines.get(place, 1), message)


def read_yaml(path: Path) -> Document:
    """Parse one YAML document.

    Raises DataError for bad YAML, for a key that occurs twice, and for more than 200 000 values: a
    few lines with aliases can say more than any memory holds, or never end.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(path, 1, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(path, 1, f"not text in UTF-8: {error.reason} at {error.start}") from error
    lines: dict[tuple[Step, ...], int] = {(): 1}
    loader = Loader(text)
    try:
        root = loader.get_single_node()
        data = None if root is None else _value(path, loader, root, (), lines)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DataError(path, line, f"not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise DataError(path, 1, f"not YAML: {error}") from error
    except RecursionError as error:
        raise DataError(path, 1, "nested too deeply") from error
    finally:
        loader.dispose()
    return Document(path, data, lines)


def _value(
    path: Path,
    loader: Any,
    node: yaml.Node,
    place: tuple[Step, ...],
    lines: dict[tuple[Step, ...], int],
) -> Any:
    lines.setdefault(place, node.start_mark.line + 1)
    if len(lines) > _MOST_VALUES:
        raise DataError(path, node.start_mark.line + 1, f"over {_MOST_VALUES} values")
    if isinstance(node, yaml.MappingNode):
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if isinstance(key, bool):  # `on` and `no` are words here, as in YAML 1.2
                key = key_node.value
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise DataError(path, line, f"a key must be text, not {key!r}")
            if key in mapping:
                raise DataError(path, line, f"key {key!r} occurs twice")
            lines[(*place, key)] = line
            mapping[key] = _value(path, loader, value_node, (*place, key), lines)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [
            _value(path, loader, element, (*place, i), lines)
            for i, element in enumerate(node.value)
        ]
    try:
        return loader.construct_object(node)
    except ValueError as error:  # what looks like a date, and is none
        line = node.start_mark.line + 1
        raise DataError(path, line, f"{node.value!r} is no value: {error}") from error
