"""Judge words for what Objects carry, on hand-made evidence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import pytest
from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import (
    NAMESPACE,
    OTHER,
    SCENARIO,
    Event,
    evidence,
    message,
    obj,
    payload,
    report,
)

GEOMETRY = {**SCENARIO, "kv-heads": 1, "head-dim": 2, "layers": 3, "components": ["k", "v", "kv"]}
"""Sections of 4 tokens, 1 head, 2 elements of 2 octets: 16 octets."""
K, V = b"k" * 16, b"v" * 16


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def handed(layer: int) -> Event:
    """What the publisher was handed for both blocks of a layer."""
    digests = {"k": [sha(K)] * 2, "v": [sha(V)] * 2, "kv": [sha(K + V)] * 2}
    return report("handed", segment=0, layer=layer, octets=16, **digests)


def carries(track: str, data: bytes, layer: int = 0, **more: Any) -> Event:
    """An Object of block 0 with this Data."""
    return obj(layer, 0, track=f"{track}.s0", octets=payload(layer, 0, data=data), **more)


def findings(
    word: str, seen: Iterable[Event], given: Iterable[Event] = (handed(0),), **arguments: Any
) -> list[tuple[Outcome, Reason | None, tuple[str, ...]]]:
    logs = {"consumer": list(seen), "publisher": list(given)}
    case = evidence("publisher", logs, scenario=GEOMETRY)
    return [(f.outcome, f.reason, f.requires) for f in JUDGES[word].function(case, arguments)]


def outcomes(word: str, seen: Iterable[Event], **more: Any) -> set[Outcome]:
    return {outcome for outcome, _, _ in findings(word, seen, **more)}


@pytest.mark.parametrize(("track", "data"), [("k.raw", K), ("v.raw", V), ("kv.raw", K + V)])
def test_sections_carried(track: str, data: bytes) -> None:
    """Data that is the section upholds for k, v and kv (KVCS-4-15, KVCS-4-16)."""
    one = {"tracks": [f"{track}.s0"]}
    assert {Outcome.UPHELD} == outcomes("sections-carried", [carries(track, data)], **one)
    assert {Outcome.UNSEEN} == outcomes("sections-carried", [], **one)
    assert {Outcome.UNSEEN} == outcomes("sections-carried", [carries(track, data)], given=(), **one)


@pytest.mark.parametrize(
    ("track", "data", "clause"), [("k.raw", V, "KVCS-4-15"), ("kv.raw", V + K, "KVCS-4-16")]
)
def test_sections_carried_contradicted(track: str, data: bytes, clause: str) -> None:
    """Another section, or the two in the other order, contradict (KVCS-4-15, KVCS-4-16)."""
    expected = [(Outcome.CONTRADICTED, Reason.TENSORS, (clause, "KVCS-4-17"))]
    seen = [carries(track, data)]
    assert expected == findings("sections-carried", seen, tracks=[f"{track}.s0"])


def test_sections_carried_behind_the_first() -> None:
    """A Group whose first Object alone is right has Objects that need another (KVCS-3.3-4)."""
    seen = [carries("k.raw", K), obj(0, 1, octets=payload(0, 1, data=V))]
    clauses = ("KVCS-4-15", "KVCS-4-17", "KVCS-3.3-4")
    expected = [(Outcome.CONTRADICTED, Reason.TENSORS, clauses)]
    assert expected == findings("sections-carried", seen, tracks=["k.raw.s0"])


def test_sections_carried_compressed() -> None:
    """Compressed Data is no section and is not judged (KVCS-4-15)."""
    assert set() == outcomes("sections-carried", [carries("k.zstd", b"?")], tracks=["k.zstd.s0"])


def test_sections_sized() -> None:
    """The size that the geometry gives upholds, half of it contradicts (KVCS-9-1)."""
    k, kv = {"tracks": ["k.raw.s0"]}, {"tracks": ["kv.raw.s0"]}
    assert {Outcome.UPHELD} == outcomes("sections-sized", [carries("k.raw", K)], **k)
    assert {Outcome.UPHELD} == outcomes("sections-sized", [carries("kv.raw", K + V)], **kv)
    assert {Outcome.CONTRADICTED} == outcomes("sections-sized", [carries("k.raw", K[:8])], **k)
    assert {Outcome.UNSEEN} == outcomes("sections-sized", [], **k)


def test_digests_join() -> None:
    """A kv Object whose Data Digest is SHA-256 over K and V upholds, another contradicts, none
    leaves it open (KVCS-4-17)."""
    assert {Outcome.UPHELD} == outcomes("digests-join", [carries("kv.raw", K + V)])
    expected = [(Outcome.CONTRADICTED, Reason.PAYLOAD_DIGEST, ("KVCS-4-17",))]
    assert expected == findings("digests-join", [carries("kv.raw", V + K)])
    assert {Outcome.UNSEEN} == outcomes("digests-join", [carries("k.raw", K)])


def test_published_as_computed() -> None:
    """Layer 0 before the last layer was handed over upholds, after it contradicts; what did not
    come by subscription leaves it open (KVCS-6-6). Event i happens at i ms."""
    k = {"tracks": ["k.raw.s0"]}
    live = [carries("k.raw", K, layer) for layer in range(3)]
    late = [handed(layer) for layer in range(3)]
    assert {Outcome.UPHELD} == outcomes("published-as-computed", live, given=late, **k)
    waited = [report("session"), report("x"), report("x"), *live]
    assert {Outcome.CONTRADICTED} == outcomes("published-as-computed", waited, given=late, **k)
    fetched = [carries("k.raw", K, layer, via="fetch") for layer in range(3)]
    assert {Outcome.UNSEEN} == outcomes("published-as-computed", fetched, given=late, **k)


def twice(promise: bool, second: bytes) -> list[Event]:
    """Two publications of one content: namespaces, manifests, one Object of each."""
    text = json.dumps({"deterministic": promise}).encode()
    events = []
    for name, data in ((NAMESPACE, K), (OTHER, second)):
        events.append(message("PublishNamespace", namespace=name))
        events.append(_of(name, obj(0, 0, track="manifest", octets=text)))
        events.append(_of(name, carries("k.raw", data)))
    return events


def _of(name: list[str], event: Event) -> Event:
    event[1]["track"] = {**event[1]["track"], "namespace": name}
    return event


def test_promise_kept() -> None:
    """Two promises and the same octets uphold; other octets contradict; without the promise they
    may differ, and one publication says nothing (KVCS-5-14)."""
    assert {Outcome.UPHELD} == outcomes("promise-kept", twice(True, K))
    assert {Outcome.CONTRADICTED} == outcomes("promise-kept", twice(True, V))
    assert {Outcome.UPHELD} == outcomes("promise-kept", twice(False, V))
    assert {Outcome.UNSEEN} == outcomes("promise-kept", twice(True, V)[:3])
