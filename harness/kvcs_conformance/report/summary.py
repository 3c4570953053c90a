"""A run as a whole: conformant or not, and how each requirement stands."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kvcs_conformance.catalogue import Catalogue, Requirement
from kvcs_conformance.known import is_known
from kvcs_conformance.report.plain import plain_values
from kvcs_conformance.verdicts import CONTRADICTED, Level, Verdict

ROLES = ("publisher", "relay", "consumer")

BINDING = frozenset({Level.MUST, Level.MUST_NOT})
"""Levels that must come to an answer; a `fail` of stated behaviour denies conformance too."""

GRAVEST_FIRST = (
    Verdict.FAIL,
    Verdict.HARNESS_ERROR,
    Verdict.BLOCKED,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_RUN,
    Verdict.ADVISE,
    Verdict.UNSUPPORTED,
    Verdict.PASS_NONSTRICT,
    Verdict.PASS,
    Verdict.NOT_APPLICABLE,
)
_OPEN = (Verdict.HARNESS_ERROR, Verdict.BLOCKED, Verdict.INCONCLUSIVE, Verdict.NOT_RUN)


class Standing(StrEnum):
    """What a run says of conformance."""

    CONFORMANT = "conformant"
    NOT_CONFORMANT = "not conformant"
    NOT_SHOWN = "not shown to be conformant"


class Weight(StrEnum):
    """What a case does to a build."""

    PASSED = "passed"
    NOTED = "noted"
    SKIPPED = "skipped"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Line:
    """One requirement with the cases that cite it and how it stands in each of them; `why` is the
    catalogue's reason where it has no case."""

    id: str
    level: str
    clause: str
    text: str
    roles: tuple[str, ...]
    verdict: str
    cases: tuple[tuple[str, str], ...]
    why: str


@dataclass(frozen=True, slots=True)
class Summary:
    """`sentence` says conformant or not, and why not; counts by verdict, over all and by role;
    requirements that no case of the run cites have no cases and no verdict."""

    standing: Standing
    sentence: str
    counts: Mapping[str, int]
    by_role: Mapping[str, Mapping[str, int]]
    requirements: tuple[Line, ...]

    @property
    def cited(self) -> int:
        """How many requirements the cases of the run speak about."""
        return sum(bool(line.cases) for line in self.requirements)


def summarize(result: Mapping[str, Any], catalogue: Catalogue) -> Summary:
    """The summary of a run."""
    cases: list[dict[str, Any]] = plain_values(result["cases"])
    counts = Counter(case["verdict"] for case in cases)
    by_role = {
        role: Counter(case["verdict"] for case in cases if case["sut"] == role)
        for role in ROLES
        if any(case["sut"] == role for case in cases)
    }
    standing, sentence = _standing(cases)
    lines = tuple(_requirements(cases, catalogue, by_role))
    ordered = {v.value: counts[v.value] for v in GRAVEST_FIRST if counts[v.value]}
    return Summary(standing, sentence, ordered, by_role, lines)


def weight(case: Mapping[str, Any]) -> Weight:
    """How a build takes a case: red for a failure that nobody knows, and for an unexpected pass."""
    verdict = case["verdict"]
    if case.get("unexpected"):
        return Weight.FAILED
    if is_known(case) and verdict != Verdict.PASS:
        return Weight.SKIPPED
    if verdict == Verdict.FAIL:
        return Weight.FAILED
    if verdict in _OPEN:
        return Weight.OPEN
    if verdict in (Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE):
        return Weight.SKIPPED
    return Weight.PASSED if verdict == Verdict.PASS else Weight.NOTED


def _standing(cases: Sequence[Mapping[str, Any]]) -> tuple[Standing, str]:
    binding = [case for case in cases if case["level"] in BINDING]
    failed = [case for case in cases if case["verdict"] == Verdict.FAIL]
    if failed:
        known = sum(is_known(case) for case in failed)
        count = _count(len(failed), "case contradicts", "cases contradict")
        text = f"{count} a MUST, a MUST NOT or stated behaviour ({_roles(failed)})"
        tail = f"; {known} of them known" if known else ""
        return Standing.NOT_CONFORMANT, f"Not conformant: {text}{tail}."
    open_ = Counter(case["verdict"] for case in binding if case["verdict"] in _OPEN)
    if open_:
        told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(open_.items()))
        text = "nothing is contradicted, but not every MUST and MUST NOT came to an answer"
        return Standing.NOT_SHOWN, f"Not shown to be conformant: {text} ({told})."
    judged = [c for c in binding if c["verdict"] != Verdict.NOT_APPLICABLE]
    if not judged:
        return (
            Standing.NOT_SHOWN,
            "Not shown to be conformant: no case of a MUST or MUST NOT was run.",
        )
    count = _count(len(judged), "case", "cases")
    advised = sum(case["verdict"] == Verdict.ADVISE for case in cases)
    tail = f"; {_count(advised, 'SHOULD is', 'SHOULDs are')} not followed" if advised else ""
    return Standing.CONFORMANT, f"Conformant: {count} of a MUST or MUST NOT, all upheld{tail}."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _roles(cases: Iterable[Mapping[str, Any]]) -> str:
    counts = Counter(case["sut"] for case in cases)
    return ", ".join(f"{role} {counts[role]}" for role in ROLES if counts[role])


def _requirements(
    cases: Iterable[Mapping[str, Any]], catalogue: Catalogue, roles: Iterable[str]
) -> Iterable[Line]:
    citing: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for case in cases:
        for name in case["requires"]:
            citing[name].append(case)
    tested = set(roles)
    known = catalogue.requirements
    for name in (*known, *(name for name in citing if name not in known)):
        entry = known.get(name)
        if entry is not None and not citing[name] and tested.isdisjoint(entry.roles):
            continue
        level = entry.level if entry else None
        stands = tuple((case["id"], _stands(name, level, case)) for case in citing[name])
        verdicts = {verdict for _, verdict in stands}
        yield Line(
            name,
            level.value if level else "",
            entry.clause if entry else "",
            entry.text if entry else "this requirement is not in the catalogue",
            entry.roles if entry else (),
            next((v.value for v in GRAVEST_FIRST if v in verdicts), ""),
            stands,
            "" if stands or entry is None else _why(entry, tested),
        )


def _why(entry: Requirement, roles: Iterable[str]) -> str:
    reasons = {entry.why(role): None for role in entry.roles if role in roles}
    return "; ".join(reason for reason in reasons if reason)


def _stands(name: str, level: Level | None, case: Mapping[str, Any]) -> str:
    """How one requirement stands in one case: a case that fails for another does not fail it."""
    outcomes = {f["outcome"] for f in case["findings"] if name in f.get("requires", ())}
    if case["verdict"] in (Verdict.BLOCKED, Verdict.HARNESS_ERROR):
        return str(case["verdict"])
    if "contradicted" in outcomes:
        return CONTRADICTED[level].value if level else str(case["verdict"])
    judged = case["verdict"] in (Verdict.FAIL, Verdict.ADVISE, Verdict.PASS_NONSTRICT)
    if not judged:
        return str(case["verdict"])
    if "unseen" in outcomes or not outcomes:
        return Verdict.INCONCLUSIVE.value
    return Verdict.PASS_NONSTRICT.value if "departs" in outcomes else Verdict.PASS.value
