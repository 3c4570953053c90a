"""Running cases: the positive twin first, then the case, each judged from its evidence."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
import traceback
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvcs_conformance.alarm import alarm
from kvcs_conformance.cases.load import Case
from kvcs_conformance.catalogue import Catalogue
from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.evidence.files import case_folder
from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.evidence.write import list_files, write_case, write_evidence
from kvcs_conformance.network import Link, make_link, make_plan
from kvcs_conformance.outcome import Outcome, judge_case, not_applicable, twin_passes, why_not
from kvcs_conformance.peers import Peers
from kvcs_conformance.stage import Stage
from kvcs_conformance.verdicts import FAILS

REFERENCE = Peers()
LIMIT = 120.0
"""Seconds of real time that one run of a case may take, unless another limit is asked for."""


def run_case(
    case: Case,
    catalogue: Catalogue,
    *,
    link: str,
    seed: int = 0,
    peers: Peers = REFERENCE,
    lacks: Collection[str] = (),
    limit: float | None = None,
    quic_qlog: bool = False,
) -> Outcome:
    """Run one case on one link; whatever goes wrong is in the verdict, never an exception.

    `lacks` are features that the peer under test declares absent. `limit` is in seconds of real
    time, for the case and for its twin. `quic_qlog` keeps what the QUIC library logs.
    """
    begun = time.perf_counter()
    if (why := why_not(case, link, peers.remote)) is not None:
        return Outcome(case, not_applicable(why), None)
    twin = None
    if case.twin is not None:
        twin = perform(case, {**case.scenario, **case.twin.scenario}, link, seed, peers, limit)
    evidence = None
    if twin is None or twin_passes(case, twin, catalogue):
        evidence = perform(case, case.scenario, link, seed, peers, limit, quic_qlog=quic_qlog)
    return Outcome(
        case,
        judge_case(case, evidence, twin, catalogue, lacks),
        evidence,
        twin,
        time.perf_counter() - begun,
    )


def run_for_failure(
    case: Case, catalogue: Catalogue, *, link: str, seed: int, peers: Peers, limit: float | None
) -> Outcome:
    """Run one case to see whether it fails: the same outcome as that of `run_case` if it does.

    The case comes first, and its positive twin only when the case fails without it.
    """
    evidence = perform(case, case.scenario, link, seed, peers, limit)
    alone = Outcome(case, judge_case(case, evidence, None, catalogue), evidence)
    if case.twin is None or alone.assessment.verdict not in FAILS:
        return alone
    twin = perform(case, {**case.scenario, **case.twin.scenario}, link, seed, peers, limit)
    return Outcome(case, judge_case(case, evidence, twin, catalogue), evidence, twin)


def perform(
    case: Case,
    scenario: Mapping[str, Any],
    link: str,
    seed: int,
    peers: Peers,
    limit: float | None = None,
    *,
    quic_qlog: bool = False,
) -> Evidence:
    """Put up the nodes, take the steps, return what was seen.

    A relay that lives on between runs remembers names: there each run has a seed of its own.
    """
    if peers.remote is not None:
        seed = secrets.randbits(48)
    plan = make_plan(scenario.get("network"), case.steps, seed)
    with tempfile.TemporaryDirectory(prefix="kvcs-qlog-") if quic_qlog else nullcontext() as logs:
        folder = Path(logs) if logs is not None else None
        wire = make_link(link, seed, plan, qlog_dir=folder, remote=peers.remote)
        evidence = _played(case, scenario, wire, seed, peers, limit)
        if folder is None:
            return evidence
        files = sorted(folder.glob("*/*.qlog"))
        texts = {f"{path.parent.name}-{path.name}": path.read_text() for path in files}
        return replace(evidence, quic_logs=texts)


def _played(
    case: Case,
    scenario: Mapping[str, Any],
    wire: Link,
    seed: int,
    peers: Peers,
    limit: float | None,
) -> Evidence:
    """One run on a link, which is closed at the end."""
    try:
        stage = Stage(case, scenario, wire, seed, peers)
        trouble: dict[str, str] | None = None
        try:
            with alarm(limit):
                stage.put_up()
                stage.play()
        except SetupFailed as error:
            trouble = {"kind": "setup", "text": str(error)}
        except Exception as error:  # a defect of the harness must not be charged to a peer
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            trouble = {"kind": "harness", "text": text}
        return stage.evidence(trouble)
    finally:
        wire.close()


def save(outcome: Outcome, out: Path) -> None:
    """Write the evidence folder of one case, in place of an earlier one."""
    folder = case_folder(out, outcome.case.id)
    shutil.rmtree(folder, ignore_errors=True)  # what an earlier run left there
    write_case(folder, outcome.case.source)
    if outcome.evidence is not None:
        write_evidence(folder, outcome.evidence, outcome.case.title)
    list_files(folder)
    if outcome.twin is not None:
        twin = case_folder(out, outcome.case.id, twin=True)
        write_evidence(twin, outcome.twin, f"{outcome.case.title} (positive twin)")
        list_files(twin)
