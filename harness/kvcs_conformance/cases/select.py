"""Choosing cases: by id glob, requirement, role, level, tag, or what changed in git."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kvcs_conformance.cases.load import Case, load_cases
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError


@dataclass(frozen=True)
class Selection:
    """What to choose by; a case must match one value of each kind that has any.

    `changed_since` is a git revision: only cases whose file, or whose scenario's file, differs
    from it in the working tree.
    """

    selectors: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    changed_since: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is asked for: all cases otherwise."""
        return self != Selection()

    def load(self, catalogue: Catalogue) -> tuple[Case, ...]:
        """All cases, checked; where nothing but whole ids is asked for, those cases alone."""
        named = self.selectors and self == Selection(self.selectors)
        if named and all("/" in selector for selector in self.selectors):
            cases = load_cases(catalogue, ids=self.selectors)
            if {*self.selectors} <= {case.id for case in cases}:
                return cases
        return load_cases(catalogue)

    def of(self, cases: Iterable[Case]) -> tuple[Case, ...]:
        """The cases chosen, in their order.

        Raises UsageError for a value that matches no case at all, and when all values together
        leave none; that nothing has changed is no error.
        """
        all_cases = tuple(cases)
        chosen = select(all_cases, self.selectors)
        for option, values, matches in (
            ("--requirement", self.requirements, _cites),
            ("--role", self.roles, _of_role),
            ("--level", self.levels, _of_level),
            ("--tag", self.tags, _tagged),
        ):
            for value in values:
                if not any(matches(case, value) for case in all_cases):
                    raise UsageError(f"no case matches {option} {value!r} (see `kvcs list`)")
            if values:
                chosen = _keep(chosen, values, matches)
        for glob in self.exclude:
            if not any(_named(case, glob) for case in all_cases):
                raise UsageError(f"no case matches --exclude {glob!r} (see `kvcs list`)")
        chosen = tuple(c for c in chosen if not any(_named(c, glob) for glob in self.exclude))
        if not chosen:
            raise UsageError("no case matches all of what is asked for")
        if self.changed_since is not None:
            from kvcs_conformance.cases.changed import changed_since

            chosen = changed_since(chosen, self.changed_since)
        return chosen


def select(cases: Iterable[Case], selectors: Iterable[str]) -> tuple[Case, ...]:
    """The cases that any selector names, in their order; no selector at all means all of them.

    A selector is a glob over case ids (`relay/*`), a role (`relay`), or a requirement id or a
    glob over those (`KVCS-4-22`, `KVCS-10-*`). Raises UsageError for one that chooses nothing.
    """
    all_cases = tuple(cases)
    wanted = tuple(selectors)
    for selector in wanted:
        if not any(_named(case, selector) for case in all_cases):
            raise UsageError(
                f"no case matches {selector!r}: give a case id or glob, a role, or a requirement "
                "id (see `kvcs list`)"
            )
    return _keep(all_cases, wanted, _named) if wanted else all_cases


def _keep(
    cases: Iterable[Case], values: tuple[str, ...], matches: Callable[[Case, str], bool]
) -> tuple[Case, ...]:
    return tuple(case for case in cases if any(matches(case, value) for value in values))


def _named(case: Case, selector: str) -> bool:
    return selector == case.sut or fnmatchcase(case.id, selector) or _cites(case, selector)


def _cites(case: Case, glob: str) -> bool:
    return any(fnmatchcase(requirement, glob) for requirement in case.requires)


def _of_role(case: Case, role: str) -> bool:
    return case.sut == role


def _of_level(case: Case, level: str) -> bool:
    return case.level.value == level


def _tagged(case: Case, tag: str) -> bool:
    return tag in case.tags
