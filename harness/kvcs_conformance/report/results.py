"""`results.json`: the machine-readable result of a run (schema in `reports/`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance import datafiles
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.files import RESULTS, read_json, write_json
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.outcome import Outcome
from kvcs_conformance.sides import REFERENCE, ROLES
from kvcs_conformance.verdicts import Verdict

SCHEMA = 1
MOQT_DRAFT = "22"


def results(
    outcomes: Iterable[Outcome],
    catalogue: Catalogue,
    *,
    link: str,
    seed: int,
    peers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The result of a run, from its outcomes."""
    return whole(
        [row(outcome, link) for outcome in outcomes], catalogue, link=link, seed=seed, peers=peers
    )


def whole(
    rows: Iterable[dict[str, Any]],
    catalogue: Catalogue,
    *,
    link: str,
    seed: int,
    peers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The result of a run, cases in order of their ids.

    `more` is how it was run besides: `lacks`, `repeat`, `vary_seed`, `remote`.
    """
    ordered = sorted(rows, key=lambda entry: str(entry["id"]))
    counts = Counter(entry["verdict"] for entry in ordered)
    return {
        "schema": SCHEMA,
        "catalogue": {
            "kvcs": catalogue.revision,
            "moqt": MOQT_DRAFT,
            "sha256": catalogue.sha256,
        },
        "profile": "kvsp-p0",
        "peers": {role: (peers or {}).get(role, REFERENCE) for role in ROLES},
        "link": link,
        "seed": seed,
        **(more or {}),
        "summary": {verdict.value: counts[verdict] for verdict in Verdict if counts[verdict]},
        "cases": ordered,
    }


def row(outcome: Outcome, link: str) -> dict[str, Any]:
    """The entry of one case."""
    case, assessment = outcome.case, outcome.assessment
    return {
        "id": case.id,
        "title": case.title,
        "sut": case.sut,
        "requires": list(case.requires),
        "level": case.level.value,
        "verdict": assessment.verdict.value,
        "reason": assessment.reason.value if assessment.reason else None,
        "blame": assessment.blame,
        "observed": {"draft": observed_draft(outcome.evidence), "transport": link},
        "duration_s": round(outcome.duration, 3),
        "evidence": f"cases/{case.id}",
        "findings": [finding.as_json() for finding in assessment.findings],
    }


def observed_draft(evidence: Evidence | None) -> str | None:
    """The draft that the sessions of our nodes negotiated, without `moqt-`; None if none came."""
    alpns = evidence.facts["observed"]["alpn"] if evidence is not None else []
    return ", ".join(alpn.removeprefix("moqt-") for alpn in alpns) or None


def write(out: Path, result: Mapping[str, Any]) -> None:
    """Write `results.json` whole or not at all."""
    write_json(out / RESULTS, result)


def read(out: Path) -> dict[str, Any]:
    """Read the result of an earlier run; raises UsageError when the folder has none."""
    if not (out / RESULTS).is_file():
        raise UsageError(f"{out}: no {RESULTS} there; `kvcs run --out {out}` writes one")
    return validated(out / RESULTS, read_json(out / RESULTS))


def validated(path: Path, result: Any) -> dict[str, Any]:
    """What was read from `path` when the schema takes it; raises UsageError when not."""
    from jsonschema import Draft202012Validator

    schema = read_json(datafiles.folder("reports") / "results.schema.json")
    wrong = next(Draft202012Validator(schema).iter_errors(result), None)
    if wrong is not None:
        raise UsageError(f"{path}: not a result of schema {SCHEMA}: {wrong.message[:200]}")
    good: dict[str, Any] = result
    counts = Counter(entry["id"] for entry in good["cases"])
    if twice := [name for name, count in counts.items() if count > 1]:
        raise UsageError(f"{path}: the case {twice[0]} stands there twice")
    return good
