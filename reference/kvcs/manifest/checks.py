"""What a manifest must agree with: its namespace and the consumer's tokens (KVCS 5)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from kvcs.errors import Defect, KvcsError
from kvcs.identity import KvspProfile
from kvcs.manifest.values import Manifest, Segment
from kvcs.names import KvcsNamespace


def block_keys_sha256(keys: Sequence[bytes]) -> bytes:
    """SHA-256 of the concatenated raw Block Keys of a segment (KVCS-5-7)."""
    return sha256(b"".join(keys)).digest()


def check_consistency(
    manifest: Manifest,
    namespace: KvcsNamespace,
    profile: KvspProfile,
    keys: Sequence[bytes] | None = None,
) -> list[Defect]:
    """Everything in which a manifest disagrees with its publication; a consumer discards on any.

    The Compatibility ID is computed first and is the one MUST (KVCS-5-16, KVCS-5-17). `keys`, the
    chain of Block Keys from block 0, adds the check of each segment that the chain covers and of
    the Anchor Key (KVCS-2-1, KVCS-5-7): for segments after the first it is the only link to the
    tokens (reading A7).
    """
    defects = []
    try:
        compat_id = profile.compat_id(manifest.compat)
    except KvcsError as error:
        what = f"the descriptor has no Compatibility ID: {error.reason}"
        return [Defect("compat-id-mismatch", "KVCS-5-17", what, "$.compat")]
    if compat_id != namespace.compat_id:
        what = (
            f"the descriptor's Compatibility ID is {compat_id.hex()}, "
            f"the namespace has {namespace.compat_id.hex()}"
        )
        defects.append(Defect("compat-id-mismatch", "KVCS-5-17", what, "$.compat"))
    for name in ("layers", "block_tokens"):
        stated, described = getattr(manifest, name), manifest.compat.get(name)
        if stated != described:
            what = f"{name} is {stated}, the descriptor has {described!a}"
            defects.append(
                Defect(f"{name.replace('_', '-')}-mismatch", "KVCS-5-5", what, f"$.{name}")
            )
    if keys is not None:
        defects += _check_keys(manifest, namespace, keys)
    return defects


def block_keys_match(segment: Segment, keys: Sequence[bytes]) -> bool | None:
    """Whether the chain from block 0 gives the segment's digest; None if it ends before that."""
    end = segment.first_block + segment.blocks
    if end > len(keys):
        return None
    return block_keys_sha256(keys[segment.first_block : end]) == segment.block_keys_sha256


def _check_keys(
    manifest: Manifest, namespace: KvcsNamespace, keys: Sequence[bytes]
) -> list[Defect]:
    defects = []
    for index, segment in enumerate(manifest.segments):
        where = f"$.segments[{index}]"
        if block_keys_match(segment, keys) is False:
            what = f"the Block Keys of segment {segment.segment} are not those of these tokens"
            defects.append(
                Defect("block-keys-mismatch", "KVCS-5-7", what, f"{where}.block_keys_sha256")
            )
        if (
            segment.segment == 0
            and 0 < segment.blocks <= len(keys)
            and keys[segment.blocks - 1] != namespace.anchor_key
        ):
            what = f"the Block Key of block {segment.blocks - 1} is not the namespace's Anchor Key"
            defects.append(Defect("anchor-key-mismatch", "KVCS-2-1", what, f"{where}.blocks"))
    return defects
