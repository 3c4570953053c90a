"""What a scenario publishes: descriptor, tokens, keys and tensors, all from its seed.

`blocks` are those of segment 0, `appended` those of each later one, and `tail` tokens follow the
last complete block. Two scenarios that differ in what identifies content differ in their tensors.
"""

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

MODEL = "conformance/tiny-gqa"
"""The model name that descriptors carry, and that names of MOQT must not."""


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
    def block_time(self) -> float | None:
        """Seconds between the blocks of a layer; None: they come all at once."""
        return seconds(self.values["block-time"]) if "block-time" in self.values else None

    @property
    def retention_ms(self) -> int:
        return round(seconds(self.values["retention"]) * 1000)

    @property
    def section_octets(self) -> int:
        """Octets of the K (and of the V) section of one block of one layer."""
        values = self.values
        return int(values["block-tokens"] * values["kv-heads"] * values["head-dim"] * _BF16_OCTETS)

    @property
    def appended(self) -> tuple[int, ...]:
        """The blocks of the segments after segment 0."""
        return tuple(self.values.get("appended", ()))

    @property
    def total_blocks(self) -> int:
        """The complete blocks of the whole prompt, over all segments."""
        return self.blocks + sum(self.appended)

    def span(self, segment: int) -> range:
        """The absolute indices of the blocks of a segment."""
        lengths = (self.blocks, *self.appended)
        first = sum(lengths[:segment])
        return range(first, first + lengths[segment])

    @property
    def encodings(self) -> tuple[Encoding, ...]:
        """The data tracks of each segment: component and codec."""
        kinds = {component.label: component for component in Component}
        parts = [str(name).partition(".") for name in self.values["components"]]
        return tuple(Encoding(kinds[kind], codec or "raw") for kind, _, codec in parts)

    @cached_property
    def tokens(self) -> list[int]:
        """The whole prompt: the blocks of all segments, and the tail that fills none."""
        values = self.values
        count = self.total_blocks * int(values["block-tokens"]) + int(values.get("tail", 0))
        tokens = [int.from_bytes(_digest(self.seed, "token", i)[:2], "big") for i in range(count)]
        changed = values.get("changed-token")
        if changed is not None and changed < count:
            tokens[changed] ^= 1
        return tokens

    @property
    def scope_key(self) -> bytes:
        return _digest(self.seed, "scope key", *self._named("scope"))

    @property
    def other_scope_id(self) -> bytes:
        """The Scope ID of a scope that has nothing to do with this one."""
        return P0.scope_id(_digest(self.seed, "another scope key"))

    @property
    def neighbour_scope_id(self) -> bytes:
        """A Scope ID that differs from this one's in the last octet alone."""
        return self.scope_id[:-1] + bytes([self.scope_id[-1] ^ 0x01])

    @property
    def scope_id(self) -> bytes:
        return P0.scope_id(self.scope_key)

    @property
    def salt(self) -> bytes:
        """The salt of the block keys, which keeps tenants apart."""
        return str(self.values.get("salt", "")).encode()

    @cached_property
    def descriptor(self) -> dict[str, Any]:
        """A descriptor of the profile kvsp-p0 with the scenario's geometry."""
        values = self.values
        weights = _digest(self.seed, "weights", *self._named("weights")).hex()
        return {
            "kvsp_profile": "p0",
            "model": {"id": MODEL, "weights": f"sha256:{weights}"},
            "tokenizer": f"sha256:{_digest(self.seed, 'tokenizer').hex()}",
            "adapters": [
                f"sha256:{hashlib.sha256(str(name).encode()).hexdigest()}"
                for name in values.get("adapters", ())
            ],
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
            **values.get("descriptor", {}),
        }

    def _named(self, key: str) -> tuple[str, ...]:
        """What makes a digest another one when the scenario names this key."""
        return (str(self.values[key]),) if key in self.values else ()

    @cached_property
    def _content(self) -> str:
        """What the tensors depend on beside the seed; nothing for a plain scenario."""
        keys = ("scope", "weights", "adapters", "salt", "descriptor", "changed-token")
        return "".join(f"/{key}={self.values[key]}" for key in keys if key in self.values)

    def section(self, component: Component, layer: int, block: int) -> bytes:
        """The raw section of one block (absolute index) of one layer; each has another one."""
        label = f"{self.seed}{self._content}/{component.name}/{layer}/{block}".encode()
        return hashlib.shake_128(label).digest(self.section_octets)

    def sections(self, layer: int, segment: int = 0) -> dict[Component, list[bytes]]:
        """All blocks of one layer of a segment, as `Publication.put_layer` takes them."""
        return {
            component: [self.section(component, layer, block) for block in self.span(segment)]
            for component in (Component.K, Component.V)
        }

    def block_digests(self) -> list[list[str]]:
        """By layer and absolute block: SHA-256 over K then V, which KVSP calls layer digest."""
        kinds = (Component.K, Component.V)
        return [
            [
                hashlib.sha256(
                    b"".join(self.section(kind, layer, block) for kind in kinds)
                ).hexdigest()
                for block in range(self.total_blocks)
            ]
            for layer in range(self.layers)
        ]

    def layer_digest(self, layer: int) -> str:
        """SHA-256 over K then V of each block of a layer, all segments in order, in hex."""
        digest = hashlib.sha256()
        for block in range(self.total_blocks):
            for component in (Component.K, Component.V):
                digest.update(self.section(component, layer, block))
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
            "salt": self.salt.hex(),
            "blocks": self.blocks,
            "appended": list(self.appended),
            "components": self.values["components"],
            "manifest": self.values["manifest"],
            "deterministic": self.values["deterministic"],
            "producer": self.producer,
            "max_cache_duration_ms": self.retention_ms,
            "layer_time_s": self.layer_time,
        }

    def publication_id(self, publisher: str) -> bytes:
        """A Publication ID for a scripted node that plays a publisher."""
        return _digest(self.seed, "publication", publisher)[:16]

    def publication(self, publication_id: bytes) -> PublicationSpec:
        """What is published under that Publication ID."""
        signed = self.values["manifest"] == "manifest.cose"
        return PublicationSpec(
            profile=P0,
            scope_key=self.scope_key,
            descriptor=self.descriptor,
            tokens=self.tokens,
            blocks=self.blocks,
            publication_id=publication_id,
            encodings=self.encodings,
            max_cache_duration=self.retention_ms,
            signer=Signer(self.signing_key, self.kid, Algorithm.EDDSA) if signed else None,
            deterministic=bool(self.values["deterministic"]),
            salt=self.salt,
        )
