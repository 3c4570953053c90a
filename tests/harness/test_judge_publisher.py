"""Judge words for publishers, on hand-made evidence that upholds, contradicts, or says nothing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import (
    NAMESPACE,
    SCENARIO,
    Event,
    evidence,
    message,
    obj,
    payload,
    report,
    whole_track,
)

COMPAT = {"layers": 2, "block_tokens": 4}
COMPAT_ID = hashlib.sha256(rfc8785.dumps(COMPAT)).hexdigest()
NAMED = [*NAMESPACE[:2], COMPAT_ID, *NAMESPACE[3:]]
DATA_DIGEST = hashlib.sha256(b"data").hexdigest()


def found(word: str, events: list[Event], **arguments: Any) -> set[tuple[Outcome, Reason | None]]:
    """The outcomes and reasons of a judge word over what the node `consumer` saw."""
    case = evidence("publisher", {"consumer": events})
    arguments = {key.replace("_", "-"): value for key, value in arguments.items()}
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)}


UPHELD = {(Outcome.UPHELD, None)}
UNSEEN = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}


def against(reason: Reason) -> tuple[Outcome, Reason]:
    return (Outcome.CONTRADICTED, reason)


def without(events: list[Event], *indices: int) -> list[Event]:
    return [event for i, event in enumerate(events) if i not in indices]


def manifest(group: int = 0, octets: bytes | None = None, **members: Any) -> Event:
    """A manifest version as it came; `members` replace those of a right one."""
    segment = {
        "segment": 0,
        "first_block": 0,
        "blocks": 2,
        "block_keys_sha256": "00" * 32,
        "tracks": ["k.raw.s0"],
        "complete": True,
        "object_digests": {"k.raw.s0": [[DATA_DIGEST] * 2] * 2},
    }
    value = {
        "kvcs": 1,
        "compat": COMPAT,
        "layers": 2,
        "block_tokens": 4,
        "deterministic": False,
        "segments": [segment],
        **members,
    }
    octets = json.dumps(value).encode() if octets is None else octets
    event = obj(group, 0, track="manifest", octets=octets)
    event[1]["track"] = {"namespace": NAMED, "name": "manifest"}
    return event


def test_layers_in_order() -> None:
    """Ascending layers uphold, an Object of an earlier layer behind a later one contradicts, a
    layer that did not come by subscription leaves it open (KVCS-3.3-2)."""
    whole = whole_track()
    assert found("layers-in-order", whole) == UPHELD
    late = [*without(whole, 1), whole[1]]
    assert against(Reason.ORDER_LAYERS) in found("layers-in-order", late)
    assert found("layers-in-order", whole[:3]) == UPHELD | UNSEEN
    assert found("layers-in-order", []) == UNSEEN


def test_blocks_in_order() -> None:
    """Blocks must ascend from 0 without a gap, in Subgroup 0 (KVCS-3.3-5, KVCS-3.3-6)."""
    whole = whole_track()
    assert found("blocks-in-order", whole) == UPHELD
    assert against(Reason.ORDER_OBJECTS) in found("blocks-in-order", without(whole, 0))
    swapped = [whole[1], whole[0], *whole[2:]]
    assert against(Reason.ORDER_OBJECTS) in found("blocks-in-order", swapped)
    stray = [obj(0, 0, subgroup=1), *whole[1:]]
    assert against(Reason.OBJECT_SUBGROUP) in found("blocks-in-order", stray)
    assert found("blocks-in-order", []) == UNSEEN


def test_groups_ended() -> None:
    """Every Group needs its End of Group at {g, blocks}, or the last one End of Track there (A2);
    absence counts behind the end of the track only (KVCS-3.3-7)."""
    whole = whole_track()
    assert found("groups-ended", whole) == UPHELD
    assert against(Reason.MARK_GROUP) in found("groups-ended", without(whole, 2))
    assert found("groups-ended", without(whole, 5, 6)) == UPHELD | UNSEEN
    early = [*whole[:2], obj(0, 1, status="END_OF_GROUP"), *whole[3:]]
    assert against(Reason.MARK_GROUP) in found("groups-ended", early)
    in_place = [*whole[:5], obj(1, 2, status="END_OF_TRACK")]
    for word in ("groups-ended", "track-ended"):
        assert found(word, in_place) == UPHELD


def test_track_ended() -> None:
    """End of Track at {L, 0}, or replacing the last End of Group (A2); absence counts when
    PUBLISH_DONE said that the track ended (KVCS-3.3-8)."""
    whole = whole_track()
    assert found("track-ended", whole) == UPHELD
    replacing = [*whole[:5], obj(1, 2, status="END_OF_TRACK")]
    assert found("track-ended", replacing) == UPHELD
    behind = [*whole[:6], obj(1, 3, status="END_OF_TRACK")]
    assert found("track-ended", behind) == {against(Reason.MARK_TRACK)}
    twice = [*whole, obj(1, 2, status="END_OF_TRACK")]
    assert found("track-ended", twice) == {against(Reason.MARK_TRACK)}
    assert found("track-ended", whole[:6]) == UNSEEN
    done = ("kvcs:track-ended", {"track": "k.raw.s0", "complete": True})
    assert found("track-ended", [*whole[:6], done]) == {against(Reason.MARK_TRACK)}


def test_priority_by_layer() -> None:
    """Group g has floor(128 g / L): 0 and 64 for two layers (KVCS-3.4-5)."""
    assert found("priority-by-layer", whole_track()) == UPHELD
    assert found("priority-by-layer", whole_track(priority=128)) == {against(Reason.PRIORITY)}
    assert found("priority-by-layer", []) == UNSEEN


def test_priority_is() -> None:
    """The manifest has priority 0 (KVCS-3.4-6)."""
    tracks = {"tracks": ["manifest"], "value": 0}
    assert found("priority-is", [manifest()], **tracks) == UPHELD
    wrong = manifest()
    wrong[1]["priority"] = 128
    assert found("priority-is", [wrong], **tracks) == {against(Reason.PRIORITY)}
    assert found("priority-is", [], **tracks) == UNSEEN


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (payload(0, 0, magic=0x4B564F32), Reason.PAYLOAD_FIELD),
        (payload(0, 0, version=2), Reason.PAYLOAD_FIELD),
        (payload(0, 0, component=2), Reason.PAYLOAD_FIELD),
        (payload(0, 0, flags=1), Reason.PAYLOAD_FIELD),
        (payload(0, 0, layer=1), Reason.PAYLOAD_FIELD),
        (payload(0, 0, block=1), Reason.PAYLOAD_FIELD),
        (payload(0, 0, token_start=1), Reason.PAYLOAD_FIELD),
        (payload(0, 0, token_count=3), Reason.PAYLOAD_FIELD),
        (payload(0, 0, codec=2), Reason.PAYLOAD_FIELD),
        (payload(0, 0, data_length=3), Reason.PAYLOAD_LENGTH),
        (payload(0, 0, digest=bytes(32)), Reason.PAYLOAD_DIGEST),
        (payload(0, 0)[:67], Reason.PAYLOAD_LENGTH),
        (b"", Reason.PAYLOAD_LENGTH),
    ],
)
def test_payloads_right_finds_each_wrong_field(octets: bytes, reason: Reason) -> None:
    """Every field of the header is compared with what the Location and the scenario give, and the
    digest with the SHA-256 of Data (KVCS-4-1 to KVCS-4-14)."""
    events = [obj(0, 0, octets=octets), *whole_track()[1:]]
    assert found("payloads-right", events) == {against(reason)}


def clauses(octets: bytes, block: int = 1, track: str = "k.raw.s0") -> set[tuple[str, ...]]:
    """The requirements that one payload at (1, block) breaks, finding by finding."""
    scenario = {**SCENARIO, "appended": [2]}
    events = [obj(1, block, track=track, octets=octets)]
    case = evidence("publisher", {"consumer": events}, scenario=scenario)
    return {f.requires for f in JUDGES["payloads-right"].function(case, {"tracks": [track]})}


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (payload(1, 1, version=0), {("KVCS-4-3",)}),
        (payload(1, 1, component=0x6B), {("KVCS-4-4",)}),
        (payload(1, 1, component=2), {("KVCS-4-5",)}),
        (payload(1, 1, layer=0, codec=3), {("KVCS-4-8",), ("KVCS-4-12",)}),
        (payload(1, 1, token_start=1), {("KVCS-4-10",)}),
        (payload(1, 1, data_length=72), {("KVCS-4-13",)}),
        (payload(1, 1, data_length=3), {("KVCS-4-13",)}),
        (payload(1, 1) + b"x", {("KVCS-4-13", "KVCS-3.4-3"), ("KVCS-4-14",)}),
        (payload(1, 1)[:67], {("KVCS-4-1", "KVCS-3.4-3")}),
        (b"", {("KVCS-4-1", "KVCS-3.4-3")}),
    ],
)
def test_payloads_right_tells_each_field_its_clause(
    octets: bytes, expected: set[tuple[str, ...]]
) -> None:
    """A wrong value breaks the requirement of its field and not the layout; one below Data Length
    that no digest covers, that of one payload too (KVCS-4-2 to KVCS-4-14, KVCS-3.4-3)."""
    assert expected == clauses(octets)


def test_payloads_right_tells_a_relative_start() -> None:
    """A Token Start counted from the segment's own first block denies the absolute index of the
    block, too (KVCS-3.4-2)."""
    relative = payload(1, 1, token_start=4)
    assert {("KVCS-4-10", "KVCS-3.4-2")} == clauses(relative, track="k.raw.s1")
    assert {("KVCS-4-10",)} == clauses(payload(1, 1, token_start=7), track="k.raw.s1")


@pytest.mark.parametrize(
    "changes",
    [
        {"token_count": bytes([4, 0, 0, 0])},
        {"layer": bytes([1, 0, 0, 0]), "block": bytes([1, 0, 0, 0])},
        {"codec": 0, "reserved": 1},
        {"token_start": bytes([0, 0, 0, 4])},
        {"flags": bytes(4)},
    ],
)
def test_payloads_right_tells_another_layout(changes: dict[str, Any]) -> None:
    """Another byte order, order or width of fields breaks the layout, and of the fields nothing is
    told (KVCS-4-1)."""
    assert {("KVCS-4-1",)} == clauses(payload(1, 1, **changes))


def test_payloads_right_upholds() -> None:
    """Right payloads uphold; Reserved has no rule (A6); no Object leaves it open."""
    assert found("payloads-right", whole_track()) == UPHELD
    reserved = [obj(0, 0, octets=payload(0, 0, reserved=9)), *whole_track()[1:]]
    assert found("payloads-right", reserved) == UPHELD
    assert found("payloads-right", []) == UNSEEN


def test_payload_findings_point_at_the_octets() -> None:
    """A wrong field is shown with its octets and its offset in the payload."""
    events = [obj(0, 0, octets=payload(0, 0, layer=7))]
    case = evidence("publisher", {"consumer": events})
    (finding,) = JUDGES["payloads-right"].function(case, {})
    assert (finding.octets, finding.offset) == ("00000007", 8)
    assert (finding.expected, finding.observed) == ("0x00000000", "0x00000007")
    assert (finding.node, finding.index) == ("consumer", 0)


def test_announced_fully() -> None:
    """PUBLISH_NAMESPACE names five fields of 6, 16, 32, 32 and 16 octets (KVCS-6-1)."""
    assert found("announced-fully", [message("PublishNamespace", namespace=NAMESPACE)]) == UPHELD
    for wrong in (NAMESPACE[:4], [*NAMESPACE, "00"], ["4b5643532d31", *NAMESPACE[1:]]):
        events = [message("PublishNamespace", namespace=wrong)]
        assert found("announced-fully", events) == {against(Reason.NAMESPACE_SHAPE)}
    assert found("announced-fully", []) == UNSEEN


def properties(octets: str, track: str = "k.raw.s0") -> Event:
    return report("track-properties", track=track, properties=octets)


@pytest.mark.parametrize(("track", "item"), [("020a", ""), ("", "020a"), ("0b02020a", "")])
def test_properties_absent_finds_a_timeout(track: str, item: str) -> None:
    """A delivery timeout (10 ms here) is found on the track, on an Object, and inside Immutable
    Properties (KVCS-6-3)."""
    events = [properties(track), obj(0, 0, properties=item)]
    wrong = {against(Reason.PROPERTY_FORBIDDEN)}
    assert found("properties-absent", events, types=[2]) == wrong
    assert found("properties-absent", events, types=[6]) == UPHELD


def test_properties_absent_needs_answer_and_object() -> None:
    """Without Track Properties or without an Object nothing is concluded."""
    assert found("properties-absent", [obj(0, 0)], types=[2]) == UNSEEN
    assert found("properties-absent", [properties("")], types=[2]) == UNSEEN
    assert found("properties-absent", [properties("0405"), obj(0, 0)], types=[2]) == UPHELD


def test_retention_stated() -> None:
    """MAX_CACHE_DURATION must be there and within the retention (KVCS-6-5)."""
    assert found("retention-stated", [properties("0405")]) == UPHELD
    assert found("retention-stated", [properties("")]) == {against(Reason.PROPERTY_ABSENT)}
    assert found("retention-stated", []) == UNSEEN


def test_manifest_first() -> None:
    """A whole Group before any manifest contradicts; a manifest within the first Group is
    "together" (KVCS-6-2)."""
    whole = whole_track()
    assert found("manifest-first", [manifest(), *whole]) == UPHELD
    assert found("manifest-first", [whole[0], manifest(), *whole[1:]]) == UPHELD
    assert found("manifest-first", [*whole, manifest()]) == {against(Reason.ORDER_MANIFEST)}
    assert found("manifest-first", whole[:2]) == UNSEEN


def test_manifest_behind_a_probe() -> None:
    """An Object and the answer to a probe before any manifest contradict; a probe before the first
    Object says nothing (KVCS-6-2)."""
    whole, fence = whole_track(), report("fence", label="probe")
    assert found("manifest-first", [whole[0], fence, manifest()]) == {
        against(Reason.ORDER_MANIFEST)
    }
    assert found("manifest-first", [fence, whole[0], manifest(), fence]) == UPHELD
    assert found("manifest-first", [fence, whole[0]]) == UNSEEN


def test_manifest_versions_numbered() -> None:
    """Versions are Groups 0, 1, 2 without a gap (KVCS-5-1)."""
    word = "manifest-versions-numbered"
    assert found(word, [manifest(0), manifest(1)]) == UPHELD
    assert found(word, [manifest(0), manifest(2)]) == {against(Reason.MANIFEST_VERSIONS)}
    assert found(word, [manifest(1)]) == {against(Reason.MANIFEST_VERSIONS)}
    assert found(word, []) == UNSEEN


def test_manifest_frequent() -> None:
    """Ten completed layers without a new version are too many, nine may be a race (KVCS-5-10)."""
    ends = [obj(layer, 2, status="END_OF_GROUP") for layer in range(10)]
    assert found("manifest-frequent", [manifest(), *ends[:9]]) == UPHELD
    assert found("manifest-frequent", [manifest(), *ends]) == {against(Reason.MANIFEST_VERSIONS)}
    assert found("manifest-frequent", [manifest(), *ends[:8], manifest(1), *ends[8:]]) == UPHELD
    assert found("manifest-frequent", ends) == UNSEEN


@pytest.mark.parametrize(("listed", "right"), [((0, 8, 16, 18), True), ((0, 9, 18), False)])
def test_manifest_lists_grow_by_eight(listed: tuple[int, ...], right: bool) -> None:
    """What versions list tells their pace whatever overtook them on the way (KVCS-5-10)."""
    events: list[Event] = []
    for version, groups in enumerate(listed):
        digests = {"k.raw.s0": [[DATA_DIGEST] * 2] * groups}
        events += [obj(layer, 2, status="END_OF_GROUP") for layer in range(groups)][-9:][:1]
        segment = {"segment": 0, "tracks": ["k.raw.s0"], "object_digests": digests}
        events.append(manifest(version, segments=[segment]))
    expected = UPHELD if right else {against(Reason.MANIFEST_VERSIONS)}
    assert found("manifest-frequent", events) == expected


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (manifest(compat={**COMPAT, "dtype": "fp16"}), Reason.MANIFEST_INCONSISTENT),
        (manifest(layers=3), Reason.MANIFEST_INCONSISTENT),
        (manifest(block_tokens=5), Reason.MANIFEST_INCONSISTENT),
        (manifest(segments="none"), Reason.MANIFEST_SHAPE),
        (manifest(deterministic=1), Reason.MANIFEST_SHAPE),
        (manifest(kvcs=True), Reason.MANIFEST_SHAPE),
        (manifest(segments=[{"segment": 0}]), Reason.MANIFEST_SHAPE),
        (manifest(octets=b"[]"), Reason.MANIFEST_SHAPE),
        (manifest(octets=b"{"), Reason.MANIFEST_SHAPE),
    ],
)
def test_manifest_consistent_finds_what_is_wrong(version: Event, reason: Reason) -> None:
    """Wrong types, another Compatibility ID and members that differ from the descriptor
    contradict (KVCS-5-5, KVCS-5-6, KVCS-5-16)."""
    assert found("manifest-consistent", [version]) == {against(reason)}


def test_manifest_consistent_upholds() -> None:
    """A right manifest upholds; none leaves it open."""
    assert found("manifest-consistent", [manifest(), manifest(1)]) == UPHELD
    assert found("manifest-consistent", []) == UNSEEN


def test_digests_listed() -> None:
    """The last manifest lists exactly the Data Digests of the Objects that came (KVCS-5-9)."""
    whole = whole_track()
    assert found("digests-listed", [*whole, manifest()]) == UPHELD
    for digests in ({"k.raw.s0": [[DATA_DIGEST] * 2]}, {"k.raw.s0": [["00" * 32] * 2] * 2}):
        segment = json.loads(bytes.fromhex(manifest()[1]["payload"]["head"]))["segments"][0]
        wrong = manifest(segments=[{**segment, "object_digests": digests}])
        assert found("digests-listed", [*whole, wrong]) == {against(Reason.MANIFEST_INCONSISTENT)}
    absent = manifest(segments=[{"segment": 0}])
    assert found("digests-listed", [*whole, absent]) == {against(Reason.MANIFEST_SHAPE)}
    assert found("digests-listed", whole) == UNSEEN
    for listed in (5, [5], {"k.raw.s0": 5}, {"k.raw.s0": [5]}, {"k.raw.s0": [[5]]}):
        odd = manifest(segments=[{"segment": 0, "object_digests": listed}])
        assert found("digests-listed", [*whole, odd]) == {against(Reason.MANIFEST_SHAPE)}


def test_digests_listed_too_early() -> None:
    """An earlier version lists fewer digests, and none that is another one than the header of the
    Object that came (KVCS-5-9)."""
    whole = whole_track()
    for digest, expected in (
        (DATA_DIGEST, UPHELD),
        ("00" * 32, {against(Reason.MANIFEST_INCONSISTENT)}),
    ):
        early = {"segment": 0, "object_digests": {"k.raw.s0": [[digest] * 2]}}
        versions = [manifest(0, segments=[early]), manifest(1)]
        assert found("digests-listed", [*whole, *versions]) == expected


def test_a_descriptor_without_canonical_form() -> None:
    """A number beyond 2^53 or half of a surrogate pair in the descriptor: no Compatibility ID can
    be its own (KVCS-5-16)."""
    for odd in (10**400, "\ud800"):
        version = manifest(compat={**COMPAT, "odd": odd})
        expected = {against(Reason.MANIFEST_INCONSISTENT)}
        assert expected == found("manifest-consistent", [version])


def test_track_ended_malformed() -> None:
    """What makes the track malformed in place of End of Track, or behind it, contradicts
    (KVCS-3.3-8, A2)."""
    cut = report("track-malformed", label="", track="k.raw.s0", request=0, reason="beyond its end")
    assert found("track-ended", [*whole_track()[:-1], cut]) == {against(Reason.MARK_TRACK)}
    assert found("track-ended", [*whole_track(), cut]) == {against(Reason.MARK_TRACK)}
