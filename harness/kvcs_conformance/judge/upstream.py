"""Judge words for what a relay asks of its publishers, and whether it had to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Seen
from kvcs_conformance.judge.delivery import LABEL, answer, delivered, described, ended
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_NODES = {"type": "array", "minItems": 1, "items": {"type": "string"}}


@judge(
    "asked-upstream",
    required=("type",),
    type={"enum": ["Subscribe", "Fetch", "RequestUpdate", "TrackStatus"]},
    publishers=_NODES,
    forward={"enum": [0, 1]},
    of=LABEL,
)
def asked_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each of the publishers gets a message of that type (after the step `of`), with that FORWARD
    where it is told; an absent FORWARD of a SUBSCRIBE is 1. Absence counts behind a fence of any
    node after the step, or once the step's delivery ended."""
    kind = arguments["type"]
    asked = evidence.asked(arguments["of"]) if "of" in arguments else []
    since = min((request.record.time for request in asked), default=0.0)
    proofs = [ended(evidence, request) for request in asked]
    proofs += [
        record
        for node in evidence.logs
        for record in evidence.records(node, "kvcs:fence")
        if record.time > since
    ]
    proof = next((record for record in proofs if record is not None), None)
    for node in arguments.get("publishers", ["publisher"]):
        found = [
            (record, message)
            for record, message in evidence.messages(node, kind)
            if record.time >= since
        ]
        right = [pair for pair in found if _forward(pair[1]) == arguments.get("forward", 1)]
        if "forward" not in arguments:
            right = found
        if right:
            yield upheld(f"{node}: a {kind} came", right[0][0])
        elif found:
            yield contradicted(
                Reason.UPSTREAM_FORWARD,
                f"{node}: {kind} came with another FORWARD",
                expected=f"FORWARD {arguments['forward']}",
                observed=f"FORWARD {_forward(found[0][1])}",
                record=found[0][0],
            )
        elif proof is not None:
            yield contradicted(
                Reason.UPSTREAM_SILENT,
                f"{node}: was not asked",
                expected=f"a {kind}",
                observed="none before a fence that came later",
                record=proof,
            )
        else:
            yield unseen(f"{node}: no {kind} came, and no fence behind it")


def _forward(message: Any) -> int | None:
    own = message.get("parameters", {}).get("forward")
    if own is None and message["type"] == "Subscribe":
        return 1
    return None if own is None else int(own)


@judge(
    "not-asked-upstream",
    required=("of", "type"),
    of=LABEL,
    publisher=NODE,
    type={"enum": ["Subscribe", "Fetch"]},
)
def not_asked_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Between the step's requests and their answers no message of that type reaches the
    publisher."""
    node, kind = arguments.get("publisher", "publisher"), arguments["type"]
    for request in evidence.asked(arguments["of"]):
        got = answer(evidence, request)
        if got is None:
            yield unseen(f"{described(request)}: no answer came")
            continue
        again = next(
            (
                record
                for record, _ in evidence.messages(node, kind)
                if request.record.time < record.time <= got[0].time
            ),
            None,
        )
        if again is not None:
            yield contradicted(
                Reason.UPSTREAM_REPEATED,
                f"{described(request)}: the publisher was asked although it had accepted before",
                expected=f"no {kind} upstream",
                observed=f"one at {again.time:.3f} s",
                record=again,
            )
        else:
            yield upheld(f"{described(request)}: answered without asking upstream", got[0])


@judge("transferred-again", required=("of",), of=LABEL)
def transferred_again(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """What the step's requests got was sent by a publisher anew, after the request: the cache may
    not serve it any more (or had to let it go)."""
    for request in evidence.asked(arguments["of"]):
        got = [one for one in delivered(evidence, request) if one.status == "NORMAL"]
        stale = next(_not_sent_anew(evidence, request, got), None)
        if stale is not None:
            yield contradicted(
                Reason.OBJECT_EXPIRED,
                f"{described(request)}: {stale.location} came from a cache that had to let it go",
                expected="an Object that the publisher sent again, or none",
                observed=f"{stale.location} at {stale.record.time:.3f} s from the cache",
                record=stale.record,
            )
        elif ended(evidence, request) is None and answer(evidence, request) is None:
            yield unseen(f"{described(request)}: neither end nor answer")
        else:
            yield upheld(f"{described(request)}: {len(got)} Objects, all sent anew")


def _not_sent_anew(evidence: Evidence, request: Asked, got: Iterable[Seen]) -> Iterator[Seen]:
    """Of what a request got, the Objects that no publisher sent after it: they were kept."""
    nodes = [
        name
        for name, facts in evidence.facts["nodes"].items()
        if facts["kind"] in ("publisher", "origin")
    ]
    anew = {
        (one.namespace, one.track, one.location)
        for node in nodes
        for one in evidence.objects(node, sent=True)
        if one.record.time >= request.record.time
    }
    return (one for one in got if (one.namespace, one.track, one.location) not in anew)


@judge("absent-not-kept", required=("of", "objects"), of=LABEL, objects={"type": "array"})
def absent_not_kept(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """None of these Objects, which did not exist when the publisher was asked first, comes from
    the relay's cache. A relay that knows of nothing that it passed on may ask the publisher again:
    what the publisher sends after the request of the step may come."""
    absent = {(g, o) for g, o in arguments["objects"]}
    for request in evidence.asked(arguments["of"]):
        got = [one for one in delivered(evidence, request) if one.location in absent]
        kept = next(_not_sent_anew(evidence, request, got), None)
        if kept is not None:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{described(request)}: {kept.location} was kept, though it was known not to exist",
                expected="no such Object from the cache",
                observed=f"{kept.location} by {kept.via}",
                record=kept.record,
            )
        elif (end := ended(evidence, request)) is not None:
            yield upheld(f"{described(request)}: nothing that does not exist was kept", end)
        else:
            yield unseen(f"{described(request)}: the delivery has not ended")


@judge("resumed-upstream", publishers=_NODES)
def resumed_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each publisher that was paused by the relay (FORWARD 0) gets a REQUEST_UPDATE that resumes
    it, before a fence that comes after all requests. One that never was paused is content."""
    last = max(
        (
            record.time
            for node in evidence.logs
            for record in evidence.records(node, "kvcs:asked", "kvcs:updated")
            if record.data.get("kind") != "TRACK_STATUS"
        ),
        default=0.0,
    )
    proof = next(
        (
            record
            for node in evidence.logs
            for record in evidence.records(node, "kvcs:fence")
            if record.time > last
        ),
        None,
    )
    for node in arguments.get("publishers", ["publisher"]):
        asked = [message for _, message in evidence.messages(node, "Subscribe")]
        resumed = [
            record
            for record, message in evidence.messages(node, "RequestUpdate")
            if _forward(message) == 1
        ]
        if not asked:
            yield unseen(f"{node}: no SUBSCRIBE came")
        elif all(_forward(message) == 1 for message in asked):
            yield upheld(f"{node}: never paused")
        elif resumed:
            yield upheld(f"{node}: resumed", resumed[0])
        elif proof is not None:
            yield contradicted(
                Reason.UPSTREAM_FORWARD,
                f"{node}: stayed paused although somebody wants Objects",
                expected="REQUEST_UPDATE with FORWARD 1",
                observed="none before a later fence",
                record=proof,
            )
        else:
            yield unseen(f"{node}: paused, and no fence behind the last request")


@judge("cancelled-upstream", required=("publishers",), publishers=_NODES)
def cancelled_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The relay cancels what it asked each of these publishers for: its side of the stream of a
    SUBSCRIBE or FETCH is reset, or the publisher's side stopped. That it does not counts behind a
    fence that comes after the publisher's last Object."""
    for node in arguments["publishers"]:
        asked = {
            record.data["stream"] for record, _ in evidence.messages(node, "Subscribe", "Fetch")
        }
        over = next(
            (
                record
                for record in evidence.records(node, "moqt:reset_received", "moqt:stop_received")
                if record.data["stream"] in asked
            ),
            None,
        )
        last = max((one.record.time for one in evidence.objects(node, sent=True)), default=None)
        proof = next(
            (
                record
                for name in evidence.logs
                for record in evidence.records(name, "kvcs:fence")
                if last is not None and record.time > last
            ),
            None,
        )
        if over is not None:
            yield upheld(f"{node}: its request was cancelled", over)
        elif proof is not None:
            yield contradicted(
                Reason.MALFORMED_KEPT,
                f"{node}: what it sent breaks the track's rules, and it was not cancelled",
                expected="STOP_SENDING or a reset on the request's stream",
                observed="neither before a later fence",
                record=proof,
            )
        else:
            yield unseen(f"{node}: no fence after its last Object")
