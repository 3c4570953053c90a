"""Judge words for segments: their ranges, their tracks, and when a manifest lists them."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Seen
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.identity import asked_for, block_keys
from kvcs_conformance.judge.manifest import entries_of, listed_digests, manifests
from kvcs_conformance.judge.payload import CODECS
from kvcs_conformance.judge.publisher import NODE, TRACKS, by_track, track_fence
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_NAME = re.compile(r"(k|v|kv)\.([a-z0-9-]{1,32})\.s(0|[1-9][0-9]*)")


def entries(evidence: Evidence, node: str) -> list[tuple[Seen, list[dict[str, Any]]]]:
    """The segments that each manifest version lists, in order of version."""
    listed = ((seen, entries_of(seen)) for seen in manifests(evidence, node))
    return [(seen, found) for seen, found in listed if found is not None]


def _lengths(evidence: Evidence) -> list[int]:
    return [evidence.blocks, *evidence.scenario.get("appended", ())]


@judge("segments-contiguous", at=NODE)
def segments_contiguous(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """In every manifest version the segments are numbered from 0, segment 0 begins at block 0,
    each later one where the one before ends, and each has the blocks that it was asked to have.
    The last version must list all of them."""
    lengths = _lengths(evidence)
    right = [(n, sum(lengths[:n]), lengths[n]) for n in range(len(lengths))]
    versions = entries(evidence, arguments.get("at", "consumer"))
    for seen, listed in versions:
        found = [(e.get("segment"), e.get("first_block"), e.get("blocks")) for e in listed]
        if found != right[: len(found)]:
            yield contradicted(
                Reason.MANIFEST_SEGMENTS,
                f"manifest {seen.location}: its segments are not one run of blocks",
                expected=f"(segment, first_block, blocks) {right}",
                observed=f"{found}",
                record=seen.record,
            )
            return
    if not versions or len(versions[-1][1]) < len(lengths):
        yield unseen(f"no manifest lists all {len(lengths)} segments")
    else:
        yield upheld(f"{len(lengths)} segments, one after the other", versions[-1][0].record)


@judge("block-keys-listed", at=NODE)
def block_keys_listed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """block_keys_sha256 of each segment is the hex SHA-256 over the Block Keys of its blocks
    (profile kvsp-p0), which the judge computes from the tokens."""
    asked = asked_for(evidence)
    versions = entries(evidence, arguments.get("at", "consumer"))
    if not asked or not versions:
        yield unseen("no manifest with segments was seen, or the tokens are not known")
        return
    keys, lengths = block_keys(asked[0]), _lengths(evidence)
    seen, listed = versions[-1]
    for entry in listed:
        number = entry.get("segment")
        if not isinstance(number, int) or not 0 <= number < len(lengths):
            continue
        first = sum(lengths[:number])
        right = hashlib.sha256(b"".join(keys[first : first + lengths[number]])).hexdigest()
        if entry.get("block_keys_sha256") != right:
            yield contradicted(
                Reason.MANIFEST_SEGMENTS,
                f"manifest {seen.location}: block_keys_sha256 of segment {number} is another",
                expected=right,
                observed=str(entry.get("block_keys_sha256")),
                record=seen.record,
            )
        else:
            yield upheld(f"block_keys_sha256 of segment {number} is right", seen.record)


@judge("tracks-named", at=NODE)
def tracks_named(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The tracks that a manifest lists for a segment are named component "." codec "." "s" and
    the segment's number; the codec is one that the profile names; manifest and manifest.cose are
    no data tracks. They are the tracks that were asked for."""
    versions = entries(evidence, arguments.get("at", "consumer"))
    wanted = {name.rpartition(".s")[0] for name in evidence.data_tracks(0)}
    whole = False
    for seen, listed in versions:
        for entry in listed:
            names = entry.get("tracks")
            names = names if isinstance(names, list) else []
            for name in names:
                problem = _misnamed(str(name), entry.get("segment"))
                if problem:
                    yield contradicted(
                        Reason.TRACK_NAME,
                        f"manifest {seen.location} lists {name!r}: {problem[0]}",
                        expected='such as "k.raw.s0" for keys, codec raw, segment 0',
                        observed=repr(name),
                        record=seen.record,
                        requires=problem[1:],
                    )
                    return
            whole = wanted <= {str(name).rpartition(".s")[0] for name in names}
    if not whole:
        yield unseen("no manifest lists all the tracks that were asked for")
    else:
        yield upheld(f"{len(wanted)} tracks per segment, named as they must be")


def _misnamed(name: str, segment: object) -> tuple[str, ...]:
    """What is wrong with a track name, and which requirements that breaks."""
    if name in ("manifest", "manifest.cose"):
        return ("it is reserved for the manifest", "KVCS-12-4")
    parts = _NAME.fullmatch(name)
    if parts is None:
        return ("it is no name of a data track", "KVCS-3.2-1")
    if int(parts[3]) != segment:
        return (f"it names another segment than its entry, {segment}", "KVCS-5-6")
    if parts[2] not in CODECS:
        return ("its codec is not registered", "KVCS-3.2-2")
    return ()


@judge("listed-when-changed", at=NODE)
def listed_when_changed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each segment is listed by a version that says it is not complete yet, before it is whole,
    and by a later one that says it is, when the publisher has been handed all of it. Absence of
    the latter counts behind a fence after the segment's End of Track."""
    node = arguments.get("at", "consumer")
    versions = entries(evidence, node)
    fences = [record.index for record in evidence.records(node, "kvcs:fence")]
    for number in range(len(_lengths(evidence))):
        told = [
            (seen, entry.get("complete"))
            for seen, listed in versions
            for entry in listed
            if entry.get("segment") == number
        ]
        ends = [
            seen.record.index
            for seen in evidence.objects(node)
            if seen.status == "END_OF_TRACK" and seen.track in evidence.data_tracks(number)
        ]
        fenced = len(ends) == len(evidence.data_tracks(number)) and any(
            fence > max(ends) for fence in fences
        )
        states = [complete for _, complete in told]
        fenced = fenced and len(versions) == len(manifests(evidence, node))
        early = _complete_early(evidence, number, told)
        if early is not None:
            yield contradicted(
                Reason.MANIFEST_VERSIONS,
                f"segment {number} is called complete before its last layer is there",
                expected="complete: true when every layer was published",
                observed=f"the version at {early.location} at {early.record.time:.3f} s",
                record=early.record,
            )
        elif states[:1] == [False] and states[-1:] == [True]:
            yield upheld(f"segment {number} was listed when added and when complete")
        elif states[:1] == [True]:
            yield contradicted(
                Reason.MANIFEST_VERSIONS,
                f"segment {number} is listed for the first time when it is complete",
                expected="a version when the segment is added",
                observed=f"complete in the version at {told[0][0].location}",
                record=told[0][0].record,
            )
        elif fenced:
            yield contradicted(
                Reason.MANIFEST_VERSIONS,
                f"segment {number} has ended, and no manifest says that it is complete",
                expected="a version with complete: true",
                observed=f"{len(told)} versions list it, none as complete",
                record=told[-1][0].record if told else None,
            )
        else:
            yield unseen(f"segment {number}: {len(told)} versions, and no fence after its end")


def _complete_early(
    evidence: Evidence, segment: int, told: list[tuple[Seen, object]]
) -> Seen | None:
    """The version that calls a segment complete before its last layer was handed over."""
    last = [
        record.time
        for record in evidence.records("publisher", "kvcs:handed")
        if (record.data["segment"], record.data["layer"]) == (segment, evidence.layers - 1)
    ]
    return next(
        (seen for seen, complete in told if complete and last and seen.record.time < last[0]), None
    )


@judge("digests-kept", at=NODE)
def digests_kept(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """What a version lists of a segment, its range and the digests of its Objects, later versions
    list too: a segment only grows. Needs a version after the first segment was complete."""
    known: dict[int, dict[str, Any]] = {}
    compared = 0
    for seen, listed in entries(evidence, arguments.get("at", "consumer")):
        for number, before in known.items():
            now = next((entry for entry in listed if entry.get("segment") == number), {})
            changed = _changed(before, now)
            if changed:
                yield contradicted(
                    Reason.OBJECT_CHANGED,
                    f"manifest {seen.location}: {changed} of segment {number} is not kept",
                    expected=str(before.get(changed))[:200],
                    observed=str(now.get(changed, "not listed"))[:200],
                    record=seen.record,
                )
                return
            compared += 1
        for entry in listed:
            if isinstance(entry.get("segment"), int):
                known[entry["segment"]] = entry
    if compared and any(entry.get("complete") for entry in known.values()):
        yield upheld(f"{compared} entries list what the versions before list")
    else:
        yield unseen("no version follows one that lists a complete segment")


def _changed(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first member of an entry that does not go on from what it was, or nothing."""
    for name in ("first_block", "blocks", "block_keys_sha256", "tracks"):
        if now.get(name) != before.get(name):
            return name
    old, new = listed_digests(before), listed_digests(now)
    grown = all(new.get(track, [])[: len(groups)] == groups for track, groups in old.items())
    return "" if grown else "object_digests"


@judge("passes-apart", tracks=TRACKS, at=NODE)
def passes_apart(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each pass over the prompt has tracks of its own: no Group holds more blocks than the segment
    of its track, so that no later pass goes on in it. Speaks of what came by subscription."""
    for track, objects in by_track(evidence, arguments).items():
        blocks = evidence.blocks_of(track)
        live = [seen for seen in objects if seen.is_data and seen.via == "subscription"]
        wrong = next((seen for seen in live if seen.object >= blocks), None)
        if wrong:
            yield contradicted(
                Reason.OBJECT_UNEXPECTED,
                f"{track}: a later pass goes on in the Groups of an earlier one",
                expected=f"Objects 0 .. {blocks - 1} of each Group",
                observed=f"{wrong.location} at {wrong.record.time:.3f} s",
                record=wrong.record,
            )
        elif not live:
            yield unseen(f"{track}: nothing came by subscription")
        else:
            yield upheld(f"{track}: one pass, {len(live)} Objects", live[-1].record)


@judge("tracks-whole", tracks=TRACKS, at=NODE)
def tracks_whole(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every track holds each block of each layer by itself, whatever other encodings there are.
    Absence counts once the track has ended."""
    for track, objects in by_track(evidence, arguments).items():
        got = {seen.location for seen in objects if seen.is_data}
        right = {(g, o) for g in range(evidence.layers) for o in range(evidence.blocks_of(track))}
        missing = sorted(right - got)
        if missing and track_fence(evidence, arguments, track):
            yield contradicted(
                Reason.OBJECT_MISSING,
                f"{track}: the track has ended without {len(missing)} of its Objects",
                expected=f"{len(right)} Objects",
                observed=f"{len(got)}; the first that is missing is {missing[0]}",
            )
        elif missing:
            yield unseen(f"{track}: {missing[0]} has not come, nor an end")
        else:
            yield upheld(f"{track}: all {len(right)} Objects")


@judge("groups-are-layers", tracks=TRACKS, at=NODE)
def groups_are_layers(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Groups that hold data are 0 .. L-1. Absence of one counts once the track has ended."""
    for track, objects in by_track(evidence, arguments).items():
        groups: dict[int, list[Seen]] = defaultdict(list)
        for seen in objects:
            if seen.is_data:
                groups[seen.group].append(seen)
        right = set(range(evidence.layers))
        stray = sorted(groups.keys() - right)
        lacking = right - groups.keys()
        if stray or (lacking and track_fence(evidence, arguments, track)):
            yield contradicted(
                Reason.OBJECT_UNEXPECTED if stray else Reason.OBJECT_MISSING,
                f"{track}: its Groups are not the layers",
                expected=f"data in the Groups 0 .. {evidence.layers - 1}",
                observed=f"data in the Groups {sorted(groups)}",
                record=groups[stray[0]][0].record if stray else None,
            )
        elif lacking:
            yield unseen(f"{track}: Groups {sorted(lacking)} have not come, nor an end")
        else:
            yield upheld(f"{track}: the Groups 0 .. {evidence.layers - 1}")
