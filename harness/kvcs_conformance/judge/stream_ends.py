"""Judge words for how streams and subscriptions end: FIN, resets, PUBLISH_DONE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Record
from kvcs_conformance.judge.delivery import LABEL, described
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import (
    Stream,
    fetch_streams,
    messages_on,
    request_stream,
    subgroup_streams,
)
from kvcs_conformance.verdicts import Reason

_UNKNOWN_COUNT = (1 << 64) - 1
_REORDERED = 0.5
"""Seconds by which a packet that is lost and sent again may hold back one stream on a network."""
_COUNT = {"type": "integer", "minimum": 0}


def _streams(evidence: Evidence, request: Asked) -> list[Stream]:
    return subgroup_streams(evidence, request) + fetch_streams(evidence, request)


def _done(evidence: Evidence, request: Asked) -> tuple[Record, dict[str, Any]] | None:
    for record, message in messages_on(evidence, request):
        if message["type"] == "PublishDone":
            return record, dict(message)
    return None


@judge(
    "streams-end",
    required=("of", "how"),
    of=LABEL,
    how={"enum": ["fin", "reset"]},
    via={"enum": ["subscription", "fetch"]},
    group=_COUNT,
    codes={"type": "array"},
)
def streams_end(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The data streams of the step's requests (of one `group`, of one `via`) end with FIN, or with
    a reset and one of these `codes`. A stream without end counts against the relay behind a later
    fence of the node, or behind PUBLISH_DONE; one that the node itself stopped says nothing."""
    how, via = arguments["how"], arguments.get("via")
    for request in evidence.asked(arguments["of"]):
        streams = [
            stream
            for stream in (
                subgroup_streams(evidence, request)
                if via == "subscription"
                else fetch_streams(evidence, request)
                if via == "fetch"
                else _streams(evidence, request)
            )
            if "group" not in arguments
            or any(one.group == arguments["group"] for one in stream.objects)
        ]
        if not streams:
            yield unseen(f"{described(request)}: no such stream came")
            continue
        for stream in streams:
            if stopped(evidence, request.record.node, stream):
                yield unseen(f"{described(request)}: {stream} was stopped by who asked")
            else:
                yield _ended_right(evidence, request, stream, how, arguments.get("codes"))


def stopped(evidence: Evidence, node: str, stream: Stream) -> bool:
    """Whether the node asked its peer to stop this data stream before it had ended."""
    end = stream.fin or stream.reset
    return any(
        record.data["stream"] == stream.id and (end is None or record.index < end.index)
        for record in evidence.records(node, "moqt:stop_sent")
    )


def _ended_right(
    evidence: Evidence, request: Asked, stream: Stream, how: str, codes: list[int] | None
) -> Finding:
    wrong, right = (stream.reset, stream.fin) if how == "fin" else (stream.fin, stream.reset)
    expected = "FIN" if how == "fin" else f"RESET_STREAM, code in {codes or 'any'}"
    if wrong is not None:
        observed = "FIN" if how == "reset" else f"RESET_STREAM {wrong.data['code']:#x}"
    elif right is None:
        late = [
            record
            for record in evidence.records(request.record.node, "kvcs:fence", "kvcs:track-ended")
            if record.index > stream.record.index
        ]
        if not late:
            return unseen(f"{described(request)}: {stream} has not ended")
        wrong, observed = late[-1], "no end"
    elif how == "reset" and codes is not None and right.data["code"] not in codes:
        return contradicted(
            Reason.STREAM_CODE,
            f"{described(request)}: {stream} was reset with another code",
            expected=f"one of {[hex(code) for code in codes]}",
            observed=f"{right.data['code']:#x}",
            record=right,
        )
    else:
        return upheld(f"{described(request)}: {stream} ended by {how}", right)
    return contradicted(
        Reason.STREAM_END,
        f"{described(request)}: {stream} did not end as it must",
        expected=expected,
        observed=observed,
        record=wrong,
    )


@judge("done-counts-streams", required=("of",), of=LABEL, count=_COUNT)
def done_counts_streams(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """PUBLISH_DONE of each request counts the data streams that came for it, fills too (or says
    that it does not know); with `count` so many."""
    for request in evidence.asked(arguments["of"]):
        done = _done(evidence, request)
        if done is None:
            yield unseen(f"{described(request)}: no PUBLISH_DONE came")
            continue
        came = len(_streams(evidence, request))
        told = done[1].get("stream_count", 0)
        right = arguments.get("count", came)
        if came != right:
            yield unseen(f"{described(request)}: {came} streams came, the case is about {right}")
        elif told != right and not (right and told in (None, _UNKNOWN_COUNT)):
            yield contradicted(
                Reason.DONE_COUNT,
                f"{described(request)}: PUBLISH_DONE counts other streams than came",
                expected=f"Stream Count {right}",
                observed=f"Stream Count {told}",
                record=done[0],
            )
        else:
            yield upheld(f"{described(request)}: Stream Count {told}", done[0])


@judge("done-after-streams", required=("of",), of=LABEL)
def done_after_streams(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """PUBLISH_DONE comes when all streams of the subscription are closed: no stream opens or ends
    clearly later than it came (a network may let streams overtake each other by 0.5 s)."""
    slack = 0.0 if evidence.facts.get("link") == "memory" else _REORDERED
    for request in evidence.asked(arguments["of"]):
        done = _done(evidence, request)
        streams = _streams(evidence, request)
        if done is None or not streams:
            yield unseen(f"{described(request)}: no PUBLISH_DONE, or no stream came")
            continue
        late = next(
            (
                one
                for stream in streams
                for one in (stream.record, stream.fin or stream.reset)
                if one is not None
                and one.index > done[0].index
                and one.time >= done[0].time + slack
            ),
            None,
        )
        if late is not None:
            yield contradicted(
                Reason.DONE_EARLY,
                f"{described(request)}: PUBLISH_DONE came before a stream was closed",
                expected="PUBLISH_DONE after the end of every stream",
                observed=f"stream {late.data['stream']} went on at {late.time:.3f} s, PUBLISH_DONE "
                f"came at {done[0].time:.3f} s",
                record=late,
            )
        elif any(stream.fin is None and stream.reset is None for stream in streams):
            yield unseen(f"{described(request)}: a stream has not ended")
        else:
            yield upheld(
                f"{described(request)}: PUBLISH_DONE after {len(streams)} streams", done[0]
            )


@judge("done-then-fin", required=("of",), of=LABEL)
def done_then_fin(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The publisher's side of a subscription's own stream ends with FIN, and PUBLISH_DONE came
    before. One that the node cancelled itself owes no PUBLISH_DONE."""
    for request in evidence.asked(arguments["of"]):
        stream = request_stream(evidence, request)
        fin = next(
            (
                record
                for record in evidence.records(request.record.node, "moqt:fin_received")
                if record.data["stream"] == stream
            ),
            None,
        )
        done = _done(evidence, request)
        cancelled = any(
            record.data["stream"] == stream and (fin is None or record.index < fin.index)
            for record in evidence.records(request.record.node, "moqt:reset_sent", "moqt:stop_sent")
        )
        if fin is None or (cancelled and done is None):
            why = "the node cancelled it" if cancelled else "its stream has not ended"
            yield unseen(f"{described(request)}: {why}")
        elif done is None:
            yield contradicted(
                Reason.DONE_ABSENT,
                f"{described(request)}: FIN without PUBLISH_DONE",
                expected="PUBLISH_DONE, then FIN",
                observed="FIN",
                record=fin,
            )
        else:
            yield upheld(f"{described(request)}: PUBLISH_DONE, then FIN", fin)


@judge("done-code", required=("of", "codes"), of=LABEL, codes={"type": "array"})
def done_code(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """PUBLISH_DONE comes for each request of the step, with one of these codes."""
    codes = arguments["codes"]
    for request in evidence.asked(arguments["of"]):
        done = _done(evidence, request)
        if done is None:
            yield unseen(f"{described(request)}: no PUBLISH_DONE came")
        elif done[1]["status_code"] not in codes:
            yield contradicted(
                Reason.DONE_CODE,
                f"{described(request)}: PUBLISH_DONE has another code",
                expected=f"one of {[hex(code) for code in codes]}",
                observed=f"{done[1]['status_code']:#x} {done[1].get('reason', '')}".strip(),
                record=done[0],
            )
        else:
            yield upheld(f"{described(request)}: PUBLISH_DONE {done[1]['status_code']:#x}", done[0])


@judge("nothing-after-cancel", required=("of",), of=LABEL)
def nothing_after_cancel(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """No data stream opens for the step's requests after the answer to a fence that was asked for
    behind their end: a refusal, or a stop of theirs that a `stop-stream` or `cancel` step sent."""
    for request in evidence.asked(arguments["of"]):
        node = request.record.node
        over = next(
            (
                record
                for record in evidence.records(node, "kvcs:answered", "kvcs:cancel", "kvcs:stop")
                if record.data.get("request") == request.request
                and (
                    record.name != "kvcs:answered"
                    or record.data["response"]["type"] == "RequestError"
                )
            ),
            None,
        )
        fences = [
            record
            for record in evidence.records(node, "kvcs:fence")
            if over is not None and record.index > over.index
        ]
        if len(fences) < 2:
            yield unseen(f"{described(request)}: no end with two fences behind it")
            continue
        late = next(
            (
                stream
                for stream in _streams(evidence, request)
                if stream.record.index > fences[0].index
                and (
                    over is None
                    or over.name != "kvcs:stop"
                    or stream.group == _group_of(evidence, request, over)
                )
            ),
            None,
        )
        came = late.record if late is not None else _unclaimed(evidence, request)
        if came is not None:
            yield contradicted(
                Reason.STREAM_SECOND,
                f"{described(request)}: a stream opened after the end",
                expected="no stream",
                observed=f"stream {came.data['stream']} at {came.time:.3f} s",
                record=came,
            )
        else:
            yield upheld(f"{described(request)}: no stream opened afterwards", fences[-1])


def _unclaimed(evidence: Evidence, request: Asked) -> Record | None:
    """A fetch stream that came for a request that was refused."""
    for record in evidence.records(request.record.node, "moqt:stream_unclaimed"):
        if record.data["request"] == request.request:
            return record
    return None


def _group_of(evidence: Evidence, request: Asked, stopped: Record) -> int | None:
    for stream in _streams(evidence, request):
        if stream.id == stopped.data["stream"] and stream.header["type"] == "SubgroupHeader":
            return stream.group
    return None


@judge("prompt", required=("of",), of=LABEL)
def prompt(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each request of the step is refused, or its delivery ended, before the second fence of the
    node behind it was passed: it did not wait for anybody."""
    for request in evidence.asked(arguments["of"]):
        node = request.record.node
        over = next(
            (
                record
                for record in evidence.records(node, "kvcs:delivered", "kvcs:answered")
                if record.data["request"] == request.request
                and (
                    record.name == "kvcs:delivered"
                    or record.data["response"]["type"] == "RequestError"
                )
            ),
            None,
        )
        fences = [
            record
            for record in evidence.records(node, "kvcs:fence")
            if record.index > request.record.index
        ]
        if len(fences) > 1 and (over is None or over.index > fences[1].index):
            yield contradicted(
                Reason.ANSWER_LATE,
                f"{described(request)}: waited where it must not",
                expected="an end, or a refusal, at once",
                observed="never" if over is None else f"at {over.time:.3f} s",
                record=over or fences[1],
            )
        elif over is None or len(fences) < 2:
            yield unseen(f"{described(request)}: neither an end nor two fences")
        else:
            yield upheld(f"{described(request)}: over before a fence", over)
