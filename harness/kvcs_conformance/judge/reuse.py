"""Judge words for what comes out of a restore: tokens, tensors, and of which publication."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.judge.restores import (
    LABEL,
    NUMBER,
    NUMBERS,
    asked,
    finished,
    publication_of,
    relays,
    reports,
    retrieves,
    wanted,
)
from kvcs_conformance.verdicts import Reason


@judge("reuses", required=("blocks",), blocks=NUMBER, of=LABEL)
def reuses(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer reports the tokens of exactly so many leading blocks as reused; our relays sent
    all their Objects. That it reuses nothing counts when it has asked for a track."""
    told = next(reports(evidence, arguments, "reused-tokens"), None)
    want = wanted(evidence, arguments)
    if told is None or want is None:
        yield unseen("the consumer did not report the tokens that it reuses")
        return
    right = arguments["blocks"] * want.data["block_tokens"]
    tokens = told.data["tokens"]
    hole = _hole(evidence, want, arguments["blocks"])
    if right and not tokens and not retrieves(evidence):
        yield unseen("the consumer asked for no track")
    elif tokens != right:
        yield contradicted(
            Reason.WRONG_REUSE,
            f"{tokens} tokens are reported as reused",
            expected=f"{right}: {arguments['blocks']} blocks of {want.data['block_tokens']}",
            observed=f"{tokens}",
            record=told,
        )
    elif hole:
        yield contradicted(
            Reason.WRONG_REUSE,
            f"tokens are reported as reused of which {hole} was never sent",
            expected="only what came and was verified",
            observed=f"{tokens} tokens",
            record=told,
        )
    else:
        yield upheld(f"{tokens} of {want.data['prompt_tokens']} tokens reused", told)


def _hole(evidence: Evidence, want: Record, blocks: int) -> str | None:
    """An Object of the first blocks that no relay of ours sent, on the tracks that were used."""
    if evidence.scenario.get("appended"):
        return None
    places = {
        (seen.track, *seen.location)
        for node in relays(evidence)
        for seen in evidence.objects(node, sent=True)
        if seen.is_data
    }
    for track in sorted({track for track, _, _ in places}):
        for layer in want.data["layers"]:
            for block in range(blocks):
                if (track, layer, block) not in places:
                    return f"{track} ({layer}, {block})"
    return None if places or not blocks else "everything"


@judge("recomputes-rest", of=LABEL)
def recomputes_rest(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """What is not reused is reported as to be computed: no token of the prompt is left out."""
    told = next(reports(evidence, arguments, "reused-tokens"), None)
    done = finished(evidence, arguments)
    want = wanted(evidence, arguments)
    if told is None or done is None or want is None:
        yield unseen("the consumer did not come to its end")
        return
    rest = next(reports(evidence, arguments, "recompute"), None)
    begins = rest.data["first_token"] if rest else done.data.get("compute_from")
    ends = rest.data["end_token"] if rest else done.data.get("prompt_tokens")
    if begins is None or ends is None:
        yield unseen("the consumer did not report what it computes again")
    elif begins > told.data["tokens"] or ends != want.data["prompt_tokens"]:
        yield contradicted(
            Reason.WRONG_REUSE,
            "tokens are neither reused nor recomputed",
            expected=f"tokens {told.data['tokens']} .. {want.data['prompt_tokens']} recomputed",
            observed=f"{begins} .. {ends}",
            record=rest or done,
        )
    else:
        yield upheld(f"{told.data['tokens']} reused, {begins} .. {ends} recomputed", rest or done)


def _published(evidence: Evidence) -> Mapping[str, list[list[str]]]:
    """By Publication ID, layer and block: the digest of what our publishers published."""
    return {
        record.data["namespace"][-1]: record.data["layer_digests"]
        for node in evidence.facts.get("nodes", {})
        for record in evidence.reports(node, "opened")
        if "layer_digests" in record.data
    }


@judge("tensors-right", of=LABEL)
def tensors_right(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """What the consumer hands out has, by layer and block, the layer digest of what was published
    in the publication that it names."""
    published = _published(evidence)
    handed = list(reports(evidence, arguments, "tensors"))
    blocks = 0
    for record in handed:
        layer = record.data["layer"]
        right = published.get(record.data["publication"], [])
        for block, digest in enumerate(record.data["sha256"]):
            known = right[layer][block] if layer < len(right) and block < len(right[layer]) else ""
            if digest != known:
                yield contradicted(
                    Reason.TENSORS,
                    f"layer {layer}, block {block} comes out with other octets",
                    expected=known or "no such block",
                    observed=digest,
                    record=record,
                )
                return
            blocks += 1
    if blocks:
        yield upheld(f"{blocks} blocks in {len(handed)} layers bit-identical", handed[-1])
    else:
        yield unseen("the consumer handed out no tensors")


def _of_publication(record: Record, publication: str) -> bool:
    return bool(record.data.get("publication", publication) == publication)


@judge("publication-discarded", publisher=NODE, of=LABEL)
def publication_discarded(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The consumer reports the publication of this publisher discarded, and uses nothing of it."""
    publication = publication_of(evidence, arguments.get("publisher", "publisher"))
    used = [
        record
        for record in reports(evidence, arguments, "layer-usable", "reused-tokens", "tensors")
        if record.data.get("tokens", 1)
        and record.data.get("sha256", "some")
        and _of_publication(record, publication)
    ]
    told = [
        record
        for record in reports(evidence, arguments, "publication-discarded")
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
    elif told and finished(evidence, arguments):
        yield upheld(f"discarded: {told[0].data.get('reason', '')}", told[0])
    else:
        yield unseen("the publication was neither used nor reported as discarded")


@judge("publication-conflict", publisher=NODE, of=LABEL)
def publication_conflict(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Two payloads for one Location were sent to the consumer, and it reports the publication of
    this publisher discarded; no token of it is reused."""
    publication = publication_of(evidence, arguments.get("publisher", "publisher"))
    payloads: dict[tuple[Any, ...], set[str]] = {}
    for node in relays(evidence):
        for seen in evidence.objects(node, sent=True):
            if seen.is_data and seen.namespace[-1] == publication:
                place = (seen.track, *seen.location)
                payloads.setdefault(place, set()).add(seen.payload["sha256"])
    twice = next((place for place, found in payloads.items() if len(found) > 1), None)
    told = [
        record
        for record in reports(evidence, arguments, "publication-discarded")
        if record.data["publication"] == publication
    ]
    reused = next(reports(evidence, arguments, "reused-tokens"), None)
    if twice is None:
        yield unseen("no Location was sent with two payloads")
    elif reused and reused.data["tokens"] and _of_publication(reused, publication):
        yield contradicted(
            Reason.USED_BAD_PUBLICATION,
            f"{twice[0]} ({twice[1]}, {twice[2]}) had two payloads, and the publication was used",
            expected="publication-discarded, no token reused",
            observed=f"{reused.data['tokens']} tokens reused",
            record=reused,
        )
    elif told and reused:
        yield upheld(f"discarded: {told[0].data.get('reason', '')}", told[0])
    else:
        yield unseen("the publication was neither used nor reported as discarded")


@judge("segments-not-used", required=("segments",), segments=NUMBERS, of=LABEL)
def segments_not_used(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Nothing of these segments is called usable or counted as reused. Counts once the consumer is
    done."""
    segments = arguments["segments"]
    lengths = [evidence.blocks, *evidence.scenario.get("appended", ())]
    bound = sum(lengths[: min(segments)])
    done, want = finished(evidence, arguments), wanted(evidence, arguments)
    usable = next(
        (
            record
            for record in reports(evidence, arguments, "layer-usable")
            if record.data.get("segment", 0) in segments
        ),
        None,
    )
    told = next(reports(evidence, arguments, "reused-tokens"), None)
    over = (
        told if told and want and told.data["tokens"] > bound * want.data["block_tokens"] else None
    )
    if usable or over:
        yield contradicted(
            Reason.USED_BAD_PUBLICATION,
            f"segment {min(segments)} is described wrongly and was used",
            expected=f"no layer of segments {segments}, at most {bound} blocks reused",
            observed=f"layer {usable.data['layer']} usable"
            if usable
            else f"{told.data['tokens'] if told else 0} tokens reused",
            record=usable or over,
        )
    elif done and told:
        yield upheld(f"nothing of segments {segments} used", done)
    else:
        yield unseen("the consumer did not come to its end")


@judge("publications-not-mixed", of=LABEL)
def publications_not_mixed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every layer that the consumer calls usable of a publication rests on accepted Objects of
    that publication alone. Needs more than one publication to have been tried."""
    whole = len(evidence.data_tracks(0)) * evidence.blocks
    accepted: dict[tuple[str, int], set[tuple[str, int]]] = {}
    mixed = False
    for record in reports(evidence, arguments, "object-accepted", "layer-usable"):
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
    done = finished(evidence, arguments)
    if not done:
        yield unseen("the consumer did not come to its end")
    elif len(_tried(evidence)) < 2:
        yield unseen("only one publication was tried")
    else:
        yield upheld("two publications tried, none of their Objects combined", done)


def _tried(evidence: Evidence) -> set[str]:
    """Publication IDs of which the consumer asked for a data track."""
    return {
        field
        for _, message in asked(evidence, "Subscribe", "Fetch")
        if message["track"]["name"] in evidence.data_tracks()
        for field in message["track"]["namespace"][4:5]
    }


@judge("publications-combined", of=LABEL)
def publications_combined(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Objects of two publications were accepted, and layers are usable: the promise was taken."""
    publications = {
        record.data["publication"] for record in reports(evidence, arguments, "object-accepted")
    }
    usable = list(reports(evidence, arguments, "layer-usable"))
    if len(publications) > 1 and usable:
        yield upheld("Objects of two publications made a usable layer", usable[-1])
    else:
        yield unseen("no layer was put together from two publications")
