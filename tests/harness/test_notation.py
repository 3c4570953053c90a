"""Octets as cases write them down."""

from __future__ import annotations

import pytest
from kvcs_conformance.cases import load_cases
from kvcs_conformance.catalogue import load
from kvcs_conformance.nodes.scripted.notation import NotationError, octets, vi64

KNOWN = dict.fromkeys(("namespace", "prefix", "scope", "mine", "token", "options", "id"), b"\x00")


def test_a_message_of_the_standard() -> None:
    """MOQT-22 §7.3: SUBSCRIBE of (live) video with Next Object, as its example has it."""
    written = octets("03 [00 | 01 ('live') (766964656f) | 01 | 21 05]", {})
    assert written.octets.hex(" ", 1) == "03 00 10 00 01 04 6c 69 76 65 05 76 69 64 65 6f 01 21 05"
    assert written.end == ""


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (37, "25"),
        (128, "8080"),
        (15293, "bbbd"),
        (16384, "c04000"),
        (2**21, "e0200000"),
        (226442877, "ed7f3e7d"),
        (0x132B3E28, "f0132b3e28"),
        (2**64 - 1, "ff" * 9),
    ],
)
def test_vi64(value: int, encoded: str) -> None:
    """MOQT-22 §8.1: the integers of its table."""
    assert vi64(value).hex() == encoded


def test_repeats_names_and_ends() -> None:
    """*N repeats the item before it, $name stands for what the run knows, fin ends the stream."""
    assert octets("00*3 (61*2)*2 $id fin", KNOWN).octets.hex() == "000000" + "026161" * 2 + "00"
    assert octets("fin", {}).end == "fin"
    assert octets("f0 reset", {}).end == "reset"


@pytest.mark.parametrize("bad", ["0", "[00", "00]", "(00]", "'a", "$nobody", "*3", "fin 00", "xy"])
def test_what_says_nothing_is_refused(bad: str) -> None:
    """A slip of the pen is an error that shows it."""
    with pytest.raises(NotationError):
        octets(bad, KNOWN)


def test_every_attempt_of_every_case_is_written_rightly() -> None:
    """A case's octets are readable before the case runs."""
    for case in load_cases(load(), check=False):
        for step in case.steps:
            ((_, body),) = step.items()
            for entry in body.get("attempt", ()) if isinstance(body, dict) else ():
                for send in entry["sends"]:
                    ((_, text),) = send.items()
                    if isinstance(text, str) and text not in ("subscribe", "fetch"):
                        octets(text, KNOWN)
