"""Judge words for what updates bring at a relay, how much it takes on, and what others notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.delivery import LABEL, answer
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.refusals import KIND, chosen
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.session import CODES
from kvcs_conformance.verdicts import Reason

_UNAUTHORIZED = 0x1
_EXCESSIVE_LOAD = 0x9
_UPDATE_FAILED = 0x8
_AUTHORISED = ("KVCS-8-4", "MOQT-R208")


def _updates(evidence: Evidence, label: str) -> Iterator[tuple[Record, Record | None]]:
    """The updates of a step, each with its answer."""
    for node in evidence.logs:
        answers = {
            record.data["update"]: record
            for record in evidence.records(node, "kvcs:update-answered")
        }
        for record in evidence.records(node, "kvcs:updated"):
            if record.data.get("label") == label:
                yield record, answers.get(record.data["update"])


def _fill(evidence: Evidence, update: Record) -> Record | None:
    """The first Object of a fill that came for the request of an update, after it."""
    return next(
        (
            seen.record
            for seen in evidence.objects(update.node, unwanted=True)
            if seen.request == update.data["request"]
            and seen.via == "fill"
            and seen.record.index > update.index
        ),
        None,
    )


@judge("renewal-refused", required=("of",), of=LABEL, codes=CODES)
def renewal_refused(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every update of the step is refused with one of `codes` (default: UNAUTHORIZED), no fill
    comes for it, and a subscription that it was about ends with PUBLISH_DONE UPDATE_FAILED before
    a fence of the node."""
    codes = arguments.get("codes", [_UNAUTHORIZED])
    updates = list(_updates(evidence, arguments["of"]))
    if not updates:
        yield unseen(f"no update is labelled {arguments['of']!r}")
    for update, got in updates:
        what = f"{update.node}'s update {update.data['update']}"
        leak = _fill(evidence, update)
        fence = next(
            (r for r in evidence.records(update.node, "kvcs:fence") if r.index > update.index), None
        )
        done = next(
            (
                record
                for record in evidence.records(update.node, "kvcs:track-ended")
                if record.data["request"] == update.data["request"]
            ),
            None,
        )
        if leak is not None:
            yield contradicted(
                Reason.AUTH_LEAKED,
                f"{what}: a fill came without authorisation",
                expected="REQUEST_ERROR and no fill",
                observed="an Object by fill",
                record=leak,
                requires=_AUTHORISED,
            )
        elif got is None:
            yield unseen(f"{what}: no answer came")
        elif got.data["response"]["type"] != "RequestError":
            yield contradicted(
                Reason.AUTH_LEAKED,
                f"{what}: accepted without authorisation",
                expected="REQUEST_ERROR " + " or ".join(f"{code:#x}" for code in codes),
                observed=got.data["response"]["type"],
                record=got,
                requires=_AUTHORISED,
            )
        elif got.data["response"]["code"] not in codes:
            yield contradicted(
                Reason.REQUEST_CODE,
                f"{what}: refused with another code",
                expected=" or ".join(f"{code:#x}" for code in codes),
                observed=f"{got.data['response']['code']:#x}",
                record=got,
                requires=_AUTHORISED,
            )
        elif fence is None:
            yield unseen(f"{what}: refused, but no fence came after it")
        elif update.data["kind"] == "SUBSCRIBE" and (
            done is None or done.data["code"] != _UPDATE_FAILED
        ):
            yield contradicted(
                Reason.END_WRONG,
                f"{what}: the subscription goes on after it",
                expected="PUBLISH_DONE UPDATE_FAILED (0x8)",
                observed="no PUBLISH_DONE" if done is None else f"{done.data['code']:#x}",
                record=got,
                requires=("MOQT-R065",),
            )
        else:
            yield upheld(f"{what}: refused", got)


@judge("renewal-accepted", required=("of",), of=LABEL, fill={"type": "boolean"})
def renewal_accepted(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every update of the step is answered with REQUEST_OK; with `fill`, Objects come by fill."""
    updates = list(_updates(evidence, arguments["of"]))
    if not updates:
        yield unseen(f"no update is labelled {arguments['of']!r}")
    for update, got in updates:
        what = f"{update.node}'s update {update.data['update']}"
        if got is None:
            yield unseen(f"{what}: no answer came")
        elif got.data["response"]["type"] != "RequestOk":
            yield contradicted(
                Reason.REQUEST_REFUSED,
                f"{what}: refused",
                expected="REQUEST_OK",
                observed=f"{got.data['response']['code']:#x}",
                record=got,
            )
        elif arguments.get("fill") and _fill(evidence, update) is None:
            yield unseen(f"{what}: accepted, but no Object came by fill")
        else:
            yield upheld(f"{what}: REQUEST_OK", got)


@judge("bounded", required=("of", "most"), of=LABEL, kind=KIND, most={"type": "integer"})
def bounded(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Of the requests of the step at most `most` are accepted; the others are refused with
    EXCESSIVE_LOAD and a Retry Interval. There are more of them than that."""
    most = arguments["most"]
    requests = chosen(evidence, arguments)
    answers = [got for one in requests if (got := answer(evidence, one)) is not None]
    refusals = [got for got in answers if got[1]["type"] == "RequestError"]
    accepted = [got for got in answers if got[1]["type"] not in ("RequestError", "Reset")]
    wrong = next((got for got in refusals if got[1]["code"] != _EXCESSIVE_LOAD), None)
    hasty = next((got for got in refusals if not got[1].get("retry_interval")), None)
    if len(requests) <= most:
        yield unseen(f"only {len(requests)} requests: no more than the limit")
    elif len(accepted) > most:
        yield contradicted(
            Reason.LIMIT_ABSENT,
            f"{len(accepted)} of {len(requests)} requests were accepted",
            expected=f"at most {most}",
            observed=str(len(accepted)),
            record=accepted[most][0],
        )
    elif len(answers) < len(requests):
        yield unseen(f"{len(requests) - len(answers)} of {len(requests)} requests have no answer")
    elif wrong is not None:
        yield contradicted(
            Reason.REQUEST_CODE,
            "a request beyond the limit is refused with another code",
            expected="EXCESSIVE_LOAD (0x9)",
            observed=f"{wrong[1]['code']:#x} {wrong[1].get('reason', '')}".strip(),
            record=wrong[0],
        )
    elif hasty is not None:
        yield contradicted(
            Reason.REQUEST_CODE,
            "a request beyond the limit is refused without a Retry Interval",
            expected="Retry Interval of 1 or more",
            observed="0: not again",
            record=hasty[0],
            requires=("KVCS-10-10",),
        )
    else:
        yield upheld(f"{len(accepted)} accepted, {len(refusals)} refused with EXCESSIVE_LOAD")
