"""Judge words for what a consumer reports to have used and left aside.

A report is the consumer's own word; it is held against the log of the relay that it asks, which
is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record, Seen
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

NUMBER = {"type": "integer", "minimum": 0}
TRACK = {"type": "string"}
_CONSUMER = "consumer"
RELAY = "relay"


def finished(evidence: Evidence) -> Record | None:
    """The report that the consumer is done: behind it nothing more is used."""
    return next(evidence.reports(_CONSUMER, "done"), None)


def _about(evidence: Evidence, arguments: Mapping[str, Any], event: str) -> list[Record]:
    """The consumer's reports of this kind about the Object that the arguments name."""
    return [
        record
        for record in evidence.reports(_CONSUMER, event)
        if record.data["track"] == arguments["track"]
        and record.data["layer"] == arguments["layer"]
        and record.data["block"] == arguments["block"]
    ]


def _sent(evidence: Evidence, arguments: Mapping[str, Any]) -> Seen | None:
    """The Object that the arguments name, as our relay sent it."""
    for seen in evidence.objects(RELAY, sent=True):
        if seen.track == arguments["track"] and seen.location == (
            arguments["layer"],
            arguments["block"],
        ):
            return seen
    return None


_OBJECT = {"track": TRACK, "layer": NUMBER, "block": NUMBER}


@judge("object-not-used", required=("track", "layer", "block"), **_OBJECT)
def object_not_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer got this Object, reported it discarded, accepted nothing at its Location, and
    did not report its layer usable. Counts once the consumer is done."""
    place = f"{arguments['track']} ({arguments['layer']}, {arguments['block']})"
    accepted = _about(evidence, arguments, "object-accepted")
    usable = [
        record
        for record in evidence.reports(_CONSUMER, "layer-usable")
        if record.data["layer"] == arguments["layer"]
    ]
    discarded = _about(evidence, arguments, "object-discarded")
    used = accepted or usable
    sent = _sent(evidence, arguments)
    if sent is None:
        yield unseen(f"{place}: it was not sent to the consumer")
    elif used:
        what = "accepted" if accepted else f"used: layer {arguments['layer']} is called usable"
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"{place}: the Object fails a check and was {what}",
            expected="object-discarded, and the layer not usable",
            observed=f"{used[0].name.removeprefix('kvcs:')} at {used[0].time:.3f} s",
            record=used[0],
            octets=sent.head.hex(),
        )
    elif not finished(evidence):
        yield unseen(f"{place}: the consumer did not come to its end")
    elif discarded:
        reason = discarded[0].data.get("reason", "")
        yield upheld(f"{place}: discarded ({reason}), its layer not used", discarded[0])
    else:
        yield unseen(f"{place}: neither used nor reported as discarded")


@judge("object-used", required=("track", "layer", "block"), **_OBJECT)
def object_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer accepted this Object. Absence counts once it is done, or when it reported the
    Object as discarded."""
    place = f"{arguments['track']} ({arguments['layer']}, {arguments['block']})"
    accepted = _about(evidence, arguments, "object-accepted")
    discarded = _about(evidence, arguments, "object-discarded")
    if accepted:
        yield upheld(f"{place}: accepted", accepted[0])
    elif discarded or (finished(evidence) and _sent(evidence, arguments)):
        yield contradicted(
            Reason.DROPPED_GOOD_OBJECT,
            f"{place}: the Object is right and was not used",
            expected="object-accepted",
            observed=f"object-discarded: {discarded[0].data.get('reason', '')}"
            if discarded
            else "done without it",
            record=discarded[0] if discarded else finished(evidence),
        )
    else:
        yield unseen(f"{place}: the consumer did not come to its end")


@judge("layers-usable", required=("layers",), layers={"type": "array"})
def layers_usable(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Exactly these layers are reported usable. Absence counts once the consumer is done."""
    reports = list(evidence.reports(_CONSUMER, "layer-usable"))
    usable = {record.data["layer"] for record in reports}
    right = set(arguments["layers"])
    done = finished(evidence)
    extra = next((r for r in reports if r.data["layer"] not in right), None)
    if extra:
        yield contradicted(
            Reason.USED_BAD_OBJECT,
            f"layer {extra.data['layer']} is called usable and cannot be",
            expected=f"layers {sorted(right)}",
            observed=f"layers {sorted(usable)}",
            record=extra,
        )
    elif right - usable and done:
        yield contradicted(
            Reason.DROPPED_GOOD_OBJECT,
            f"layer {min(right - usable)} was delivered whole and is not usable",
            expected=f"layers {sorted(right)}",
            observed=f"layers {sorted(usable)}",
            record=done,
        )
    elif right - usable or not done:
        yield unseen("the consumer did not come to its end")
    else:
        yield upheld(f"layers {sorted(right)} usable, no other", done)


@judge("tensors-right")
def tensors_right(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """What the consumer hands out has, layer by layer, the SHA-256 of what was published; a layer
    that it calls usable is among it."""
    right = evidence.facts["layer_digests"]
    handed = list(evidence.reports(_CONSUMER, "tensors"))
    wrong = next((r for r in handed if right[r.data["layer"]] != r.data["sha256"]), None)
    if wrong:
        yield contradicted(
            Reason.TENSORS,
            f"layer {wrong.data['layer']} comes out with other octets",
            expected=right[wrong.data["layer"]],
            observed=wrong.data["sha256"],
            record=wrong,
        )
    elif handed:
        yield upheld(f"{len(handed)} layers bit-identical", handed[-1])
    else:
        yield unseen("the consumer handed out no tensors")


@judge("publication-discarded", publisher=NODE)
def publication_discarded(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer reports the publication of this publisher discarded, and uses nothing of it."""
    name = arguments.get("publisher", "publisher")
    publication = evidence.facts["publications"][name]["namespace"][4]
    used = [
        record
        for record in evidence.reports(_CONSUMER, "layer-usable", "reused-tokens", "tensors")
        if record.data.get("tokens", 1)
    ]
    reports = [
        record
        for record in evidence.reports(_CONSUMER, "publication-discarded")
        if record.data["publication"] == publication
    ]
    if used:
        yield contradicted(
            Reason.USED_BAD_PUBLICATION,
            "something of the publication was used",
            expected="publication-discarded, no layer usable, no token reused",
            observed=f"{used[0].name.removeprefix('kvcs:')} at {used[0].time:.3f} s",
            record=used[0],
        )
    elif reports and finished(evidence):
        yield upheld(f"discarded: {reports[0].data.get('reason', '')}", reports[0])
    else:
        yield unseen("the publication was neither used nor reported as discarded")


@judge("publications-not-mixed")
def publications_not_mixed(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Every layer that the consumer calls usable of a publication rests on accepted Objects of
    that publication alone. Needs more than one publication to have been tried."""
    whole = len(evidence.data_tracks()) * evidence.blocks
    accepted: dict[tuple[str, int], set[tuple[str, int]]] = {}
    mixed = False
    for record in evidence.reports(_CONSUMER, "object-accepted", "layer-usable"):
        place = (record.data["publication"], record.data["layer"])
        if record.name == "kvcs:object-accepted":
            accepted.setdefault(place, set()).add((record.data["track"], record.data["block"]))
        elif len(accepted.get(place, ())) < whole and not mixed:
            mixed = True
            others = [p for p, layer in accepted if layer == place[1] and p != place[0]]
            yield contradicted(
                Reason.MIXED_PUBLICATIONS,
                f"layer {place[1]} was put together from two publications",
                expected=f"{whole} Objects of {place[0]}, because not both are deterministic",
                observed=f"{len(accepted.get(place, ()))} of it, others of {', '.join(others)}",
                record=record,
            )
    if mixed:
        return
    if not finished(evidence):
        yield unseen("the consumer did not come to its end")
    elif len(_tried(evidence)) < 2:
        yield unseen("only one publication was tried")
    else:
        yield upheld("two publications tried, none of their Objects combined", finished(evidence))


def _tried(evidence: Evidence) -> set[str]:
    """Publication IDs of which the consumer asked for a data track."""
    return {
        field
        for _, message in evidence.messages(RELAY, "Subscribe", "Fetch")
        if message["track"]["name"] in evidence.data_tracks()
        for field in message["track"]["namespace"][4:5]
    }


@judge("publications-combined")
def publications_combined(evidence: Evidence, _: dict[str, Any]) -> Iterator[Finding]:
    """Objects of two publications were accepted, and layers are usable: the promise was taken."""
    publications = {
        record.data["publication"] for record in evidence.reports(_CONSUMER, "object-accepted")
    }
    usable = list(evidence.reports(_CONSUMER, "layer-usable"))
    if len(publications) > 1 and usable:
        yield upheld("Objects of two publications made a usable layer", usable[-1])
    else:
        yield unseen("no layer was put together from two publications")
