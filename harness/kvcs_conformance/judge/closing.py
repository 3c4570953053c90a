"""Judge words for how a consumer ends requests and sessions, by the log of our relay before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.restores import DURATION, RELAY, TRACK, asked, finished
from kvcs_conformance.scenario import seconds
from kvcs_conformance.verdicts import Reason


@judge("closes-session", required=("code",), code={"type": "integer"})
def closes_session(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer closes a session with our relay with this code. That it does not counts once it
    is done."""
    code = arguments["code"]
    closed = [
        record
        for record in evidence.records(RELAY, "moqt:session_closed")
        if record.data.get("by_peer")
    ]
    right = next((record for record in closed if record.data["code"] == code), None)
    done = finished(evidence)
    if right:
        yield upheld(f"closed with 0x{code:x}", right)
    elif done:
        codes = ", ".join(f"0x{record.data['code'] or 0:x}" for record in closed)
        yield contradicted(
            Reason.CLOSE_ABSENT,
            "the session was not closed for what the relay did",
            expected=f"closed with 0x{code:x}",
            observed=f"closed with {codes}" if codes else "not closed",
            record=closed[-1] if closed else done,
        )
    else:
        yield unseen("the consumer did not come to its end")


@judge("cancels-request", required=("track",), track=TRACK)
def cancels_request(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """A request for this track is cancelled: the consumer stops our relay's direction of its
    request stream, or resets its own, before the session ends. That it does neither counts once it
    is done; a stop that meets a direction which we ended by then does not arrive."""
    streams = {
        record.data["stream"]
        for record, message in evidence.messages(RELAY, "Subscribe", "Fetch")
        if message["track"]["name"] == arguments["track"]
    }
    stopped = next(
        (
            record
            for record in evidence.records(RELAY, "moqt:stop_received", "moqt:reset_received")
            if record.data["stream"] in streams
        ),
        None,
    )
    done = finished(evidence)
    if stopped:
        yield upheld(f"a request for {arguments['track']} was cancelled", stopped)
    elif streams and done:
        yield contradicted(
            Reason.END_WRONG,
            f"no request for {arguments['track']} was cancelled",
            expected="STOP_SENDING on its request stream, or RESET_STREAM",
            observed="none before the consumer was done",
            record=done,
        )
    else:
        yield unseen(f"{arguments['track']} was not asked for, or the consumer is not done")


@judge(
    "waits-as-told",
    required=("track", "retry"),
    track=TRACK,
    retry=DURATION,
)
def waits_as_told(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Refused with this Retry Interval, the consumer asks for the track again, and not before."""
    wait = seconds(arguments["retry"])
    refused = next(
        (
            record
            for record, error in evidence.messages(RELAY, "RequestError", sent=True)
            if error.get("retry_interval", 0) == round(wait * 1000) + 1
        ),
        None,
    )
    again = next(
        (
            record
            for record, message in asked(evidence, "Subscribe", "Fetch")
            if message["track"]["name"] == arguments["track"]
            and refused is not None
            and record.node == RELAY
            and record.index > refused.index
        ),
        None,
    )
    if refused is None or again is None:
        yield unseen("nothing was refused so, or not asked for again")
    elif again.time - refused.time < wait:
        yield contradicted(
            Reason.REQUEST_ORDER,
            f"{arguments['track']} was asked for again too early",
            expected=f"not before {arguments['retry']}",
            observed=f"after {again.time - refused.time:.3f} s",
            record=again,
            octets=again.data.get("raw", ""),
        )
    else:
        yield upheld(f"asked again after {again.time - refused.time:.3f} s", again)
