"""A relay that runs somewhere already: where it is, and which cases it can be the relay of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvcs_conformance.cases.load import Case
from kvcs_conformance.cases.words.faults import OPTIONS as FAULTS
from kvcs_conformance.cases.words.relay import OPTIONS as SETTINGS
from kvcs_conformance.errors import UsageError
from kvcs_conformance.nodes.cast import cast

_RELAY = "relay"
_ACTS = {
    "kill": "it is killed",
    "restart": "it is started again",
    "slow-reader": "it reads slowly",
    "read": "it reads slowly",
}
_BY_US = ("hold", "release", "reset-stream")


@dataclass(frozen=True)
class Remote:
    """Its URL, and which certificate it must show: one that `ca` (None: the system) signed, or
    any."""

    url: str
    ca: Path | None = None
    insecure: bool = False

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Remote:
        """The one that an earlier result names."""
        ca = values.get("ca")
        return cls(values["url"], Path(ca) if ca is not None else None, values["insecure"])

    def as_json(self) -> dict[str, Any]:
        """What a result says of it."""
        ca = {"ca": str(self.ca)} if self.ca is not None else {}
        return {"url": self.url, "insecure": self.insecure, **ca}

    def why_not(self, case: Case) -> str | None:
        """Why the case cannot be run with it, if it cannot: what must be set or done on a relay
        of ours, or read in its log."""
        return next(self._obstacles(case), None)

    def _obstacles(self, case: Case) -> Iterator[str]:
        if case.sut == "consumer":
            yield "what reaches a consumer is read in the relay's log, which its owner has"
        scenarios = [case.scenario]
        if case.twin is not None:
            scenarios.append({**case.scenario, **case.twin.scenario})
        for scenario in scenarios:
            yield from self._in_scenario(case, scenario)
        for step in case.steps:
            ((subject, body),) = step.items()
            if body.get("at") == _RELAY:
                yield "a step waits for what stands in the relay's log, which its owner has"
            if subject == _RELAY:
                yield f"a step is the relay's own: {next(iter(body))}"
            if subject == "network":
                yield from _in_network_step(body)
        for judgement in (*case.judge, *(case.twin.judge if case.twin else ())):
            if _RELAY in judgement.arguments.values():
                yield f"{judgement.word} reads the relay's log, which its owner has"

    def _in_scenario(self, case: Case, scenario: Mapping[str, Any]) -> Iterator[str]:
        for key in (*SETTINGS, *FAULTS):
            if scenario.get(key):
                yield f"{key} is set on the relay, whose configuration is its owner's"
        part = cast(case.sut, scenario).get(_RELAY)
        if part is not None and part.to:
            yield f"the relay is to be downstream of {', '.join(part.to)}"
        network = scenario.get("network", {})
        if _RELAY in network.get("grants", {}):
            yield "grants are set on the relay, whose configuration is its owner's"
        if not self.insecure and any(
            _RELAY in path["between"] for path in network.get("links", ())
        ):
            yield "the harness stands between, which needs --insecure"


def remote_of(url: str | None, ca: Path | None, insecure: bool) -> Remote | None:
    """The relay that the command line names; raises UsageError for what is no URL of one."""
    if url is None:
        if ca is not None or insecure:
            raise UsageError("--ca and --insecure are about the relay that --relay names")
        return None
    if ca is not None and insecure:
        raise UsageError("--ca says whom to trust, --insecure trusts anybody: give one of them")
    from moqt.drivers.urls import parse_url

    try:
        parse_url(url)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if ca is not None:
        _check_certificates(ca)
    return Remote(url, ca.resolve() if ca is not None else None, insecure)


def _check_certificates(ca: Path) -> None:
    """Raise UsageError when the file has no certificate in it."""
    from cryptography.x509 import load_pem_x509_certificates

    try:
        load_pem_x509_certificates(ca.read_bytes())
    except OSError as error:
        raise UsageError(f"{ca}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{ca}: not certificates in PEM form") from error


def _in_network_step(body: Mapping[str, Any]) -> Iterator[str]:
    ((word, value),) = [*body.items()][:1]
    if word in _ACTS and value == _RELAY:
        yield f"{_ACTS[word]} in the course of the case"
    if word in _BY_US and value["from"] == _RELAY:
        yield f"{word} is done by a relay of ours"
