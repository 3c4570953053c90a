"""Whether the faults of a case can be done: by whom, in which order, and on which link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvcs_conformance.cases.check import unknown_word
from kvcs_conformance.network.plan import STEPS_OF_PAIRS
from kvcs_conformance.nodes.cast import Part
from kvcs_conformance.source import Document, Step

_ONLY: dict[str, tuple[str, str]] = {
    "chunks": ("memory", "QUIC decides itself how it cuts streams into packets"),
    "datagram-size": ("quic", "the simulated network has no packets"),
}
_AFTER = {"heal": "partition", "release": "hold", "read": "slow-reader", "restart": "kill"}


def check_network(
    document: Document,
    where: tuple[Step, ...],
    plan: Mapping[str, Any],
    parts: Mapping[str, Part],
) -> None:
    """Check a scenario's `network`; raises DataError with file and line."""
    checker = _Checker(document, parts)
    for i, entry in enumerate(plan.get("links", ())):
        here = (*where, "links", i)
        for j, name in enumerate(entry["between"]):
            checker.known((*here, "between", j), name)
        checker.only_on(here, entry)
        for j, rule in enumerate(entry.get("lose", ())):
            place = (*here, "lose", j)
            if rule["from"] not in entry["between"]:
                raise document.error(
                    (*place, "from"), unknown_word("node", rule["from"], entry["between"])
                )
            if rule.get("count", 0) > rule.get("of", 0):
                raise document.error(
                    (*place, "count"), f"{rule['count']} of {rule['of']} cannot be lost"
                )
        if "reorder-streams" in entry and all(
            parts[name].under_test or parts[name].kind == "consumer" for name in entry["between"]
        ):
            raise document.error(
                (*here, "reorder-streams"), "it is done by a sender of ours, and there is none here"
            )
    for name in plan.get("grants", {}):
        checker.ours((*where, "grants", name), name, "what it grants is its own business")
    checker.only_on(where, plan)


def check_network_steps(
    document: Document, steps: Sequence[Mapping[str, Any]], parts: Mapping[str, Part]
) -> None:
    """Check all `network` steps of a case in their order; raises DataError with file and line."""
    checker = _Checker(document, parts)
    before: set[tuple[str, str]] = set()
    for i, step in enumerate(steps):
        if "network" not in step:
            continue
        ((word, value),) = step["network"].items()
        here = ("steps", i, "network", word)
        checker.step(here, word, value)
        what = _subject(value)
        if word in _AFTER and (_AFTER[word], what) not in before:
            raise document.error(here, f"no {_AFTER[word]} of the same before this {word}")
        before.add((word, what))


def _subject(value: Any) -> str:
    if isinstance(value, list):
        return "/".join(sorted(value))
    if isinstance(value, Mapping):
        return "/".join(str(value.get(key)) for key in ("from", "to", "track", "layer", "only"))
    return str(value)


class _Checker:
    def __init__(self, document: Document, parts: Mapping[str, Part]) -> None:
        self._document = document
        self._parts = parts
        links = document.data.get("links", {})
        self._link: str | None = links.get("only") if isinstance(links, dict) else None

    def step(self, here: tuple[Step, ...], word: str, value: Any) -> None:
        """One step's nodes."""
        if word in STEPS_OF_PAIRS:
            for name in value:
                self.known(here, name)
        elif isinstance(value, Mapping):
            self.ours((*here, "from"), value["from"], "its streams cannot be told apart on the way")
            self.known((*here, "to"), value["to"])
        else:
            why = "how it reads is its own business" if word in ("slow-reader", "read") else ""
            self.ours(here, value, why or "the case would judge its absence")
            if word == "restart" and self._parts[value].kind != "relay":
                raise self._document.error(here, f"{value} is no relay: only relays come back")

    def known(self, here: tuple[Step, ...], name: str) -> None:
        """A node must be one of the case."""
        if name not in self._parts:
            raise self._document.error(here, unknown_word("node", name, list(self._parts)))

    def ours(self, here: tuple[Step, ...], name: str, why: str) -> None:
        """A node must not be the one under test."""
        self.known(here, name)
        if self._parts[name].under_test:
            raise self._document.error(here, f"{name} is under test: {why}")

    def only_on(self, here: tuple[Step, ...], values: Mapping[str, Any]) -> None:
        """A fault that one link alone can do needs a case that says so."""
        for key, (link, why) in _ONLY.items():
            if key in values and self._link != link:
                raise self._document.error(
                    (*here, key),
                    f"{key} can be done on {link} only, because {why}: "
                    f"the case needs `links: {{only: {link}, because: …}}`",
                )
