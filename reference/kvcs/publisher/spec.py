"""What is published, under which identity, and how it is encoded and signed (KVCS 3, 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kvcs.cose import Algorithm, PrivateKey, sign
from kvcs.descriptor import Descriptor
from kvcs.errors import InputError
from kvcs.identity import KvspProfile
from kvcs.names import Component, KvcsNamespace


class Encoding(NamedTuple):
    """One data track of every segment: what it carries and by which codec."""

    component: Component
    codec: str = "raw"


RAW_PAIR = (Encoding(Component.K), Encoding(Component.V))

MANIFEST_INTERVAL = 8
"""Completed layers between two versions of the manifest, at most (KVCS-5-10)."""


@dataclass(frozen=True, slots=True)
class Signer:
    """The producer key that signs "manifest.cose" (KVCS-5-11, KVCS-5-12)."""

    key: PrivateKey
    kid: bytes
    algorithm: Algorithm | None = None
    external_aad: bytes = b""

    def sign(self, text: bytes) -> bytes:
        """The COSE_Sign1 of one version."""
        return sign(text, self.key, self.kid, self.algorithm, external_aad=self.external_aad)


@dataclass(frozen=True, kw_only=True)
class PublicationSpec:
    """One production of the cache of one prefix (KVCS-2-2).

    `tokens` are all that is known at the start; `Publication.extend` appends more. `blocks` is how
    many complete blocks segment 0 covers, None for all of them: a chunked prefill names its
    publication after its first chunk (reading A12). `publication_id` has 16 octets, chosen at
    random by the caller for every production (KVCS-3.1-5). `max_cache_duration` is milliseconds,
    the retention allowed for the scope. `tokens_extra` holds, per block, digests of non-token
    inputs. `deterministic` is a promise about every publication of this content (KVCS-5-14).
    """

    profile: KvspProfile
    scope_key: bytes = field(repr=False)
    descriptor: Descriptor
    tokens: Sequence[int] = field(repr=False)
    publication_id: bytes
    blocks: int | None = None
    encodings: tuple[Encoding, ...] = RAW_PAIR
    max_cache_duration: int | None = None
    signer: Signer | None = None
    deterministic: bool = False
    object_digests: bool = True
    manifest_interval: int = MANIFEST_INTERVAL
    salt: bytes = b""
    tokens_extra: Mapping[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.encodings or len(set(self.encodings)) != len(self.encodings):
            raise InputError("a publication has at least one encoding, and each of them once")
        for encoding in self.encodings:
            self.profile.codec_by_name(encoding.codec)
        if self.signer is not None and not self.object_digests:
            raise InputError("a signed manifest needs object_digests (KVCS-10-3)")
        if self.manifest_interval < 1:
            raise InputError(f"manifest_interval is at least 1, not {self.manifest_interval}")

    @property
    def layers(self) -> int:
        """L, the number of layers of the Compatibility Descriptor (KVCS-3.3-1)."""
        return int(self.descriptor["layers"])

    @property
    def block_tokens(self) -> int:
        """Tokens of one block."""
        return int(self.descriptor["block_tokens"])

    def block_keys(self, tokens: Sequence[int]) -> list[bytes]:
        """Block Keys of the complete blocks of `tokens`."""
        return self.profile.block_keys(
            self.scope_key,
            self.profile.compat_id(self.descriptor),
            tokens,
            self.block_tokens,
            self.salt,
            self.tokens_extra,
        )

    def namespace(self, keys: Sequence[bytes]) -> KvcsNamespace:
        """The five fields; the Anchor Key is that of the last block of segment 0 (KVCS-2-1).

        Raises InputError when segment 0 has no complete block (KVCS-4-11).
        """
        blocks = len(keys) if self.blocks is None else self.blocks
        if not 1 <= blocks <= len(keys):
            raise InputError(
                f"segment 0 covers {blocks} blocks; the tokens have {len(keys)} complete ones"
            )
        return KvcsNamespace(
            self.profile.scope_id(self.scope_key),
            self.profile.compat_id(self.descriptor),
            keys[blocks - 1],
            self.publication_id,
        )
