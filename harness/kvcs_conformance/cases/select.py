"""Choosing cases by id glob, requirement, or role."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from kvcs_conformance.cases.load import Case
from kvcs_conformance.errors import UsageError


def select(cases: Iterable[Case], selectors: Iterable[str]) -> tuple[Case, ...]:
    """The cases that any selector names, in their order; no selector at all means all of them.

    A selector is a glob over case ids (`relay/*`), a role (`relay`), or a requirement id or a
    glob over those (`KVCS-4-22`, `KVCS-10-*`). Raises UsageError for one that chooses nothing.
    """
    all_cases = tuple(cases)
    wanted = tuple(selectors)
    if not wanted:
        return all_cases
    chosen: set[str] = set()
    for selector in wanted:
        matches = {case.id for case in all_cases if _matches(case, selector)}
        if not matches:
            raise UsageError(
                f"no case matches {selector!r}: give a case id or glob, a role, or a requirement "
                "id (see `kvcs list`)"
            )
        chosen |= matches
    return tuple(case for case in all_cases if case.id in chosen)


def _matches(case: Case, selector: str) -> bool:
    return (
        selector == case.sut
        or fnmatchcase(case.id, selector)
        or any(fnmatchcase(requirement, selector) for requirement in case.requires)
    )
