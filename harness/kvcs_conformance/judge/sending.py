"""Judge words for what is sent, and in which order, when requests compete, stop or fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Record
from kvcs_conformance.judge.delivery import LABEL, answer, delivered, described, ended, fenced
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason


@judge("more-urgent-first", required=("of", "than"), of=LABEL, than=LABEL)
def more_urgent_first(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The FETCHes of step `of`, which are more urgent, end before those of step `than`, although
    those were asked for earlier and were still being served."""
    urgent, other = evidence.asked(arguments["of"]), evidence.asked(arguments["than"])
    ends = [ended(evidence, request) for request in (*urgent, *other)]
    if not urgent or not other or None in ends:
        yield unseen("not every FETCH came to its end")
        return
    first = max(record.index for record in ends[: len(urgent)] if record is not None)
    last = min((r for r in ends[len(urgent) :] if r is not None), key=lambda record: record.index)
    if last.index < urgent[0].record.index:
        yield unseen("the less urgent FETCH had ended before the urgent one was asked for")
    elif last.index < first:
        yield contradicted(
            Reason.ORDER_URGENCY,
            f"{described(urgent[0])}: ended after a less urgent one",
            expected="the FETCH with the lower Subscriber Priority value to be sent first",
            observed=f"{described(other[0])} ended at {last.time:.3f} s, before it",
            record=last,
        )
    else:
        yield upheld(f"{described(urgent[0])}: ended before the less urgent one", last)


@judge("stays-stopped", required=("of",), of=LABEL)
def stays_stopped(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Subgroup whose stream the node stopped comes on no other stream afterwards. Absence
    counts once the track ended, or behind a fence."""
    for request in evidence.asked(arguments["of"]):
        node = request.record.node
        headers = {
            record.data["stream"]: record.data["header"]
            for record in evidence.records(node, "moqt:stream_accepted")
            if record.data["kind"] == "subgroup"
        }
        stops = [
            record
            for record in evidence.records(node, "kvcs:stop")
            if record.data["request"] == request.request and record.data["stream"] in headers
        ]
        if not stops:
            yield unseen(f"{described(request)}: no stream of it was stopped")
            continue
        stop = stops[0]
        key = _subgroup(headers[stop.data["stream"]])
        again = next(
            (
                record
                for record in evidence.records(node, "moqt:stream_accepted")
                if record.index > stop.index
                and record.data["kind"] == "subgroup"
                and _subgroup(record.data["header"]) == key
            ),
            None,
        )
        if again is not None:
            yield contradicted(
                Reason.STREAM_SECOND,
                f"{described(request)}: a Subgroup that was stopped came again",
                expected=f"no other stream for {key}",
                observed=f"stream {again.data['stream']}",
                record=again,
            )
        elif ended(evidence, request) is None and not _fenced_after(evidence, stop):
            yield unseen(f"{described(request)}: neither an end nor a fence follows the stop")
        else:
            yield upheld(f"{described(request)}: what was stopped did not come again", stop)


def _subgroup(header: dict[str, Any]) -> tuple[int, int, int | None]:
    return (header["track_alias"], header["group"], header["subgroup"])


def _fenced_after(evidence: Evidence, record: Record) -> bool:
    fences = evidence.records(record.node, "kvcs:fence")
    return any(fence.index > record.index for fence in fences)


@judge("refused-gets-nothing", required=("of",), of=LABEL)
def refused_gets_nothing(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each request of the step is refused, and no Object comes for it, nor a stream that names
    it. Absence counts behind a fence."""
    for request in evidence.asked(arguments["of"]):
        got = answer(evidence, request)
        refused = got is not None and got[1]["type"] == "RequestError"
        stray = _stream_for(evidence, request)
        if not refused:
            yield unseen(f"{described(request)}: it was not refused")
        elif stray is not None:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{described(request)}: refused, and served all the same",
                expected="no stream and no Object after REQUEST_ERROR",
                observed=f"stream {stray.data.get('stream')}",
                record=stray,
            )
        elif not fenced(evidence, request):
            yield unseen(f"{described(request)}: no fence follows")
        else:
            yield upheld(
                f"{described(request)}: refused, and nothing came", got[0] if got else None
            )


@judge("served-alike", required=("of", "as"), of=LABEL, **{"as": LABEL})
def served_alike(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The requests of step `of` get every data Object that those of step `as` get for the same
    track. Absence counts behind a fence after the end of the latter."""
    others = {request.track: request for request in evidence.asked(arguments["as"])}
    for request in evidence.asked(arguments["of"]):
        other = others.get(request.track)
        end = ended(evidence, other) if other is not None else None
        if other is None or end is None:
            yield unseen(f"{described(request)}: nothing that has ended to compare with")
            continue
        right = {seen.location for seen in delivered(evidence, other) if seen.is_data}
        got = {seen.location for seen in delivered(evidence, request) if seen.is_data}
        missing = sorted(right - got)
        if missing and _fenced_after(evidence, end):
            yield contradicted(
                Reason.OBJECT_MISSING,
                f"{described(request)}: {missing[0]} never came, though {described(other)} got it",
                expected=f"{len(right)} Objects",
                observed=f"{len(got)}",
                record=end,
            )
        elif missing:
            yield unseen(f"{described(request)}: {missing[0]} has not come, and no fence follows")
        else:
            yield upheld(f"{described(request)}: {len(right)} Objects as {described(other)}", end)


def _stream_for(evidence: Evidence, request: Asked) -> Record | None:
    """The first Object or stream that came for a request."""
    for seen in delivered(evidence, request):
        return seen.record
    for record in evidence.records(request.record.node, "moqt:stream_unclaimed"):
        if record.data.get("request") == request.request:
            return record
    for record in evidence.records(request.record.node, "moqt:stream_accepted"):
        header = record.data.get("header") or {}
        if record.data["kind"] == "fetch" and header.get("request_id") == request.request:
            return record
    return None
