"""The table of judge words: each one a pure function of the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from kvcs_conformance.evidence.read import Evidence
    from kvcs_conformance.judge.findings import Finding

JudgeFunction: TypeAlias = "Callable[[Evidence, dict[str, Any]], Iterator[Finding]]"


@dataclass(frozen=True)
class JudgeWord:
    """One judge: its function, its documentation, and the schema of its arguments."""

    name: str
    function: JudgeFunction
    doc: str
    options: dict[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()


JUDGES: dict[str, JudgeWord] = {}


def judge(
    name: str, required: tuple[str, ...] = (), **options: Any
) -> Callable[[JudgeFunction], JudgeFunction]:
    """Enter a function into the table under `name`; its docstring is the documentation.

    `options` are schemas by argument name, with `_` for `-`.
    """

    def enter(function: JudgeFunction) -> JudgeFunction:
        schemas = {key.replace("_", "-"): value for key, value in options.items()}
        JUDGES[name] = JudgeWord(
            name, function, " ".join(cleandoc(function.__doc__ or "").split()), schemas, required
        )
        return function

    return enter
