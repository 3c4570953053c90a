"""Judge words for segments and their manifests, on hand-made evidence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import pytest
from kvcs_conformance.judge import JUDGES, Finding, Outcome
from kvcs_conformance.judge.identity import block_keys
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import SCENARIO, Event, evidence, obj, report, whole_track
from tests.harness.test_judge_identity import ASKED, FENCE

TWO = {**SCENARIO, "appended": [1]}
"""Segment 0 of two blocks, segment 1 of one; two layers."""
PROMPT = {**ASKED, "tokens": list(range(1, 13))}


def entry(number: int = 0, **members: Any) -> dict[str, Any]:
    """A right entry of a segment; `members` replace those of it."""
    first, blocks = (0, 2) if number == 0 else (2, 1)
    return {
        "segment": number,
        "first_block": first,
        "blocks": blocks,
        "block_keys_sha256": keys_sha256(first, blocks),
        "tracks": [f"k.raw.s{number}"],
        "complete": False,
        "object_digests": {},
        **members,
    }


def keys_sha256(first: int, blocks: int) -> str:
    keys = block_keys(PROMPT)[first : first + blocks]
    return hashlib.sha256(b"".join(keys)).hexdigest()


def version(group: int, *entries: dict[str, Any]) -> Event:
    """A manifest version with these entries."""
    octets = json.dumps({"segments": entries}).encode()
    return obj(group, 0, track="manifest", octets=octets)


def findings(
    word: str, seen: Iterable[Event], scenario: dict[str, Any] = TWO, **arguments: Any
) -> list[Finding]:
    told = [report("asked-to-publish", **PROMPT)]
    logs = {"consumer": list(seen), "publisher": told}
    case = evidence("publisher", logs, scenario=scenario)
    return list(JUDGES[word].function(case, arguments))


def test_complete_before_it_is_handed_over() -> None:
    """A version that calls a segment complete before the publisher has its last layer contradicts;
    afterwards it does not (KVCS-5-15)."""
    seen = [version(0, entry()), version(1, entry(complete=True))]
    for layer_at, expected in ((0, Outcome.UPHELD), (2, Outcome.CONTRADICTED)):
        before: list[Event] = [report("other")] * layer_at
        told = [*before, report("handed", segment=0, layer=1)]
        case = evidence("publisher", {"consumer": seen, "publisher": told}, scenario=SCENARIO)
        (finding,) = JUDGES["listed-when-changed"].function(case, {})
        assert expected == finding.outcome


def outcomes(word: str, seen: Iterable[Event], **more: Any) -> set[Outcome]:
    return {finding.outcome for finding in findings(word, seen, **more)}


def against(word: str, seen: Iterable[Event], **more: Any) -> tuple[Reason | None, tuple[str, ...]]:
    """Reason and requirements of the only contradiction."""
    (bad,) = (f for f in findings(word, seen, **more) if f.outcome is Outcome.CONTRADICTED)
    return bad.reason, bad.requires


def test_segments_contiguous() -> None:
    """Segments from 0, one after the other, uphold; a list without the last leaves it open
    (KVCS-2-3)."""
    right = [version(0, entry()), version(1, entry(), entry(1))]
    assert {Outcome.UPHELD} == outcomes("segments-contiguous", right)
    assert {Outcome.UNSEEN} == outcomes("segments-contiguous", right[:1])
    assert {Outcome.UNSEEN} == outcomes("segments-contiguous", [])


@pytest.mark.parametrize(
    "entries",
    [
        [entry(first_block=1)],
        [entry(blocks=3)],
        [entry(), entry(1, first_block=0)],
        [entry(), entry(1, first_block=3)],
        [entry(), entry(1, segment=2)],
        [entry(), entry()],
    ],
)
def test_segments_contiguous_contradicted(entries: list[dict[str, Any]]) -> None:
    """A wrong start, a wrong length, an overlap, a hole, a skipped or a repeated number
    contradict (KVCS-2-3)."""
    expected = (Reason.MANIFEST_SEGMENTS, ())
    assert expected == against("segments-contiguous", [version(0, *entries)])


def test_block_keys_listed() -> None:
    """The digest over the keys of just the segment's blocks upholds, another contradicts, none
    leaves it open (KVCS-5-7)."""
    right = [version(0, entry(), entry(1))]
    assert {Outcome.UPHELD} == outcomes("block-keys-listed", right)
    all_keys = [version(0, entry(), entry(1, block_keys_sha256=keys_sha256(0, 3)))]
    assert Outcome.CONTRADICTED in outcomes("block-keys-listed", all_keys)
    assert {Outcome.UNSEEN} == outcomes("block-keys-listed", [])


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("k.raw.s00", "KVCS-3.2-1"),
        ("K.raw.s0", "KVCS-3.2-1"),
        ("k.RAW.s0", "KVCS-3.2-1"),
        ("k..s0", "KVCS-3.2-1"),
        ("k.raw.s", "KVCS-3.2-1"),
        ("kv.raw.s0 ", "KVCS-3.2-1"),
        (f"k.{'c' * 33}.s0", "KVCS-3.2-1"),
        ("manifest", "KVCS-12-4"),
        ("manifest.cose", "KVCS-12-4"),
        ("k.squeeze.s0", "KVCS-3.2-2"),
        ("k.raw.s1", "KVCS-5-6"),
    ],
)
def test_tracks_named_contradicted(name: str, clause: str) -> None:
    """Each way to misspell a track breaks the requirement that speaks of it (KVCS-3.2-1,
    KVCS-3.2-2, KVCS-5-6, KVCS-12-4)."""
    seen = [version(0, entry(tracks=["k.raw.s0", name]))]
    assert (Reason.TRACK_NAME, (clause,)) == against("tracks-named", seen)


def test_tracks_named_else() -> None:
    """The names that were asked for uphold; a list that lacks one leaves it open (KVCS-3.2-1)."""
    assert {Outcome.UPHELD} == outcomes("tracks-named", [version(0, entry())])
    assert {Outcome.UNSEEN} == outcomes("tracks-named", [version(0, entry(tracks=[]))])


ENDS = [obj(2, 0, track=f"k.raw.s{number}", status="END_OF_TRACK") for number in (0, 1)]


def test_listed_when_changed() -> None:
    """A version when a segment is added and one when it is complete uphold (KVCS-5-15)."""
    done, added = entry(complete=True), entry(1)
    seen = [version(0, entry()), version(1, done, added), version(2, done, entry(1, complete=True))]
    assert {Outcome.UPHELD} == outcomes("listed-when-changed", seen)
    assert {Outcome.UPHELD, Outcome.UNSEEN} == outcomes("listed-when-changed", seen[:2])


def test_listed_when_changed_late() -> None:
    """A segment that is listed for the first time when it is complete contradicts (KVCS-5-15)."""
    done = entry(complete=True)
    seen = [version(0, entry()), version(1, done), version(2, done, entry(1, complete=True))]
    assert (Reason.MANIFEST_VERSIONS, ()) == against("listed-when-changed", seen)


def test_listed_when_changed_never() -> None:
    """Ended tracks without a version that says complete contradict behind a fence (KVCS-5-15)."""
    seen = [version(0, entry()), version(1, entry(), entry(1)), *ENDS]
    assert {Outcome.UNSEEN} == outcomes("listed-when-changed", seen)
    assert {Outcome.CONTRADICTED} == outcomes("listed-when-changed", [*seen, FENCE])


def test_digests_kept() -> None:
    """Entries that only grow uphold; a digest that is another, or gone, does not (KVCS-3.4-4)."""
    first = entry(complete=True, object_digests={"k.raw.s0": [["aa", "bb"]]})
    grown = entry(complete=True, object_digests={"k.raw.s0": [["aa", "bb"], ["cc", "dd"]]})
    other = entry(complete=True, object_digests={"k.raw.s0": [["aa", "ee"], ["cc", "dd"]]})
    assert {Outcome.UPHELD} == outcomes("digests-kept", [version(0, first), version(1, grown)])
    for later in ([version(1, other)], [version(1, entry())], [version(1)]):
        seen = [version(0, first), *later]
        assert (Reason.OBJECT_CHANGED, ()) == against("digests-kept", seen)
    assert {Outcome.UNSEEN} == outcomes("digests-kept", [version(0, first)])


def test_passes_apart() -> None:
    """No Object beyond the segment's blocks upholds, one beyond contradicts, a fetched track says
    nothing (KVCS-3.3-3)."""
    k0 = {"scenario": SCENARIO, "tracks": ["k.raw.s0"]}
    whole = whole_track()
    assert {Outcome.UPHELD} == outcomes("passes-apart", whole, **k0)
    assert {Outcome.CONTRADICTED} == outcomes("passes-apart", [*whole, obj(0, 2)], **k0)
    assert {Outcome.UNSEEN} == outcomes("passes-apart", whole_track(via="fetch"), **k0)


def test_tracks_whole() -> None:
    """Every Object upholds; one that is missing contradicts once the track has ended
    (KVCS-3.2-4)."""
    one = {"scenario": SCENARIO}
    whole = whole_track()
    assert {Outcome.UPHELD} == outcomes("tracks-whole", whole, **one)
    assert {Outcome.CONTRADICTED} == outcomes("tracks-whole", whole[1:], **one)
    assert {Outcome.UNSEEN} == outcomes("tracks-whole", whole[1:-1], **one)


def test_groups_are_layers() -> None:
    """Data in the Groups 0 .. L-1 upholds, in Group L contradicts; a Group that is missing
    contradicts once the track has ended (KVCS-3.3-1)."""
    one = {"scenario": SCENARIO}
    whole = whole_track()
    assert {Outcome.UPHELD} == outcomes("groups-are-layers", whole, **one)
    assert {Outcome.CONTRADICTED} == outcomes("groups-are-layers", [*whole, obj(2, 0)], **one)
    assert {Outcome.CONTRADICTED} == outcomes("groups-are-layers", whole[3:], **one)
    assert {Outcome.UNSEEN} == outcomes("groups-are-layers", whole[3:-1], **one)
