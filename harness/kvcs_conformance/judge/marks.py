"""A judge word for End of Group and End of Track on their way through a relay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.delivery import LABEL, delivered, described, ended
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.streams import full_name, published, subgroup_streams
from kvcs_conformance.verdicts import Reason

_REASONS = {"END_OF_GROUP": Reason.MARK_GROUP, "END_OF_TRACK": Reason.MARK_TRACK}


@judge("marks-kept", required=("of",), of=LABEL)
def marks_kept(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each End of Group and End of Track that was published comes at its Location; END_OF_GROUP in
    the header of its subgroup's stream says the same. Absence counts once the track ended."""
    for request in evidence.asked(arguments["of"]):
        name = full_name(evidence, request)
        marks = [
            one
            for one in published(evidence)
            if (one.namespace, one.track) == name and one.status in _REASONS
        ]
        came = {(one.location, one.status) for one in delivered(evidence, request)}
        bits = {
            stream.group
            for stream in subgroup_streams(evidence, request)
            if stream.header.get("end_of_group", False)
        }
        lost = next(
            (
                one
                for one in marks
                if (one.location, one.status) not in came
                and not (one.status == "END_OF_GROUP" and one.group in bits)
            ),
            None,
        )
        end = ended(evidence, request)
        if lost is not None and end is not None:
            yield contradicted(
                _REASONS[lost.status],
                f"{described(request)}: {lost.status} at {lost.location} did not come",
                expected=f"{lost.status} at {lost.location}",
                observed="the track ended without it",
                record=end,
            )
        elif lost is not None or not marks:
            yield unseen(f"{described(request)}: no mark was published, or it has not come")
        else:
            yield upheld(f"{described(request)}: {len(marks)} marks kept")
