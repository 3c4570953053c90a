"""Judge words for what a consumer reports to have used and left aside, Object by Object.

A report is the consumer's own word; it is held against the log of the relays that it asks, which
are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, departs, unseen, upheld
from kvcs_conformance.judge.payload import FIELDS, flaw
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.restores import (
    LABEL,
    NUMBER,
    NUMBERS,
    TRACK,
    finished,
    relays,
    reports,
    retrieves,
    sent,
)
from kvcs_conformance.verdicts import Reason

_OBJECT = {"track": TRACK, "layer": NUMBER, "block": NUMBER, "of": LABEL}
_PLACE = ("track", "layer", "block")


def _about(evidence: Evidence, arguments: Mapping[str, Any], event: str) -> list[Record]:
    """The consumer's reports of this kind about the Object that the arguments name."""
    return [
        record
        for record in reports(evidence, arguments, event)
        if all(record.data.get(name) == arguments[name] for name in _PLACE)
    ]


def _usable(evidence: Evidence, arguments: Mapping[str, Any]) -> list[Record]:
    segment = int(str(arguments["track"]).rpartition(".s")[2])
    return [
        record
        for record in reports(evidence, arguments, "layer-usable")
        if record.data.get("layer") == arguments["layer"]
        and record.data.get("segment", 0) == segment
    ]


def _named(arguments: Mapping[str, Any]) -> str:
    return f"{arguments['track']} ({arguments['layer']}, {arguments['block']})"


@judge("object-not-used", required=_PLACE, **_OBJECT)
def object_not_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer got this Object, reported it discarded, accepted nothing at its Location, and
    did not report its layer usable. Counts once the consumer is done."""
    place = _named(arguments)
    accepted = _about(evidence, arguments, "object-accepted")
    discarded = _about(evidence, arguments, "object-discarded")
    used = accepted or _usable(evidence, arguments)
    seen = sent(evidence, arguments)
    if seen is None:
        yield unseen(f"{place}: it was not sent to the consumer")
    elif used:
        layer = arguments["layer"]
        what = "accepted" if accepted else f"used: layer {layer} is called usable"
        wrong = flaw(seen)
        field = FIELDS[wrong.field] if wrong else None
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"{place}: the Object fails a check and was {what}" + (f"; {wrong}" if wrong else ""),
            expected="object-discarded, and the layer not usable",
            observed=f"{used[0].name.removeprefix('kvcs:')} at {used[0].time:.3f} s",
            record=used[0],
            octets=(field.of(seen.head) if field else seen.head).hex(),
            offset=field.offset if field else 0,
        )
    elif not finished(evidence, arguments):
        yield unseen(f"{place}: the consumer did not come to its end")
    elif discarded:
        reason = discarded[0].data.get("reason", "")
        yield upheld(f"{place}: discarded ({reason}), its layer not used", discarded[0])
    else:
        yield unseen(f"{place}: neither used nor reported as discarded")


@judge("object-implausible", required=_PLACE, **_OBJECT)
def object_implausible(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """This Object passes every check that KVCS demands and yet cannot be what it should be
    (reading A6); to discard it is better. Counts once the consumer is done."""
    place = _named(arguments)
    accepted = _about(evidence, arguments, "object-accepted")
    discarded = _about(evidence, arguments, "object-discarded")
    if sent(evidence, arguments) is None:
        yield unseen(f"{place}: it was not sent to the consumer")
    elif accepted:
        yield departs(
            Reason.USED_IMPLAUSIBLE,
            f"{place}: accepted, though a field of its header is wrong",
            expected="object-discarded",
            observed=f"object-accepted at {accepted[0].time:.3f} s",
            record=accepted[0],
        )
    elif discarded and finished(evidence, arguments):
        reason = discarded[0].data.get("reason", "")
        yield upheld(f"{place}: discarded ({reason})", discarded[0])
    else:
        yield unseen(f"{place}: neither used nor reported as discarded")


@judge("object-used", required=_PLACE, **_OBJECT)
def object_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer accepted this Object. Absence counts once it is done, or when it reported the
    Object as discarded."""
    place = _named(arguments)
    accepted = _about(evidence, arguments, "object-accepted")
    discarded = _about(evidence, arguments, "object-discarded")
    if accepted:
        yield upheld(f"{place}: accepted", accepted[0])
    elif discarded or (finished(evidence, arguments) and sent(evidence, arguments)):
        yield contradicted(
            Reason.DROPPED_GOOD_OBJECT,
            f"{place}: the Object is right and was not used",
            expected="object-accepted",
            observed=f"object-discarded: {discarded[0].data.get('reason', '')}"
            if discarded
            else "done without it",
            record=discarded[0] if discarded else finished(evidence, arguments),
        )
    else:
        yield unseen(f"{place}: the consumer did not come to its end")


@judge("layers-usable", required=("layers",), layers=NUMBERS, segment=NUMBER, of=LABEL)
def layers_usable(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Exactly these layers (of `segment`, default 0) are reported usable. Absence counts once the
    consumer is done, and has asked for a track."""
    segment = arguments.get("segment", 0)
    told = [
        record
        for record in reports(evidence, arguments, "layer-usable")
        if record.data.get("segment", 0) == segment
    ]
    usable = {record.data["layer"] for record in told}
    right = set(arguments["layers"])
    done = finished(evidence, arguments)
    extra = next((record for record in told if record.data["layer"] not in right), None)
    if extra:
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"layer {extra.data['layer']} is called usable and cannot be",
            expected=f"layers {sorted(right)}",
            observed=f"layers {sorted(usable)}",
            record=extra,
        )
    elif right - usable and done and (usable or retrieves(evidence)):
        yield contradicted(
            Reason.DROPPED_GOOD_OBJECT,
            f"layer {min(right - usable)} was to be had and is not usable",
            expected=f"layers {sorted(right)}",
            observed=f"layers {sorted(usable)}",
            record=done,
        )
    elif right - usable or not done:
        yield unseen("the consumer did not come to its end, or asked for no track")
    else:
        yield upheld(f"layers {sorted(right)} usable, no other", done)


@judge("layer-usable-last", required=("layer",), layer=NUMBER, of=LABEL)
def layer_usable_last(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The layer is called usable once, after the last of its Objects in every track is accepted.
    Needs Objects of the layer."""
    layer = arguments["layer"]
    accepted = [
        record
        for record in reports(evidence, arguments, "object-accepted")
        if record.data["layer"] == layer
    ]
    usable = [
        record
        for record in reports(evidence, arguments, "layer-usable")
        if record.data["layer"] == layer
    ]
    right = len(evidence.data_tracks(0)) * evidence.blocks
    before = [record for record in accepted if usable and record.index < usable[0].index]
    if not usable:
        yield unseen(f"layer {layer} was not called usable")
    elif len(before) < right:
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"layer {layer} is called usable before it is whole",
            expected=f"{right} Objects accepted before",
            observed=f"{len(before)} before, {len(accepted)} in all",
            record=usable[0],
        )
    else:
        yield upheld(f"layer {layer} usable after the last of {right} Objects", usable[0])


@judge("objects-counted-once", of=LABEL)
def objects_counted_once(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """No Object is accepted twice in a restore, whatever was sent twice. Counts once the consumer
    is done, and needs an Object that was accepted."""
    counted: set[tuple[Any, ...]] = set()
    for record in reports(evidence, arguments, "object-accepted"):
        place = tuple(record.data[name] for name in ("label", "publication", *_PLACE))
        if place in counted:
            yield contradicted(
                Reason.COUNTED_TWICE,
                f"{_named(record.data)} was accepted a second time",
                expected="each Object once",
                observed=f"again at {record.time:.3f} s",
                record=record,
            )
            return
        counted.add(place)
    done = finished(evidence, arguments)
    if counted and done:
        yield upheld(f"{len(counted)} Objects, each once", done)
    else:
        yield unseen("the consumer did not come to its end, or accepted nothing")


@judge("objects-sent-once")
def objects_sent_once(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """The consumer asks so that our relays send it each Object of the data tracks once, over fills,
    subscriptions and fetches. Counts once the consumer is done, and needs an Object."""
    counts: dict[tuple[Any, ...], int] = {}
    for node in relays(evidence):
        for seen in evidence.objects(node, sent=True):
            if not seen.is_data:
                continue
            place = (*seen.namespace, seen.track, *seen.location)
            counts[place] = counts.get(place, 0) + 1
            if counts[place] > 1:
                yield contradicted(
                    Reason.OBJECT_DUPLICATE,
                    f"{seen.track} {seen.location} had to be sent a second time",
                    expected="each Object once",
                    observed=f"again at {seen.record.time:.3f} s by {seen.via}",
                    record=seen.record,
                )
                return
    done = finished(evidence)
    if counts and done:
        yield upheld(f"{len(counts)} Objects sent, each once", done)
    else:
        yield unseen("the consumer did not come to its end, or got no Object")
