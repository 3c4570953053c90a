"""Judge words for Objects and streams that pass a relay, on hand-made evidence."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import Event, asked, obj
from tests.harness.relaylog import (
    DELIVERED,
    DONE,
    UNSEEN,
    UPHELD,
    accepts,
    against,
    asks,
    fetches,
    fin,
    found,
    opens,
    published,
    reset,
)

ASKS = [*asks(), *accepts()]
FETCH = [*asks("FETCH"), fetches(3)]
IMMUTABLE = "0b03108005"
GAPS = "3c020203"


@pytest.mark.parametrize(
    ("field", "right", "wrong", "reason"),
    [
        ("payload", {}, {"octets": b"other"}, Reason.OBJECT_CHANGED),
        ("subgroup", {"subgroup": 5}, {"subgroup": 1}, Reason.OBJECT_SUBGROUP),
        ("mode", {"subgroup": None}, {"subgroup": 0}, Reason.OBJECT_MODE),
        ("priority", {"priority": 9}, {"priority": 128}, Reason.PRIORITY),
        ("properties", {"properties": "7c05"}, {"properties": "7c06"}, Reason.PROPERTY_CHANGED),
        ("immutable", {"properties": IMMUTABLE}, {"properties": ""}, Reason.PROPERTY_CHANGED),
        ("group-gap", {"properties": GAPS}, {"properties": "3c01"}, Reason.PROPERTY_CHANGED),
        ("object-gap", {"properties": GAPS}, {"properties": "3c02"}, Reason.PROPERTY_CHANGED),
        (
            "unknown-properties",
            {"properties": "7c05"},
            {"properties": "7c050103616263"},
            Reason.PROPERTY_CHANGED,
        ),
    ],
)
def test_as_published(
    field: str, right: dict[str, Any], wrong: dict[str, Any], reason: Reason
) -> None:
    """A field as published upholds, another value contradicts, no such Object is open (R227)."""
    sent = [published(3, 4, **right)]
    came = [*ASKS, obj(3, 4, **right)]
    assert found("as-published", came, sent, fields=[field]) == UPHELD
    changed = [*ASKS, obj(3, 4, **{**right, **wrong})]
    assert found("as-published", changed, sent, fields=[field]) == against(reason)
    assert found("as-published", ASKS, sent, fields=[field]) == UNSEEN


def test_as_published_knows_what_a_fetch_may_drop() -> None:
    """A gap property may be missing from a fetch, not from a subscription; what nobody published
    contradicts (R176)."""
    sent = [published(3, 4, properties="3e03")]
    dropped = obj(3, 4, properties="", via="fetch")
    assert found("as-published", [*ASKS, dropped], sent, fields=["object-gap"]) == UPHELD
    live = obj(3, 4, properties="")
    lost = found("as-published", [*ASKS, live], sent, fields=["object-gap"])
    assert lost == against(Reason.PROPERTY_CHANGED)
    other = obj(3, 4, subgroup=None)
    assert found("as-published", [*ASKS, other], sent, fields=["subgroup"]) == UNSEEN
    stray = found("as-published", [*ASKS, obj(8, 8)], sent, fields=["payload"])
    assert stray == against(Reason.OBJECT_UNEXPECTED)


def test_as_published_beyond_an_earlier_step() -> None:
    """A priority that had changed when the earlier step got the Object is left to that step (R003,
    R205)."""
    sent = [published(3, 4, priority=9)]
    first = [asked("first", "SUBSCRIBE"), obj(3, 4, priority=9)]
    changed = [asked("x", request=2), obj(3, 4, priority=128, via="fetch", request=2)]
    wanted: dict[str, Any] = {"fields": ["priority"], "beyond": "first"}
    assert found("as-published", [*first, *changed], sent, **wanted) == against(Reason.PRIORITY)
    early = [*first[:-1], obj(3, 4, priority=128)]
    assert found("as-published", [*early, *changed], sent, **wanted) == UNSEEN


def test_exactly() -> None:
    """All that was published, once each, upholds; twice, more or fewer contradicts; without an end
    what is missing is open."""
    sent = [published(0, 0), published(0, 1)]
    both = [*ASKS, obj(0, 0), obj(0, 1)]
    assert found("exactly", both, sent) == UPHELD
    assert found("exactly", [*both, obj(0, 1)], sent) == against(Reason.OBJECT_DUPLICATE)
    assert found("exactly", both, sent, without=[[0, 1]]) == against(Reason.OBJECT_UNEXPECTED)
    short = [*ASKS, obj(0, 0)]
    assert found("exactly", short, sent) == UNSEEN
    assert found("exactly", [*short, DONE], sent) == against(Reason.OBJECT_MISSING)
    assert found("exactly", ASKS, sent, objects=[]) == UNSEEN
    assert found("exactly", [*ASKS, DONE], sent, objects=[]) == UPHELD
    filled = [*ASKS, obj(0, 0, via="fill"), DONE]
    assert found("exactly", filled, sent, objects=[], via="subscription") == UPHELD
    assert found("exactly", filled, sent, objects=[]) == against(Reason.OBJECT_UNEXPECTED)
    assert found("exactly", [*both, DONE], sent, objects=[[0, 1]], others=True) == UPHELD
    lost = found("exactly", [*short, DONE], sent, objects=[[0, 1]], others=True)
    assert lost == against(Reason.OBJECT_MISSING)


def test_first_object_kept() -> None:
    """FIRST_OBJECT belongs on the stream that begins with the subgroup's first Object (R008)."""
    sent = [published(0, 0), published(0, 1)]
    begin = [obj(0, 0), obj(0, 1)]
    assert found("first-object-kept", [*ASKS, opens(3, 0, first_object=True), *begin], sent) == (
        UPHELD
    )
    wrong = against(Reason.STREAM_FLAG)
    assert found("first-object-kept", [*ASKS, opens(3, 0), *begin], sent) == wrong
    later = [*ASKS, opens(3, 0, first_object=True), obj(0, 1)]
    assert found("first-object-kept", later, sent) == wrong
    assert found("first-object-kept", [*ASKS, opens(3, 0), obj(0, 1)], sent) == UNSEEN


def test_end_of_group_kept() -> None:
    """END_OF_GROUP belongs where it was published, and nowhere else (R227)."""
    sent = [published(0, 0, end_of_group=True), published(1, 0)]
    right = [*ASKS, opens(3, 0, end_of_group=True), obj(0, 0)]
    assert found("end-of-group-kept", right, sent) == UPHELD
    lost = [*ASKS, opens(3, 0), obj(0, 0)]
    assert found("end-of-group-kept", lost, sent) == against(Reason.STREAM_FLAG)
    other = [*ASKS, opens(3, 1, end_of_group=True), obj(1, 0)]
    assert found("end-of-group-kept", other, sent) == against(Reason.STREAM_FLAG)
    assert found("end-of-group-kept", [*ASKS, opens(3, 1), obj(1, 0)], sent) == UNSEEN


def test_streams_without_holes() -> None:
    """A stream is an unbroken run of what was published in its subgroup (R212)."""
    sent = [published(0, n) for n in (0, 1, 2, 5)]

    def came(*numbers: int) -> list[Event]:
        return [*ASKS, opens(3, 0), *(obj(0, n) for n in numbers)]

    assert found("streams-without-holes", came(1, 2, 5), sent) == UPHELD
    assert found("streams-without-holes", came(0, 2), sent) == against(Reason.STREAM_HOLE)
    assert found("streams-without-holes", came(0, 2, 1), sent) == against(Reason.STREAM_HOLE)
    assert found("streams-without-holes", came(1), sent) == UNSEEN


def test_one_stream_per_subgroup() -> None:
    """A second stream of a subgroup needs a reset before it (R006)."""
    first = [*ASKS, opens(3, 0), obj(0, 0)]
    assert found("one-stream-per-subgroup", first) == UPHELD
    assert found("one-stream-per-subgroup", [*first, fin(3), opens(7, 0)]) == against(
        Reason.STREAM_SECOND
    )
    assert found("one-stream-per-subgroup", [*first, reset(3), opens(7, 0)]) == UPHELD
    assert found("one-stream-per-subgroup", ASKS) == UNSEEN


def test_next_object_only() -> None:
    """Over a hole no stream goes on; without a hole nothing is shown (R167)."""
    sent = [published(0, n) for n in (0, 1, 7)]
    apart = [*ASKS, opens(3, 0), obj(0, 0), obj(0, 1), opens(7, 0), obj(0, 7, stream=7)]
    assert found("next-object-only", apart, sent) == UPHELD
    leap = [*ASKS, opens(3, 0), obj(0, 1), obj(0, 7)]
    assert found("next-object-only", leap, sent) == against(Reason.STREAM_HOLE)
    assert found("next-object-only", [*ASKS, opens(3, 0), obj(0, 0)], sent[:2]) == UNSEEN


def test_hole_splits_stream() -> None:
    """The stream before a hole is reset, not ended by FIN (R168)."""
    first = [*ASKS, opens(3, 0), obj(0, 1)]
    second = [opens(7, 0), obj(0, 7, stream=7)]
    assert found("hole-splits-stream", [*first, reset(3), *second], group=0) == UPHELD
    ended = found("hole-splits-stream", [*first, fin(3), *second], group=0)
    assert ended == against(Reason.STREAM_END)
    assert found("hole-splits-stream", first, group=0) == UNSEEN


def test_groups_descend_and_first_group() -> None:
    """Groups descend with ascending Objects inside; the first Group is the one that was wanted."""
    down = [*FETCH, obj(2, 0, via="fetch"), obj(2, 1, via="fetch"), obj(1, 0, via="fetch")]
    up = [*FETCH, obj(1, 0, via="fetch"), obj(2, 0, via="fetch")]
    assert found("groups-descend", down) == UPHELD
    assert found("groups-descend", up) == against(Reason.ORDER_LAYERS)
    assert found("groups-descend", [*FETCH, obj(1, 0, via="fetch")]) == UNSEEN
    assert found("first-group", down, group=2) == UPHELD
    assert found("first-group", up, group=2) == against(Reason.ORDER_LAYERS)
    assert found("first-group", FETCH, group=2) == UNSEEN


def test_fetch_begins_whole() -> None:
    """A stream that is read to its end began whole; a session that the reader had to close shows
    the opposite (R149)."""
    whole = [*FETCH, obj(0, 0, via="fetch"), DELIVERED]
    assert found("fetch-begins-whole", whole) == UPHELD
    closed: Event = (
        "moqt:session_closed",
        {"code": 3, "reason": "the first Object refers to a prior one", "by_peer": False},
    )
    assert found("fetch-begins-whole", [*FETCH, closed]) == against(Reason.CLOSE_UNEXPECTED)
    assert found("fetch-begins-whole", FETCH) == UNSEEN


def test_sent_for_each() -> None:
    """An Object that passes two subscriptions comes on two streams (R114)."""
    twice = [*ASKS, obj(0, 0, stream=3), obj(1, 0, stream=7), obj(1, 0, stream=11), DONE]
    wanted: dict[str, Any] = {"once": [[0, 0]], "twice": [[1, 0]]}
    assert found("sent-for-each", twice, **wanted) == UPHELD
    once = [*twice[:-2], DONE]
    assert found("sent-for-each", once, **wanted) == against(Reason.OBJECT_MISSING)
    more = [*twice[:-1], obj(0, 0, stream=11), DONE]
    assert found("sent-for-each", more, **wanted) == against(Reason.OBJECT_DUPLICATE)
    assert found("sent-for-each", twice[:-2], **wanted) == UNSEEN


def test_overtakes() -> None:
    """The more urgent fetch, asked for while the other was under way, ends first (R190)."""
    slow: list[Event] = [
        ("kvcs:asked", {"label": "y", "kind": "FETCH", "track": "v.raw.s0", "request": 2}),
        obj(0, 0, via="fetch", request=2, track="v.raw.s0"),
    ]
    urgent = [*asks("FETCH"), obj(0, 0, via="fetch")]
    later = ("kvcs:delivered", {"request": 2, "complete": True})
    right = [*slow, *urgent, DELIVERED, later]
    assert found("overtakes", right, before="y") == UPHELD
    assert found("overtakes", [*slow, *urgent, later, DELIVERED], before="y") == against(
        Reason.PRIORITY_ORDER
    )
    assert found("overtakes", [*slow, *urgent, DELIVERED], before="y") == UNSEEN


def test_marks_kept() -> None:
    """An End of Group comes as it was published, or as the bit of its subgroup's stream; an End of
    Track comes as it was published (R227)."""
    sent = [published(0, 0), published(0, 1, status="END_OF_GROUP")]
    begin = [*ASKS, opens(3, 0), obj(0, 0)]
    assert found("marks-kept", [*begin, obj(0, 1, status="END_OF_GROUP")], sent) == UPHELD
    bit = [*ASKS, opens(3, 0, end_of_group=True), obj(0, 0)]
    assert found("marks-kept", [*bit, DONE], sent) == UPHELD
    assert found("marks-kept", [*begin, DONE], sent) == against(Reason.MARK_GROUP)
    assert found("marks-kept", begin, sent) == UNSEEN
    end = [published(0, 0), published(1, 0, status="END_OF_TRACK")]
    assert found("marks-kept", [*begin, DONE], end) == against(Reason.MARK_TRACK)
    assert found("marks-kept", [*begin, DONE], sent[:1]) == UNSEEN
