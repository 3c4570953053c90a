"""What changed between two results, case by case and requirement by requirement; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from kvcs_conformance.catalogue import Catalogue, Requirement
from kvcs_conformance.verdicts import INCOMPLETE, Verdict


class Change(StrEnum):
    """How a case differs between two results."""

    BROKEN = "broken"
    GONE = "gone"
    NEW = "new"
    FIXED = "fixed"
    CHANGED = "changed"


MEANING: dict[Change, str] = {
    Change.BROKEN: "held before and does not hold now",
    Change.GONE: "is not in the later result",
    Change.NEW: "is not in the earlier result",
    Change.FIXED: "did not hold before and holds now",
    Change.CHANGED: "has another verdict or reason, neither broken nor fixed",
}

HOLDS: frozenset[str] = frozenset(Verdict) - INCOMPLETE - {Verdict.FAIL, Verdict.HARNESS_ERROR}
"""Verdicts under which no MUST of a case is open or contradicted."""

_SETTINGS = ("link", "seed", "profile")


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case that differs; a side on which it does not exist is None."""

    change: Change
    case: str
    sut: str
    requires: tuple[str, ...]
    before: str | None
    after: str | None

    def as_json(self) -> dict[str, Any]:
        """As in `kvcs diff --json`."""
        return {
            "change": self.change.value,
            "case": self.case,
            "sut": self.sut,
            "requires": list(self.requires),
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True)
class Difference:
    """All changes between two results, the worst first; `settings` tells apart what was run."""

    settings: tuple[tuple[str, str, str], ...]
    changes: tuple[CaseChange, ...]
    same: int

    def of(self, *kinds: Change) -> list[CaseChange]:
        """The changes of these kinds."""
        return [change for change in self.changes if change.change in kinds]

    @property
    def worse(self) -> bool:
        """Whether the later result is worse: something broke or is gone."""
        return bool(self.of(Change.BROKEN, Change.GONE))

    def as_json(self) -> dict[str, Any]:
        """As `kvcs diff --json` prints it."""
        return {
            "settings": [
                {"name": name, "before": before, "after": after}
                for name, before, after in self.settings
            ],
            "summary": {kind.value: len(self.of(kind)) for kind in Change} | {"same": self.same},
            "changes": [change.as_json() for change in self.changes],
        }


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """The difference of two results of schema 1."""
    old = {case["id"]: case for case in before["cases"]}
    new = {case["id"]: case for case in after["cases"]}
    changes = [
        change
        for name in sorted(old.keys() | new.keys())
        if (change := _case(old.get(name), new.get(name)))
    ]
    order = list(Change)
    changes.sort(key=lambda change: order.index(change.change))
    same = len(old.keys() | new.keys()) - len(changes)
    return Difference(tuple(_settings(before, after)), tuple(changes), same)


def _case(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> CaseChange | None:
    case = new or old
    assert case is not None
    before, after = (said(one) if one else None for one in (old, new))
    if before == after:
        return None
    if old is None:
        change = Change.NEW
    elif new is None:
        change = Change.GONE
    elif (old["verdict"] in HOLDS) == (new["verdict"] in HOLDS):
        change = Change.CHANGED
    else:
        change = Change.FIXED if new["verdict"] in HOLDS else Change.BROKEN
    return CaseChange(change, case["id"], case["sut"], tuple(case["requires"]), before, after)


def said(case: Mapping[str, Any]) -> str:
    """Verdict and reason of a case as one word or two."""
    return f"{case['verdict']} ({case['reason']})" if case["reason"] else str(case["verdict"])


def _settings(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterable[tuple[str, str, str]]:
    """What differs in how the two were run."""
    pairs: list[tuple[str, Any, Any]] = [
        (f"{role} under test", before["peers"].get(role), after["peers"].get(role))
        for role in before["peers"]
    ]
    pairs += [(name, before.get(name), after.get(name)) for name in _SETTINGS]
    pairs += [
        (f"catalogue {name}", before["catalogue"].get(name), after["catalogue"].get(name))
        for name in ("kvcs", "moqt", "sha256")
    ]
    for name, one, other in pairs:
        if one != other:
            yield name, str(one), str(other)


@dataclass(frozen=True, slots=True)
class ClauseChange:
    """A catalogue entry that is new, gone, or says something else; `what` names the fields, or is
    `new` or `gone`."""

    requirement: str
    what: tuple[str, ...]
    before: str
    after: str

    def as_json(self) -> dict[str, Any]:
        """As in `kvcs diff --json`."""
        return {**asdict(self), "what": list(self.what)}


def compare_catalogues(before: Catalogue, after: Catalogue) -> tuple[ClauseChange, ...]:
    """The entries that differ, in the order of the later catalogue, those that are gone last."""
    old, new = before.requirements, after.requirements
    changes = []
    for name, entry in new.items():
        if name not in old:
            changes.append(ClauseChange(name, ("new",), "", entry.text))
        elif what := _fields(old[name], entry):
            changes.append(ClauseChange(name, what, _told(old[name], what), _told(entry, what)))
    gone = [ClauseChange(name, ("gone",), old[name].text, "") for name in old if name not in new]
    return (*changes, *gone)


_COMPARED = ("level", "roles", "clause", "text", "ambiguity", "reading")


def _fields(old: Requirement, new: Requirement) -> tuple[str, ...]:
    return tuple(name for name in _COMPARED if getattr(old, name) != getattr(new, name))


def _told(entry: Requirement, what: Iterable[str]) -> str:
    """The fields that changed, in the words of this side."""
    values = {name: getattr(entry, name) for name in what}
    return "; ".join(
        ", ".join(value) if isinstance(value, tuple) else str(value or "none")
        for value in values.values()
    )


def touched(
    clauses: Sequence[ClauseChange], results: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, dict[str, str]]]:
    """For each changed clause: by result, the cases that cite it, with their verdicts."""
    return {
        clause.requirement: {
            name: cases for name, result in results.items() if (cases := _citing(clause, result))
        }
        for clause in clauses
    }


def _citing(clause: ClauseChange, result: Mapping[str, Any]) -> dict[str, str]:
    return {
        case["id"]: said(case) for case in result["cases"] if clause.requirement in case["requires"]
    }
