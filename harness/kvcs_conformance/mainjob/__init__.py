"""The main job: a real KV cache, computed, published, relayed, used, and compared bit for bit.

A model computes the cache of a prompt layer by layer; a publisher publishes each layer as soon as
it exists; two relays in a chain carry it over QUIC on loopback; one consumer joins half-way and
another when all is over. Both compute on from what they received.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from kvcs_conformance.evidence.files import MAIN_JOB


def main_job(out: Path | None = None, *, model: str | None = None) -> int:
    """Do the job, print what happened, and return 0 when everything was right, else 1.

    `model` is "causal" or "llama"; by default "llama" where the extra `tensors` is installed.
    `out` is a folder that gets main-job.json.
    """
    from kvcs.model import have_tensors, open_model

    from kvcs_conformance.mainjob.findings import findings
    from kvcs_conformance.mainjob.job import Plan, do_job
    from kvcs_conformance.mainjob.table import print_job

    name = model or ("llama" if have_tensors() else "causal")
    try:
        done = asyncio.run(do_job(Plan(), lambda: open_model(name)))
    except TimeoutError:
        print("main job: a step did not come to its end")
        return 1
    found = findings(done)
    print_job(done, found)
    if out is not None:
        text = json.dumps(done.as_json(found), indent=2) + "\n"
        (out / MAIN_JOB).write_text(text, encoding="utf-8")
    return 0 if all(finding.upheld for finding in found) else 1
