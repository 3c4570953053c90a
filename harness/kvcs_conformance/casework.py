"""The work on one case of a run: repeats, verdict, blame, evidence.

Values come in and values go out, so that any process can do it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.nodes.cast import main_roles
from kvcs_conformance.outcome import Outcome, lost
from kvcs_conformance.report.results import row
from kvcs_conformance.runner import LIMIT, run_case, save
from kvcs_conformance.sides import Sides
from kvcs_conformance.verdicts import FAILS, GOOD, WORST_FIRST, Reason


@dataclass(frozen=True)
class Orders:
    """What holds for every case of a run.

    `limit` is in seconds of real time, for one run of a case or of its twin; None for no limit.
    `lacks` are the features that the peer under test declares absent. `out` None keeps no
    evidence; `quic_qlog` keeps the QUIC library's own logs with it.
    """

    catalogue: Catalogue
    link: str = "memory"
    seed: int = 0
    sides: Sides = field(default_factory=Sides)
    out: Path | None = None
    repeat: int = 1
    vary_seed: bool = False
    lacks: frozenset[str] = frozenset()
    limit: float | None = LIMIT
    quic_qlog: bool = False

    @property
    def more(self) -> dict[str, Any]:
        """What the result says of how it was run, where that is not what is usual."""
        told: dict[str, Any] = {}
        if self.sides.remote is not None:
            told["remote"] = self.sides.remote.as_json()
        if self.lacks:
            told["lacks"] = sorted(self.lacks)
        if self.repeat > 1:
            told["repeat"] = self.repeat
        if self.vary_seed:
            told["vary_seed"] = True
        return told

    def longest(self, case: Case) -> float:
        """Seconds of real time after which the work on a case has got stuck."""
        runs = self.repeat + len(self.sides.foreign)
        return runs * (2 if case.twin else 1) * (self.limit or LIMIT) + 10.0


def work_on(orders: Orders, case: Case) -> dict[str, Any]:
    """Run a case as ordered and keep its evidence; its entry in the result."""
    outcomes = [_run(orders, case, orders.sides, seed) for seed in _seeds(orders)]
    standing = min(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.assessment.verdict))
    entry = row(standing, orders.link)
    if orders.repeat > 1:
        entry |= _repeated(outcomes)
    evidence = standing.evidence or standing.twin
    if evidence is not None and evidence.facts["seed"] != orders.seed:
        entry["seed"] = evidence.facts["seed"]
    if standing.assessment.verdict in FAILS or standing.assessment.reason is Reason.TWIN_FAILED:
        entry |= _blame(orders, standing, entry.get("seed", orders.seed))
    if orders.out is not None:
        save(standing, orders.out)
    return entry


def lost_entry(orders: Orders, case: Case, why: str) -> dict[str, Any]:
    """The entry of a case whose process was lost, with evidence that says so."""
    outcome = lost(case, orders.catalogue, why, link=orders.link, seed=orders.seed)
    if orders.out is not None:
        save(outcome, orders.out)
    return row(outcome, orders.link)


def _run(orders: Orders, case: Case, sides: Sides, seed: int) -> Outcome:
    return run_case(
        case,
        orders.catalogue,
        link=orders.link,
        seed=seed,
        peers=sides.peers(),
        lacks=orders.lacks,
        limit=orders.limit,
        quic_qlog=orders.quic_qlog and orders.out is not None,
    )


def _seeds(orders: Orders) -> list[int]:
    return [orders.seed + (i if orders.vary_seed else 0) for i in range(orders.repeat)]


def _repeated(outcomes: list[Outcome]) -> dict[str, Any]:
    """How often each verdict came; a case with more than one is flaky."""
    counts = Counter(outcome.assessment.verdict.value for outcome in outcomes)
    seen: dict[str, Any] = {
        "repeat": {"runs": len(outcomes), "verdicts": dict(sorted(counts.items()))}
    }
    return seen | {"flaky": True} if len(counts) > 1 else seen


def _blame(orders: Orders, failed: Outcome, seed: int) -> dict[str, Any]:
    """Whose fault it is when the reference does not play all but the role under test: it takes the
    place of one foreign side after the other."""
    case = failed.case
    foreign = [role for role in orders.sides.foreign if role in main_roles(case.sut, case.scenario)]
    if not foreign or foreign == [case.sut]:
        return {}
    verdicts = {
        role: _run(orders, case, orders.sides.with_reference(role), seed).assessment.verdict
        for role in foreign
    }
    guilty = [role for role, verdict in verdicts.items() if verdict in GOOD]
    told: dict[str, Any] = {"blame_runs": {role: v.value for role, v in verdicts.items()}}
    if not guilty:
        told["blame_text"] = (
            "the case does not pass with the reference in place of any one of "
            f"{', '.join(foreign)}: more than one of them is at fault"
        )
    elif len(guilty) == 1:
        told |= {
            "blame": guilty[0],
            "blame_text": f"the case passes with the reference in place of the {guilty[0]} alone",
        }
    else:
        told |= {
            "blame": " and ".join(guilty),
            "blame_text": "only this pair: the case passes with the reference in place of either "
            f"{' or '.join(guilty)}",
        }
    return told
