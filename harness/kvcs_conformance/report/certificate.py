"""Self-certification: what one peer upholds of all that binds its role, hash-linked to evidence.

The denominator is every MUST and MUST NOT of the catalogue that a case can judge for the role. What
was not run, or stays open, counts against it; what is left out stands there with its reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from kvcs_conformance.catalogue import Catalogue, Requirement, Standing
from kvcs_conformance.evidence.files import CASE, RESULTS, case_folder, read_json
from kvcs_conformance.verdicts import Level, Verdict

SCHEMA = 1
STATEMENT = "kvcs-self-certification"
BINDING = (Level.MUST, Level.MUST_NOT)
_GOOD = (Verdict.PASS, Verdict.PASS_NONSTRICT, Verdict.ADVISE)
_MARGIN = "outside what this harness judges"


class Status(StrEnum):
    """What the runs say of one requirement; the worst of its cases counts."""

    FAILED = "failed"
    OPEN = "open"
    UPHELD = "upheld"
    EXCLUDED = "excluded"


@dataclass
class Standings:
    """One requirement with its cases; `why` tells why it is open or excluded."""

    requirement: Requirement
    status: Status
    why: str = ""
    cases: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As it stands in a certificate."""
        entry = self.requirement
        value: dict[str, Any] = {
            "id": entry.id,
            "level": entry.level.value,
            "clause": entry.clause,
            "status": self.status.value,
            "cases": self.cases,
        }
        return value | ({"why": self.why} if self.why else {})


@dataclass(frozen=True)
class Run:
    """One result with the folder that holds its evidence."""

    folder: Path
    result: Mapping[str, Any]


def certificate(
    role: str, runs: Sequence[Run], catalogue: Catalogue, *, issued: str, harness: str
) -> dict[str, Any]:
    """The certificate of the peer that plays `role` in all `runs`, unsigned.

    `issued` is an ISO date. The runs must have been judged under `catalogue`.
    """
    standings = [
        standing(entry, role, runs)
        for entry in catalogue.requirements.values()
        if role in entry.roles
    ]
    requirements = [one.as_json() for one in standings]
    return {
        "schema": SCHEMA,
        "statement": STATEMENT,
        "subject": {"role": role, "peer": runs[0].result["peers"][role]},
        "issued": issued,
        "harness": harness,
        "catalogue": dict(runs[0].result["catalogue"]),
        "conformant": is_conformant(requirements),
        "counts": counts(requirements),
        "requirements": requirements,
        "runs": [_run(run) for run in runs],
    }


def counts(requirements: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How the applicable MUST and MUST NOT of a certificate's list stand."""
    counted = [
        one["status"]
        for one in requirements
        if one["level"] in BINDING and one["status"] != Status.EXCLUDED
    ]
    by_status = {
        status.value: counted.count(status)
        for status in (Status.UPHELD, Status.FAILED, Status.OPEN)
    }
    return {"applicable": len(counted), **by_status}


def is_conformant(requirements: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all applicable MUST and MUST NOT are upheld and no stated behaviour is contradicted:
    the formats that every peer depends on are described without a keyword."""
    told = counts(requirements)
    deviates = any(
        one["level"] == Level.STATED and one["status"] == Status.FAILED for one in requirements
    )
    return 0 < told["applicable"] == told["upheld"] and not deviates


def standing(entry: Requirement, role: str, runs: Iterable[Run]) -> Standings:
    """What all runs together say of one requirement for one role."""
    found = Standings(entry, Status.EXCLUDED)
    spoken: list[tuple[Status, str]] = []
    for run in runs:
        for case in run.result["cases"]:
            if case["sut"] == role and entry.id in case["requires"]:
                name = f"{case['id']} ({run.result['link']})"
                found.cases[name] = case["verdict"]
                spoken.append(_status(entry.id, case, run))
    counted = [one for one in spoken if one[0] is not Status.EXCLUDED]
    if counted:
        found.status, found.why = min(counted, key=lambda one: list(Status).index(one[0]))
    elif spoken:
        found.why = spoken[0][1]
    elif entry.standing(role) is Standing.JUDGED:
        found.status, found.why = Status.OPEN, "no case about it was run"
    else:
        found.why = entry.why(role) or _MARGIN
    return found


def _status(requirement: str, case: Mapping[str, Any], run: Run) -> tuple[Status, str]:
    """What one case says of one of its requirements."""
    about = [one for one in case["findings"] if requirement in one.get("requires", ())]
    bad = next((one for one in about if one["outcome"] == "contradicted"), None)
    verdict = Verdict(case["verdict"])
    if bad is not None and verdict is not Verdict.BLOCKED:
        return Status.FAILED, bad["text"]
    if verdict in _GOOD:
        return Status.UPHELD, ""
    told = case["findings"][0]["text"] if case["findings"] else verdict.value
    if verdict is Verdict.NOT_APPLICABLE:
        only = read_json(case_folder(run.folder, case["id"]) / CASE).get("links", {}).get("only")
        # What only QUIC shows can be shown: the certificate needs a run on QUIC as well.
        return (Status.OPEN if only == "quic" else Status.EXCLUDED), told
    upheld = bool(about) and all(one["outcome"] in ("upheld", "departs") for one in about)
    if verdict is Verdict.FAIL and upheld:
        return Status.UPHELD, ""
    return Status.OPEN, f"{verdict.value}: {told}"


def _run(run: Run) -> dict[str, Any]:
    drafts = {case["observed"]["draft"] for case in run.result["cases"]} - {None}
    files, digest = folder_digest(run.folder)
    return {
        "link": run.result["link"],
        "seed": run.result["seed"],
        "peers": dict(run.result["peers"]),
        "drafts": sorted(drafts),
        "result_sha256": hashlib.sha256((run.folder / RESULTS).read_bytes()).hexdigest(),
        "evidence": {"files": files, "sha256": digest},
    }


def folder_digest(folder: Path) -> tuple[int, str]:
    """How many files the evidence of a run has, and one SHA-256 over all of them.

    It covers each file's path, length and SHA-256, a line each, ordered by path.
    """
    lines = []
    for path in sorted((folder / "cases").rglob("*")):
        if path.is_file():
            octets = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            lines.append(f"{name}\t{len(octets)}\t{hashlib.sha256(octets).hexdigest()}\n")
    return len(lines), hashlib.sha256("".join(lines).encode()).hexdigest()
