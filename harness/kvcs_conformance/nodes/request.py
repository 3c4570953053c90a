"""What a peer is asked to do, as one JSON value: the same for a peer in this process, in a process
of its own, and in a container.

The shape is `testcases/schemas/peer-request.schema.json`, version 1. A launcher writes it to the
file that KVCS_REQUEST_FILE names and fills in the paths; what comes back is JSON Lines, each line
as in `peer-report.schema.json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvcs.identity import P0
from kvcs.names import KvcsNamespace

from kvcs_conformance.evidence.files import LOG_SUFFIX, REPORTS

if TYPE_CHECKING:
    from kvcs_conformance.nodes.node import Node
    from kvcs_conformance.scenario import Scenario

SCHEMA = 1
CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 60.0


def peer_request(
    node: Node,
    role: str,
    endpoints: Sequence[str],
    task: Mapping[str, Any],
) -> dict[str, Any]:
    """The request for the peer that plays `node`; `task` is what the role alone needs.

    A publisher chooses its Publication ID itself, so that the namespace has four fields here.
    """
    setting, scenario = node.setting, node.scenario
    certificate = setting.link.certificate
    return {
        "schema": SCHEMA,
        "run": f"{setting.link.name}/{scenario.seed}",
        "case": setting.case.id,
        "node": node.name,
        "role": role,
        "draft": setting.config(node.name).draft.alpn,
        "endpoints": list(endpoints),
        "tls_ca": None if certificate is None else str(certificate),
        "token": None if node.token is None else node.token.hex(),
        "scenario": scenario.as_json(),
        "geometry": _geometry(scenario),
        "names": _names(scenario),
        "task": dict(task),
        "log": f"{node.name}{LOG_SUFFIX}",
        "report": f"{REPORTS}/{node.name}.jsonl",
        "limits": {"connect_s": CONNECT_SECONDS, "total_s": TOTAL_SECONDS},
    }


def _geometry(scenario: Scenario) -> dict[str, Any]:
    """The numbers of the descriptor that say how long every section is."""
    descriptor = scenario.descriptor
    names = ("layers", "kv_heads", "head_dim", "v_head_dim", "dtype", "block_tokens")
    return {
        **{name: descriptor[name] for name in names if name in descriptor},
        "section_octets": scenario.section_octets,
    }


def _names(scenario: Scenario) -> dict[str, Any]:
    """In hex: the namespace's fields but the last, and the Block Keys of the whole prompt.

    Nothing for a prompt without a complete block.
    """
    if not scenario.blocks:
        return {"namespace": [], "block_keys": []}
    compat_id = P0.compat_id(scenario.descriptor)
    keys = P0.block_keys(
        scenario.scope_key,
        compat_id,
        scenario.tokens,
        int(scenario.values["block-tokens"]),
        scenario.salt,
    )
    anchor = keys[scenario.blocks - 1]
    whole = KvcsNamespace(P0.scope_id(scenario.scope_key), compat_id, anchor, bytes(16))
    return {
        "namespace": [field.hex() for field in whole.fields[:4]],
        "block_keys": [key.hex() for key in keys],
    }
