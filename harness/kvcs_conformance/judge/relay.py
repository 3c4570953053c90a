"""Judge words for a relay: what it asks of the publisher behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence
from kvcs_conformance.judge.delivery import LABEL, ended
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_ASKING = ("Subscribe", "Fetch")


@judge("nothing-asked-upstream", required=("of",), of=LABEL, publisher=NODE)
def nothing_asked_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The requests of the step are served from the cache: between the request and its end the
    publisher gets neither SUBSCRIBE nor FETCH for the track."""
    node = arguments.get("publisher", "publisher")
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        end = ended(evidence, request)
        if end is None:
            yield unseen(f"{request.track}: the delivery has not ended")
            continue
        repeated = [
            (record, message)
            for record, message in evidence.messages(node, *_ASKING)
            if message["track"]["name"] == request.track
            and request.record.time < record.time <= end.time
        ]
        if repeated:
            record, message = repeated[0]
            yield contradicted(
                Reason.UPSTREAM_REPEATED,
                f"{request.track}: the publisher was asked again for what is in the cache",
                expected="no SUBSCRIBE or FETCH upstream",
                observed=f"{message['type']} at {record.time:.3f} s",
                record=record,
                octets=record.data.get("raw", ""),
            )
        else:
            yield upheld(f"{request.track}: served without the publisher", end)


@judge("one-subscription-upstream", track={"type": "string"}, required=("track",), publisher=NODE)
def one_subscription_upstream(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """However many consumers subscribe to the track, the publisher gets one SUBSCRIBE for it."""
    node = arguments.get("publisher", "publisher")
    asked = [
        record
        for record, message in evidence.messages(node, "Subscribe")
        if message["track"]["name"] == arguments["track"]
    ]
    if len(asked) > 1:
        yield contradicted(
            Reason.UPSTREAM_REPEATED,
            f"{arguments['track']}: the publisher was subscribed to more than once",
            expected="one SUBSCRIBE upstream",
            observed=f"{len(asked)}, the second at {asked[1].time:.3f} s",
            record=asked[1],
        )
    elif asked:
        yield upheld(f"{arguments['track']}: one SUBSCRIBE upstream", asked[0])
    else:
        yield unseen(f"{arguments['track']}: no SUBSCRIBE reached the publisher")
