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
_NUMBER: Mapping[str, tuple[str, ...]] = {
    "02": ("MOQT-R064", "MOQT-R068"),
    "03": ("MOQT-R110",),
    "06": ("MOQT-R191",),
    "1d": ("MOQT-R111",),
}
"""By type of what was written: how often it is answered, then that it is."""


def message_of(record: Record) -> Mapping[str, Any]:
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
        return [record for record in self.messages if message_of(record)["type"] in _ANSWERS]

    @property
    def refused(self) -> bool:
        return any(message_of(record)["type"] == "RequestError" for record in self.answers)

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
    was not closed; where it answers what a peer asked for the sake of the node's own session, that
    counts while that one is open."""
    codes = arguments.get("codes", [])
    preferred = arguments.get("preferred", codes)
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        if tried.lives is not None and tried.asked and _alone(evidence, tried.lives):
            yield unseen(f"{tried.name}: the session of who asked had been closed")
        elif tried.lives is not None:
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


def _alone(evidence: Evidence, lives: Record) -> bool:
    """Whether the node's own session was closed before: what was asked for it is taken back."""
    closed = next(evidence.records(lives.node, "kvcs:closed"), None)
    return closed is not None and closed.index < lives.index


def _answered(tried: Tried) -> str:
    kinds = [message_of(record)["type"] for record in tried.answers]
    return f", and what was written with {kinds[-1]}" if kinds else ""


def not_alive(tried: Tried) -> Finding | None:
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
        yield not_alive(tried) or upheld(f"{tried.name}: the session goes on", tried.lives)


@judge(
    "attempt-refused",
    required=("of", "codes"),
    of=LABEL,
    codes=CODES,
    preferred=CODES,
    answers={"type": "integer", "minimum": 1},
    close={"const": "unseen"},
)
def attempt_refused(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The last thing that each attempt of the step asked (its answer number `answers`, default 1)
    is refused with REQUEST_ERROR and one of `codes`, best of `preferred`; the session lives. With
    `close: unseen` a session that does not live says nothing."""
    codes = arguments["codes"]
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        record = _answer(tried, arguments)
        if tried.closed is not None and "close" in arguments:
            yield unseen(f"{tried.name}: the session was closed")
        elif finding := not_alive(tried):
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
        if finding := not_alive(tried):
            yield finding
        elif record is None or message_of(record)["type"] == "RequestError":
            yield contradicted(
                Reason.REQUEST_REFUSED,
                f"{tried.name}: not accepted",
                expected="an OK",
                observed="nothing" if record is None else _error(message_of(record)),
                record=record or tried.lives,
                octets=tried.wrote,
            )
        else:
            yield upheld(f"{tried.name}: {record.data['message']['type']}", record)


def _answer(tried: Tried, arguments: Mapping[str, Any]) -> Record | None:
    number = arguments.get("answers", 1)
    return tried.answers[number - 1] if len(tried.answers) >= number else None


def _refusal(what: str, record: Record, arguments: Mapping[str, Any]) -> Finding:
    message = message_of(record)
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


@judge(
    "answered-once",
    required=("of",),
    of=LABEL,
    answers={"type": "integer", "minimum": 1},
    silence={"const": "unseen"},
)
def answered_once(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each attempt of the step gets exactly so many answers (default 1) on its request streams
    before its second probe is answered: none is missing, none comes twice. With `silence: unseen`
    a missing answer says nothing."""
    right = arguments.get("answers", 1)
    tries = attempts(evidence, arguments["of"])
    if not tries:
        yield unseen(f"no attempt is labelled {arguments['of']!r}")
    for tried in tries:
        got = tried.answers
        if finding := not_alive(tried):
            yield finding
        elif len(got) < right and "silence" in arguments:
            yield unseen(f"{tried.name}: {len(got)} answers of {right} came")
        elif len(got) != right:
            yield contradicted(
                Reason.ANSWER_REPEATED if len(got) > right else Reason.REQUEST_CODE,
                f"{tried.name}: {len(got)} answers",
                expected=f"{right} answers",
                observed=", ".join(_error(message_of(record)) for record in got) or "none",
                record=got[-1] if got else tried.lives,
                requires=_broken(tried, right),
            )
        else:
            yield upheld(f"{tried.name}: {right} answers", got[-1])


def _broken(tried: Tried, right: int) -> tuple[str, ...]:
    """The rows that another number of answers breaks; () where none speaks of the last message.
    Too many are no matter of whether a kind is known, and a direction that stays open does not end
    before its response."""
    rows = _NUMBER.get(tried.wrote[:2], ())
    if len(tried.answers) > right:
        return rows[:1]
    ended = {record.data["stream"] for record in tried.ends if record.data["how"] == "fin"}
    silent = ended - {record.data["stream"] for record in tried.messages}
    return (*rows, "MOQT-R059" if silent else "MOQT-R001")
