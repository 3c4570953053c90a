"""Judge words for how a peer ends, or goes on with, the requests and streams of an attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.delivery import LABEL
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.session import CODES, attempts, message_of, not_alive
from kvcs_conformance.verdicts import Reason


@judge("attempt-ends-with", required=("of",), of=LABEL, status=CODES)
def attempt_ends_with(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The peer ends its side of the request stream that each attempt of the step heard of last, by
    FIN or reset; with `status`, PUBLISH_DONE with one of these codes comes before. Only what was
    refused has to end."""
    status = arguments.get("status", [])
    for tried in attempts(evidence, arguments["of"]):
        done = next((r for r in tried.messages if message_of(r)["type"] == "PublishDone"), None)
        last = tried.messages[-1].data["stream"] if tried.messages else None
        end = next((r for r in tried.ends if r.data["stream"] == last), None)
        wanted = "PUBLISH_DONE " + " or ".join(f"{code:#x}" for code in status) if status else ""
        if finding := not_alive(tried):
            yield finding
        elif not tried.refused:
            yield unseen(f"{tried.name}: nothing of it was refused")
        elif status and (done is None or message_of(done)["status_code"] not in status):
            code = None if done is None else message_of(done)["status_code"]
            yield contradicted(
                Reason.END_WRONG,
                f"{tried.name}: the request did not end as it must",
                expected=wanted,
                observed="no PUBLISH_DONE" if code is None else f"PUBLISH_DONE {code:#x}",
                record=done or tried.lives,
            )
        elif end is None or end.data["how"] == "stop":
            yield contradicted(
                Reason.END_WRONG,
                f"{tried.name}: the peer left its side of the request stream open",
                expected="FIN or a reset",
                observed="neither, though later questions were answered",
                record=tried.lives,
            )
        else:
            yield upheld(f"{tried.name}: {wanted or 'the request'} ended by {end.data['how']}", end)


@judge("attempt-dropped", required=("of",), of=LABEL)
def attempt_dropped(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The peer cancels what it asked of each attempt of the step: it resets its direction of the
    request stream, or asks to stop the other one."""
    for tried in attempts(evidence, arguments["of"]):
        asked = {record.data["stream"] for record in tried.asked}
        end = next((r for r in tried.ends if _dropped(r) and r.data["stream"] in asked), None)
        if end is not None:
            yield upheld(f"{tried.name}: cancelled ({end.data['how']} {end.data['code']:#x})", end)
        elif tried.lives is None or not asked:
            yield unseen(f"{tried.name}: not proven to live, or not asked for anything")
        else:
            yield contradicted(
                Reason.END_WRONG,
                f"{tried.name}: what the peer asked for goes on",
                expected="RESET_STREAM or STOP_SENDING on its request stream",
                observed="neither, though later questions were answered",
                record=tried.lives,
                octets=tried.wrote,
            )


@judge("attempt-keeps-request", required=("of",), of=LABEL)
def attempt_keeps_request(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The peer does not cancel what it asked of each attempt of the step."""
    for tried in attempts(evidence, arguments["of"]):
        asked = {record.data["stream"] for record in tried.asked}
        end = next((r for r in tried.ends if _dropped(r) and r.data["stream"] in asked), None)
        if end is not None:
            yield contradicted(
                Reason.END_WRONG,
                f"{tried.name}: what the peer asked for was cancelled",
                expected="a request that goes on",
                observed=f"{end.data['how']} {end.data['code']:#x}",
                record=end,
                octets=tried.wrote,
            )
        elif tried.lives is None or not asked:
            yield unseen(f"{tried.name}: not proven to live, or not asked for anything")
        else:
            yield upheld(f"{tried.name}: the request goes on", tried.lives)


def _dropped(record: Record) -> bool:
    return record.data["how"] in ("reset", "stop")


@judge("attempt-stops-data", required=("of",), of=LABEL)
def attempt_stops_data(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The peer asks each attempt of the step, which it refused, to stop its data streams
    (STOP_SENDING)."""
    for tried in attempts(evidence, arguments["of"]):
        end = next(
            (r for r in tried.ends if r.data["how"] == "stop" and r.data["stream"] & 2), None
        )
        if end is not None:
            yield upheld(f"{tried.name}: STOP_SENDING {end.data['code']:#x}", end)
        elif tried.lives is None or not tried.refused:
            yield unseen(f"{tried.name}: not proven to live, or not refused")
        else:
            yield contradicted(
                Reason.END_WRONG,
                f"{tried.name}: its data streams are read on",
                expected="STOP_SENDING",
                observed="none, though later questions were answered",
                record=tried.lives,
            )
