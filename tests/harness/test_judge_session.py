"""Judge words for sessions, access and discovery, on hand-made evidence."""

from __future__ import annotations

from typing import Any

from kvcs_conformance.judge import JUDGES, Outcome
from kvcs_conformance.verdicts import Reason

from tests.harness.evidence import (
    NAMESPACE,
    OTHER,
    Event,
    answered,
    asked,
    evidence,
    message,
    obj,
    report,
)

UPHELD = {(Outcome.UPHELD, None)}
UNSEEN = {(Outcome.UNSEEN, Reason.NO_EVIDENCE)}
BEGUN = report("attempts", label="tries", names=["one"])
LIVES = report("attempt-lives", label="tries", attempt="one")
FENCE = report("fence", label="fence")
NO = answered("RequestError", code=1, reason="no")


def against(reason: Reason) -> set[tuple[Outcome, Reason | None]]:
    return {(Outcome.CONTRADICTED, reason)}


def found(word: str, events: list[Event], **arguments: Any) -> set[tuple[Outcome, Reason | None]]:
    """The outcomes and reasons of a judge word over the log of one hostile node."""
    case = evidence("relay", {"hostile": events})
    return {(f.outcome, f.reason) for f in JUDGES[word].function(case, arguments)}


def charged(word: str, events: list[Event], **arguments: Any) -> set[str]:
    """The rows that the findings of a judge word against the peer name."""
    findings = JUDGES[word].function(evidence("relay", {"hostile": events}), arguments)
    return {row for f in findings if f.outcome is Outcome.CONTRADICTED for row in f.requires}


def wrote(octets: str) -> Event:
    return report("wrote", label="tries", attempt="one", on="request", octets=octets, end="")


def closed(code: int | None, *, by_peer: bool = True) -> Event:
    return report(
        "attempt-closed", label="tries", attempt="one", code=code, reason="why", by_peer=by_peer
    )


def said(kind: str, stream: int = 0, on: str = "request", **fields: Any) -> Event:
    """A message on a request stream of the attempt."""
    return report(
        "attempt-answer",
        label="tries",
        attempt="one",
        stream=stream,
        on=on,
        message={"type": kind, **fields},
    )


def ended(how: str, stream: int = 0, code: int | None = None) -> Event:
    return report("attempt-stream", label="tries", attempt="one", stream=stream, how=how, code=code)


def was_asked(kind: str = "Subscribe", stream: int = 1) -> Event:
    return report(
        "attempt-asked", label="tries", attempt="one", stream=stream, message={"type": kind}
    )


def test_session_closed_with() -> None:
    """Closed with a code of the rule upholds, with another one or not at all contradicts."""

    def judged(*events: Event, **more: Any) -> set[tuple[Outcome, Reason | None]]:
        return found("session-closed-with", [BEGUN, *events], of="tries", **more)

    assert judged(closed(3), codes=[3]) == UPHELD
    assert judged(closed(7)) == UPHELD
    assert judged(closed(4), codes=[3]) == against(Reason.CLOSE_CODE)
    assert judged(closed(None), codes=[3]) == against(Reason.CLOSE_CODE)
    assert judged(LIVES, codes=[3]) == against(Reason.CLOSE_ABSENT)
    assert judged(codes=[3]) == UNSEEN
    assert judged(closed(3, by_peer=False), codes=[3]) == UNSEEN
    gone = report("closed", code=3, reason="why", by_peer=True)
    assert judged(was_asked(), LIVES, gone, codes=[3]) == against(Reason.CLOSE_ABSENT)
    assert judged(was_asked(), gone, LIVES, codes=[3]) == UNSEEN
    assert judged(closed(1), preferred=[3]) == {(Outcome.DEPARTS, Reason.CLOSE_CODE)}
    assert found("session-closed-with", [], of="tries", codes=[3]) == UNSEEN


def test_session_lives() -> None:
    """Proven alive upholds, closed by the peer contradicts, else nothing is known."""
    assert found("session-lives", [BEGUN, LIVES], of="tries") == UPHELD
    assert found("session-lives", [BEGUN, closed(3)], of="tries") == against(
        Reason.CLOSE_UNEXPECTED
    )
    assert found("session-lives", [BEGUN], of="tries") == UNSEEN
    assert found("session-lives", [BEGUN, closed(0, by_peer=False)], of="tries") == UNSEEN
    assert found("session-lives", [], of="tries") == UNSEEN


def test_attempt_refused_and_accepted() -> None:
    """The answer counts that is asked about; messages that are no answers do not count."""
    refusal = said("RequestError", code=0x36)
    more = [BEGUN, said("RequestOk"), said("Namespace"), refusal, LIVES]
    assert found("attempt-refused", more, of="tries", codes=[0x36], answers=2) == UPHELD
    assert found("attempt-refused", more, of="tries", codes=[0x36]) == against(Reason.REQUEST_CODE)
    assert found("attempt-refused", more, of="tries", codes=[0x10], answers=2) == against(
        Reason.REQUEST_CODE
    )
    assert found(
        "attempt-refused", more, of="tries", codes=[0x36, 0x1], preferred=[0x1], answers=2
    ) == {(Outcome.DEPARTS, Reason.REQUEST_CODE)}
    assert found("attempt-refused", [BEGUN, LIVES], of="tries", codes=[1]) == against(
        Reason.REQUEST_CODE
    )
    assert found("attempt-refused", [BEGUN, refusal], of="tries", codes=[0x36]) == UNSEEN
    assert found("attempt-refused", [BEGUN, closed(3)], of="tries", codes=[1]) == against(
        Reason.CLOSE_UNEXPECTED
    )
    shut: dict[str, Any] = {"of": "tries", "codes": [1], "close": "unseen"}
    assert found("attempt-refused", [BEGUN, closed(3)], **shut) == UNSEEN
    assert found("attempt-accepted", more, of="tries") == UPHELD
    assert found("attempt-accepted", more, of="tries", answers=2) == against(Reason.REQUEST_REFUSED)
    assert found("attempt-accepted", [BEGUN, LIVES], of="tries") == against(Reason.REQUEST_REFUSED)
    for word in ("attempt-refused", "attempt-accepted", "answered-once"):
        assert found(word, [], of="tries", codes=[1]) == UNSEEN


def test_answered_once() -> None:
    """Two answers contradict, none too; answers to probes do not count."""
    probe = said("RequestError", 4, "probe", code=16)
    once = [BEGUN, said("SubscribeOk", track_alias=0), probe, LIVES]
    assert found("answered-once", once, of="tries") == UPHELD
    twice = [*once[:2], said("RequestOk"), LIVES]
    assert found("answered-once", twice, of="tries") == against(Reason.ANSWER_REPEATED)
    assert found("answered-once", twice, of="tries", answers=2) == UPHELD
    assert found("answered-once", [BEGUN, probe, LIVES], of="tries") == against(Reason.REQUEST_CODE)
    assert found("answered-once", once[:2], of="tries") == UNSEEN
    lenient: dict[str, Any] = {"of": "tries", "silence": "unseen"}
    assert found("answered-once", [BEGUN, probe, LIVES], **lenient) == UNSEEN
    assert found("answered-once", twice, **lenient) == against(Reason.ANSWER_REPEATED)


def test_answered_once_names_what_is_broken() -> None:
    """A second answer breaks the row of its message (R110); none breaks R001 as well, or R059 where
    the direction ended; one for two updates breaks R064 and R068."""
    ok = said("RequestOk")
    twice = [BEGUN, wrote("0300"), ok, ok, LIVES]
    assert charged("answered-once", twice, of="tries") == {"MOQT-R110"}
    silent = [BEGUN, wrote("0d00"), LIVES]
    assert charged("answered-once", silent, of="tries") == {"MOQT-R001"}
    fin = [*silent[:2], ended("fin"), LIVES]
    assert charged("answered-once", fin, of="tries") == {"MOQT-R059"}
    updates = [BEGUN, wrote("0200"), ok, LIVES]
    assert {"MOQT-R064", "MOQT-R068"} <= charged("answered-once", updates, of="tries", answers=2)


def test_attempt_ends_with() -> None:
    """The peer's side ends, behind PUBLISH_DONE where one is owed."""
    done = said("PublishDone", status_code=8)
    right = [BEGUN, said("RequestError", code=1), done, ended("fin"), LIVES]
    assert found("attempt-ends-with", right, of="tries", status=[8]) == UPHELD
    assert found("attempt-ends-with", right, of="tries") == UPHELD
    assert found("attempt-ends-with", right, of="tries", status=[2]) == against(Reason.END_WRONG)
    silent = [BEGUN, said("RequestError", code=1), LIVES]
    assert found("attempt-ends-with", silent, of="tries") == against(Reason.END_WRONG)
    assert found("attempt-ends-with", [*silent, ended("stop")], of="tries") == against(
        Reason.END_WRONG
    )
    assert found("attempt-ends-with", silent[:2], of="tries") == UNSEEN
    accepted = [BEGUN, said("RequestOk"), LIVES]
    assert found("attempt-ends-with", accepted, of="tries") == UNSEEN


def test_attempt_dropped_and_kept() -> None:
    """A reset or STOP_SENDING of what the peer asked is a cancellation, FIN is none."""
    gone = [BEGUN, was_asked(), ended("reset", 1, 0x12), LIVES]
    stays = [BEGUN, was_asked(), ended("fin", 1), ended("reset", 5, 1), LIVES]
    assert found("attempt-dropped", gone, of="tries") == UPHELD
    assert found("attempt-dropped", stays, of="tries") == against(Reason.END_WRONG)
    assert found("attempt-dropped", stays[:-1], of="tries") == UNSEEN
    assert found("attempt-keeps-request", stays, of="tries") == UPHELD
    assert found("attempt-keeps-request", gone, of="tries") == against(Reason.END_WRONG)
    assert found("attempt-keeps-request", [BEGUN, LIVES], of="tries") == UNSEEN


def test_attempt_stops_data() -> None:
    """STOP_SENDING of a unidirectional stream upholds; what was accepted need not be stopped
    (R122)."""
    stopped = [BEGUN, ended("stop", 6, 1), LIVES]
    assert found("attempt-stops-data", stopped, of="tries") == UPHELD
    accepted = [BEGUN, said("RequestOk"), ended("stop", 4, 1), LIVES]
    assert found("attempt-stops-data", accepted, of="tries") == UNSEEN
    other = [BEGUN, said("RequestError", code=1), ended("stop", 4, 1), LIVES]
    assert found("attempt-stops-data", other, of="tries") == against(Reason.END_WRONG)
    assert found("attempt-stops-data", [BEGUN], of="tries") == UNSEEN


def test_kept_out() -> None:
    """A refusal behind a fence upholds; an OK, an Object, a NAMESPACE or a PUBLISH is a leak."""
    ask = [asked("x", "SUBSCRIBE")]
    assert found("kept-out", [*ask, NO, FENCE], of="x") == UPHELD
    assert found("kept-out", [*ask, NO], of="x") == UNSEEN
    assert found("kept-out", ask, of="x") == UNSEEN
    assert found("kept-out", [], of="x") == UNSEEN
    assert found("kept-out", [*ask, NO, FENCE], of="x", kind="FETCH") == UNSEEN
    ok = [*ask, answered("SubscribeOk"), FENCE]
    assert found("kept-out", ok, of="x") == against(Reason.AUTH_LEAKED)
    leak = [*ask, NO, obj(0, 0), FENCE]
    assert found("kept-out", leak, of="x") == against(Reason.AUTH_LEAKED)
    other = [*ask, answered("RequestError", code=16, reason=""), FENCE]
    assert found("kept-out", other, of="x") == against(Reason.REQUEST_CODE)
    assert found("kept-out", other, of="x", codes=[16, 1], preferred=[1]) == {
        (Outcome.DEPARTS, Reason.REQUEST_CODE)
    }
    named = [asked("x", "SUBSCRIBE_NAMESPACE", ""), NO, report("namespace", request=0), FENCE]
    assert found("kept-out", named, of="x") == against(Reason.AUTH_LEAKED)
    published = [asked("x", "SUBSCRIBE_TRACKS", ""), NO, message("Publish"), FENCE]
    assert found("kept-out", published, of="x") == against(Reason.AUTH_LEAKED)


def test_accepted() -> None:
    """An OK upholds, a refusal contradicts."""
    assert found("accepted", [asked("x"), answered("FetchOk")], of="x") == UPHELD
    assert found("accepted", [asked("x"), NO], of="x") == against(Reason.REQUEST_REFUSED)
    reset = [asked("x"), answered("Reset", code=1)]
    assert found("accepted", reset, of="x") == against(Reason.REQUEST_REFUSED)
    assert found("accepted", [asked("x")], of="x") == UNSEEN
    assert found("accepted", [], of="x") == UNSEEN


def updated(kind: str = "SUBSCRIBE") -> Event:
    return report("updated", label="u", of="x", request=0, update=2, kind=kind)


def update_answered(kind: str, **fields: Any) -> Event:
    return report(
        "update-answered", label="u", request=0, update=2, response={"type": kind, **fields}
    )


def test_renewal_refused() -> None:
    """The update is refused, nothing is filled, and the subscription ends with UPDATE_FAILED."""
    no = update_answered("RequestError", code=1)
    done = report("track-ended", request=0, complete=False, code=8)
    assert found("renewal-refused", [updated(), no, done, FENCE], of="u") == UPHELD
    assert found("renewal-refused", [updated(), no, FENCE], of="u") == against(Reason.END_WRONG)
    assert found("renewal-refused", [updated("FETCH"), no, FENCE], of="u") == UPHELD
    ok = update_answered("RequestOk")
    assert found("renewal-refused", [updated(), ok, FENCE], of="u") == against(Reason.AUTH_LEAKED)
    leak = [updated(), no, done, obj(0, 0, via="fill"), FENCE]
    assert found("renewal-refused", leak, of="u") == against(Reason.AUTH_LEAKED)
    other = update_answered("RequestError", code=16)
    assert found("renewal-refused", [updated(), other, done, FENCE], of="u") == against(
        Reason.REQUEST_CODE
    )
    for short in ([updated(), no, done], [updated()], []):
        assert found("renewal-refused", short, of="u") == UNSEEN
    assert charged("renewal-refused", [updated(), no, FENCE], of="u") == {"MOQT-R065"}
    assert charged("renewal-refused", leak, of="u") == {"KVCS-8-4", "MOQT-R208"}


def test_renewal_accepted() -> None:
    """The update is answered with REQUEST_OK, and the fill comes if one was asked for."""
    ok = update_answered("RequestOk")
    assert found("renewal-accepted", [updated(), ok], of="u") == UPHELD
    assert found("renewal-accepted", [updated(), ok], of="u", fill=True) == UNSEEN
    filled = [updated(), ok, obj(0, 0, via="fill")]
    assert found("renewal-accepted", filled, of="u", fill=True) == UPHELD
    no = update_answered("RequestError", code=1)
    assert found("renewal-accepted", [updated(), no], of="u") == against(Reason.REQUEST_REFUSED)
    assert found("renewal-accepted", [updated()], of="u") == UNSEEN
    assert found("renewal-accepted", [], of="u") == UNSEEN


def test_bounded() -> None:
    """Of three requests one may pass; the others are to wait, and to come again."""
    ask = [asked("x", request=i) for i in range(3)]

    def load(i: int, code: int = 9, retry: int = 1001) -> Event:
        return answered("RequestError", i, code=code, retry_interval=retry)

    right = [*ask, answered("FetchOk", 0), load(1), load(2)]
    assert found("bounded", right, of="x", most=1) == UPHELD
    assert found("bounded", right, of="x", most=3) == UNSEEN
    assert found("bounded", right[:-1], of="x", most=1) == UNSEEN
    lax = [*ask, answered("FetchOk", 0), answered("FetchOk", 1), load(2)]
    assert found("bounded", lax, of="x", most=1) == against(Reason.LIMIT_ABSENT)
    wrong = [*ask, answered("FetchOk", 0), load(1, code=0), load(2)]
    assert found("bounded", wrong, of="x", most=1) == against(Reason.REQUEST_CODE)
    final = [*ask, answered("FetchOk", 0), load(1, retry=0), load(2)]
    assert found("bounded", final, of="x", most=1) == against(Reason.REQUEST_CODE)
    assert charged("bounded", final, of="x", most=1) == {"KVCS-10-10"}


def listed(*events: Event, **arguments: Any) -> set[tuple[Outcome, Reason | None]]:
    """What is said of a SUBSCRIBE_NAMESPACE on stream 4 after these events."""
    announced = [
        asked("mine", "PUBLISH_NAMESPACE", "", 2),
        message("PublishNamespace", sent=True, request_id=2, namespace=OTHER),
        asked("list", "SUBSCRIBE_NAMESPACE", "", 4),
        on_stream(message("SubscribeNamespace", sent=True, request_id=4)),
    ]
    return found("names-listed", [*announced, *events], of="list", **arguments)


def on_stream(event: Event) -> Event:
    name, data = event
    return (name, {**data, "stream": 4})


def told(namespace: list[str], *, ended: bool = False) -> list[Event]:
    kind, name = ("NamespaceDone", "namespace-ended") if ended else ("Namespace", "namespace")
    return [
        on_stream(message(kind, suffix=namespace[4:])),
        report(name, request=4, namespace=namespace),
    ]


def test_names_listed() -> None:
    """Exactly what belongs there is shown, once each, and only what is gone is taken back."""
    both = {"publishers": ["publisher"], "announced": ["mine"]}
    shown = [*told(NAMESPACE), *told(OTHER)]
    assert listed(*shown, FENCE, **both) == UPHELD
    assert listed(*shown, **both) == UNSEEN
    assert listed(*told(NAMESPACE), FENCE, **both) == against(Reason.NAMESPACE_ABSENT)
    assert listed(*shown, FENCE, announced=["mine"]) == against(Reason.NAMESPACE_LEAKED)
    assert listed(*shown, *told(OTHER), FENCE, **both) == against(Reason.NAMESPACE_LEAKED)
    back = [*shown, *told(OTHER, ended=True), FENCE]
    assert listed(*back, gone=["mine"], **both) == UPHELD
    assert listed(*back, **both) == against(Reason.NAMESPACE_ABSENT)
    assert listed(*shown, FENCE, gone=["mine"], **both) == against(Reason.NAMESPACE_ABSENT)
    early = [*told(NAMESPACE), *told(OTHER, ended=True), FENCE]
    assert listed(*early, gone=["mine"], **both) == against(Reason.NAMESPACE_ABSENT)
    no = answered("RequestError", 2, code=1)
    assert listed(no, *told(NAMESPACE), FENCE, **both) == UNSEEN


def test_no_publish() -> None:
    """A PUBLISH contradicts; none before a fence upholds."""
    assert found("no-publish", [FENCE], at="hostile") == UPHELD
    assert found("no-publish", [message("Publish"), FENCE], at="hostile") == against(
        Reason.AUTH_LEAKED
    )
    assert found("no-publish", [], at="hostile") == UNSEEN


def test_request_refused_with() -> None:
    """The code counts; an OK or another code contradicts."""
    assert found("refused-with", [asked("x"), NO], of="x", codes=[1]) == UPHELD
    assert found("refused-with", [asked("x"), NO], of="x", codes=[2]) == against(
        Reason.REQUEST_CODE
    )
    ok = [asked("x"), answered("FetchOk")]
    assert found("refused-with", ok, of="x", codes=[1]) == against(Reason.REQUEST_CODE)
    assert found("refused-with", [asked("x"), NO], of="x", codes=[1, 2], preferred=[2]) == {
        (Outcome.DEPARTS, Reason.REQUEST_CODE)
    }
    assert found("refused-with", [asked("x")], of="x", codes=[1]) == UNSEEN
    assert found("refused-with", [], of="x", codes=[1]) == UNSEEN


def test_subscription_done_with() -> None:
    """PUBLISH_DONE or the refusal has the code; going on behind a fence contradicts."""
    ask = [asked("x", "SUBSCRIBE")]
    done = report("track-ended", request=0, complete=False, code=18)
    other = report("track-ended", request=0, complete=True, code=2)
    refusal = answered("RequestError", code=18)
    word = "subscription-done-with"
    assert found(word, [*ask, answered("SubscribeOk"), done], of="x", codes=[18]) == UPHELD
    assert found(word, [*ask, refusal], of="x", codes=[18]) == UPHELD
    assert found(word, [*ask, other], of="x", codes=[18]) == against(Reason.DONE_CODE)
    assert found(word, [*ask, NO], of="x", codes=[18]) == against(Reason.DONE_CODE)
    assert found(word, [*ask, FENCE], of="x", codes=[18]) == against(Reason.END_WRONG)
    assert found(word, ask, of="x", codes=[18]) == UNSEEN


def test_nothing_delivered() -> None:
    """An Object contradicts, none before a fence upholds."""
    ask = [asked("x")]
    assert found("nothing-delivered", [*ask, FENCE], of="x") == UPHELD
    assert found("nothing-delivered", [*ask, obj(0, 0), FENCE], of="x") == against(
        Reason.OBJECT_UNEXPECTED
    )
    assert found("nothing-delivered", ask, of="x") == UNSEEN
    assert found("nothing-delivered", [*ask, FENCE], of="x", kind="SUBSCRIBE") == UNSEEN


def test_downstream_lives() -> None:
    """The session of who asked is open at a fence behind the last close."""
    assert found("downstream-lives", [closed(3), FENCE], at="hostile") == UPHELD
    assert found("downstream-lives", [FENCE, closed(3)], at="hostile") == UNSEEN
    gone = report("closed", code=3, reason="why", by_peer=True)
    assert found("downstream-lives", [closed(3), gone, FENCE], at="hostile") == against(
        Reason.CLOSE_UNEXPECTED
    )
    own = report("closed", code=3, reason="why", by_peer=False)
    assert found("downstream-lives", [closed(3), own, FENCE], at="hostile") == UNSEEN
