"""Judge words for what who asked a relay hears of a publisher that fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.delivery import LABEL, answer, delivered, described, fenced
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.refusals import KIND, chosen
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.session import CODES
from kvcs_conformance.verdicts import Reason


@judge("subscription-done-with", required=("of", "codes"), of=LABEL, codes=CODES)
def subscription_done_with(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each SUBSCRIBE of the step that was accepted is ended by PUBLISH_DONE with one of `codes`,
    or was refused with one of them. Absence counts behind a fence of the node."""
    codes = arguments["codes"]
    wanted = "PUBLISH_DONE " + " or ".join(f"{code:#x}" for code in codes)
    for request in evidence.asked(arguments["of"]):
        if request.kind != "SUBSCRIBE":
            continue
        done = next(
            (
                record
                for record in evidence.records(request.record.node, "kvcs:track-ended")
                if record.data["request"] == request.request
            ),
            None,
        )
        got = answer(evidence, request)
        refused = got is not None and got[1]["type"] == "RequestError"
        if got is not None and refused and got[1]["code"] in codes:
            yield upheld(f"{described(request)}: refused with {got[1]['code']:#x}", got[0])
        elif done is not None and done.data["code"] in codes:
            yield upheld(f"{described(request)}: ended with {done.data['code']:#x}", done)
        elif done is not None or refused:
            record = done or (got[0] if got else None)
            code = done.data["code"] if done is not None else got[1]["code"] if got else None
            yield contradicted(
                Reason.DONE_CODE,
                f"{described(request)}: ended with another code",
                expected=wanted,
                observed=f"{code:#x}",
                record=record,
            )
        elif fenced(evidence, request):
            yield contradicted(
                Reason.END_WRONG,
                f"{described(request)}: goes on",
                expected=wanted,
                observed="no end before the fence",
                record=request.record,
            )
        else:
            yield unseen(f"{described(request)}: neither ended nor behind a fence")


@judge("nothing-delivered", required=("of",), of=LABEL, kind=KIND)
def nothing_delivered(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """No Object comes for the requests of the step (of one `kind`, if that is given) before a
    fence of the node."""
    requests = chosen(evidence, arguments)
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        came = delivered(evidence, request)
        if came:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{described(request)}: {came[0].location} came",
                expected="no Object",
                observed=f"{len(came)} Objects",
                record=came[0].record,
            )
        elif not fenced(evidence, request):
            yield unseen(f"{described(request)}: no fence came after it")
        else:
            yield upheld(f"{described(request)}: no Object came", request.record)


@judge("downstream-lives", required=("at",), at=NODE)
def downstream_lives(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The node's own session, through which it asked, is open at a fence behind all attempts."""
    node = arguments["at"]
    closed = next(evidence.records(node, "kvcs:closed"), None)
    last = max(
        (record.index for record in evidence.records(node, "kvcs:attempt-closed")), default=-1
    )
    fence = next((r for r in evidence.records(node, "kvcs:fence") if r.index > last), None)
    if closed is not None and not closed.data["by_peer"]:
        yield unseen(f"{node}: it closed its own session: {closed.data['reason']}")
    elif closed is not None:
        yield contradicted(
            Reason.CLOSE_UNEXPECTED,
            f"{node}: the session of who asked was closed",
            expected="a session that goes on",
            observed=f"{closed.data['code']} {closed.data['reason']}",
            record=closed,
        )
    elif fence is None:
        yield unseen(f"{node}: no fence behind the attempts")
    else:
        yield upheld(f"{node}: the session of who asked goes on", fence)
