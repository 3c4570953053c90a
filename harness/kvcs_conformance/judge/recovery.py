"""Judge words for what a consumer does about what is missing, and how long it waits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.restores import (
    DURATION,
    LABEL,
    NUMBER,
    TRACK,
    asked,
    finished,
    reports,
    retrieves,
    wanted,
)
from kvcs_conformance.scenario import seconds
from kvcs_conformance.verdicts import Reason

_GROUP_END, _ABSOLUTE_RANGE = 3, 4


@judge("ends-within", required=("within",), within=DURATION, of=LABEL)
def ends_within(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The restore is done so long after it began, whatever its sources do. A step that waited for
    that in vain, and long enough, counts against it."""
    begun, done = wanted(evidence, arguments), finished(evidence, arguments)
    bound = seconds(arguments["within"])
    if begun is None:
        yield unseen("no restore was begun")
        return
    until = done.time if done else _waited_until(evidence)
    if until is not None and until - begun.time > bound:
        yield contradicted(
            Reason.WAITED,
            f"the restore was not done after {arguments['within']}",
            expected=f"done within {arguments['within']}",
            observed=f"done after {until - begun.time:.3f} s" if done else "still waiting",
            record=done or begun,
        )
    elif done:
        yield upheld(f"done after {done.time - begun.time:.3f} s", done)
    else:
        yield unseen("the consumer was not watched long enough")


def _waited_until(evidence: Evidence) -> float | None:
    """The end of a step that waited for `done` in vain."""
    for step in evidence.facts["steps"]:
        waited = str(step.get("waited", ""))
        if step["outcome"] == "timeout" and waited.endswith("for done"):
            return float(step["at"]) + float(waited.split()[0])
    return None


_OBJECT = {"track": TRACK, "layer": NUMBER, "block": NUMBER}


def _covers(parameters: Mapping[str, Any], layer: int, block: int) -> bool:
    """Whether a FETCH with these parameters asks for the Object at this Location."""
    asked_for = parameters.get("location_filter")
    if asked_for is None:
        return True
    start = (asked_for.get("start_group", 0), asked_for.get("start_object", 0))
    if (layer, block) < start:
        return False
    last = start[0] + asked_for.get("end_group_delta", 0)
    if asked_for["type_"] == _GROUP_END:
        return bool(layer <= last)
    if asked_for["type_"] == _ABSOLUTE_RANGE:
        return bool((layer, block) <= (last, asked_for.get("end_object", 0)))
    return True


@judge(
    "asked-again",
    required=("track", "layer", "block"),
    at=NODE,
    publisher=NODE,
    **_OBJECT,
)
def asked_again(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Missing once, this Object was asked for again: by a second request that covers it, or (with
    `at` or `publisher`) by one at this relay or of this publication. Absence counts once the
    consumer is done, and has asked for a track."""
    place = f"{arguments['track']} ({arguments['layer']}, {arguments['block']})"
    at, publisher = arguments.get("at"), arguments.get("publisher")
    elsewhere = at is not None or publisher is not None
    publication = evidence.facts["publications"][publisher]["namespace"][-1] if publisher else None
    found = [
        record
        for record, message in asked(evidence, "Subscribe", "Fetch")
        if message["track"]["name"] == arguments["track"]
        and (at is None or record.node == at)
        and publication in (None, message["track"]["namespace"][-1])
        and _asks_for(message, arguments["layer"], arguments["block"])
    ]
    done = finished(evidence)
    if len(found) > (0 if elsewhere else 1):
        yield upheld(f"{place}: asked for again", found[-1])
    elif done and retrieves(evidence):
        where = f" at {at}" if at else f" of {publisher}" if publisher else ""
        yield contradicted(
            Reason.NOT_RECOVERED,
            f"{place} was missing, and not asked for again{where}",
            expected="another request that covers it",
            observed=f"{len(found)} requests{where}",
            record=done,
        )
    else:
        yield unseen("the consumer did not come to its end, or asked for no track")


def _asks_for(message: Mapping[str, Any], layer: int, block: int) -> bool:
    return message["type"] == "Subscribe" or _covers(message.get("parameters", {}), layer, block)


@judge("stops-before-gap", required=("layer",), layer=NUMBER, of=LABEL)
def stops_before_gap(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """With this layer missing, it is never called usable, and nothing is reused. Counts once the
    consumer is done."""
    layer = arguments["layer"]
    usable: Record | None = next(
        (
            record
            for record in reports(evidence, arguments, "layer-usable")
            if record.data["layer"] == layer
        ),
        None,
    )
    told = next(reports(evidence, arguments, "reused-tokens"), None)
    wrong = usable or (told if told and told.data["tokens"] else None)
    if wrong:
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"layer {layer} never came whole, and the cache was used",
            expected=f"layer {layer} not usable, no token reused",
            observed=f"{wrong.name.removeprefix('kvcs:')} at {wrong.time:.3f} s",
            record=wrong,
        )
    elif told and finished(evidence, arguments):
        yield upheld(f"layer {layer} not usable, nothing reused", told)
    else:
        yield unseen("the consumer did not come to its end")
