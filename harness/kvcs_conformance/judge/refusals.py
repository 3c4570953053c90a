"""Judge words for whether requests were accepted or refused, with which code, and what leaked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moqt.wire.errors import RequestErrorCode

from kvcs_conformance.evidence.read import Asked, Evidence, Record
from kvcs_conformance.judge.delivery import LABEL, answer, delivered, described, fenced, shown
from kvcs_conformance.judge.findings import Finding, Outcome, contradicted, departs, unseen, upheld
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.session import CODES
from kvcs_conformance.verdicts import Reason

KIND = {"type": "string"}
_UNAUTHORIZED = 0x1


def chosen(evidence: Evidence, arguments: Mapping[str, Any]) -> list[Asked]:
    """The requests of the step, of one kind if that is named."""
    kind = arguments.get("kind")
    return [one for one in evidence.asked(arguments["of"]) if kind in (None, one.kind)]


def _named(code: int) -> str:
    """A code with its name in the standard, if it has one."""
    try:
        return f"{RequestErrorCode(code).name} ({code:#x})"
    except ValueError:
        return f"{code:#x}"


def _wanted(codes: list[int]) -> str:
    return "REQUEST_ERROR " + " or ".join(map(_named, codes))


def _told(response: Mapping[str, Any]) -> str:
    """An answer in words: its type, and for an error its code and reason phrase."""
    if response["type"] != "RequestError":
        return str(response["type"])
    return f"REQUEST_ERROR {_named(response['code'])} {response.get('reason', '')}".strip()


def _code(what: str, record: Record, codes: list[int], preferred: list[int]) -> Finding | None:
    """What the code of a refusal speaks against, or departs from; None where it is as preferred."""
    response = record.data["response"]
    code = response["code"]
    if code not in codes:
        return contradicted(
            Reason.REQUEST_CODE,
            f"{what}: refused with another code",
            expected=_wanted(codes),
            observed=_told(response),
            record=record,
        )
    if code not in preferred:
        return departs(
            Reason.REQUEST_CODE,
            f"{what}: refused with a code that is not preferred",
            expected=_wanted(preferred),
            observed=_told(response),
            record=record,
        )
    return None


def _leaks(evidence: Evidence, request: Asked) -> list[Record]:
    """What came for a request: Objects, NAMESPACEs and, for its kind, PUBLISHes to the node."""
    leaks = [seen.record for seen in delivered(evidence, request)]
    leaks += shown(evidence, request)
    if request.kind == "SUBSCRIBE_TRACKS":
        leaks += [record for record, _ in evidence.messages(request.record.node, "Publish")]
    return leaks


def _leak(record: Record) -> str:
    """What such a record is, in words."""
    if record.name.startswith("moqt:object"):
        return f"Object ({record.data['group']}, {record.data['object']})"
    return "a NAMESPACE" if record.name == "kvcs:namespace" else "a PUBLISH"


def _kept_out(
    evidence: Evidence, request: Asked, codes: list[int] | None, preferred: list[int]
) -> Finding:
    """One request that has no right to anything; `codes` None takes any code."""
    what, wanted = described(request), _wanted(codes or preferred)
    got, leaks = answer(evidence, request), _leaks(evidence, request)
    if leaks:
        return contradicted(
            Reason.AUTH_LEAKED,
            f"{what}: {_leak(leaks[0])} came without authorisation",
            expected=f"{wanted} and nothing else",
            observed=f"{len(leaks)} Objects or messages",
            record=leaks[0],
        )
    if got is None:
        return unseen(f"{what}: no answer came")
    record, response = got
    if response["type"] != "RequestError":
        return contradicted(
            Reason.AUTH_LEAKED,
            f"{what}: accepted without authorisation",
            expected=wanted,
            observed=_told(response),
            record=record,
        )
    code = _code(what, record, codes or [response["code"]], preferred)
    if code is not None and code.outcome is Outcome.CONTRADICTED:
        return code
    if not fenced(evidence, request):
        return unseen(f"{what}: refused, but no fence came after it")
    return code or upheld(f"{what}: {_named(response['code'])}, and nothing came", record)


@judge("refused", required=("of",), of=LABEL)
def refused(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every request of the step is answered with REQUEST_ERROR, best with UNAUTHORIZED, and
    neither an Object nor a NAMESPACE comes for it before a fence of the node."""
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        yield _kept_out(evidence, request, None, [_UNAUTHORIZED])


@judge(
    "kept-out",
    required=("of",),
    of=LABEL,
    kind=KIND,
    codes=CODES,
    preferred=CODES,
)
def kept_out(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every request of the step (of one `kind`, if that is given) is refused with one of `codes`
    (default: UNAUTHORIZED), best with one of `preferred`; neither an Object nor a NAMESPACE comes
    for it, and the node is sent no PUBLISH, before a fence of the node."""
    codes = arguments.get("codes", [_UNAUTHORIZED])
    requests = chosen(evidence, arguments)
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        yield _kept_out(evidence, request, codes, arguments.get("preferred", codes))


@judge("accepted", required=("of",), of=LABEL, kind=KIND)
def accepted(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every request of the step (of one `kind`, if that is given) is answered with its OK."""
    requests = chosen(evidence, arguments)
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        got = answer(evidence, request)
        if got is None:
            yield unseen(f"{described(request)}: no answer came")
        elif got[1]["type"] in ("RequestError", "Reset"):
            yield contradicted(
                Reason.REQUEST_REFUSED,
                f"{described(request)}: not accepted",
                expected="an OK",
                observed=_told(got[1]),
                record=got[0],
            )
        else:
            yield upheld(f"{described(request)}: {got[1]['type']}", got[0])


@judge("refused-with", required=("of", "codes"), of=LABEL, codes=CODES, preferred=CODES)
def refused_with(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every request of the step is refused with one of these codes, best with one of `preferred`,
    and brings no Object."""
    codes = arguments["codes"]
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        what = described(request)
        got, objects = answer(evidence, request), delivered(evidence, request)
        if objects:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{what}: Objects came for what must be refused",
                expected=_wanted(codes),
                observed=f"{len(objects)} Objects",
                record=objects[0].record,
            )
        elif got is None:
            yield unseen(f"{what}: no answer came")
        elif got[1]["type"] != "RequestError":
            yield contradicted(
                Reason.REQUEST_CODE,
                f"{what}: not refused",
                expected=_wanted(codes),
                observed=_told(got[1]),
                record=got[0],
            )
        else:
            code = _code(what, got[0], codes, arguments.get("preferred", codes))
            yield code or upheld(f"{what}: {_told(got[1])}", got[0])
