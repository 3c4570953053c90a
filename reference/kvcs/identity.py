"""The identity of a cache: Compatibility ID, Scope ID, Block Keys, codecs (KVSP).

KVCS takes all of these from KVSP, whose text is not public. A `KvspProfile` stands in its place:
`kvsp-p0` derives everything itself (only its Scope ID is known to be KVSP's own), `kvcs-example`
returns the constants of the KVCS example and refuses the rest. A result that depends on a
derivation names its profile.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol

from kvcs.codecs import CODECS, Codec
from kvcs.descriptor import Descriptor, canonical
from kvcs.errors import InputError, ProfileError
from kvcs.geometry import Geometry
from kvcs.names import COMPAT_ID_OCTETS, SCOPE_ID_OCTETS, Component
from kvcs.payload import Octets

MIN_SCOPE_KEY_OCTETS = 16


class Sections(NamedTuple):
    """Exact octets of one block of one layer."""

    k_octets: int
    v_octets: int


class KvspProfile(Protocol):
    """What KVCS needs of KVSP. All methods raise ProfileError or InputError, nothing else."""

    @property
    def name(self) -> str:
        """The label under which results are reported, for example "kvsp-p0"."""

    def compat_id(self, descriptor: Descriptor) -> bytes:
        """Compatibility ID, 32 octets (KVCS-5-17)."""

    def scope_id(self, scope_key: bytes) -> bytes:
        """Scope ID, 16 octets, a public function of the secret scope key."""

    def block_keys(
        self,
        scope_key: bytes,
        compat_id: bytes,
        tokens: Sequence[int],
        block_tokens: int,
        salt: bytes = b"",
        extra: Mapping[int, bytes] | None = None,
    ) -> list[bytes]:
        """Block Keys of the complete blocks of `tokens`, 32 octets each, one chain (KVCS-7.1-4)."""

    def sections(self, descriptor: Descriptor) -> Sections:
        """Sizes of the K and the V section."""

    def layer_digest(self, k: Octets, v: Octets) -> bytes:
        """SHA-256 of the K section followed by the V section (KVCS-4-17)."""

    def codec_by_name(self, name: str) -> int:
        """The registered value of a codec name (KVCS-3.2-2)."""

    def codec_by_value(self, value: int) -> str:
        """The registered name of a codec value (KVCS-4-12)."""

    def encode(self, codec: str, section: Octets) -> Octets:
        """Data for a section, or for K followed by V; raw returns it as it is."""

    def decode(self, codec: str, data: Octets, octets: int) -> Octets:
        """The section of exactly `octets` octets that Data holds; CodecError if it is another."""


class Profile:
    """What every profile has in common: the layer digest (KVCS-4-17) and a table of codecs."""

    name = "kvsp"

    def __init__(self, codecs: Sequence[Codec]) -> None:
        self._by_name = {codec.name: codec for codec in codecs}
        self._by_value = {codec.value: codec for codec in codecs}
        if not len(self._by_name) == len(self._by_value) == len(codecs):
            raise InputError("two codecs share a name or a value")

    def layer_digest(self, k: Octets, v: Octets) -> bytes:
        """SHA-256 of the K section followed by the V section (KVCS-4-17)."""
        digest = sha256(k)
        digest.update(v)
        return digest.digest()

    def codec_by_name(self, name: str) -> int:
        """The value of a codec; ProfileError for a name that this profile does not have."""
        return self._codec(name).value

    def codec_by_value(self, value: int) -> str:
        """The name of a codec; ProfileError for a value that this profile does not have."""
        codec = self._by_value.get(value)
        if codec is None:
            raise ProfileError(f"{self.name} has no codec with the value {value:#06x}")
        return codec.name

    def encode(self, codec: str, section: Octets) -> Octets:
        """Data for a section, or for K followed by V; raw returns it as it is."""
        return self._codec(codec).encode(section)

    def decode(self, codec: str, data: Octets, octets: int) -> Octets:
        """The section of exactly `octets` octets; never produces more than that."""
        return self._codec(codec).decode(data, octets)

    def _codec(self, name: str) -> Codec:
        codec = self._by_name.get(name)
        if codec is None:
            known = ", ".join(self._by_name)
            raise ProfileError(f"{self.name} has no codec {name[:40]!a}; it has {known}")
        return codec


class KvspP0(Profile):
    """The profile kvsp-p0. Private codecs (values from 0xFF00, names "x-...") may be added."""

    name = "kvsp-p0"

    def __init__(self, private_codecs: Sequence[Codec] = ()) -> None:
        for codec in private_codecs:
            if codec.value < 0xFF00 or not codec.name.startswith("x-"):
                raise InputError(
                    "a private codec has a value from 0xff00 and a name that starts with 'x-', "
                    f"not {codec.value:#06x} and {codec.name!a}"
                )
        super().__init__((*CODECS, *private_codecs))

    def compat_id(self, descriptor: Descriptor) -> bytes:
        """SHA-256 of the descriptor's RFC 8785 form; DescriptorError when it has none (§4)."""
        return sha256(canonical(descriptor)).digest()

    def scope_id(self, scope_key: bytes) -> bytes:
        """The first 16 octets of SHA-256 over a label, a zero octet and the scope key (§5)."""
        return _scope_id(scope_key)

    def block_keys(
        self,
        scope_key: bytes,
        compat_id: bytes,
        tokens: Sequence[int],
        block_tokens: int,
        salt: bytes = b"",
        extra: Mapping[int, bytes] | None = None,
    ) -> list[bytes]:
        """The chain of Block Keys, one per complete block (§5).

        `tokens` are unsigned 32-bit IDs. `salt` isolates a tenant, `extra` maps a block index to
        the digests of its non-token inputs. A trailing partial block has no key.
        """
        _check_scope_key(scope_key)
        if len(compat_id) != COMPAT_ID_OCTETS:
            raise InputError(f"a Compatibility ID has 32 octets, not {len(compat_id)}")
        if not 1 <= block_tokens < 2**32:
            raise InputError(f"block_tokens is from 1 to 2^32-1, not {block_tokens}")
        chain = hmac.digest(scope_key, b"kvsp-p0 block-key", "sha256")
        key = hmac.digest(chain, b"\x00" + compat_id + _counted(salt), "sha256")
        pack = struct.Struct(f">QI{block_tokens}I").pack
        keys = []
        for block in range(len(tokens) // block_tokens):
            window = tokens[block * block_tokens : (block + 1) * block_tokens]
            try:
                step = pack(block, block_tokens, *window)
            except struct.error:
                raise InputError(
                    f"block {block} holds a token that is not an integer from 0 to 2^32-1"
                ) from None
            others = _counted((extra or {}).get(block, b""))
            key = hmac.digest(chain, b"\x01" + key + step + others, "sha256")
            keys.append(key)
        return keys

    def sections(self, descriptor: Descriptor) -> Sections:
        """Sizes of the K and the V section (§6); DescriptorError for a descriptor outside §4."""
        geometry = Geometry.from_descriptor(descriptor)
        return Sections(geometry.octets(Component.K), geometry.octets(Component.V))


class KvcsExample(Profile):
    """The constants of the KVCS example (KVCS A); everything that it does not state is refused.

    The descriptor and the tokens behind the constants are unknown, so `compat_id` takes any
    descriptor that agrees with what is known of it, and no Block Key can be computed: the Anchor
    Key is the attribute `anchor_key`.
    """

    name = "kvcs-example"
    scope_key = bytes(range(32))
    anchor_key = bytes.fromhex("653275884ca44f8945fd4c902611c467394b73656e64c78d8522648cb75aefc1")
    publication_id = bytes.fromhex("0123456789abcdef0123456789abcdef")
    _scope_id = bytes.fromhex("6d1c6481cd428737da312c089db3832a")
    _compat_id = bytes.fromhex("5ed5c2f238839655d7c4029e12b7f31caf9e7421f4edb4057feee6dab760ee0f")
    _known: Mapping[str, int] = {"block_tokens": 4, "kv_heads": 8, "head_dim": 128}

    def __init__(self) -> None:
        super().__init__(CODECS[:1])

    def compat_id(self, descriptor: Descriptor) -> bytes:
        """The example's Compatibility ID for a descriptor of its geometry (4 x 8 x 128 x 2)."""
        for name, value in self._known.items():
            if descriptor.get(name) != value:
                raise ProfileError(f"the KVCS example has {name} {value}")
        return self._compat_id

    def scope_id(self, scope_key: bytes) -> bytes:
        """The example's Scope ID, for its scope key 00 01 .. 1f only."""
        if scope_key != self.scope_key:
            raise ProfileError("the KVCS example knows the scope key 00 01 .. 1f only")
        return self._scope_id

    def block_keys(
        self,
        scope_key: bytes,
        compat_id: bytes,
        tokens: Sequence[int],
        block_tokens: int,
        salt: bytes = b"",
        extra: Mapping[int, bytes] | None = None,
    ) -> list[bytes]:
        """Refused: the KVCS example states one Anchor Key and no tokens."""
        raise ProfileError("the KVCS example states no tokens, so Block Keys cannot be computed")

    def sections(self, descriptor: Descriptor) -> Sections:
        """8192 octets each, for the example's geometry."""
        self.compat_id(descriptor)
        return Sections(8192, 8192)


def _scope_id(scope_key: bytes) -> bytes:
    _check_scope_key(scope_key)
    return sha256(b"KVSP-SCOPE-1\x00" + scope_key).digest()[:SCOPE_ID_OCTETS]


def _check_scope_key(scope_key: bytes) -> None:
    if len(scope_key) < MIN_SCOPE_KEY_OCTETS:
        raise InputError(
            f"a scope key has 32 octets (at least {MIN_SCOPE_KEY_OCTETS}), not {len(scope_key)}"
        )


def _counted(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


P0 = KvspP0()
EXAMPLE = KvcsExample()
PROFILES: Mapping[str, KvspProfile] = {P0.name: P0, EXAMPLE.name: EXAMPLE}


def profile(name: str) -> KvspProfile:
    """The built-in profile of that name; InputError lists the names there are."""
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise InputError(f"unknown KVSP profile {name[:40]!a}; known: {known}") from None
