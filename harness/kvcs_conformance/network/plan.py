"""The plan of a run's network: what its links are like from the start, as a scenario writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from kvcs_conformance.scenario import seconds

Pair: TypeAlias = frozenset[str]

BITS = {"bit": 1, "kbit": 1_000, "Mbit": 1_000_000, "Gbit": 1_000_000_000}
OCTETS = {"KiB": 1 << 10, "MiB": 1 << 20}

STEPS_OF_PAIRS = ("partition", "heal", "lose-connection")
STEPS_OF_STREAMS = ("hold", "release", "reset-stream")


def rate(value: int | str) -> float:
    """`10Mbit` (per second), or a number of octets per second, in octets per second."""
    if isinstance(value, int):
        return float(value)
    unit = next(unit for unit in ("Gbit", "Mbit", "kbit", "bit") if value.endswith(unit))
    return float(value.removesuffix(unit)) * BITS[unit] / 8


def octets(value: int | str) -> int:
    """`4KiB`, `1MiB` or a number, in octets."""
    if isinstance(value, int):
        return value
    unit = value[-3:]
    return int(value.removesuffix(unit)) * OCTETS[unit]


@dataclass(frozen=True, kw_only=True)
class PairPlan:
    """The path between two nodes; what is None is as the link has it by itself.

    `lost`: by sender, the packets of that direction that do not arrive, by number from 0.
    """

    latency: float | None = None
    bandwidth: float | None = None
    chunks: tuple[int, int] | None = None
    reorders: bool = False
    lost: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a node lets its peers send: streams open at a time, octets ahead of what it read."""

    unidirectional_streams: int | None = None
    bidirectional_streams: int | None = None
    stream_window: int | None = None
    connection_window: int | None = None

    def options(self) -> dict[str, Any]:
        """Those that are set, under the names that both drivers give them."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Plan:
    """All of it; `touched` are the pairs between which something is to be done on the way."""

    pairs: Mapping[Pair, PairPlan] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    idle_timeout: float = 30.0
    datagram_size: int = 1200
    touched: frozenset[Pair] = frozenset()
    streams: bool = False
    """Whether nodes of ours must be able to interfere with single streams."""
    seed: int = 0

    def between(self, one: str, other: str) -> PairPlan:
        """The path between two nodes."""
        return self.pairs.get(frozenset((one, other)), _PLAIN)


_PLAIN = PairPlan()
PLAIN = Plan()


def make_plan(
    values: Mapping[str, Any] | None, steps: Iterable[Mapping[str, Any]] = (), seed: int = 0
) -> Plan:
    """The plan that a scenario's `network` and the case's steps ask for."""
    values = values or {}
    acts = [step["network"] for step in steps if "network" in step]
    words = {next(iter(act)) for act in acts}
    pairs = {frozenset(entry["between"]): _pair(entry, seed) for entry in values.get("links", ())}
    touched = {pair for pair, path in pairs.items() if path != PairPlan(reorders=path.reorders)}
    touched |= {frozenset(act[word]) for act in acts for word in STEPS_OF_PAIRS if word in act}
    touched |= {
        frozenset((act[word]["from"], act[word]["to"]))
        for act in acts
        for word in STEPS_OF_STREAMS
        if word in act
    }
    touched |= {pair for pair, path in pairs.items() if path.reorders}
    return Plan(
        pairs=pairs,
        grants={name: _grant(entry) for name, entry in values.get("grants", {}).items()},
        idle_timeout=seconds(values.get("idle-timeout", "30s")),
        datagram_size=values.get("datagram-size", 1200),
        touched=frozenset(touched),
        streams=values.get("watch-streams", False)
        or bool(words & {*STEPS_OF_STREAMS, "slow-reader"})
        or any(path.reorders for path in pairs.values()),
        seed=seed,
    )


def _pair(entry: Mapping[str, Any], seed: int) -> PairPlan:
    lost = {}
    for rule in entry.get("lose", ()):
        sender = rule["from"]
        if "packets" in rule:
            lost[sender] = frozenset(rule["packets"])
        else:
            chance = Random(f"{seed}/lost/{'/'.join(sorted(entry['between']))}/{sender}")
            lost[sender] = frozenset(chance.sample(range(rule["of"]), rule["count"]))
    return PairPlan(
        latency=seconds(entry["latency"]) if "latency" in entry else None,
        bandwidth=rate(entry["bandwidth"]) if "bandwidth" in entry else None,
        chunks=tuple(entry["chunks"]) if "chunks" in entry else None,
        reorders=entry.get("reorder-streams", False),
        lost=lost,
    )


def _grant(entry: Mapping[str, Any]) -> Grant:
    return Grant(
        unidirectional_streams=entry.get("streams"),
        bidirectional_streams=entry.get("request-streams"),
        stream_window=octets(entry["stream-window"]) if "stream-window" in entry else None,
        connection_window=octets(entry["window"]) if "window" in entry else None,
    )
