"""Hand-made logs of what a scripted node, and the origin behind a relay, see."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import NAMESPACE, Event, answered, asked, evidence, obj, report

Found = set[tuple[Outcome, Reason | None]]

UPHELD: Found = {(Outcome.UPHELD, None)}
UNSEEN: Found = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
ALIAS = 7
FENCE = report("fence", label="fence-1")
DONE = report("track-ended", request=0, complete=True)
DELIVERED = report("delivered", request=0, complete=True)
PAUSE: Event = ("kvcs:session", {})
"""An event that means nothing: a millisecond passes."""


def against(reason: Reason) -> Found:
    return {(Outcome.CONTRADICTED, reason)}


def found(
    word: str,
    consumer: list[Event],
    publisher: list[Event] | None = None,
    *,
    link: str = "memory",
    **arguments: Any,
) -> Found:
    """The outcomes and reasons of a judge word over these two logs."""
    case = evidence(
        "relay",
        {"consumer": consumer, "publisher": publisher or []},
        publishers=(),
        link=link,
    )
    case.facts["nodes"]["publisher"]["kind"] = "origin"
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, {"of": "x", **arguments})}


def published(group: int, number: int, **more: Any) -> Event:
    """An Object as the origin's record of it says."""
    return ("moqt:object_published", obj(group, number, **more)[1])


def asks(kind: str = "SUBSCRIBE") -> list[Event]:
    """A request of the step `x` on stream 0, and its opening message."""
    opener = {"SUBSCRIBE": "Subscribe", "FETCH": "Fetch", "TRACK_STATUS": "TrackStatus"}[kind]
    track = {"namespace": NAMESPACE, "name": "k.raw.s0"}
    opening = {"type": opener, "request_id": 0, "track": track}
    return [("moqt:message_sent", {"stream": 0, "message": opening}), asked("x", kind)]


def says(kind: str, stream: int = 0, **fields: Any) -> Event:
    """A control message that arrived on a stream."""
    return ("moqt:message_received", {"stream": stream, "message": {"type": kind, **fields}})


def said(kind: str, stream: int = 0, **fields: Any) -> Event:
    """A control message that was sent on a stream."""
    return ("moqt:message_sent", {"stream": stream, "message": {"type": kind, **fields}})


def accepts(**more: Any) -> list[Event]:
    """SUBSCRIBE_OK."""
    fields = {"track_alias": ALIAS, **more}
    return [says("SubscribeOk", **fields), answered("SubscribeOk", **fields)]


def opens(stream: int, group: int, subgroup: int = 0, **flags: Any) -> Event:
    """The header of a subgroup stream."""
    header = {
        "type": "SubgroupHeader",
        "track_alias": ALIAS,
        "group": group,
        "subgroup": subgroup,
        "priority": None,
        **flags,
    }
    return ("moqt:stream_accepted", {"stream": stream, "kind": "subgroup", "header": header})


def fetches(stream: int, request: int = 0) -> Event:
    """The header of a fetch or fill stream."""
    header = {"type": "FetchHeader", "request_id": request}
    return ("moqt:stream_accepted", {"stream": stream, "kind": "fetch", "header": header})


def fin(stream: int) -> Event:
    return ("moqt:fin_received", {"stream": stream})


def reset(stream: int, code: int = 1) -> Event:
    return ("moqt:reset_received", {"stream": stream, "code": code})


def marks(group: int, number: int, kind: str = "UNKNOWN", stream: int = 3) -> Event:
    """An End of Range."""
    data = {"stream": stream, "request": 0, "end": [group, number], "kind": kind}
    return ("moqt:range_received", data)
