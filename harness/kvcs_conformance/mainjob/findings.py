"""What the main job has to show, each with what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kvcs_conformance.mainjob.job import Done, Reader


class Finding(NamedTuple):
    """One claim, whether it holds, and the numbers behind it."""

    what: str
    upheld: bool
    found: str


def findings(done: Done) -> list[Finding]:
    """All claims, in the order of the job."""
    late, early = done.readers[-1], done.readers[0]
    expected = 2 * done.layers * done.plan.blocks
    found = [
        _once(name, link.crossed.total(), len(link.crossed), expected)
        for name, link in done.links.items()
    ]
    first = early.usable.get(0)
    last = done.published[-1]
    found.append(
        Finding(
            "layer 0 was usable before the last layer was published",
            first is not None and first < last,
            f"usable at {_ms(first)}, last layer at {_ms(last)}",
        )
    )
    ways = early.link.ways
    found.append(
        Finding(
            "who joined half-way got the past by fill and the rest by subscription",
            ways["fill"] > 0 and ways["subscription"] > 0,
            f"{ways['fill']} Objects by fill, {ways['subscription']} by subscription",
        )
    )
    found.append(
        Finding(
            "who came afterwards was served from relay B's cache",
            late.upstream_objects == 0 and late.accepted == expected,
            f"{late.accepted} Objects, {late.upstream_objects} of them from upstream",
        )
    )
    for reader in done.readers:
        found += _same(done, reader)
    return found


def _once(name: str, crossed: int, distinct: int, expected: int) -> Finding:
    return Finding(
        f"every Object crossed {name} once",
        crossed == distinct == expected,
        f"{crossed} Objects, {distinct} distinct, {expected} published",
    )


def _same(done: Done, reader: Reader) -> Iterator[Finding]:
    equal = sum(
        made.k.tobytes() == got.k.tobytes()
        and got.v is not None
        and made.v.tobytes() == got.v.tobytes()
        for made, got in zip(done.cache, reader.layers, strict=False)
    )
    yield Finding(
        f"{reader.name}: tensors are bit-identical to the producer's",
        equal == done.layers and reader.reused_tokens == done.plan.cached,
        f"{equal} of {done.layers} layers, {reader.reused_tokens} tokens reused",
    )
    pairs = zip(done.own.attention, reader.result.attention, strict=False)
    equal = sum(own == theirs for own, theirs in pairs)
    yield Finding(
        f"{reader.name}: attention output and next-token scores equal the producer's",
        equal == done.layers and reader.result.logits == done.own.logits,
        f"{equal} of {done.layers} layers, next token {reader.result.next_token} "
        f"(producer: {done.own.next_token})",
    )


def _ms(seconds: float | None) -> str:
    return "never" if seconds is None else f"{1000 * seconds:.0f} ms"
