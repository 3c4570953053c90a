"""Judge words for what a fetch stream says of Locations where no Object comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Record
from kvcs_conformance.judge.delivery import LABEL, answer, described
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import fetch_streams
from kvcs_conformance.verdicts import Reason


@judge(
    "range-marked",
    required=("of", "kinds", "objects"),
    of=LABEL,
    kinds={"type": "array", "items": {"enum": ["UNKNOWN", "TIMED_OUT", "NON_EXISTENT"]}},
    objects={"type": "array"},
)
def range_marked(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """These Locations, which do not come, are marked with one of the kinds on the fetch stream (or
    the stream is reset with UNKNOWN_OBJECT_STATUS, or the request is refused): they are not passed
    over in silence on a stream that ends with FIN."""
    for request in evidence.asked(arguments["of"]):
        yield _marked(evidence, request, arguments)


def _marked(evidence: Evidence, request: Asked, arguments: dict[str, Any]) -> Finding:
    got = answer(evidence, request)
    if got is not None and got[1]["type"] == "RequestError":
        return upheld(f"{described(request)}: refused, nothing is claimed", got[0])
    streams = fetch_streams(evidence, request)
    if not streams or (streams[0].fin is None and streams[0].reset is None):
        return unseen(f"{described(request)}: no stream that ended came")
    stream = streams[0]
    if stream.reset is not None:
        return upheld(f"{described(request)}: reset, nothing is claimed", stream.reset)
    covered = _covered(evidence, request, set(arguments["kinds"]))
    came = {one.location for one in stream.objects}
    silent = [
        (g, o)
        for g, o in arguments["objects"]
        if (g, o) not in came and not any(a <= (g, o) <= b for a, b, _ in covered)
    ]
    if silent:
        return contradicted(
            Reason.RANGE_UNMARKED,
            f"{described(request)}: {silent[0]} is passed over as if it did not exist",
            expected=f"a range marker, {' or '.join(arguments['kinds'])}",
            observed="FIN, and no such marker over it",
            record=stream.fin,
        )
    if not covered:
        return unseen(f"{described(request)}: nothing was marked")
    return upheld(f"{described(request)}: {len(covered)} ranges marked", covered[0][2])


def _covered(
    evidence: Evidence, request: Asked, kinds: set[str]
) -> list[tuple[tuple[int, int], tuple[int, int], Record]]:
    """The ranges that were marked, from behind the item before up to the marker's Location."""
    found = []
    before = (0, -1)
    for record in evidence.records(
        request.record.node, "moqt:object_received", "moqt:range_received"
    ):
        data = record.data
        if data["request"] != request.request:
            continue
        marked = record.name == "moqt:range_received"
        at = tuple(data["end"]) if marked else (data["group"], data["object"])
        if marked and data["kind"] in kinds:
            found.append(((before[0], before[1] + 1), at, record))
        before = at
    return found


@judge("not-marked", required=("of", "objects"), of=LABEL, objects={"type": "array"})
def not_marked(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """These Locations, of which the publisher says that nothing exists there, are not reported as
    unknown or timed out, and the fetch stream ends with FIN: the gap is reported as a gap."""
    for request in evidence.asked(arguments["of"]):
        streams = fetch_streams(evidence, request)
        covered = _covered(evidence, request, {"UNKNOWN", "TIMED_OUT"})
        wrong = next(
            (
                record
                for a, b, record in covered
                if any(a <= (g, o) <= b for g, o in arguments["objects"])
            ),
            None,
        )
        if wrong is not None:
            yield contradicted(
                Reason.RANGE_UNMARKED,
                f"{described(request)}: what does not exist is reported as unknown",
                expected="a gap, or End of Non-Existent Range",
                observed=str(wrong.data["kind"]),
                record=wrong,
            )
        elif not streams or streams[0].fin is None:
            yield unseen(f"{described(request)}: no fetch stream ended with FIN")
        else:
            yield upheld(f"{described(request)}: the gap is reported as a gap", streams[0].fin)
