"""Judge words for what was done to the network: a case proves something only if it happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Record
from kvcs_conformance.judge.delivery import delivered, described, ended
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import request_stream
from kvcs_conformance.verdicts import Reason

NETWORK = "network"
FAULTS = (
    "lost",
    "dropped",
    "overtaken",
    "partitioned",
    "healed",
    "connection-lost",
    "held",
    "released",
    "reset",
    "reading-stopped",
    "not-read",
    "reading",
    "killed",
    "restarted",
    "no-stream-left",
)
_STRING = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 0}
_DETAILS = ("from", "to", "track", "layer", "node")


@judge(
    "network-fault-happened",
    required=("fault",),
    fault={"enum": list(FAULTS)},
    between={"type": "array", "minItems": 2, "maxItems": 2},
    times={"type": "integer", "minimum": 1},
    passed=_STRING,
    **{"from": _STRING, "to": _STRING, "track": _STRING, "layer": _NUMBER, "node": _STRING},
)
def network_fault_happened(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """What the case does to the network was really done, `times` at least (default 1): the log of
    the network has it, with these details. For `held`, `passed` names a control message that the
    sender sent while such a stream was held. Never contradicted: without the fault the case
    proves nothing."""
    fault = arguments["fault"]
    records = [
        record
        for record in evidence.records(NETWORK, f"network:{fault}")
        if _fits(record, arguments)
    ]
    wanted = arguments.get("times", 1)
    told = " ".join(str(arguments[key]) for key in _DETAILS if key in arguments)
    if len(records) < wanted:
        yield unseen(
            f"{fault} {told}: happened {len(records)} of {wanted} times".replace(" :", ":")
        )
        return
    passed = arguments.get("passed")
    if passed is not None and not any(_passed(evidence, record, passed) for record in records):
        yield unseen(f"no {passed} was sent while a stream was held")
        return
    yield upheld(f"{fault} {told}: {len(records)} times".replace(" :", ":"), records[-1])


def _fits(record: Record, arguments: Mapping[str, Any]) -> bool:
    if "between" in arguments and set(record.data["between"]) != set(arguments["between"]):
        return False
    return all(record.data.get(key) == arguments[key] for key in _DETAILS if key in arguments)


def _passed(evidence: Evidence, held: Record, message: str) -> bool:
    """Whether the sender sent such a message between the holding of a stream and its release."""
    end = next(
        (
            record.time
            for record in evidence.records(NETWORK, "network:released")
            if record.data["stream"] == held.data["stream"]
            and record.data["from"] == held.data["from"]
            and record.data["to"] == held.data["to"]
            and record.index > held.index
        ),
        None,
    )
    return any(
        held.time <= record.time and (end is None or record.time <= end)
        for record, _ in evidence.messages(held.data["from"], message, sent=True)
    )


def _given_up(evidence: Evidence, request: Asked) -> bool:
    """Whether the peer ended the request's own stream."""
    stream = request_stream(evidence, request)
    return any(
        record.data["stream"] == stream
        for record in evidence.records(
            request.record.node, "moqt:fin_received", "moqt:reset_received"
        )
    )


SILENCE = 1.0
"""Seconds between what a publisher sent last and an answered probe that make silence count."""


@judge("not-stalled", required=("of",), of={"type": "string"})
def not_stalled(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each request of the step came to its end: FIN, or PUBLISH_DONE with all its streams. That it
    did not counts when Objects are missing that a publisher of ours sent, the request's own stream
    is open, and the peer answered a probe of the node a second or more after the last of them."""
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        end = ended(evidence, request)
        if end is not None:
            yield upheld(f"{described(request)}: ended", end)
            continue
        sent = [
            seen
            for node, part in evidence.facts["nodes"].items()
            if part["kind"] in ("publisher", "origin") and not part["under_test"]
            for seen in evidence.objects(node, sent=True)
            if seen.track == request.track
        ]
        last = max((seen.record.time for seen in sent), default=0.0)
        came = {seen.location for seen in delivered(evidence, request)}
        if {seen.location for seen in sent} <= came:
            yield unseen(f"{described(request)}: everything came, and no end")
            continue
        if _given_up(evidence, request):
            yield unseen(f"{described(request)}: given up by the peer, which is no stall")
            continue
        alive = [
            record
            for record in evidence.records(request.record.node, "kvcs:fence")
            if record.time >= last + SILENCE
        ]
        if not alive:
            yield unseen(f"{described(request)}: has not ended, and no probe was answered since")
            continue
        yield contradicted(
            Reason.OBJECT_MISSING,
            f"{described(request)}: nothing more comes, and the peer still answers",
            expected="everything, and the end",
            observed=f"{len(came)} Objects, then nothing for {alive[-1].time - last:.1f} s",
            record=alive[-1],
        )


@judge("streams-granted", required=("by", "to"), by=_STRING, to=_STRING)
def streams_granted(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The node `by` lets the node `to`, which is ours, open a unidirectional stream whenever it
    wants one: the log of the network does not tell of any that had to wait. The scenario says
    `watch-streams`. Counts once the node `to` has sent as many Groups as there are."""
    by, to = arguments["by"], arguments["to"]
    waited = next(
        (
            record
            for record in evidence.records(NETWORK, "network:no-stream-left")
            if record.data["from"] == to and record.data["to"] == by
        ),
        None,
    )
    groups = {(seen.track, seen.group) for seen in evidence.objects(to, sent=True) if seen.is_data}
    whole = len(evidence.data_tracks()) * evidence.layers
    if waited is not None:
        yield contradicted(
            Reason.STREAMS_FEW,
            f"{by} grants {to} too few unidirectional streams for the layers under way",
            expected="a stream for each Group of each track that is being sent",
            observed=f"none left at {waited.time:.3f} s",
            record=waited,
        )
    elif not evidence.scenario.get("network", {}).get("watch-streams"):
        yield unseen("nobody watched the streams")
    elif len(groups) < whole:
        yield unseen(f"{to} sent {len(groups)} of {whole} Groups")
    else:
        yield upheld(f"{by} granted {to} a stream for each of {whole} Groups at once")
