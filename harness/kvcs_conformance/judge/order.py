"""Judge words for the order of what a fetch brings, and for how often an Object is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moqt.wire.errors import SessionError

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.delivery import LABEL, delivered, described, ended
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_PLACES = {
    "type": "array",
    "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}},
}


@judge("groups-descend", required=("of",), of=LABEL)
def groups_descend(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """On each fetch of the step Groups descend, and inside of a Group Object IDs ascend."""
    for request in evidence.asked(arguments["of"]):
        objects = delivered(evidence, request)
        keys = [(-one.group, one.object) for one in objects]
        if len({one.group for one in objects}) < 2:
            yield unseen(f"{described(request)}: Objects of two Groups did not come")
        elif keys != sorted(keys):
            yield contradicted(
                Reason.ORDER_LAYERS,
                f"{described(request)}: Groups do not descend",
                expected=str([(-group, number) for group, number in sorted(keys)]),
                observed=str([one.location for one in objects]),
                record=objects[-1].record,
            )
        else:
            yield upheld(f"{described(request)}: {len(keys)} Locations, Groups descend")


@judge("fetch-begins-whole", required=("of",), of=LABEL)
def fetch_begins_whole(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The first Object of each fetch stream of the step says Group, Object and priority itself: a
    reader that holds to this goes on to the end of the stream, and does not close the session."""
    for request in evidence.asked(arguments["of"]):
        closed = next(
            (
                record
                for record in evidence.records(request.record.node, "moqt:session_closed")
                if record.data["code"] == SessionError.PROTOCOL_VIOLATION
                and not record.data["by_peer"]
            ),
            None,
        )
        if closed is not None:
            yield contradicted(
                Reason.CLOSE_UNEXPECTED,
                f"{described(request)}: the stream cannot be read",
                expected="a first Object that refers to none before it",
                observed=str(closed.data["reason"]),
                record=closed,
            )
        elif (end := ended(evidence, request)) is not None and delivered(evidence, request):
            yield upheld(f"{described(request)}: read from the first Object to the end", end)
        else:
            yield unseen(f"{described(request)}: no Object, or no end, came")


@judge("sent-for-each", required=("of", "once", "twice"), of=LABEL, once=_PLACES, twice=_PLACES)
def sent_for_each(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The node of the step gets the Objects of `once` on one stream and those of `twice` on two:
    each was sent for each subscription of the session that it passes. Too few count once the track
    ended."""
    for request in evidence.asked(arguments["of"]):
        streams: dict[tuple[int, int], set[int | None]] = {}
        for one in evidence.objects(request.record.node, unwanted=True):
            if one.track == request.track:
                streams.setdefault(one.location, set()).add(one.stream)
        wrong = next(
            (
                (place, number)
                for number, word in ((1, "once"), (2, "twice"))
                for place in ((g, o) for g, o in arguments[word])
                if len(streams.get(place, ())) != number
            ),
            None,
        )
        end = ended(evidence, request)
        if wrong is None:
            yield upheld(f"{described(request)}: each Object for each subscription", end)
        elif end is None:
            yield unseen(f"{described(request)}: {wrong[0]} is wanting, and the track goes on")
        else:
            yield contradicted(
                Reason.OBJECT_MISSING
                if len(streams.get(wrong[0], ())) < wrong[1]
                else Reason.OBJECT_DUPLICATE,
                f"{described(request)}: {wrong[0]} was not sent for each subscription",
                expected=f"on {wrong[1]} streams",
                observed=f"on {len(streams.get(wrong[0], ()))}",
                record=end,
            )


@judge("overtakes", required=("of", "before"), of=LABEL, before=LABEL)
def overtakes(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The fetches of the step end before those of the step `before`, which were asked for first
    and were under way: what is more urgent goes first."""
    slow = evidence.asked(arguments["before"])
    for request in evidence.asked(arguments["of"]):
        end = ended(evidence, request)
        others = [ended(evidence, other) for other in slow]
        under_way = any(
            one.record.index < request.record.index
            for other in slow
            for one in delivered(evidence, other)
        )
        if end is None or not under_way or not others or None in others:
            yield unseen(f"{described(request)}: not both came to their end")
            continue
        first = min(other.index for other in others if other is not None)
        if end.index > first:
            yield contradicted(
                Reason.PRIORITY_ORDER,
                f"{described(request)}: ended after what is less urgent",
                expected="the more urgent fetch ends first",
                observed=f"at {end.time:.3f} s, after the other",
                record=end,
            )
        else:
            yield upheld(f"{described(request)}: overtook what is less urgent", end)


@judge("first-group", required=("of", "group"), of=LABEL, group={"type": "integer"})
def first_group(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The first Object of each fetch of the step lies in this Group: it is the first one in the
    order that was asked for, and it exists."""
    for request in evidence.asked(arguments["of"]):
        objects = delivered(evidence, request)
        if not objects:
            yield unseen(f"{described(request)}: no Object came")
        elif objects[0].group != arguments["group"]:
            yield contradicted(
                Reason.ORDER_LAYERS,
                f"{described(request)}: begins with another Group",
                expected=f"Group {arguments['group']}",
                observed=str(objects[0].location),
                record=objects[0].record,
            )
        else:
            yield upheld(f"{described(request)}: begins with Group {objects[0].group}")
