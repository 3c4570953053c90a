"""Judge words for what Objects carry, against the tensors that the publisher was handed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record, Seen
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.identity import announcements
from kvcs_conformance.judge.manifest import document
from kvcs_conformance.judge.payload import FIELDS, is_whole
from kvcs_conformance.judge.publisher import NODE, TRACKS, by_track
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_BF16_OCTETS = 2


def handed(evidence: Evidence, publisher: str = "publisher") -> dict[tuple[int, int], Record]:
    """What the publisher was handed, by segment and layer."""
    return {
        (record.data["segment"], record.data["layer"]): record
        for record in evidence.records(publisher, "kvcs:handed")
    }


@judge("sections-carried", tracks=TRACKS, at=NODE)
def sections_carried(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Data of each Object of a raw track is the section that the publisher was handed: K, V, or K
    followed by V, so that the digest of a kv Object is the layer digest. Each Object is judged
    by itself; where only those behind the first of a Group are wrong, they need what is before
    them."""
    given = handed(evidence)
    for track, objects in by_track(evidence, arguments).items():
        component, codec, number = track.split(".")
        data = [seen for seen in objects if seen.is_data]
        if codec != "raw":
            continue
        known = 0
        for seen in data:
            record = given.get((int(number[1:]), seen.group))
            digests = record.data[component] if record is not None else ()
            if seen.object >= len(digests):
                continue
            known += 1
            if seen.payload["data_sha256"] != digests[seen.object]:
                yield _other_section(seen, component, digests[seen.object])
                break
        else:
            if known:
                yield upheld(f"{track}: {known} Objects carry the sections that were handed over")
            else:
                yield unseen(f"{track}: no Object whose section is known was seen")


def _other_section(seen: Seen, component: str, right: str) -> Finding:
    clauses = ("KVCS-4-16" if component == "kv" else "KVCS-4-15", "KVCS-4-17")
    dependent = ("KVCS-3.3-4",) if seen.object > 0 else ()
    return contradicted(
        Reason.TENSORS,
        f"{seen.track} {seen.location}: Data is not the {component.upper()} section of its block",
        expected=f"Data with the SHA-256 {right}",
        observed=f"{seen.payload['data_sha256']}",
        record=seen.record,
        requires=clauses + dependent,
    )


@judge("sections-sized", tracks=TRACKS, at=NODE)
def sections_sized(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """A raw Object holds Token Count x kv_heads x head_dim elements of two octets, twice as many
    in a kv track."""
    values = evidence.scenario
    one = values["block-tokens"] * values["kv-heads"] * values["head-dim"] * _BF16_OCTETS
    for track, objects in by_track(evidence, arguments).items():
        component, codec, _ = track.split(".")
        data = [seen for seen in objects if seen.is_data]
        right = 2 * one if component == "kv" else one
        wrong = next((s for s in data if s.payload["length"] != 68 + right), None)
        if codec != "raw":
            continue
        if wrong:
            yield contradicted(
                Reason.PAYLOAD_LENGTH,
                f"{track} {wrong.location}: not the size that the geometry gives",
                expected=f"{right} octets of Data",
                observed=f"{wrong.payload['length'] - 68} octets",
                record=wrong.record,
            )
        elif not data:
            yield unseen(f"{track}: no Object was seen")
        else:
            yield upheld(f"{track}: {len(data)} Objects of {right} octets of Data")


@judge("digests-join", at=NODE)
def digests_join(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Data Digest of each raw kv Object is SHA-256 over the Data of the k and then of the v
    Object at its Location: the KVSP layer digest of that block and layer."""
    node = arguments.get("at", "consumer")
    given = handed(evidence)
    compared = 0
    for seen in evidence.objects(node):
        if not (seen.is_data and seen.track.startswith("kv.raw.s") and is_whole(seen.head)):
            continue
        record = given.get((int(seen.track.rpartition(".s")[2]), seen.group))
        if record is None or seen.object >= len(record.data["kv"]):
            continue
        compared += 1
        right = record.data["kv"][seen.object]
        stated = FIELDS["digest"].of(seen.head).hex()
        if stated != right:
            yield contradicted(
                Reason.PAYLOAD_DIGEST,
                f"{seen.track} {seen.location}: its Data Digest is not the layer digest",
                expected=right,
                observed=stated,
                record=seen.record,
                octets=stated,
                offset=FIELDS["digest"].offset,
                requires=("KVCS-4-17",),
            )
            return
    if compared:
        yield upheld(f"{compared} kv Objects with the layer digest of their block")
    else:
        yield unseen("no raw kv Object whose sections are known was seen")


@judge("published-as-computed", tracks=TRACKS, at=NODE)
def published_as_computed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """A layer is delivered while later ones are still being computed: all but the last two have
    arrived before the last one was handed to the publisher. Speaks of what came by
    subscription."""
    given = handed(evidence)
    for track, objects in by_track(evidence, arguments).items():
        number = int(track.rpartition(".s")[2])
        last = given.get((number, evidence.layers - 1))
        live = [s for s in objects if s.is_data and s.via == "subscription"]
        early = {s.group for s in live} >= set(range(evidence.layers - 2))
        if last is None or not early or evidence.layers < 3:
            yield unseen(f"{track}: not every layer came by subscription")
            continue
        late = next(
            (s for s in live if s.group < evidence.layers - 2 and s.record.time > last.time), None
        )
        if late:
            yield contradicted(
                Reason.ORDER_LATE,
                f"{track}: a layer waited until the last one was computed",
                expected=f"{late.location} before {last.time:.3f} s, when layer "
                f"{evidence.layers - 1} was computed",
                observed=f"at {late.record.time:.3f} s",
                record=late.record,
            )
        else:
            yield upheld(f"{track}: early layers came before the last was computed", last)


@judge("promise-kept", at=NODE)
def promise_kept(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Two publications of one content whose manifests say "deterministic": true have the same
    octets at each Location of each track. Without the promise they may differ."""
    node = arguments.get("at", "consumer")
    names = [tuple(f.hex() for f in fields) for _, fields in announcements(evidence, node)]
    if len({name[:4] for name in names}) != 1 or len(names) < 2:
        yield unseen("there are no two publications of one content")
        return
    promises: dict[tuple[str, ...], bool] = {}
    contents: dict[tuple[str, ...], dict[tuple[str, int, int], Seen]] = {n: {} for n in names}
    for seen in evidence.objects(node):
        if seen.track == evidence.scenario["manifest"] and seen.status == "NORMAL":
            promises[seen.namespace] = bool((document(seen) or {}).get("deterministic"))
        elif seen.is_data and seen.namespace in contents:
            contents[seen.namespace].setdefault((seen.track, *seen.location), seen)
    first, second = contents[names[0]], contents[names[1]]
    common = sorted(first.keys() & second.keys())
    if len(promises) < 2 or not common:
        yield unseen("not both publications were seen with manifest and Objects")
    elif not all(promises.values()):
        yield upheld("nobody promises bit-identical Objects")
    else:
        other = next((p for p in common if first[p].payload != second[p].payload), None)
        if other is None:
            yield upheld(f"{len(common)} Objects are the same in both publications")
            return
        yield contradicted(
            Reason.OBJECT_CHANGED,
            f"{other[0]} {other[1:]}: two publications that promise the same octets differ",
            expected=first[other].payload["sha256"],
            observed=second[other].payload["sha256"],
            record=second[other].record,
        )
