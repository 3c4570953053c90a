"""Whether an awaited event stands in a node's log: the same question for a run and for a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvcs_conformance.evidence.read import Record, seen

EVENTS: dict[str, str] = {
    "announced": "PUBLISH_NAMESPACE arrived, `times` different ones if given",
    "namespace": "NAMESPACE arrived",
    "answered": "every request of the step labelled `of` has its OK or its error",
    "delivered": "every fetch of the step labelled `of` ended: FIN, reset, or refused",
    "object": "an Object of `track` arrived, in `layer`, at `block` and `via` this if given",
    "end-of-group": "End of Group of `layer` of `track` arrived",
    "end-of-track": "End of Track of `track` arrived",
    "track-ended": "PUBLISH_DONE of `track` arrived",
    "layer-published": "the publisher handed over `layer` (default: any), of `segment` if given",
    "completed": "the publisher completed `segment` (default: any)",
    "layer-usable": "the consumer reported `layer` usable",
    "done": "the consumer reported that it is done",
    "message": "`count` (default 1) control messages of `type` arrived, as Subscribe or Fetch",
    "stream-reset": "`count` (default 1) resets of the peer's streams arrived",
    "objects": "`count` Objects arrived for the step labelled `of`",
    "released": "the origin answered what it held",
    "announce-accepted": "an announcement of the publisher or origin was accepted",
    "left": "the origin closed its sessions",
    "session-closed": "a session of the node ended, whoever ended it, or was lost",
    "network-fault": "the log of the network (`at: network`) has `fault`, `count` times if given; "
    "of the stream of `track` and `layer` if given",
    "attempted": "every attempt of the step labelled `of` ended: closed, or proven alive",
    "done-with": "every SUBSCRIBE of the step labelled `of` was refused or has PUBLISH_DONE",
    "renewed": "every update of the step labelled `of` has its OK or its error",
    "published": "PUBLISH arrived",
    "listed": "a manifest version arrived that lists `segment`, with `complete` as complete",
}
"""What an `expect` step can wait for."""

_OBJECT = "moqt:object_received"
_MANIFESTS = ("manifest", "manifest.cose")
_SIMPLE: dict[str, str] = {
    "namespace": "kvcs:namespace",
    "track-ended": "kvcs:track-ended",
    "layer-published": "kvcs:layer-published",
    "completed": "kvcs:segment-complete",
    "layer-usable": "kvcs:layer-usable",
    "done": "kvcs:done",
    "released": "kvcs:released",
    "announce-accepted": "kvcs:announce-accepted",
    "left": "kvcs:left",
    "session-closed": "moqt:session_closed",
}
_STATUS = {"end-of-group": "END_OF_GROUP", "end-of-track": "END_OF_TRACK", "object": "NORMAL"}
_KEYS = (("track", "track"), ("layer", "layer"), ("segment", "segment"), ("of", "label"))
_ENDS: dict[str, tuple[str, ...]] = {
    "answered": ("kvcs:answered",),
    "done-with": ("kvcs:track-ended",),
    "delivered": ("kvcs:delivered",),
}


def came(log: Sequence[Record], wanted: Mapping[str, Any]) -> bool:
    """Whether the event that an `expect` step describes is in the log."""
    event = wanted["event"]
    if event == "published":
        return any(
            record.name == "moqt:message_received" and record.data["message"]["type"] == "Publish"
            for record in log
        )
    if event == "listed":
        return _lists(log, int(wanted.get("segment", 0)), "complete" in wanted)
    if event == "announced":
        return len(_announced(log)) >= int(wanted.get("times", 1))
    if event == "renewed":
        return _all_renewed(log, wanted["of"])
    if event == "attempted":
        return _all_attempted(log, wanted["of"])
    if event in _ENDS:
        return _all_ended(log, wanted["of"], _ENDS[event])
    if event in _COUNTED:
        return _counted(log, wanted) >= int(wanted.get("count", 1))
    if event == "network-fault":
        name = f"network:{wanted.get('fault')}"
        found = (r for r in log if r.name == name and _fits(r.data, wanted, _KEYS[:2]))
        return sum(1 for _ in found) >= int(wanted.get("count", 1))
    if event in _STATUS:
        return any(_is_object(record, wanted, _STATUS[event]) for record in log)
    return any(
        record.name == _SIMPLE[event] and _fits(record.data, wanted, _KEYS) for record in log
    )


def _announced(log: Sequence[Record]) -> set[tuple[str, ...]]:
    """The namespaces that PUBLISH_NAMESPACE named."""
    return {
        tuple(record.data["message"]["namespace"])
        for record in log
        if record.name == "moqt:message_received"
        and record.data["message"]["type"] == "PublishNamespace"
    }


def _lists(log: Sequence[Record], segment: int, complete: bool) -> bool:
    """Whether a manifest version lists a segment, however many versions came before it."""
    from kvcs_conformance.judge.manifest import entries_of

    return any(
        _is_number(entry.get("segment"), segment)
        and (entry.get("complete") is True or not complete)
        for record in log
        if record.name == _OBJECT and record.data["track"]["name"] in _MANIFESTS
        for entry in entries_of(seen(record)) or ()
    )


def _is_number(value: object, number: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == number


_COUNTED = ("message", "stream-reset", "objects")


def _counted(log: Sequence[Record], wanted: Mapping[str, Any]) -> int:
    """How many of what an `expect` step counts are in the log."""
    event = wanted["event"]
    if event == "stream-reset":
        return sum(record.name == "moqt:reset_received" for record in log)
    if event == "message":
        return sum(
            record.name == "moqt:message_received"
            and record.data["message"]["type"] == wanted.get("type")
            for record in log
        )
    requests = {
        record.data["request"]
        for record in log
        if record.name == "kvcs:asked" and record.data["label"] == wanted.get("of")
    }
    return sum(record.name == _OBJECT and record.data["request"] in requests for record in log)


def _is_object(record: Record, wanted: Mapping[str, Any], status: str) -> bool:
    return (
        record.name == _OBJECT
        and record.data["status"] == status
        and ("track" not in wanted or record.data["track"]["name"] == wanted["track"])
        and _fits(record.data, wanted, (("layer", "group"), ("block", "object"), ("via", "via")))
    )


def _fits(
    data: Mapping[str, Any], wanted: Mapping[str, Any], names: Iterable[tuple[str, str]]
) -> bool:
    return all(word not in wanted or data.get(key) == wanted[word] for word, key in names)


def _all_ended(log: Sequence[Record], label: str, ends: tuple[str, ...]) -> bool:
    """Whether each request of a step has come to its answer (or end, or refusal)."""
    asked: set[int] = set()
    ended: set[int] = set()
    for record in log:
        if record.name == "kvcs:asked" and record.data["label"] == label:
            asked.add(record.data["request"])
        elif record.name in ends or _refusal(record):
            ended.add(record.data["request"])
    return bool(asked) and asked <= ended


def _all_renewed(log: Sequence[Record], label: str) -> bool:
    """Whether each update of a step has its answer."""
    named = [record for record in log if record.data.get("label") == label]
    sent = [record.data["update"] for record in named if record.name == "kvcs:updated"]
    answered = {r.data["update"] for r in named if r.name == "kvcs:update-answered"}
    return bool(sent) and answered.issuperset(sent)


def _all_attempted(log: Sequence[Record], label: str) -> bool:
    """Whether each attempt of a step was closed, or answered to the end."""
    open_: set[str] = set()
    begun = False
    for record in log:
        if record.data.get("label") != label:
            continue
        if record.name == "kvcs:attempts":
            begun = True
            open_ |= set(record.data["names"])
        elif record.name in ("kvcs:attempt-closed", "kvcs:attempt-lives"):
            open_.discard(record.data["attempt"])
    return begun and not open_


def _refusal(record: Record) -> bool:
    return record.name == "kvcs:answered" and record.data["response"]["type"] in (
        "RequestError",
        "Reset",
    )
