"""Judge words for FETCHes: in which order they bring layers, and how many run at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.delivery import LABEL, SPAN, answer, delivered, described, ended
from kvcs_conformance.judge.findings import Finding, contradicted, departs, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_EXCESSIVE_LOAD = 0x9


@judge("fetch-in-order", required=("of", "layers"), of=LABEL, layers=SPAN)
def fetch_in_order(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each FETCH of the step brings layer after layer in ascending order, and their blocks in
    order, with none left out. Speaks of an ascending FETCH of whole layers."""
    first, last = arguments["layers"]
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        blocks = evidence.blocks_of(request.track)
        right = [(g, o) for g in range(first, last + 1) for o in range(blocks)]
        data = [seen for seen in delivered(evidence, request) if seen.is_data]
        pairs = zip(data, right, strict=False)
        wrong = next(((seen, place) for seen, place in pairs if seen.location != place), None)
        if wrong:
            yield contradicted(
                Reason.ORDER_LAYERS,
                f"{described(request)}: the layers do not come in ascending order",
                expected=f"{wrong[1]} as Object {right.index(wrong[1])} of the stream",
                observed=f"{wrong[0].location}",
                record=wrong[0].record,
            )
        elif len(data) < len(right) or ended(evidence, request) is None:
            yield unseen(f"{described(request)}: {len(data)} of {len(right)} Objects, and no end")
        else:
            yield upheld(f"{described(request)}: {len(data)} Objects in ascending order")


@judge("fetches-limited", required=("of", "limit"), of=LABEL, limit={"type": "integer"})
def fetches_limited(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Of the step's FETCHes no more than `limit` are served at the same time; the others wait, or
    are refused with EXCESSIVE_LOAD (0x9). None is left without an answer: that counts behind a
    fence after the end of all that were served."""
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
        return
    node = requests[0].record.node
    ends = {record.data["request"]: record for record in evidence.records(node, "kvcs:delivered")}
    running: list[tuple[int, Record]] = []
    most = 0
    last = 0
    for request in requests:
        got = answer(evidence, request)
        if got is None:
            continue
        record, response = got
        last = max(last, record.index)
        if response["type"] == "FetchOk":
            running = [one for one in running if one[0] > record.index]
            end = ends.get(request.request)
            running.append((end.index if end else 1 << 62, record))
            last = max(last, end.index if end else last)
            most = max(most, len(running))
        elif response.get("code") != _EXCESSIVE_LOAD:
            yield departs(
                Reason.REQUEST_CODE,
                f"{described(request)}: refused with another code",
                expected="REQUEST_ERROR EXCESSIVE_LOAD (0x9)",
                observed=f"{response['type']} {response.get('code', '')}".strip(),
                record=record,
            )
    fences = [record.index for record in evidence.records(node, "kvcs:fence")]
    open_ = [request for request in requests if answer(evidence, request) is None]
    if most > arguments["limit"]:
        yield contradicted(
            Reason.LIMIT_EXCEEDED,
            f"{most} fetches of one subscriber were served at the same time",
            expected=f"{arguments['limit']} at most",
            observed=f"{most} between FETCH_OK and the end of the stream",
            record=running[-1][1] if running else None,
        )
    elif open_ and any(fence > last for fence in fences):
        yield contradicted(
            Reason.ANSWER_NUMBER,
            f"{described(open_[0])}: never answered",
            expected="FETCH_OK once there is room, or EXCESSIVE_LOAD",
            observed=f"nothing for {len(open_)} requests, although the others have ended",
            record=open_[0].record,
        )
    elif open_:
        yield unseen(f"{len(open_)} requests have no answer, and no fence follows the others' end")
    elif not most:
        yield unseen("none of the fetches was served")
    else:
        yield upheld(f"{most} of {len(requests)} fetches at the same time, all answered")
