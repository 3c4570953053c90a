"""Judge words for what a publisher sends: order, marks, priorities, payloads, manifests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record, Seen
from kvcs_conformance.judge.findings import Finding, contradicted, unseen, upheld
from kvcs_conformance.judge.payload import (
    CLAUSES,
    CODECS,
    COMPONENTS,
    FIELDS,
    LAYOUT_CLAUSE,
    MAGIC,
    ONE_PAYLOAD_CLAUSE,
    VERSION,
    field_clauses,
    is_whole,
    other_layout,
)
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

TRACKS = {"anyOf": [{"const": "data"}, {"type": "array", "minItems": 1}]}
NODE = {"type": "string"}


def by_track(evidence: Evidence, arguments: dict[str, Any]) -> dict[str, list[Seen]]:
    """The Objects that the observing node received, by track name, for each wanted track."""
    found: dict[str, list[Seen]] = {
        track: [] for track in evidence.tracks(arguments.get("tracks", "data"))
    }
    for seen in evidence.objects(arguments.get("at", "consumer")):
        if seen.track in found:
            found[seen.track].append(seen)
    return found


@judge("layers-in-order", tracks=TRACKS, at=NODE)
def layers_in_order(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """On each track no Object of a layer comes before the last one of every earlier layer.
    Speaks only of what came by subscription, from a publisher that takes time for each layer."""
    for track, objects in by_track(evidence, arguments).items():
        live = [seen for seen in objects if seen.is_data and seen.via == "subscription"]
        if {seen.group for seen in live} != set(range(evidence.layers)):
            yield unseen(f"{track}: not every layer came by subscription")
        highest = live[0] if live else None
        for seen in live:
            if highest and seen.group < highest.group:
                yield contradicted(
                    Reason.ORDER_LAYERS,
                    f"{track}: an Object of Group {seen.group} came after Group {highest.group} "
                    "had begun",
                    expected=f"all of Group {seen.group} before the first of {highest.group}",
                    observed=f"{highest.location} at {highest.record.time:.3f} s, then "
                    f"{seen.location} at {seen.record.time:.3f} s",
                    record=seen.record,
                )
                break
            highest = seen
        else:
            if live:
                yield upheld(f"{track}: {len(live)} Objects, layers ascending", live[-1].record)


@judge("blocks-in-order", tracks=TRACKS, at=NODE)
def blocks_in_order(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """In each Group the Objects 0 .. blocks-1 come in ascending order, each in Subgroup 0."""
    for track, objects in by_track(evidence, arguments).items():
        groups: dict[int, list[Seen]] = defaultdict(list)
        for seen in objects:
            if seen.is_data:
                groups[seen.group].append(seen)
        if not groups:
            yield unseen(f"{track}: no Object was seen")
        for group, members in sorted(groups.items()):
            ids = [seen.object for seen in members]
            stray = next((seen for seen in members if seen.subgroup != 0), None)
            if stray:
                yield contradicted(
                    Reason.OBJECT_SUBGROUP,
                    f"{track}: an Object of Group {group} is in another Subgroup",
                    expected="Subgroup 0",
                    observed=f"Subgroup {stray.subgroup} at {stray.location}",
                    record=stray.record,
                    requires=("KVCS-3.3-5",),
                )
            elif ids != list(range(evidence.blocks_of(track))):
                yield contradicted(
                    Reason.ORDER_OBJECTS,
                    f"{track}: Group {group} does not hold the blocks in order",
                    expected=f"Objects 0 .. {evidence.blocks_of(track) - 1}, ascending",
                    observed=f"Objects {ids}",
                    record=members[-1].record,
                    requires=("KVCS-3.4-1",) if ids == sorted(ids) else ("KVCS-3.3-6",),
                )
            else:
                yield upheld(f"{track}: Group {group} holds its blocks in order")


@judge("groups-ended", tracks=TRACKS, at=NODE)
def groups_ended(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every Group ends with an Object of status End of Group whose Object ID is the number of
    blocks; at the end of the last one End of Track may stand in its place (A2). Absence counts once
    the track has ended."""
    for track, objects in by_track(evidence, arguments).items():
        last = (evidence.layers - 1, evidence.blocks_of(track))
        marks: dict[int, Seen] = {
            seen.group: seen
            for seen in objects
            if seen.status == "END_OF_GROUP"
            or (seen.status == "END_OF_TRACK" and seen.location == last)
        }
        ended = track_fence(evidence, arguments, track)
        blocks = evidence.blocks_of(track)
        for group in range(evidence.layers):
            mark = marks.get(group)
            if mark is None and not ended:
                yield unseen(f"{track}: Group {group} has no end yet, and the track goes on")
            elif mark is None:
                yield contradicted(
                    Reason.MARK_GROUP,
                    f"{track}: Group {group} has no End of Group though the track has ended",
                    expected=f"status End of Group at ({group}, {blocks})",
                    observed="none",
                )
            elif mark.object != blocks:
                yield contradicted(
                    Reason.MARK_GROUP,
                    f"{track}: End of Group of {group} is at another Object ID",
                    expected=f"({group}, {blocks})",
                    observed=f"{mark.location}",
                    record=mark.record,
                )
            else:
                yield upheld(f"{track}: the Group ends at {mark.location}", mark.record)


@judge("track-ended", tracks=TRACKS, at=NODE)
def track_ended(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Each track ends with one Object of status End of Track behind its last Group: at {L, 0}, or
    in place of the last End of Group at {L-1, blocks} (A2). Nothing that makes the track malformed
    comes behind it. Absence counts once PUBLISH_DONE has said that the track ended."""
    layers = evidence.layers
    for track, objects in by_track(evidence, arguments).items():
        blocks = evidence.blocks_of(track)
        marks = [seen for seen in objects if seen.status == "END_OF_TRACK"]
        group_ends = {s.location for s in objects if s.status == "END_OF_GROUP"}
        legal = {(layers, 0)}
        if (layers - 1, blocks) not in group_ends:
            legal.add((layers - 1, blocks))
        cut = malformed(evidence, arguments.get("at", "consumer"), track)
        if cut is not None and (not marks or marks[-1].record.index < cut.index):
            where = "behind" if marks else "instead of"
            yield contradicted(
                Reason.MARK_TRACK,
                f"{track}: what came {where} End of Track makes the track malformed",
                expected=" or ".join(map(str, sorted(legal, reverse=True))),
                observed=str(cut.data["reason"]),
                record=cut,
            )
        elif not marks and not track_fence(evidence, arguments, track):
            yield unseen(f"{track}: no End of Track, and the track goes on")
        elif not marks:
            yield contradicted(
                Reason.MARK_TRACK,
                f"{track}: no End of Track though the track has ended",
                expected=f"status End of Track at {(layers, 0)}",
                observed="none",
            )
        elif {mark.location for mark in marks} - legal or len({m.location for m in marks}) > 1:
            yield contradicted(
                Reason.MARK_TRACK,
                f"{track}: End of Track is at a Location where it cannot be",
                expected=" or ".join(map(str, sorted(legal, reverse=True))),
                observed=", ".join(str(mark.location) for mark in marks),
                record=marks[-1].record,
            )
        else:
            yield upheld(f"{track}: End of Track at {marks[0].location}", marks[0].record)


def track_fence(evidence: Evidence, arguments: dict[str, Any], track: str) -> bool:
    """Whether the observing node knows that nothing more comes on a track: End of Track, or
    PUBLISH_DONE with all of the streams that it counts seen to their end."""
    node = arguments.get("at", "consumer")
    if any(s.track == track and s.status == "END_OF_TRACK" for s in evidence.objects(node)):
        return True
    return any(
        record.data["track"] == track and record.data["complete"]
        for record in evidence.records(node, "kvcs:track-ended")
    )


def malformed(evidence: Evidence, node: str, track: str) -> Record | None:
    """Where the observing node found a track malformed (MOQT-22 §12.1)."""
    found = evidence.records(node, "kvcs:track-malformed")
    return next((record for record in found if record.data["track"] == track), None)


@judge("priority-by-layer", tracks=TRACKS, at=NODE)
def priority_by_layer(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The Publisher Priority of every Object in Group g is floor(128 g / L)."""
    for track, objects in by_track(evidence, arguments).items():
        wrong = 0
        data = [seen for seen in objects if seen.is_data]
        for seen in data:
            right = 128 * seen.group // evidence.layers
            if seen.priority != right:
                wrong += 1
                if wrong == 1:
                    yield contradicted(
                        Reason.PRIORITY,
                        f"{track}: Group {seen.group} has another Publisher Priority",
                        expected=f"floor(128 x {seen.group} / {evidence.layers}) = {right}",
                        observed=f"{seen.priority} at {seen.location}",
                        record=seen.record,
                    )
        if not data:
            yield unseen(f"{track}: no Object was seen")
        elif not wrong:
            yield upheld(f"{track}: {len(data)} Objects with the priority of their layer")


@judge(
    "priority-is", required=("tracks", "value"), tracks=TRACKS, value={"type": "integer"}, at=NODE
)
def priority_is(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every Object of these tracks has this Publisher Priority."""
    for track, objects in by_track(evidence, arguments).items():
        wrong = next((s for s in objects if s.priority != arguments["value"]), None)
        if wrong:
            yield contradicted(
                Reason.PRIORITY,
                f"{track}: another Publisher Priority",
                expected=str(arguments["value"]),
                observed=f"{wrong.priority} at {wrong.location}",
                record=wrong.record,
            )
        elif objects:
            yield upheld(f"{track}: {len(objects)} Objects with it", objects[0].record)
        else:
            yield unseen(f"{track}: no Object was seen")


@judge("payloads-right", tracks=TRACKS, at=NODE, fields={"type": "array", "minItems": 1})
def payloads_right(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Every payload is 68 octets of header and Data: magic, version, the track's component, flags
    0, layer = Group ID, block = Object ID, absolute token start, block size, codec, length, and
    the SHA-256 of Data; Reserved has no rule (A6). `fields` limits it to these. Each field that is
    wrong is told once for a track; where the layout is another one, that is told instead."""
    wanted = arguments.get("fields", list(CLAUSES))
    for track, objects in by_track(evidence, arguments).items():
        data = [seen for seen in objects if seen.is_data]
        findings: dict[int, Finding] = {}
        for finding in (one for seen in data for one in _payload(evidence, seen, wanted)):
            findings.setdefault(finding.offset, finding)
        yield from findings.values()
        if not data:
            yield unseen(f"{track}: no Object was seen")
        elif not findings:
            yield upheld(f"{track}: {len(data)} payloads right in {', '.join(wanted)}")


def _payload(evidence: Evidence, seen: Seen, wanted: list[str]) -> Iterator[Finding]:
    head, length = seen.head, seen.payload["length"]
    if not is_whole(head):
        yield contradicted(
            Reason.PAYLOAD_LENGTH,
            f"{seen.track} {seen.location}: shorter than the header",
            expected="at least 68 octets",
            observed=f"{length} octets",
            record=seen.record,
            octets=head.hex(),
            requires=(LAYOUT_CLAUSE, ONE_PAYLOAD_CLAUSE),
        )
        return
    tokens = int(evidence.scenario["block-tokens"])
    right = {
        "magic": MAGIC,
        "version": VERSION,
        "component": COMPONENTS[seen.track.split(".")[0]],
        "flags": 0,
        "layer": seen.group,
        "block": seen.object,
        "token_start": (evidence.first_block_of(seen.track) + seen.object) * tokens,
        "token_count": tokens,
        "codec": CODECS.get(seen.track.split(".")[1], 0),
        "reserved": 0,
        "data_length": length - 68,
        "digest": int(seen.payload["data_sha256"], 16),
    }
    moved = other_layout(head, right)
    for name in wanted:
        field, value = FIELDS[name], right[name]
        if field.read(head) != value:
            digits = 2 * field.length
            yield contradicted(
                {
                    "digest": Reason.PAYLOAD_DIGEST,
                    "data_length": Reason.PAYLOAD_LENGTH,
                }.get(name, Reason.PAYLOAD_FIELD),
                f"{seen.track} {seen.location}: {name.replace('_', ' ')} is "
                f"{'laid out otherwise' if moved else 'wrong'}",
                expected=f"{value:#0{digits + 2}x}",
                observed=f"{field.read(head):#0{digits + 2}x}",
                record=seen.record,
                octets=field.of(head).hex(),
                offset=field.offset,
                requires=(LAYOUT_CLAUSE,) if moved else field_clauses(seen, name, right, tokens),
            )
            if moved:
                return
