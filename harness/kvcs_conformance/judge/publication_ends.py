"""Judge words for how a publication ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.identity import announcements
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_TRACK_ENDED = 0x2


def withdrawn(evidence: Evidence, node: str, announcement: Record) -> Record | None:
    """The record that says that the peer took a PUBLISH_NAMESPACE back: the end of its stream."""
    stream = announcement.data.get("stream")
    for record in evidence.records(node, "moqt:reset_received", "moqt:fin_received"):
        if record.data["stream"] == stream and record.index > announcement.index:
            return record
    return None


@judge("publication-stopped", required=("of",), of={"type": "string"}, at=NODE)
def publication_stopped(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The first publication, in which an error was found, is over: its announcement was taken
    back, and each subscription of the step got PUBLISH_DONE with another code than TRACK_ENDED,
    without End of Track; a publication with another ID was announced. Absence counts behind a
    fence."""
    node = arguments.get("at", "consumer")
    found = announcements(evidence, node)
    fences = [record.index for record in evidence.records(node, "kvcs:fence")]
    if not found or not fences:
        yield unseen("no publication was announced, or no fence follows its end")
        return
    record, fields = found[0]
    name = tuple(field.hex() for field in fields)
    if withdrawn(evidence, node, record) is None:
        yield _going_on("its namespace is still announced", "PUBLISH_NAMESPACE taken back", record)
    else:
        yield upheld("the announcement was taken back", record)
    ended = evidence.records(node, "kvcs:track-ended")
    dones = [one for one in ended if one.data["label"] == arguments["of"]]
    whole = [one for one in dones if one.data.get("code") == _TRACK_ENDED]
    marks = [
        seen
        for seen in evidence.objects(node)
        if seen.namespace == name and seen.status == "END_OF_TRACK"
    ]
    if whole or marks:
        at = whole[0] if whole else marks[0].record
        yield _going_on("a track of it ended as if it were whole", "another code", at)
    elif not dones:
        yield _going_on("its subscriptions go on", "PUBLISH_DONE for each", record)
    else:
        yield upheld(f"{len(dones)} subscriptions were ended", dones[-1])
    if len(found) < 2:
        yield unseen("no other publication was announced")
    else:
        yield upheld("another publication took its place", found[1][0])


def _going_on(text: str, right: str, record: Record) -> Finding:
    return contradicted(
        Reason.NOT_STOPPED,
        f"the publication was stopped, but {text}",
        expected=right,
        observed="none up to the fence" if "ended" not in text else "TRACK_ENDED",
        record=record,
    )
