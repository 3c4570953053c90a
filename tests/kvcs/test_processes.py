"""Identities do not depend on the process that computes them (KVCS-3.1-6, kvsp-p0 §5)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
from kvcs.identity import P0
from kvcs.names import KvcsNamespace
descriptor = {"kvsp_profile": "p0", "model": {"id": "m", "weights": "w"}, "layers": 2, "x": [1, {}]}
key, compat = bytes(range(32)), P0.compat_id(descriptor)
keys = P0.block_keys(key, compat, list(range(100)), 4, b"salt", {3: b"digest"})
print(KvcsNamespace(P0.scope_id(key), compat, keys[-1], bytes(16)), [k.hex() for k in keys])
"""


def _told(seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.slow
def test_identities_of_processes() -> None:
    """Processes that hash differently name the same namespace and Block Keys (KVCS-3.1-6)."""
    first = _told("0")
    assert "kvcs-1/" in first
    assert [first, first] == [_told("1"), _told("random")]
