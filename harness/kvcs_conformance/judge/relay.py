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


@judge("no-second-transfer", required=("of",), of=LABEL, publisher=NODE)
def no_second_transfer(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Objects of the step's requests come from the cache: between a request and its end the
    publisher sends no Object of the track that it had sent before. Asking upstream whether there
    is more is no transfer."""
    node = arguments.get("publisher", "publisher")
    requests = evidence.asked(arguments["of"])
    if not requests:
        yield unseen(f"no request is labelled {arguments['of']!r}")
    for request in requests:
        end = ended(evidence, request)
        if end is None:
            yield unseen(f"{request.track}: the delivery has not ended")
            continue
        sent = [seen for seen in evidence.objects(node, sent=True) if seen.track == request.track]
        begun = request.record.time
        before = {seen.location for seen in sent if seen.record.time <= begun}
        again = [
            seen
            for seen in sent
            if begun < seen.record.time <= end.time and seen.location in before
        ]
        if again:
            yield contradicted(
                Reason.UPSTREAM_REPEATED,
                f"{request.track}: what is in the cache was transferred again",
                expected="no Object from the publisher that it sent before",
                observed=f"{len(again)} Objects, first {again[0].location} at "
                f"{again[0].record.time:.3f} s",
                record=again[0].record,
            )
        elif not before:
            yield unseen(f"{request.track}: the publisher had sent nothing before")
        else:
            yield upheld(f"{request.track}: no Object came from the publisher again", end)


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
