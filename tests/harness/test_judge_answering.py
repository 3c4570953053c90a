"""Judge words for a relay's answers, its upstream requests and its ends, on hand-made evidence."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import Event, answered, asked, obj, report
from tests.harness.relaylog import (
    DELIVERED,
    DONE,
    FENCE,
    PAUSE,
    UNSEEN,
    UPHELD,
    Found,
    accepts,
    against,
    asks,
    fetches,
    fin,
    found,
    marks,
    opens,
    reset,
    said,
    says,
)

ASKS = asks()
FETCH = asks("FETCH")
REFUSED = [says("RequestError", code=0x11), answered("RequestError", code=0x11)]
FETCH_OK = [says("FetchOk"), answered("FetchOk")]


def done(count: int | None, code: int = 2) -> Event:
    return says("PublishDone", status_code=code, stream_count=count)


def test_one_answer() -> None:
    """One answer upholds, two contradict, and none does once the delivery ended (R110, R139)."""
    assert found("one-answer", [*FETCH, *FETCH_OK]) == UPHELD
    assert found("one-answer", [*FETCH, *FETCH_OK, says("FetchOk")]) == against(
        Reason.ANSWER_NUMBER
    )
    assert found("one-answer", [*FETCH, DELIVERED]) == against(Reason.ANSWER_NUMBER)
    assert found("one-answer", [*FETCH, FENCE]) == against(Reason.ANSWER_NUMBER)
    assert found("one-answer", FETCH) == UNSEEN


def test_waits_for_upstream() -> None:
    """The OK comes behind that of the publisher, with a fence before it (R209, R210)."""
    told = [PAUSE, PAUSE, PAUSE, said("SubscribeOk")]
    right = [*ASKS, FENCE, PAUSE, *accepts()]
    assert found("waits-for-upstream", right, told) == UPHELD
    assert found("waits-for-upstream", [*ASKS, *accepts()], [PAUSE, PAUSE, *told]) == against(
        Reason.ANSWER_EARLY
    )
    assert found("waits-for-upstream", [*ASKS, *accepts()]) == against(Reason.ANSWER_EARLY)
    assert found("waits-for-upstream", [*ASKS, FENCE], told) == UNSEEN


def test_nothing_before_upstream() -> None:
    """What lies behind a hole comes after the hole was filled (R228)."""
    freed: list[Event] = [PAUSE] * 5 + [("kvcs:released", {"what": ["fetch"]})]
    front, back = obj(0, 0, via="fetch"), obj(2, 0, via="fetch")
    behind: dict[str, Any] = {"objects": [[2, 0]]}
    right = [*FETCH, front, PAUSE, PAUSE, PAUSE, back]
    assert found("nothing-before-upstream", right, freed, **behind) == UPHELD
    early = [*FETCH, front, back]
    assert found("nothing-before-upstream", early, freed, **behind) == against(Reason.ANSWER_EARLY)
    assert found("nothing-before-upstream", [*FETCH, front], freed, **behind) == UNSEEN


def test_largest_told() -> None:
    """LARGEST_OBJECT is what the case says, or absent (R090, R091)."""
    told = [*ASKS, *accepts(parameters={"largest_object": [1, 0]})]
    assert found("largest-told", told, largest=[1, 0]) == UPHELD
    assert found("largest-told", told, largest=[2, 0]) == against(Reason.LARGEST)
    assert found("largest-told", [*ASKS, *accepts()]) == UPHELD
    assert found("largest-told", told) == against(Reason.LARGEST)
    assert found("largest-told", told, largest=[1, 0], nth=1) == UNSEEN


def test_largest_told_as_delivered() -> None:
    """The largest Location that an earlier, ended step brought is what a later answer must tell,
    wherever the publisher put its End of Track (A2, R090)."""
    before = [
        asked("y", "SUBSCRIBE", request=2),
        obj(0, 0, request=2),
        obj(3, 3, request=2, status="END_OF_TRACK"),
    ]
    ended = report("track-ended", request=2, complete=True)

    def told(group: int, number: int, *log: Event) -> Found:
        answer = accepts(parameters={"largest_object": [group, number]})
        return found("largest-told", [*log, *ASKS, *answer], **{"as-delivered": "y"})

    assert told(3, 3, *before, ended) == UPHELD
    assert told(4, 0, *before, ended) == against(Reason.LARGEST)
    assert told(3, 3, *before) == UNSEEN
    assert told(3, 3, before[0], ended) == UNSEEN
    assert found("largest-told", [*before, ended, *ASKS], **{"as-delivered": "y"}) == UNSEEN


def test_refused_with() -> None:
    """The code that the rule gives upholds; another one, an OK or an Object contradicts (R141)."""
    assert found("refused-with", [*FETCH, *REFUSED], codes=[0x11]) == UPHELD
    assert found("refused-with", [*FETCH, *REFUSED], codes=[0x10]) == against(Reason.REQUEST_CODE)
    assert found("refused-with", [*FETCH, *FETCH_OK], codes=[0x11]) == against(Reason.REQUEST_CODE)
    leak = [*FETCH, *REFUSED, obj(0, 0)]
    assert found("refused-with", leak, codes=[0x11]) == against(Reason.OBJECT_UNEXPECTED)
    assert found("refused-with", FETCH, codes=[0x11]) == UNSEEN


def test_properties_told() -> None:
    """Track Properties are the publisher's octets (R226)."""
    upstream = [said("SubscribeOk", track_properties="04057c01")]
    right = [*ASKS, *accepts(track_properties="04057c01")]
    assert found("properties-told", right, upstream) == UPHELD
    assert found("properties-told", [*ASKS, *accepts(track_properties="0405")], upstream) == (
        against(Reason.PROPERTY_CHANGED)
    )
    assert found("properties-told", right) == UNSEEN


def test_fill_streams() -> None:
    """As many fill streams as were asked for (R133, R134)."""
    opened = [*ASKS, *accepts(), fetches(3)]
    assert found("fill-streams", [*opened, DONE], count=1) == UPHELD
    assert found("fill-streams", opened, count=0) == against(Reason.FILL_STREAMS)
    assert found("fill-streams", [*ASKS, DONE], count=1) == against(Reason.FILL_STREAMS)
    assert found("fill-streams", ASKS, count=0) == UNSEEN


def test_asked_upstream() -> None:
    """The publisher gets what is wanted, with the FORWARD that is wanted (R216, R220)."""
    asked = [PAUSE, PAUSE, says("Subscribe")]
    plain: dict[str, Any] = {"type": "Subscribe"}
    assert found("asked-upstream", ASKS, asked, **plain) == UPHELD
    paused = [PAUSE, PAUSE, says("Subscribe", parameters={"forward": 0})]
    assert found("asked-upstream", ASKS, paused, forward=1, **plain) == against(
        Reason.UPSTREAM_FORWARD
    )
    assert found("asked-upstream", [*ASKS, FENCE], **plain) == against(Reason.UPSTREAM_SILENT)
    assert found("asked-upstream", ASKS, **plain) == UNSEEN


def test_not_asked_upstream() -> None:
    """Between request and answer nothing reaches the publisher (R218)."""
    whole = [*ASKS, PAUSE, PAUSE, *accepts()]
    again = [PAUSE, PAUSE, says("Subscribe")]
    assert found("not-asked-upstream", whole, [says("Subscribe")], type="Subscribe") == UPHELD
    assert found("not-asked-upstream", whole, again, type="Subscribe") == against(
        Reason.UPSTREAM_REPEATED
    )
    assert found("not-asked-upstream", ASKS, type="Subscribe") == UNSEEN


def test_transferred_again() -> None:
    """What came was sent anew after the request; from the cache it had expired (R170)."""
    came = [*FETCH, PAUSE, PAUSE, obj(0, 0, via="fetch"), DELIVERED]
    anew = [PAUSE, PAUSE, obj(0, 0, sent=True)]
    assert found("transferred-again", came, anew) == UPHELD
    assert found("transferred-again", came, [obj(0, 0, sent=True)]) == against(
        Reason.OBJECT_EXPIRED
    )
    assert found("transferred-again", [*FETCH, *REFUSED]) == UPHELD
    assert found("transferred-again", FETCH) == UNSEEN


def test_absent_not_kept() -> None:
    """What did not exist may come when the publisher sends it after the request, and not from the
    cache (R204); another Object may come from there."""
    word, absent = "absent-not-kept", {"objects": [[0, 1]]}
    came = [*FETCH, PAUSE, PAUSE, obj(0, 1, via="fetch"), DELIVERED]
    anew = [PAUSE, PAUSE, obj(0, 1, sent=True)]
    assert found(word, came, anew, **absent) == UPHELD
    assert found(word, came, [obj(0, 1, sent=True)], **absent) == against(Reason.OBJECT_UNEXPECTED)
    other = [*FETCH, PAUSE, obj(0, 0, via="fetch"), DELIVERED]
    assert found(word, other, [obj(0, 0, sent=True)], **absent) == UPHELD
    assert found(word, FETCH, **absent) == UNSEEN


def test_resumed_upstream() -> None:
    """A paused publisher is resumed; one that never was paused is content (R206, R219)."""
    paused = says("Subscribe", parameters={"forward": 0})
    resumed = says("RequestUpdate", parameters={"forward": 1})
    assert found("resumed-upstream", ASKS, [says("Subscribe")]) == UPHELD
    assert found("resumed-upstream", ASKS, [paused, resumed]) == UPHELD
    assert found("resumed-upstream", [*ASKS, FENCE], [paused]) == against(Reason.UPSTREAM_FORWARD)
    assert found("resumed-upstream", ASKS, [paused]) == UNSEEN


def test_cancelled_upstream() -> None:
    """A publisher whose Objects broke a rule is cancelled (R180)."""
    asked = [says("Subscribe", stream=1), obj(0, 0, sent=True)]
    who: dict[str, Any] = {"publishers": ["publisher"]}
    stopped: Event = ("moqt:stop_received", {"stream": 1, "code": 0x12})
    assert found("cancelled-upstream", [], [*asked, stopped], **who) == UPHELD
    fenced = [PAUSE, PAUSE, FENCE]
    assert found("cancelled-upstream", fenced, asked, **who) == against(Reason.MALFORMED_KEPT)
    assert found("cancelled-upstream", [], asked, **who) == UNSEEN


def test_range_marked() -> None:
    """Unknown Locations are marked, or nothing is claimed; FIN alone says that they do not exist
    (R144)."""
    wanted: dict[str, Any] = {"kinds": ["UNKNOWN"], "objects": [[1, 0]]}
    begin = [*FETCH, *FETCH_OK, fetches(3), obj(0, 0, via="fetch")]
    assert found("range-marked", [*begin, marks(1, 9), fin(3)], **wanted) == UPHELD
    assert found("range-marked", [*begin, fin(3)], **wanted) == against(Reason.RANGE_UNMARKED)
    other = [*begin, marks(1, 9, "NON_EXISTENT"), fin(3)]
    assert found("range-marked", other, **wanted) == against(Reason.RANGE_UNMARKED)
    assert found("range-marked", [*begin, reset(3, 6)], **wanted) == UPHELD
    assert found("range-marked", [*FETCH, *REFUSED], **wanted) == UPHELD
    assert found("range-marked", begin, **wanted) == UNSEEN


def test_not_marked() -> None:
    """What does not exist is a gap, not unknown (R144)."""
    wanted: dict[str, Any] = {"objects": [[1, 0]]}
    begin = [*FETCH, *FETCH_OK, fetches(3), obj(0, 0, via="fetch")]
    assert found("not-marked", [*begin, fin(3)], **wanted) == UPHELD
    assert found("not-marked", [*begin, marks(1, 9), fin(3)], **wanted) == against(
        Reason.RANGE_UNMARKED
    )
    assert found("not-marked", begin, **wanted) == UNSEEN


def test_streams_end() -> None:
    """FIN or a reset with the right code, as the case says; no end counts behind a fence (R164,
    R165)."""
    begin = [*ASKS, *accepts(), opens(3, 0), obj(0, 0)]
    assert found("streams-end", [*begin, fin(3)], how="fin") == UPHELD
    assert found("streams-end", [*begin, reset(3)], how="fin") == against(Reason.STREAM_END)
    assert found("streams-end", [*begin, reset(3, 2)], how="reset", codes=[2]) == UPHELD
    assert found("streams-end", [*begin, reset(3, 1)], how="reset", codes=[2]) == against(
        Reason.STREAM_CODE
    )
    assert found("streams-end", [*begin, fin(3)], how="reset") == against(Reason.STREAM_END)
    assert found("streams-end", [*begin, FENCE], how="reset") == against(Reason.STREAM_END)
    assert found("streams-end", begin, how="fin") == UNSEEN
    assert found("streams-end", begin, how="fin", group=9) == UNSEEN
    stop = ("moqt:stop_sent", {"stream": 3, "code": 1})
    assert found("streams-end", [*begin, stop, reset(3)], how="fin") == UNSEEN


def test_done_counts_streams() -> None:
    """Stream Count is the number of data streams, or unknown (R124, R125)."""
    two = [*ASKS, *accepts(), opens(3, 0), obj(0, 0), fetches(7)]
    assert found("done-counts-streams", [*two, done(2)]) == UPHELD
    assert found("done-counts-streams", [*two, done(None)]) == UPHELD
    assert found("done-counts-streams", [*two, done(1)]) == against(Reason.DONE_COUNT)
    assert found("done-counts-streams", [*ASKS, done(0)], count=0) == UPHELD
    assert found("done-counts-streams", [*ASKS, done(None)], count=0) == against(Reason.DONE_COUNT)
    assert found("done-counts-streams", [*two, done(2)], count=3) == UNSEEN
    assert found("done-counts-streams", two) == UNSEEN


def test_done_after_streams() -> None:
    """PUBLISH_DONE comes behind the end of every stream, but for what a network may do (R117)."""
    begin = [*ASKS, *accepts(), opens(3, 0), obj(0, 0)]
    assert found("done-after-streams", [*begin, fin(3), done(1)]) == UPHELD
    early = [*begin, done(1), fin(3)]
    assert found("done-after-streams", early) == against(Reason.DONE_EARLY)
    assert found("done-after-streams", early, link="quic") == UPHELD
    late = [*begin, done(1), *([PAUSE] * 600), fin(3)]
    assert found("done-after-streams", late, link="quic") == against(Reason.DONE_EARLY)
    assert found("done-after-streams", [*begin, done(1)]) == UNSEEN


def test_done_then_fin_and_code() -> None:
    """FIN needs PUBLISH_DONE before it, and PUBLISH_DONE the right code (R060, R181)."""
    assert found("done-then-fin", [*ASKS, done(0), fin(0)]) == UPHELD
    assert found("done-then-fin", [*ASKS, fin(0)]) == against(Reason.DONE_ABSENT)
    assert found("done-then-fin", ASKS) == UNSEEN
    cancelled: Event = ("moqt:stop_sent", {"stream": 0, "code": 1})
    elsewhere: Event = ("moqt:stop_sent", {"stream": 4, "code": 1})
    assert found("done-then-fin", [*ASKS, cancelled, fin(0)]) == UNSEEN
    assert found("done-then-fin", [*ASKS, elsewhere, fin(0)]) == against(Reason.DONE_ABSENT)
    assert found("done-then-fin", [*ASKS, fin(0), cancelled]) == against(Reason.DONE_ABSENT)
    assert found("done-code", [*ASKS, done(0, 0x12)], codes=[0x12]) == UPHELD
    assert found("done-code", [*ASKS, done(0)], codes=[0x12]) == against(Reason.DONE_CODE)
    assert found("done-code", ASKS, codes=[0x12]) == UNSEEN


def test_nothing_after_cancel() -> None:
    """Between two fences behind the end no stream opens (R116, R118, R169)."""
    cancel: Event = ("kvcs:cancel", {"of": "x", "request": 0})
    over = [*ASKS, *accepts(), opens(3, 0), obj(0, 0), cancel, FENCE]
    assert found("nothing-after-cancel", [*over, FENCE]) == UPHELD
    again = [*over, opens(7, 1), FENCE]
    assert found("nothing-after-cancel", again) == against(Reason.STREAM_SECOND)
    unclaimed: Event = ("moqt:stream_unclaimed", {"stream": 7, "request": 0})
    refused = [*FETCH, *REFUSED, FENCE, unclaimed, FENCE]
    assert found("nothing-after-cancel", refused) == against(Reason.STREAM_SECOND)
    assert found("nothing-after-cancel", over) == UNSEEN


def test_prompt() -> None:
    """An end or a refusal before the second fence; one that waits contradicts (R081, R082)."""
    assert found("prompt", [*FETCH, DELIVERED, FENCE, FENCE]) == UPHELD
    assert found("prompt", [*FETCH, *REFUSED, FENCE, FENCE]) == UPHELD
    assert found("prompt", [*FETCH, FENCE, FENCE]) == against(Reason.ANSWER_LATE)
    assert found("prompt", [*FETCH, FENCE, FENCE, DELIVERED]) == against(Reason.ANSWER_LATE)
    assert found("prompt", [*FETCH, FENCE]) == UNSEEN
