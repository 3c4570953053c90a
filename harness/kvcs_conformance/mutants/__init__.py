"""Known-bad peers: the reference with one named defect each, to prove that a case can fail."""

from kvcs_conformance.mutants import (  # noqa: F401  each enters its mutants into the table
    answers,
    consumer_checks,
    consumer_discovery,
    consumer_manifests,
    consumer_recovery,
    consumers,
    contents,
    headers,
    identities,
    joins,
    manifests,
    production,
    relays,
    serving,
    sessions,
    signers,
    tensors,
)
from kvcs_conformance.mutants.registry import MUTANTS, Mutant, find_mutant

__all__ = ["MUTANTS", "Mutant", "find_mutant"]
