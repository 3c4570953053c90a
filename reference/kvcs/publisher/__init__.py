"""The publisher of KV caches: an Origin that speaks KVCS (KVCS 3 to 6)."""

from kvcs.publisher.production import ProductionError, SegmentProduction
from kvcs.publisher.publication import Publication, PublicationState
from kvcs.publisher.role import Publisher
from kvcs.publisher.spec import RAW_PAIR, Encoding, PublicationSpec, Signer

__all__ = [
    "RAW_PAIR",
    "Encoding",
    "ProductionError",
    "Publication",
    "PublicationSpec",
    "PublicationState",
    "Publisher",
    "SegmentProduction",
    "Signer",
]
