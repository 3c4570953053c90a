"""Track Namespaces, Full Track Names and Locations (MOQT-22 §2.4, §8.2, §8.7, §8.8)."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

TrackNamespace: TypeAlias = tuple[bytes, ...]
"""Zero to 32 fields of at least one octet each, at most 4096 octets in sum."""


class FullTrackName(NamedTuple):
    """Track Namespace and Track Name; together at most 4096 octets without length prefixes."""

    namespace: TrackNamespace
    name: bytes


class Location(NamedTuple):
    """Group ID and Object ID, ordered by Group, then Object; each 0 .. 2^64-1."""

    group: int
    object: int


def is_prefix(prefix: TrackNamespace, namespace: TrackNamespace) -> bool:
    """Whether `prefix` matches `namespace` field by field (MOQT-22 §2.4.2)."""
    return namespace[: len(prefix)] == prefix
