"""The link between the nodes of a run: simulated under virtual time, or QUIC on loopback.

Faults are declared: what links are like from the start in the scenario's `network`, what happens
on the way in `network` steps. Where they act: on `memory` in the simulated network; on `quic` in a
UDP relay of ours between two nodes. What is done to single streams is done inside a node of ours,
on both (`streams`).
"""

from __future__ import annotations

from pathlib import Path

from kvcs_conformance.errors import UsageError
from kvcs_conformance.network.base import Action, Link
from kvcs_conformance.network.plan import PLAIN, Plan, make_plan
from kvcs_conformance.remote import Remote

LINKS = ("memory", "quic")


def make_link(
    name: str,
    seed: int,
    plan: Plan = PLAIN,
    *,
    qlog_dir: Path | None = None,
    remote: Remote | None = None,
) -> Link:
    """The link of that name; UsageError when the system does not let it be.

    `remote` says which certificate a relay that is not ours must show; on quic.
    """
    try:
        if name == "memory":
            from kvcs_conformance.network.memory import MemoryLink

            return MemoryLink(seed, plan)
        from kvcs_conformance.network.quic import QuicLink

        return QuicLink(seed, plan, qlog_dir=qlog_dir, remote=remote)
    except OSError as error:
        raise UsageError(f"no {name} link here: {error.strerror}") from error


__all__ = ["LINKS", "Action", "Link", "Plan", "make_link", "make_plan"]
