"""The manifest of a publication: value, JSON text, and what it must agree with (KVCS 5).

Readings where the text leaves a gap: `object_digests` maps a track name to its array (A10);
segments stand in ascending order, without hole or overlap (KVCS-2-3); hexadecimal is read in either
case and written in lower case; a track name that this version does not know is no track for us,
and is told in `Manifest.remarks` instead of costing the whole manifest (KVCS-3.2-2).
"""

from kvcs.manifest.checks import block_keys_match, block_keys_sha256, check_consistency
from kvcs.manifest.reader import parse_manifest
from kvcs.manifest.values import Groups, Manifest, Segment, encode_manifest

__all__ = [
    "Groups",
    "Manifest",
    "Segment",
    "block_keys_match",
    "block_keys_sha256",
    "check_consistency",
    "encode_manifest",
    "parse_manifest",
]
