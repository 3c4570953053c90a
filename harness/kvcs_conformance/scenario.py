"""What a scenario publishes: descriptor, tokens, keys and tensors, all from its seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from kvcs.cose import Algorithm
from kvcs.identity import P0
from kvcs.names import Component
from kvcs.publisher.spec import Encoding, PublicationSpec, Signer

_UNITS = {"ms": 0.001, "s": 1.0}
_BF16_OCTETS = 2


def seconds(duration: str) -> float:
    """`20ms` or `5s` in seconds."""
    unit = "ms" if duration.endswith("ms") else "s"
    return float(duration.removesuffix(unit)) * _UNITS[unit]


def _digest(*parts: object) -> bytes:
    return hashlib.sha256("/".join(map(str, parts)).encode()).digest()


@dataclass(frozen=True)
class Scenario:
    """A scenario with its seed; equal ones publish equal octets under equal names."""

    values: Mapping[str, Any]
    seed: int = 0

    @property
    def layers(self) -> int:
        return int(self.values["layers"])

    @property
    def blocks(self) -> int:
        return int(self.values["blocks"])

    @property
    def layer_time(self) -> float:
        return seconds(self.values["layer-time"])

    @property
    def retention_ms(self) -> int:
        return round(seconds(self.values["retention"]) * 1000)

    @property
    def section_octets(self) -> int:
        """Octets of the K (and of the V) section of one block of one layer."""
        values = self.values
        return int(values["block-tokens"] * values["kv-heads"] * values["head-dim"] * _BF16_OCTETS)

    @property
    def tokens(self) -> list[int]:
        count = self.blocks * int(self.values["block-tokens"])
        return [int.from_bytes(_digest(self.seed, "token", i)[:2], "big") for i in range(count)]

    @property
    def scope_key(self) -> bytes:
        return _digest(self.seed, "scope key")

    @property
    def other_scope_id(self) -> bytes:
        """The Scope ID of a scope that has nothing to do with this one."""
        return P0.scope_id(_digest(self.seed, "another scope key"))

    @property
    def scope_id(self) -> bytes:
        return P0.scope_id(self.scope_key)

    @cached_property
    def descriptor(self) -> dict[str, Any]:
        """A descriptor of the profile kvsp-p0 with the scenario's geometry."""
        values = self.values
        return {
            "kvsp_profile": "p0",
            "model": {
                "id": "conformance/tiny-gqa",
                "weights": f"sha256:{_digest(self.seed, 'weights').hex()}",
            },
            "tokenizer": f"sha256:{_digest(self.seed, 'tokenizer').hex()}",
            "adapters": [],
            "layers": self.layers,
            "attention": "gqa",
            "kv_heads": values["kv-heads"],
            "head_dim": values["head-dim"],
            "v_head_dim": values["head-dim"],
            "dtype": "bf16",
            "quant": None,
            "block_tokens": values["block-tokens"],
            "layout": "thd",
            "byte_order": "little",
            "position": {
                "type": "rope",
                "applied": True,
                "base": "10000",
                "rotary_dim": values["head-dim"],
                "scaling": None,
                "origin": 0,
            },
            "windows": None,
        }

    def section(self, component: Component, layer: int, block: int) -> bytes:
        """The raw section of one block of one layer; another one for each of them."""
        label = f"{self.seed}/{component.name}/{layer}/{block}".encode()
        return hashlib.shake_128(label).digest(self.section_octets)

    def sections(self, layer: int) -> dict[Component, list[bytes]]:
        """All blocks of one layer, as `Publication.put_layer` takes them."""
        return {
            component: [self.section(component, layer, block) for block in range(self.blocks)]
            for component in (Component.K, Component.V)
        }

    def layer_digest(self, layer: int) -> str:
        """SHA-256 over K then V of each block of a layer in block order, in hex."""
        digest = hashlib.sha256()
        sections = self.sections(layer)
        for block in range(self.blocks):
            digest.update(sections[Component.K][block])
            digest.update(sections[Component.V][block])
        return digest.hexdigest()

    @property
    def signing_key(self) -> Ed25519PrivateKey:
        """The producer key of a signed scenario (EdDSA); `kid` is in `signer`."""
        return Ed25519PrivateKey.from_private_bytes(_digest(self.seed, "producer key"))

    @property
    def producer(self) -> dict[str, str]:
        """What consumers are told of the producer key: kid, and the public key, raw, in hex."""
        raw = self.signing_key.public_key().public_bytes_raw()
        return {"kid": self.kid.hex(), "ed25519": raw.hex()}

    @property
    def kid(self) -> bytes:
        return _digest(self.seed, "kid")[:8]

    def as_json(self) -> dict[str, Any]:
        """What a peer must be told to play its part in this scenario."""
        return {
            "profile": P0.name,
            "scope_key": self.scope_key.hex(),
            "descriptor": self.descriptor,
            "tokens": self.tokens,
            "blocks": self.blocks,
            "components": self.values["components"],
            "manifest": self.values["manifest"],
            "deterministic": self.values["deterministic"],
            "producer": self.producer,
            "max_cache_duration_ms": self.retention_ms,
            "layer_time_s": self.layer_time,
        }

    def publication_id(self, publisher: str) -> bytes:
        return _digest(self.seed, "publication", publisher)[:16]

    def publication(self, publisher: str) -> PublicationSpec:
        """What the publisher of that name publishes."""
        names = {component.name.lower(): component for component in Component}
        signed = self.values["manifest"] == "manifest.cose"
        return PublicationSpec(
            profile=P0,
            scope_key=self.scope_key,
            descriptor=self.descriptor,
            tokens=self.tokens,
            publication_id=self.publication_id(publisher),
            encodings=tuple(Encoding(names[name]) for name in self.values["components"]),
            max_cache_duration=self.retention_ms,
            signer=Signer(self.signing_key, self.kid, Algorithm.EDDSA) if signed else None,
            deterministic=bool(self.values["deterministic"]),
        )
