"""The judge word for the encoding example, on hand-made evidence; and the example itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.judge.example import EXAMPLE
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import Event, evidence, obj, payload

SPEC = Path(__file__).parents[2].parent / "shared" / "spec" / "kvcs.txt"
DATA = bytes(range(16))


def found(*events: Event) -> set[tuple[Outcome, Reason | None]]:
    """The outcomes and reasons over what the node `consumer` saw."""
    case = evidence("publisher", {"consumer": events})
    word = JUDGES["header-of-the-example"]
    return {(f.outcome, f.reason) for f in word.function(case, {})}


def test_the_octets_are_those_of_the_text() -> None:
    """The text prints the octets; with its Data they are a payload as the tests write it down."""
    if not SPEC.is_file():
        pytest.skip(f"{SPEC} is not there to compare with")
    printed = "".join(re.findall(r"\b[0-9a-f]{2}\b", SPEC.read_text().split("is shown below.")[1]))
    assert EXAMPLE.hex() in printed


def test_the_example_is_a_payload_of_the_layout() -> None:
    """Object {0, 1} with 16 octets of Data begins with the example, digest aside."""
    assert payload(0, 1, data=DATA)[: len(EXAMPLE)] == EXAMPLE


def test_a_header_as_in_the_example_is_upheld() -> None:
    """Whatever Data is, what comes before the digest is the example."""
    for data in (DATA, bytes(16)):
        assert found(obj(0, 1, octets=payload(0, 1, data=data))) == {(Outcome.UPHELD, None)}


@pytest.mark.parametrize(
    "fields", [{"codec": 0, "reserved": 1}, {"token_start": 8}, {"flags": 1}, {"version": 2}]
)
def test_another_header_contradicts_it(fields: dict[str, int]) -> None:
    """One field that differs is enough."""
    event = obj(0, 1, octets=payload(0, 1, data=DATA, **fields))
    assert found(event) == {(Outcome.CONTRADICTED, Reason.PAYLOAD_FIELD)}


def test_other_objects_say_nothing() -> None:
    """Another Object, or the same one of another track, is no evidence."""
    other = obj(0, 1, track="v.raw.s0", octets=payload(0, 1, data=DATA, component=2))
    assert found(obj(0, 0), obj(1, 1), other) == {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
    assert found() == {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
