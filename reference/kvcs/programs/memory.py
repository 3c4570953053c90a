"""How a relay's process keeps its memory near what its cache holds."""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD = -3
"""M_MMAP_THRESHOLD of glibc's malloc.h."""
OBJECT_OCTETS = 16 << 10
"""KVCS advises Objects of 16 KiB and more (KVCS 9)."""


def map_objects_alone() -> bool:
    """Let every Object of 16 KiB and more have pages of its own; False where malloc cannot.

    A cache that evicts leaves holes between smaller allocations. glibc would keep Objects and
    holes in one heap, which grows by half over some caches' worth of traffic; an Object that is
    mapped alone goes back to the system when it is evicted.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(MMAP_THRESHOLD, OBJECT_OCTETS))
