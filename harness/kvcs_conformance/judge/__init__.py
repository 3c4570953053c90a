"""Judging: pure functions from saved evidence to findings, and from findings to a verdict."""

from kvcs_conformance.judge import (  # noqa: F401  each enters its words into the table
    answering,
    consumer,
    delivery,
    ending,
    identity,
    manifest,
    network,
    properties,
    publisher,
    ranges,
    recovery,
    relay,
    requests,
    segments,
    session,
    signature,
    tensors,
)
from kvcs_conformance.judge.assess import Assessment, assess
from kvcs_conformance.judge.findings import Finding, Outcome
from kvcs_conformance.judge.registry import JUDGES

__all__ = ["JUDGES", "Assessment", "Finding", "Outcome", "assess"]
