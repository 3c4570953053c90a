"""Judge words for requests that compete, stop or fail, on hand-made evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import Event, answered, asked, evidence, obj
from tests.harness.test_judge_identity import FENCE


def findings(
    word: str, seen: Iterable[Event], **arguments: Any
) -> list[tuple[Outcome, Reason | None]]:
    case = evidence("publisher", {"consumer": list(seen)})
    return [(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)]


def against(reason: Reason) -> list[tuple[Outcome, Reason | None]]:
    return [(Outcome.CONTRADICTED, reason)]


UPHELD = [(Outcome.UPHELD, None)]
UNSEEN = [(Outcome.UNSEEN, Reason.NO_EVIDENCE)]


def fetched(request: int) -> Event:
    return ("kvcs:delivered", {"request": request, "complete": True, "code": None})


def test_more_urgent_first() -> None:
    """The urgent FETCH ends first: upheld; last: contradicted; not asked for in time, or without
    an end: open (R190)."""
    slow, fast = asked("slow", request=0), asked("fast", request=2)
    which = {"of": "fast", "than": "slow"}
    seen = [slow, fast, fetched(2), fetched(0)]
    assert findings("more-urgent-first", seen, **which) == UPHELD
    seen = [slow, fast, fetched(0), fetched(2)]
    assert findings("more-urgent-first", seen, **which) == against(Reason.ORDER_URGENCY)
    assert findings("more-urgent-first", [slow, fetched(0), fast, fetched(2)], **which) == UNSEEN
    assert findings("more-urgent-first", [slow, fast, fetched(2)], **which) == UNSEEN


def stream(number: int, group: int = 0) -> Event:
    header = {"track_alias": 1, "group": group, "subgroup": 0}
    return ("moqt:stream_accepted", {"stream": number, "kind": "subgroup", "header": header})


STOP: Event = ("kvcs:stop", {"of": "live", "request": 0, "stream": 3})


def test_stays_stopped() -> None:
    """The same Subgroup on another stream contradicts; other Groups do not; without a stop, or
    a fence behind it, it stays open (R169)."""
    begun = [asked("live", "SUBSCRIBE"), stream(3), STOP]
    assert findings("stays-stopped", [*begun, stream(7, 1), FENCE], of="live") == UPHELD
    again = [*begun, stream(7), FENCE]
    assert findings("stays-stopped", again, of="live") == against(Reason.STREAM_SECOND)
    assert findings("stays-stopped", [*begun, stream(7, 1)], of="live") == UNSEEN
    assert findings("stays-stopped", [*begun[:2], FENCE], of="live") == UNSEEN


def test_refused_gets_nothing() -> None:
    """An Object, or a stream that names the refused request, contradicts; absence counts behind a
    fence (R118)."""
    refused = [asked("bad"), answered("RequestError", code=0x11)]
    header = {"request_id": 0}
    opened = ("moqt:stream_accepted", {"stream": 3, "kind": "fetch", "header": header})
    unclaimed = ("moqt:stream_unclaimed", {"stream": 3, "request": 0})
    assert findings("refused-gets-nothing", [*refused, FENCE], of="bad") == UPHELD
    assert findings("refused-gets-nothing", refused, of="bad") == UNSEEN
    for stray in (opened, unclaimed, obj(0, 0, via="fetch")):
        seen = [*refused, stray, FENCE]
        assert findings("refused-gets-nothing", seen, of="bad") == against(Reason.OBJECT_UNEXPECTED)
    accepted = [asked("bad"), answered("FetchOk"), FENCE]
    assert findings("refused-gets-nothing", accepted, of="bad") == UNSEEN


def test_served_alike() -> None:
    """What the one gets, the other gets: upheld; less contradicts behind a fence (R061)."""
    requests = [asked("early", "SUBSCRIBE", request=0), asked("open", "SUBSCRIBE", request=2)]
    end = (
        "kvcs:track-ended",
        {"label": "open", "track": "k.raw.s0", "request": 2, "complete": True, "code": 2},
    )
    one, other = obj(0, 0, request=0), obj(0, 0, request=2)
    which = {"of": "early", "as": "open"}
    assert findings("served-alike", [*requests, one, other, end, FENCE], **which) == UPHELD
    lacking = [*requests, other, end, FENCE]
    assert findings("served-alike", lacking, **which) == against(Reason.OBJECT_MISSING)
    assert findings("served-alike", lacking[:-1], **which) == UNSEEN
    assert findings("served-alike", [*requests, one, other], **which) == UNSEEN
