"""A finding: what one piece of evidence says about a clause, and where it stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from kvcs_conformance.evidence.read import Record
from kvcs_conformance.verdicts import Reason


class Outcome(StrEnum):
    """What a finding says of the clauses that it speaks about."""

    UPHELD = "upheld"
    DEPARTS = "departs"
    CONTRADICTED = "contradicted"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; `node` and `index` point at a record of the evidence.

    `octets` are the octets concerned in hex, from `offset` of their structure on.
    """

    outcome: Outcome
    text: str
    reason: Reason | None = None
    expected: str = ""
    observed: str = ""
    node: str = ""
    index: int | None = None
    octets: str = ""
    offset: int = 0
    requires: tuple[str, ...] = ()

    def speaking_of(self, requires: tuple[str, ...]) -> Finding:
        """The finding about these requirements; one that names its own keeps those of them, or its
        own where none is of them: it never speaks of what it is not about."""
        own = tuple(name for name in self.requires if name in requires)
        return replace(self, requires=own or self.requires or requires)

    def as_json(self) -> dict[str, Any]:
        """Only what is set."""
        values = {**asdict(self), "requires": list(self.requires)}
        return {key: value for key, value in values.items() if value not in ("", None, [])}


def upheld(text: str, record: Record | None = None) -> Finding:
    """Positive evidence."""
    return _at(Finding(Outcome.UPHELD, text), record)


def contradicted(
    reason: Reason,
    text: str,
    *,
    expected: str,
    observed: str,
    record: Record | None = None,
    octets: str = "",
    offset: int = 0,
    requires: tuple[str, ...] = (),
) -> Finding:
    """Evidence against the clause; `requires` narrows down which of the judgement's it is."""
    finding = Finding(
        Outcome.CONTRADICTED,
        text,
        reason,
        expected,
        observed,
        octets=octets,
        offset=offset,
        requires=requires,
    )
    return _at(finding, record)


def departs(
    reason: Reason, text: str, *, expected: str, observed: str, record: Record | None = None
) -> Finding:
    """Legal, but not what is preferred."""
    return _at(Finding(Outcome.DEPARTS, text, reason, expected, observed), record)


def unseen(text: str, reason: Reason = Reason.NO_EVIDENCE) -> Finding:
    """The evidence does not reach as far as this clause."""
    return Finding(Outcome.UNSEEN, text, reason)


def _at(finding: Finding, record: Record | None) -> Finding:
    if record is None:
        return finding
    return replace(finding, node=record.node, index=record.index)
