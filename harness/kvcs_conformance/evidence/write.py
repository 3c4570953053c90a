"""Writing the evidence folder of a case, and the list of its files by which it can be trusted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvcs_conformance.evidence.files import (
    CASE,
    FILES,
    KEYLOG,
    LOG_SUFFIX,
    QUIC_LOGS,
    REPORTS,
    REQUESTS,
    RUN,
    write_atomically,
    write_json,
)
from kvcs_conformance.evidence.qlog import write_log
from kvcs_conformance.evidence.read import Evidence


def write_case(folder: Path, source: Mapping[str, Any]) -> None:
    """Write the case as it was run."""
    write_json(folder / CASE, source)


def write_evidence(folder: Path, evidence: Evidence, title: str) -> None:
    """Write everything that was seen in one run."""
    write_json(folder / RUN, evidence.facts)
    for node, records in evidence.logs.items():
        path = folder / f"{node}{LOG_SUFFIX}"
        write_log(path, node, _vantage(evidence, node), records, title)
    for node, request in evidence.requests.items():
        write_json(folder / REQUESTS / f"{node}.json", request)
    for node, reports in evidence.reported.items():
        text = "".join(json.dumps(report, ensure_ascii=False) + "\n" for report in reports)
        write_atomically(folder / REPORTS / f"{node}.jsonl", text)
    for name, text in evidence.quic_logs.items():
        write_atomically(folder / QUIC_LOGS / name, text)
    if evidence.keylog:
        write_atomically(folder / KEYLOG, evidence.keylog)


def list_files(folder: Path) -> None:
    """Write the list of the folder's files: the last thing to be written there.

    The folder of the positive twin has a list of its own.
    """
    files = sorted(
        path
        for part in ("", REQUESTS, REPORTS, QUIC_LOGS)
        for path in (folder / part).glob("*")
        if path.is_file() and path.name != FILES
    )
    entries = []
    for path in files:
        octets = path.read_bytes()
        entries.append(
            {
                "path": path.relative_to(folder).as_posix(),
                "octets": len(octets),
                "sha256": hashlib.sha256(octets).hexdigest(),
            }
        )
    write_json(folder / FILES, {"schema": 1, "files": entries})


def _vantage(evidence: Evidence, node: str) -> str:
    part = evidence.facts["nodes"].get(node)
    if part is None:
        return "network"
    return "server" if part.get("listens") else "client"
