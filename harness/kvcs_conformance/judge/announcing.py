"""Judge words for what goes with an announcement, and for what follows when it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.identity import asked_for
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_UNAUTHORIZED = 0x1


@judge("announced-with-token", at=NODE)
def announced_with_token(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each PUBLISH_NAMESPACE carries the token that the publisher was given for the scope."""
    right = {str(asked.get("token", "")) for asked in asked_for(evidence)} - {""}
    found = list(evidence.messages(arguments.get("at", "consumer"), "PublishNamespace"))
    if not found or not right:
        yield unseen("no PUBLISH_NAMESPACE arrived, or no token was given")
        return
    for record, message in found:
        tokens = (message.get("parameters") or {}).get("authorization_tokens") or []
        values = {str(token.get("value")) for token in tokens}
        if values & right:
            yield upheld("PUBLISH_NAMESPACE carries the token of the scope", record)
        else:
            yield contradicted(
                Reason.AUTH_ABSENT,
                "PUBLISH_NAMESPACE does not carry the authorization that it was given",
                expected=f"AUTHORIZATION TOKEN with {', '.join(sorted(right))}",
                observed=", ".join(sorted(values)) or "none",
                record=record,
                octets=record.data.get("raw", ""),
                requires=("KVCS-6-1",),
            )


@judge("publishes-nothing-refused", at=NODE)
def publishes_nothing_refused(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Once PUBLISH_NAMESPACE was refused as UNAUTHORIZED no data Object comes from the publisher.
    Absence counts behind a fence after a request for data."""
    node = arguments.get("at", "consumer")
    refused = next(
        (
            record
            for record, message in evidence.messages(node, "RequestError", sent=True)
            if message["code"] == _UNAUTHORIZED
        ),
        None,
    )
    asked = [record.index for record in evidence.records(node, "kvcs:answered")]
    fences = [record.index for record in evidence.records(node, "kvcs:fence")]
    data = next((seen for seen in evidence.objects(node) if seen.is_data), None)
    if refused is None:
        yield unseen("no announcement was refused")
    elif data is not None:
        yield contradicted(
            Reason.OBJECT_UNEXPECTED,
            f"{data.track}: data came although the announcement had been refused",
            expected="nothing is published without authorization",
            observed=f"{data.location} at {data.record.time:.3f} s",
            record=data.record,
            requires=("KVCS-6-1",),
        )
    elif not asked or not any(fence > asked[0] for fence in fences):
        yield unseen("no fence follows a request for data")
    else:
        yield upheld("nothing was published after the refusal", refused)
