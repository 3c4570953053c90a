"""Judge words for a relay's answers, and for what it asks of its publishers for their sake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence
from kvcs_conformance.judge.delivery import LABEL, answer, delivered, described, ended, fenced
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import fetch_streams, messages_on
from kvcs_conformance.verdicts import Reason

_PLACE = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}}
_COUNT = {"type": "integer", "minimum": 0}
_ANSWERS = {"SUBSCRIBE": "SubscribeOk", "FETCH": "FetchOk", "TRACK_STATUS": "RequestOk"}


@judge("one-answer", required=("of",), of=LABEL)
def one_answer(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each request of the step gets its OK or REQUEST_ERROR, and never a second one. That none
    came counts once the delivery ended, or behind a fence of the node."""
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        kinds = (_ANSWERS[request.kind], "RequestError")
        got = [
            record for record, message in messages_on(evidence, request) if message["type"] in kinds
        ]
        updates = sum(
            record.data["request"] == request.request
            for record in evidence.records(request.record.node, "kvcs:updated")
        )
        if len(got) > 1 + updates:
            yield contradicted(
                Reason.ANSWER_NUMBER,
                f"{described(request)}: answered more than once",
                expected="one answer",
                observed=f"{len(got)} answers",
                record=got[1],
            )
        elif got:
            yield upheld(f"{described(request)}: one answer", got[0])
        elif (end := ended(evidence, request)) is not None or fenced(evidence, request):
            yield contradicted(
                Reason.ANSWER_NUMBER,
                f"{described(request)}: no answer ever came",
                expected="one answer",
                observed="none" if end is None else "Objects and their end, but no answer",
                record=end or request.record,
            )
        else:
            yield unseen(f"{described(request)}: no answer came")


@judge("waits-for-upstream", required=("of",), of=LABEL, publisher=NODE)
def waits_for_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The positive answer to the step's request comes after the publisher gave its own; a fence of
    the node between the request and the publisher's answer shows that there was time."""
    node = arguments.get("publisher", "publisher")
    for request in evidence.asked(arguments["of"]):
        told = next(
            (
                record
                for record, _ in evidence.messages(node, _ANSWERS[request.kind], sent=True)
                if record.time >= request.record.time
            ),
            None,
        )
        got = answer(evidence, request)
        fence = next(
            (
                record
                for record in evidence.records(request.record.node, "kvcs:fence")
                if record.index > request.record.index
                and (told is None or record.time <= told.time)
            ),
            None,
        )
        if (
            got is not None
            and got[1]["type"] != "RequestError"
            and (told is None or got[0].time < told.time)
        ):
            yield contradicted(
                Reason.ANSWER_EARLY,
                f"{described(request)}: answered before the publisher had answered",
                expected=f"{_ANSWERS[request.kind]} after that of the publisher",
                observed=f"at {got[0].time:.3f} s, the publisher "
                + ("never" if told is None else f"at {told.time:.3f} s"),
                record=got[0],
            )
        elif got is None or fence is None:
            yield unseen(f"{described(request)}: no answer, or no fence before the publisher's")
        else:
            yield upheld(f"{described(request)}: answered after the publisher", got[0])


@judge("nothing-before-upstream", required=("of",), of=LABEL, objects={"type": "array"})
def nothing_before_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Of the step's requests, these Objects come after the origin released what it held, and some
    that were in the cache come before."""
    late = {(g, o) for g, o in arguments.get("objects", ())}
    for request in evidence.asked(arguments["of"]):
        freed = next(
            (
                record
                for name in evidence.logs
                for record in evidence.records(name, "kvcs:released")
                if record.time >= request.record.time
            ),
            None,
        )
        got = delivered(evidence, request)
        early = [one for one in got if freed is None or one.record.time < freed.time]
        wrong = next((one for one in early if one.location in late), None)
        if wrong is not None:
            yield contradicted(
                Reason.ANSWER_EARLY,
                f"{described(request)}: {wrong.location} came before what lies in front of it was "
                "known",
                expected="nothing behind the first unknown Object until it is resolved",
                observed=f"{wrong.location} at {wrong.record.time:.3f} s",
                record=wrong.record,
            )
        elif freed is None or not early or not {one.location for one in got} >= late:
            yield unseen(f"{described(request)}: not all came, or nothing before the release")
        else:
            yield upheld(f"{described(request)}: nothing past the hole before it was filled")


@judge(
    "largest-told",
    required=("of",),
    of=LABEL,
    largest=_PLACE,
    as_delivered=LABEL,
    nth=_COUNT,
)
def largest_told(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The positive answer to each request of the step has this LARGEST_OBJECT; without `largest`
    it has none; with `as-delivered` it is the largest Location that the step of that label brought
    of the same Track, which had ended before. `nth` counts the OKs on the stream from 0: later
    ones answer updates."""
    nth = arguments.get("nth", 0)
    for request in evidence.asked(arguments["of"]):
        right = arguments.get("largest")
        if "as-delivered" in arguments:
            right = _largest_of(evidence, arguments["as-delivered"], request)
            if right is None:
                yield unseen(f"{described(request)}: nothing shows what the Track's Largest is")
                continue
        oks = [
            (record, message)
            for record, message in messages_on(evidence, request)
            if message["type"] in ("SubscribeOk", "RequestOk")
        ]
        if len(oks) <= nth:
            yield unseen(f"{described(request)}: no such OK came")
            continue
        record, message = oks[nth]
        told = message.get("parameters", {}).get("largest_object")
        if told != right:
            yield contradicted(
                Reason.LARGEST,
                f"{described(request)}: LARGEST_OBJECT is wrong",
                expected="absent" if right is None else str(right),
                observed="absent" if told is None else str(told),
                record=record,
            )
        else:
            yield upheld(f"{described(request)}: LARGEST_OBJECT {told}", record)


def _largest_of(evidence: Evidence, label: str, request: Asked) -> list[int] | None:
    """The largest Location of the request's Track that another step brought, once it had ended."""
    for other in evidence.asked(label):
        end = ended(evidence, other)
        if other.track == request.track and end and end.time <= request.record.time:
            locations = [seen.location for seen in delivered(evidence, other)]
            return list(max(locations)) if locations else None
    return None


@judge("properties-told", required=("of",), of=LABEL, publisher=NODE)
def properties_told(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The answer to each request of the step has the very octets of Track Properties that the
    publisher sent."""
    node = arguments.get("publisher", "publisher")
    right = next(
        (
            message["track_properties"]
            for _, message in evidence.messages(
                node, "SubscribeOk", "FetchOk", "RequestOk", sent=True
            )
            if message.get("track_properties")
        ),
        None,
    )
    for request in evidence.asked(arguments["of"]):
        got = answer(evidence, request)
        if right is None or got is None:
            yield unseen(f"{described(request)}: no answer, or no properties upstream")
            continue
        told = got[1].get("track_properties", "")
        if told != right:
            yield contradicted(
                Reason.PROPERTY_CHANGED,
                f"{described(request)}: Track Properties are not those of the publisher",
                expected=right,
                observed=told or "none",
                record=got[0],
                octets=told,
            )
        else:
            yield upheld(f"{described(request)}: Track Properties as the publisher's", got[0])


@judge("fill-streams", required=("of", "count"), of=LABEL, count=_COUNT)
def fill_streams(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """So many fill streams open for each request of the step, its updates included; that none, or
    no other, opens counts once the track ended, or behind a fence of the node."""
    right = arguments["count"]
    for request in evidence.asked(arguments["of"]):
        streams = fetch_streams(evidence, request)
        over = ended(evidence, request) is not None or fenced(evidence, request)
        if len(streams) > right or (len(streams) < right and over):
            yield contradicted(
                Reason.FILL_STREAMS,
                f"{described(request)}: another number of fill streams opened",
                expected=str(right),
                observed=str(len(streams)),
                record=streams[-1].record if streams else request.record,
            )
        elif len(streams) == right and over:
            yield upheld(f"{described(request)}: {right} fill streams")
        else:
            yield unseen(f"{described(request)}: {len(streams)} fill streams, and no end")
