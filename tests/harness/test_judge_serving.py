"""Judge words for how a publisher serves, on hand-made evidence."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import Event, asked, evidence, obj

UPHELD = {(Outcome.UPHELD, None)}
UNSEEN = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}


def found(word: str, events: list[Event]) -> set[tuple[Outcome, Reason | None]]:
    """The outcomes and reasons over what the node `consumer` saw of the step `live`."""
    case = evidence("publisher", {"consumer": events})
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, {"of": "live"})}


def subscribed(request: int, alias: int, track: str = "k.raw.s0") -> list[Event]:
    """A SUBSCRIBE of the step on its own stream, and its SUBSCRIBE_OK."""
    response = {"type": "SubscribeOk", "track_alias": alias}
    stream = 100 + request
    return [
        asked("live", "SUBSCRIBE", track, request),
        (
            "moqt:message_sent",
            {"stream": stream, "message": {"type": "Subscribe", "request_id": request}},
        ),
        ("moqt:message_received", {"stream": stream, "message": response}),
        ("kvcs:answered", {"request": request, "response": response}),
    ]


def subgroup(stream: int, alias: int, group: int, first: bool, block: int = 0) -> list[Event]:
    """A subgroup stream that begins with this block."""
    header: dict[str, Any] = {
        "type": "SubgroupHeader",
        "track_alias": alias,
        "group": group,
        "subgroup": 0,
        "first_object": first,
    }
    return [
        ("moqt:stream_accepted", {"stream": stream, "kind": "subgroup", "header": header}),
        obj(group, block, stream=stream),
    ]


def test_first_objects_that_are_marked_are_upheld() -> None:
    """FIRST_OBJECT where a stream begins with block 0, and not where it begins later."""
    events = [*subscribed(1, 0), *subgroup(3, 0, 0, True), *subgroup(7, 0, 1, False, block=1)]
    assert found("first-object-marked", events) == UPHELD


@pytest.mark.parametrize(("first", "block"), [(False, 0), (True, 1)])
def test_a_mark_in_the_wrong_place_contradicts(first: bool, block: int) -> None:
    """Block 0 without the mark, or a later block with it, is wrong."""
    events = [*subscribed(1, 0), *subgroup(3, 0, 0, first, block=block)]
    assert found("first-object-marked", events) == {(Outcome.CONTRADICTED, Reason.STREAM_FLAG)}


def test_no_stream_says_nothing_of_first_objects() -> None:
    """A subscription without streams is no evidence; other subscriptions' streams are not its."""
    events = [*subscribed(1, 0), *subgroup(3, 9, 0, False)]
    assert found("first-object-marked", events) == UNSEEN


def test_different_aliases_of_different_tracks_are_upheld() -> None:
    """Each Track has its own alias; one Track may have the same one twice."""
    events = [*subscribed(1, 0), *subscribed(3, 1, "v.raw.s0"), *subscribed(5, 0)]
    assert found("aliases-differ", events) == UPHELD


def test_one_alias_for_two_tracks_contradicts() -> None:
    """The second Track may not have the alias of the first."""
    events = [*subscribed(1, 4), *subscribed(3, 4, "v.raw.s0")]
    assert found("aliases-differ", events) == {(Outcome.CONTRADICTED, Reason.ALIAS_SHARED)}


def test_one_track_says_nothing_of_aliases() -> None:
    """With one Track there is nothing to differ from, however many subscriptions it has."""
    assert found("aliases-differ", [*subscribed(1, 4), *subscribed(3, 5)]) == UNSEEN
    assert found("aliases-differ", []) == UNSEEN
