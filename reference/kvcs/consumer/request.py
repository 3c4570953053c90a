"""What a consumer is asked for: one restore of the cache of one prompt (KVCS 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from moqt.wire.tokens import Token

from kvcs.cose import PublicKey
from kvcs.descriptor import Descriptor
from kvcs.errors import InputError
from kvcs.identity import KvspProfile
from kvcs.names import KvcsNamespace


class Mode(Enum):
    """How data tracks are retrieved: by subscription and fill, or by FETCH (KVCS 7.2, 7.3)."""

    LIVE = "live"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Bounds in seconds; with them every restore ends, whatever the relay does (KVCS-7.4-5).

    `connect`: until a source's SETUP. `probe`: until one anchor counts as not published, because
    MOQT has no such answer (reading A20). `discovery`: all anchors in sum. `manifest`: until a
    route's first verified manifest. `stall`: without any part of an Object that is known to exist.
    `recovery`: from the last progress until the missing tokens are recomputed instead.
    `completion`: for the end of tracks of which everything is verified. `append`: for a further
    segment after the last one known is whole. `total`: the whole restore.
    """

    connect: float = 5.0
    probe: float = 0.5
    discovery: float = 10.0
    manifest: float = 5.0
    stall: float = 3.0
    recovery: float = 10.0
    completion: float = 1.0
    append: float = 0.0
    total: float = 60.0


@dataclass(frozen=True, kw_only=True)
class ConsumeRequest:
    """One restore.

    `tokens` are the prompt; its complete blocks are the longest prefix wanted. `sources` are
    relays in order of preference. `layers` is an inclusive range, None for all. `blocks` keeps the
    first so many blocks only. `namespaces` are publications that an index named for our Block
    Keys; with them nothing is probed. `probing` False never probes: a relay then cannot see where
    prompts diverge (KVCS-11-2). `authentic` requires a signed manifest of one of `producers` (kid
    to public key). `codecs` are preferred in that order. `authorization` goes with every request.
    """

    profile: KvspProfile
    scope_key: bytes = field(repr=False)
    descriptor: Descriptor
    tokens: Sequence[int] = field(repr=False)
    sources: tuple[str, ...]
    mode: Mode = Mode.LIVE
    layers: tuple[int, int] | None = None
    blocks: int | None = None
    namespaces: tuple[KvcsNamespace, ...] = ()
    probing: bool = True
    authentic: bool = False
    producers: Mapping[bytes, PublicKey] = field(default_factory=dict)
    external_aad: bytes = b""
    codecs: tuple[str, ...] = ("raw",)
    authorization: tuple[Token, ...] = ()
    budgets: Budgets = Budgets()
    salt: bytes = b""
    tokens_extra: Mapping[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first, last = self.layers or (0, self.layer_count - 1)
        if not 0 <= first <= last < self.layer_count:
            raise InputError(
                f"layers {first}..{last} are no range within 0..{self.layer_count - 1}"
            )
        if self.blocks is not None and self.blocks < 1:
            raise InputError(f"at least 1 block is wanted, not {self.blocks}")
        if not self.sources:
            raise InputError("a restore needs at least one source")

    @property
    def layer_count(self) -> int:
        """L of the Compatibility Descriptor."""
        return int(self.descriptor["layers"])

    @property
    def block_tokens(self) -> int:
        """Tokens of one block."""
        return int(self.descriptor["block_tokens"])

    @property
    def wanted_layers(self) -> range:
        """The Group IDs that are wanted."""
        first, last = self.layers or (0, self.layer_count - 1)
        return range(first, last + 1)

    def block_keys(self) -> list[bytes]:
        """The consumer's own chain, one key per complete block of the prompt."""
        return self.profile.block_keys(
            self.scope_key,
            self.profile.compat_id(self.descriptor),
            self.tokens,
            self.block_tokens,
            self.salt,
            self.tokens_extra,
        )
