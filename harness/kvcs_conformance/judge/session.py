"""Judge words for how a session is ended, or goes on, after what one peer wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.delivery import LABEL
from kvcs_conformance.judge.findings import Finding, contradicted, departs, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

CODES = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}


_ANSWERS = ("RequestOk", "RequestError", "SubscribeOk", "FetchOk")


def _message(record: Record) -> Mapping[str, Any]:
    message: Mapping[str, Any] = record.data["message"]
    return message


@dataclass
class Tried:
    """What became of one attempt."""

    name: str
    begun: Record
    messages: list[Record] = field(default_factory=list)
    """What came on its request streams, but for answers to probes."""
    ends: list[Record] = field(default_factory=list)
    asked: list[Record] = field(default_factory=list)
    closed: Record | None = None
    lives: Record | None = None
    wrote: str = ""
    wrote_on: str = ""

    @property
    def answers(self) -> list[Record]:
        """The OKs and errors among the messages."""
        return [record for record in self.messages if _message(record)["type"] in _ANSWERS]

    @property
    def by_peer(self) -> bool:
        return self.closed is not None and bool(self.closed.data["by_peer"])


def attempts(evidence: Evidence, label: str) -> list[Tried]:
    """The attempts of the step labelled `label`, in its order."""
    found: dict[str, Tried] = {}
    for node in evidence.logs:
        for record in evidence.records(node):
            data = record.data
            if data.get("label") != label:
                continue
            if record.name == "kvcs:attempts":
                found |= {name: Tried(name, record) for name in data["names"]}
            elif data.get("attempt") in found:
                _note(found[data["attempt"]], record)
    return list(found.values())


def _note(tried: Tried, record: Record) -> None:
    data = record.data
    match record.name:
        case "kvcs:attempt-answer" if data["on"] == "request":
            tried.messages.append(record)
        case "kvcs:attempt-stream":
            tried.ends.append(record)
        case "kvcs:attempt-asked":
            tried.asked.append(record)
        case "kvcs:attempt-closed":
            tried.closed = record
        case "kvcs:attempt-lives":
            tried.lives = record
        case "kvcs:wrote":
            tried.wrote, tried.wrote_on = data["octets"], data["on"]


def close_text(record: Record) -> str:
    code = record.data["code"]
    reason = record.data["reason"]
    return ("no code" if code is None else f"{code:#x}") + (f" ({reason})" if reason else "")


def _wanted(codes: list[int]) -> str:
    return "close with " + (" or ".join(f"{code:#x}" for code in codes) if codes else "any code")


@judge("session-closed-with", required=("of",), of=LABEL, codes=CODES, preferred=CODES)
def session_closed_with(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each attempt of the step has its session closed by the peer, with one of `codes` (default:
    any), best with one of `preferred`. A session that answers a probe, and another one later,
    was not closed."""
    codes = arguments.get("codes", [])
    preferred = arguments.get("preferred", codes)
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        if tried.lives is not None:
            yield contradicted(
                Reason.CLOSE_ABSENT,
                f"{tried.name}: the session went on",
                expected=_wanted(codes),
                observed="both probes were answered" + _answered(tried),
                record=tried.lives,
                octets=tried.wrote,
            )
        elif tried.closed is None:
            yield unseen(f"{tried.name}: neither closed nor proven to live")
        elif not tried.by_peer:
            yield unseen(f"{tried.name}: not the peer ended it: {close_text(tried.closed)}")
        elif codes and tried.closed.data["code"] not in codes:
            yield contradicted(
                Reason.CLOSE_CODE,
                f"{tried.name}: closed with another code",
                expected=_wanted(codes),
                observed=close_text(tried.closed),
                record=tried.closed,
                octets=tried.wrote,
            )
        elif preferred and tried.closed.data["code"] not in preferred:
            yield departs(
                Reason.CLOSE_CODE,
                f"{tried.name}: closed with a code that is not preferred",
                expected=_wanted(preferred),
                observed=close_text(tried.closed),
                record=tried.closed,
            )
        else:
            yield upheld(f"{tried.name}: closed with {close_text(tried.closed)}", tried.closed)


def _answered(tried: Tried) -> str:
    kinds = [_message(record)["type"] for record in tried.answers]
    return f", and what was written with {kinds[-1]}" if kinds else ""


def _ended(tried: Tried) -> Finding | None:
    """A finding when the session of an attempt that should live did not."""
    if tried.closed is not None:
        if not tried.by_peer:
            return unseen(f"{tried.name}: not the peer ended it: {close_text(tried.closed)}")
        return contradicted(
            Reason.CLOSE_UNEXPECTED,
            f"{tried.name}: the session was closed",
            expected="a session that goes on",
            observed=close_text(tried.closed),
            record=tried.closed,
            octets=tried.wrote,
        )
    if tried.lives is None:
        return unseen(f"{tried.name}: not proven to live")
    return None


@judge("session-lives", required=("of",), of=LABEL)
def session_lives(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each attempt of the step leaves its session alive: it answers a probe, and another one a
    while later."""
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        yield _ended(tried) or upheld(f"{tried.name}: the session goes on", tried.lives)


@judge(
    "attempt-refused",
    required=("of", "codes"),
    of=LABEL,
    codes=CODES,
    preferred=CODES,
    answers={"type": "integer", "minimum": 1},
)
def attempt_refused(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The last thing that each attempt of the step asked (its answer number `answers`, default 1)
    is refused with REQUEST_ERROR and one of `codes`, best of `preferred`; the session lives."""
    codes = arguments["codes"]
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        record = _answer(tried, arguments)
        if finding := _ended(tried):
            yield finding
        elif record is None:
            yield contradicted(
                Reason.REQUEST_CODE,
                f"{tried.name}: no answer, though later questions were answered",
                expected=_errors(codes),
                observed="nothing",
                record=tried.lives,
                octets=tried.wrote,
            )
        else:
            yield _refusal(tried.name, record, arguments)


@judge("attempt-accepted", required=("of",), of=LABEL, answers={"type": "integer", "minimum": 1})
def attempt_accepted(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The last thing that each attempt of the step asked (its answer number `answers`, default 1)
    is answered with an OK; the session lives."""
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        record = _answer(tried, arguments)
        if finding := _ended(tried):
            yield finding
        elif record is None or _message(record)["type"] == "RequestError":
            yield contradicted(
                Reason.REQUEST_REFUSED,
                f"{tried.name}: not accepted",
                expected="an OK",
                observed="nothing" if record is None else _error(_message(record)),
                record=record or tried.lives,
                octets=tried.wrote,
            )
        else:
            yield upheld(f"{tried.name}: {record.data['message']['type']}", record)


def _answer(tried: Tried, arguments: Mapping[str, Any]) -> Record | None:
    number = arguments.get("answers", 1)
    return tried.answers[number - 1] if len(tried.answers) >= number else None


def _refusal(what: str, record: Record, arguments: Mapping[str, Any]) -> Finding:
    message = _message(record)
    codes = arguments["codes"]
    if message["type"] != "RequestError":
        return contradicted(
            Reason.REQUEST_CODE,
            f"{what}: not refused",
            expected=_errors(codes),
            observed=message["type"],
            record=record,
        )
    if message["code"] not in codes:
        return contradicted(
            Reason.REQUEST_CODE,
            f"{what}: refused with another code",
            expected=_errors(codes),
            observed=_error(message),
            record=record,
        )
    if message["code"] not in arguments.get("preferred", codes):
        return departs(
            Reason.REQUEST_CODE,
            f"{what}: refused with a code that is not preferred",
            expected=_errors(arguments["preferred"]),
            observed=_error(message),
            record=record,
        )
    return upheld(f"{what}: {_error(message)}", record)


def _errors(codes: list[int]) -> str:
    return "REQUEST_ERROR " + " or ".join(f"{code:#x}" for code in codes)


def _error(message: Mapping[str, Any]) -> str:
    if message["type"] != "RequestError":
        return str(message["type"])
    return f"REQUEST_ERROR {message['code']:#x} {message.get('reason', '')}".strip()


@judge("answered-once", required=("of",), of=LABEL, answers={"type": "integer", "minimum": 1})
def answered_once(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each attempt of the step gets exactly so many answers (default 1) on its request streams
    before its second probe is answered: none is missing, none comes twice."""
    right = arguments.get("answers", 1)
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        got = tried.answers
        if finding := _ended(tried):
            yield finding
        elif len(got) != right:
            yield contradicted(
                Reason.ANSWER_REPEATED if len(got) > right else Reason.REQUEST_CODE,
                f"{tried.name}: {len(got)} answers",
                expected=f"{right} answers",
                observed=", ".join(_error(_message(record)) for record in got) or "none",
                record=got[-1] if got else tried.lives,
            )
        else:
            yield upheld(f"{tried.name}: {right} answers", got[-1])


@judge("attempt-ends-with", required=("of",), of=LABEL, status=CODES)
def attempt_ends_with(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The peer ends its side of the request stream that each attempt of the step heard of last, by
    FIN or reset; with `status`, PUBLISH_DONE with one of these codes comes before."""
    status = arguments.get("status", [])
    for tried in attempts(evidence, arguments["of"]):
        done = next((r for r in tried.messages if _message(r)["type"] == "PublishDone"), None)
        last = tried.messages[-1].data["stream"] if tried.messages else None
        end = next((r for r in tried.ends if r.data["stream"] == last), None)
        wanted = "PUBLISH_DONE " + " or ".join(f"{code:#x}" for code in status) if status else ""
        if finding := _ended(tried):
            yield finding
        elif status and (done is None or _message(done)["status_code"] not in status):
            code = None if done is None else _message(done)["status_code"]
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
    """The peer asks each attempt of the step to stop its data streams (STOP_SENDING)."""
    for tried in attempts(evidence, arguments["of"]):
        end = next(
            (r for r in tried.ends if r.data["how"] == "stop" and r.data["stream"] & 2), None
        )
        if end is not None:
            yield upheld(f"{tried.name}: STOP_SENDING {end.data['code']:#x}", end)
        elif tried.lives is None:
            yield unseen(f"{tried.name}: not proven to live")
        else:
            yield contradicted(
                Reason.END_WRONG,
                f"{tried.name}: its data streams are read on",
                expected="STOP_SENDING",
                observed="none, though later questions were answered",
                record=tried.lives,
            )
