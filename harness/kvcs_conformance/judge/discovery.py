"""Judge words for the namespaces and Tracks that a relay tells of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from kvcs_conformance.evidence.read import Asked, Evidence
from kvcs_conformance.judge.delivery import LABEL, answer, described, fenced
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

Name: TypeAlias = tuple[str, ...]


@judge(
    "names-listed",
    required=("of",),
    of=LABEL,
    publishers={"type": "array"},
    announced={"type": "array"},
    gone={"type": "array"},
)
def names_listed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The step's SUBSCRIBE_NAMESPACE is shown exactly the publications of `publishers` and the
    namespaces that the steps `announced` announced, each once; for those of `gone` NAMESPACE_DONE
    comes after it, for no others. Absence counts behind a fence of the node, and only when all
    that was to be announced was accepted."""
    right = {
        tuple(evidence.facts["publications"][name]["namespace"])
        for name in arguments.get("publishers", [])
    }
    for label in arguments.get("announced", []):
        right |= _announced(evidence, label)
    gone = set().union(*(_announced(evidence, label) for label in arguments.get("gone", [])))
    refused = [
        one
        for label in arguments.get("announced", [])
        for one in evidence.asked(label)
        if (got := answer(evidence, one)) is not None and got[1]["type"] == "RequestError"
    ]
    for request in evidence.asked(arguments["of"]):
        if refused:
            yield unseen(f"{described(refused[0])}: refused, so there is less to list")
        else:
            yield _disorder(evidence, request) or _listed(evidence, request, right, gone)


def _announced(evidence: Evidence, label: str) -> set[Name]:
    """The namespaces that the step with this label announced."""
    found = set()
    for request in evidence.asked(label):
        for _, message in evidence.messages(request.record.node, "PublishNamespace", sent=True):
            if message["request_id"] == request.request:
                found.add(tuple(message["namespace"]))
    return found


def _disorder(evidence: Evidence, request: Asked) -> Finding | None:
    """A NAMESPACE_DONE whose NAMESPACE did not come before it on the request's stream."""
    node = request.record.node
    streams = {
        record.data["stream"]
        for record, message in evidence.messages(node, "SubscribeNamespace", sent=True)
        if message["request_id"] == request.request
    }
    open_: set[Name] = set()
    for record, message in evidence.messages(node, "Namespace", "NamespaceDone"):
        if record.data["stream"] not in streams:
            continue
        suffix = tuple(message["suffix"])
        if message["type"] == "Namespace":
            open_.add(suffix)
        elif suffix in open_:
            open_.remove(suffix)
        else:
            return contradicted(
                Reason.NAMESPACE_ABSENT,
                f"{described(request)}: NAMESPACE_DONE came before its NAMESPACE",
                expected="NAMESPACE, then NAMESPACE_DONE",
                observed="/".join(suffix),
                record=record,
                octets=record.data["raw"],
                requires=("MOQT-R196",),
            )
    return None


def _listed(evidence: Evidence, request: Asked, right: set[Name], gone: set[Name]) -> Finding:
    told: dict[Name, int] = {}
    ended: set[Name] = set()
    for record in evidence.records(request.record.node, "kvcs:namespace", "kvcs:namespace-ended"):
        if record.data["request"] != request.request:
            continue
        name = tuple(record.data["namespace"])
        if record.name == "kvcs:namespace":
            told[name] = told.get(name, 0) + 1
            if name not in right:
                return contradicted(
                    Reason.NAMESPACE_LEAKED,
                    f"{described(request)}: a namespace that does not belong there was shown",
                    expected=f"{len(right)} namespaces",
                    observed="/".join(name),
                    record=record,
                    requires=("KVCS-3.1-7", "KVCS-7.1-2"),
                )
            if told[name] > 1 and name not in ended:
                return contradicted(
                    Reason.NAMESPACE_LEAKED,
                    f"{described(request)}: a namespace was shown twice",
                    expected="NAMESPACE once",
                    observed="/".join(name),
                    record=record,
                    requires=("KVCS-7.1-2", "MOQT-R193"),
                )
        else:
            ended.add(name)
            if name not in gone:
                return contradicted(
                    Reason.NAMESPACE_ABSENT,
                    f"{described(request)}: a namespace that is still there was taken back",
                    expected="no NAMESPACE_DONE",
                    observed="/".join(name),
                    record=record,
                    requires=("MOQT-R193",),
                )
    if not fenced(evidence, request):
        return unseen(f"{described(request)}: no fence came after it")
    missing = sorted(right - told.keys())
    stale = sorted(gone - ended)
    if missing or stale:
        return contradicted(
            Reason.NAMESPACE_ABSENT,
            f"{described(request)}: "
            + ("a namespace was not shown" if missing else "a namespace was not taken back"),
            expected="/".join((missing or stale)[0]),
            observed=f"{len(told)} shown, {len(ended)} taken back before the fence",
            record=request.record,
            requires=("KVCS-3.1-7" if missing else "KVCS-7.1-2", "MOQT-R193"),
        )
    return upheld(f"{described(request)}: {len(told)} shown, {len(ended)} taken back")


@judge("no-publish", required=("at",), at=NODE)
def no_publish(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The node, which asked for no Tracks, is sent no PUBLISH before its last fence."""
    node = arguments["at"]
    record = next((record for record, _ in evidence.messages(node, "Publish")), None)
    fence = next(evidence.records(node, "kvcs:fence"), None)
    if record is not None:
        yield contradicted(
            Reason.AUTH_LEAKED,
            f"{node}: a PUBLISH came that it had not asked for",
            expected="no PUBLISH",
            observed="PUBLISH",
            record=record,
        )
    elif fence is None:
        yield unseen(f"{node}: no fence")
    else:
        yield upheld(f"{node}: no PUBLISH came", fence)
