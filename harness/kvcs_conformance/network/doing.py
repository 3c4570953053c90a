"""What a `network` step asks of a link, word by word, and how it stands in the network's log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from kvcs_conformance.evidence.record import Recorder
from kvcs_conformance.network.base import Action
from kvcs_conformance.network.plan import Plan
from kvcs_conformance.network.streams import CODE, Interference, Streams
from kvcs_conformance.scenario import seconds

NETWORK = "network"
"""The name of the network's own log."""


class Doing(ABC):
    """The half of a link that does faults; a link says how on its own wire."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.recorder = Recorder(NETWORK, self.now)
        self._interference: dict[str, Interference] = {}

    @abstractmethod
    def now(self) -> float: ...

    @abstractmethod
    def act(self, name: str, action: Action) -> None: ...

    @abstractmethod
    def later(self, name: str, delay: float, action: Action) -> None: ...

    @abstractmethod
    def _partition(self, one: str, other: str) -> None: ...

    @abstractmethod
    def _heal(self, one: str, other: str) -> None: ...

    @abstractmethod
    def _sever(self, one: str, other: str) -> None: ...

    @abstractmethod
    def _kill(self, name: str) -> None: ...

    @abstractmethod
    def _peer_of(self, node: str, transport: Any) -> str: ...

    def note(self, what: str, **details: Any) -> None:
        """Keep what was done."""
        self.recorder.trace(f"network:{what}", details)

    def interference(self, node: str) -> Interference | None:
        """What may be done to the streams of a node; None when this run needs nothing of it."""
        if not self.plan.streams:
            return None
        return self._interference.setdefault(
            node,
            Interference(
                node,
                self.recorder,
                lambda delay, action: self.later(node, delay, action),
                lambda transport: self._peer_of(node, transport),
                lambda peer: self.plan.between(node, peer).reorders,
                self.plan.seed,
            ),
        )

    def kill(self, name: str) -> None:
        """See `Link.kill`."""
        self.note("killed", node=name)
        self._interference.pop(name, None)
        self._kill(name)

    def fault(self, step: Mapping[str, Any]) -> None:
        """See `Link.fault`."""
        ((word, value),) = step.items()
        if word in ("partition", "heal", "lose-connection"):
            one, other = value
            name, act = {
                "partition": ("partitioned", self._partition),
                "heal": ("healed", self._heal),
                "lose-connection": ("connection-lost", self._sever),
            }[word]
            self.note(name, between=[one, other])
            act(one, other)
        elif word == "kill":
            self.kill(value)
        elif word in ("slow-reader", "read"):
            faults = self._faults_of(value)
            self.note("reading-stopped" if word == "slow-reader" else "reading", node=value)
            self.act(value, faults.stop_reading if word == "slow-reader" else faults.read)
        else:
            self._do_streams(word, value)

    def _do_streams(self, word: str, value: Mapping[str, Any]) -> None:
        streams = Streams(
            value["to"], value.get("track"), value.get("layer"), value.get("only") == "fin"
        )
        sender = value["from"]
        faults = self._faults_of(sender)
        if word == "hold":
            self.act(sender, lambda: faults.hold(streams))
            if "for" in value:
                self.later(sender, seconds(value["for"]), lambda: faults.release(streams))
        elif word == "release":
            self.act(sender, lambda: faults.release(streams))
        else:
            code = value.get("code", CODE)
            self.act(sender, lambda: faults.reset(streams, value["at"], code))

    def _faults_of(self, node: str) -> Interference:
        faults = self.interference(node)
        assert faults is not None, f"the plan foresees nothing for the streams of {node}"
        return faults
