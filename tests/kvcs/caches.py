"""Small caches for the tests: a descriptor, tokens, and sections that identify themselves."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from kvcs.identity import P0
from kvcs.names import Component

from tests.kvcs.vectors import P0_CANONICAL, P0_SCOPE_KEY

SCOPE_KEY = P0_SCOPE_KEY
BLOCK_TOKENS = 4


def descriptor(layers: int = 4, **members: Any) -> dict[str, Any]:
    """A kvsp-p0 descriptor with sections of 32 octets: 4 tokens, 1 head, 4 channels, bf16."""
    described: dict[str, Any] = json.loads(P0_CANONICAL)
    described.update(layers=layers, block_tokens=BLOCK_TOKENS, kv_heads=1, head_dim=4, v_head_dim=4)
    described["position"]["rotary_dim"] = 4
    described.update(members)
    return described


def tokens(blocks: int, *, first: int = 1) -> list[int]:
    """Tokens of so many complete blocks."""
    return list(range(first, first + blocks * BLOCK_TOKENS))


def keys(blocks: int, layers: int = 4) -> list[bytes]:
    """The Block Keys of `tokens(blocks)`."""
    compat_id = P0.compat_id(descriptor(layers))
    return P0.block_keys(SCOPE_KEY, compat_id, tokens(blocks), BLOCK_TOKENS)


def section(kind: Component, layer: int, block: int, flavour: int = 0) -> bytes:
    """32 octets that differ for every place; `block` is the absolute block index."""
    return sha256(bytes([kind, layer, block, flavour])).digest()


def layer_sections(layer: int, blocks: range, flavour: int = 0) -> dict[Component, list[bytes]]:
    """K and V sections of one layer."""
    return {
        kind: [section(kind, layer, block, flavour) for block in blocks]
        for kind in (Component.K, Component.V)
    }
