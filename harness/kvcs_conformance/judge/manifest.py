"""Judge words for the manifest track, read by the judge itself from the octets of the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Seen
from kvcs_conformance.judge.documents import canonical_digest, json_object, sign1
from kvcs_conformance.judge.findings import Finding, Outcome, contradicted, unseen, upheld
from kvcs_conformance.judge.payload import FIELDS
from kvcs_conformance.judge.publisher import NODE
from kvcs_conformance.judge.registry import judge
from kvcs_conformance.verdicts import Reason

_MEMBERS = {
    "kvcs": int,
    "compat": dict,
    "layers": int,
    "block_tokens": int,
    "deterministic": bool,
    "segments": list,
}
_SEGMENT_MEMBERS = {
    "segment": int,
    "first_block": int,
    "blocks": int,
    "block_keys_sha256": str,
    "tracks": list,
    "complete": bool,
}


def manifests(evidence: Evidence, node: str) -> list[Seen]:
    """The versions that a node received, by Group, each once."""
    found: dict[tuple[int, int], Seen] = {}
    for seen in evidence.objects(node):
        if seen.track == evidence.scenario["manifest"] and seen.status == "NORMAL":
            found.setdefault(seen.location, seen)
    return [found[location] for location in sorted(found)]


def document(seen: Seen) -> dict[str, Any] | None:
    """The JSON object of a manifest, which is the payload or what a COSE_Sign1 carries (KVCS-5-4);
    None when there is none."""
    if seen.track != "manifest.cose":
        return json_object(seen.head)
    parts = sign1(seen.head)
    return json_object(parts[2]) if parts and isinstance(parts[2], bytes) else None


def entries_of(seen: Seen) -> list[dict[str, Any]] | None:
    """The segments that a manifest version lists; None when it lists none as it must."""
    listed = (document(seen) or {}).get("segments")
    if isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed):
        return listed
    return None


def listed_digests(entry: Mapping[str, Any]) -> dict[str, list[list[str]]]:
    """The digests that a segment entry lists, by track, Group and Object; only of the tracks for
    which it lists arrays of arrays of text."""
    listed = entry.get("object_digests")
    found = listed.items() if isinstance(listed, dict) else ()
    return {track: groups for track, groups in found if _are_digests(groups)}


def _are_digests(groups: object) -> bool:
    return isinstance(groups, list) and all(
        isinstance(group, list) and all(isinstance(digest, str) for digest in group)
        for group in groups
    )


@judge("manifest-first", at=NODE)
def manifest_first(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The first manifest arrives before or together with the first data Object. Streams race: data
    was clearly first when a whole Group came before any manifest, or an Object and then the answer
    to a probe. The node must have asked for the manifest before anything was published."""
    node = arguments.get("at", "consumer")
    objects = {one.record.index: one for one in evidence.objects(node)}
    first: Seen | None = None
    for record in evidence.records(node, "moqt:object_received", "kvcs:fence"):
        one = objects.get(record.index)
        if one is not None and one.track == evidence.scenario["manifest"]:
            yield upheld(f"manifest {one.location} came first", record)
            return
        if one is None and first is not None:
            what, place = "an Object came, and the answer to a probe,", f"{first.location}"
        elif one is not None and one.status == "END_OF_GROUP":
            what, place = f"Group {one.group} was whole", f"End of Group {one.location}"
        else:
            first = first or one
            continue
        clear = one or first
        assert clear is not None
        yield contradicted(
            Reason.ORDER_MANIFEST,
            f"{clear.track}: {what} before any manifest came",
            expected="the manifest before or together with the first data Object",
            observed=f"{place} at {clear.record.time:.3f} s, no manifest up to {record.time:.3f} s",
            record=clear.record,
        )
        return
    yield unseen("neither a manifest nor a whole Group was seen, nor a probe behind an Object")


@judge("manifest-versions-numbered", at=NODE)
def manifest_versions_numbered(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Manifest versions are Object 0 of Groups 0, 1, 2 … without a gap (A4)."""
    versions = manifests(evidence, arguments.get("at", "consumer"))
    locations = [seen.location for seen in versions]
    right = [(m, 0) for m in range(len(versions))]
    if not versions:
        yield unseen("no manifest was seen")
    elif locations != right:
        wrong = next(s for s, place in zip(versions, right, strict=True) if s.location != place)
        yield contradicted(
            Reason.MANIFEST_VERSIONS,
            "a manifest version is at another Location",
            expected=f"{right}",
            observed=f"{locations}",
            record=wrong.record,
        )
    else:
        yield upheld(f"versions {[m for m, _ in right]}", versions[-1].record)


@judge("manifest-frequent", at=NODE)
def manifest_frequent(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """Between two manifest versions no more than eight layers become complete. A layer counts as
    complete when its End of Group came on every data track. One layer more is no finding by
    itself: it comes on other streams than the manifest and may overtake it on the way. What the
    versions list cannot be overtaken: from one to the next it grows by eight Groups at most."""
    node = arguments.get("at", "consumer")
    tracks = evidence.data_tracks()
    ends: dict[int, int] = {}
    since = 0
    worst: tuple[int, Seen] | None = None
    versions = 0
    for seen in evidence.objects(node):
        if seen.track == evidence.scenario["manifest"]:
            since, versions = 0, versions + 1
        elif seen.status == "END_OF_GROUP":
            ends[seen.group] = ends.get(seen.group, 0) + 1
            since += ends[seen.group] == len(tracks)
            if worst is None or since > worst[0]:
                worst = (since, seen)
    if worst is None or not versions:
        yield unseen("no complete layer or no manifest was seen")
    elif step := next(_long_steps(manifests(evidence, node)), None):
        seen, before, after = step
        yield contradicted(
            Reason.MANIFEST_VERSIONS,
            "a manifest version lists more than eight layers that the one before did not",
            expected="a version at least every eight completed layers",
            observed=f"{before} Groups, then {after} in the version at {seen.location}",
            record=seen.record,
        )
    elif worst[0] > 8 + 1:
        yield contradicted(
            Reason.MANIFEST_VERSIONS,
            "more than eight layers were completed without a new manifest version",
            expected="a version at least every eight completed layers",
            observed=f"{worst[0]} layers up to {worst[1].group}, {versions} versions in all",
            record=worst[1].record,
        )
    else:
        yield upheld(f"{versions} versions, at most {worst[0]} layers between two")


def _long_steps(versions: list[Seen]) -> Iterator[tuple[Seen, int, int]]:
    """Where the Groups with listed digests grow by more than eight: version, before, after."""
    before = 0
    for seen in versions:
        entry = next(iter(entries_of(seen) or ()), {})
        counts = [len(groups) for groups in listed_digests(entry).values()]
        if not counts:
            continue
        after = min(counts)
        if after - before > 8:
            yield seen, before, after
        before = after


@judge("manifest-consistent", at=NODE)
def manifest_consistent(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """In every version: the members and segment members have their types, the Compatibility ID of
    `compat` (profile kvsp-p0: SHA-256 of its RFC 8785 form) is field 2 of the namespace, and
    layers and block_tokens are those of `compat`."""
    versions = manifests(evidence, arguments.get("at", "consumer"))
    if not versions:
        yield unseen("no manifest was seen")
    for seen in versions:
        value = document(seen)
        if value is None:
            yield contradicted(
                Reason.MANIFEST_SHAPE,
                f"manifest {seen.location} is not a JSON object",
                expected="a JSON object",
                observed=f"{seen.payload['length']} octets",
                record=seen.record,
                octets=seen.head[:32].hex(),
                requires=("KVCS-5-3",),
            )
            continue
        problem, clause = _shape(value, _MEMBERS), "KVCS-5-5"
        if not problem and value["kvcs"] != 1:
            problem = f"'kvcs' is {value['kvcs']!r}"
        if not problem:
            shapes = (_shape(entry, _SEGMENT_MEMBERS) for entry in value["segments"])
            problem, clause = next(filter(None, shapes), ""), "KVCS-5-6"
        if problem:
            yield contradicted(
                Reason.MANIFEST_SHAPE,
                f"manifest {seen.location}: {problem}",
                expected="the members that KVCS names, with their types",
                observed=problem,
                record=seen.record,
                requires=(clause,),
            )
        else:
            yield _consistent(seen, value)


def _shape(value: object, members: dict[str, type]) -> str:
    if not isinstance(value, dict):
        return f"{value!r} is not an object"
    for name, kind in members.items():
        if name not in value:
            return f"{name!r} is missing"
        if not isinstance(value[name], kind) or (kind is int and isinstance(value[name], bool)):
            return f"{name!r} is {value[name]!r}"
    return ""


def _consistent(seen: Seen, value: dict[str, Any]) -> Finding:
    compat_id = canonical_digest(value["compat"])
    named = seen.namespace[2] if len(seen.namespace) > 2 else ""
    if compat_id != named:
        return contradicted(
            Reason.MANIFEST_INCONSISTENT,
            f"manifest {seen.location}: its descriptor has another Compatibility ID",
            expected=f"namespace field 2: {named}",
            observed=f"SHA-256 of the canonical descriptor: {compat_id or 'it has no such form'}",
            record=seen.record,
            octets=compat_id or "",
            requires=("KVCS-5-16",),
        )
    for name in ("layers", "block_tokens"):
        if value[name] != value["compat"].get(name):
            return contradicted(
                Reason.MANIFEST_INCONSISTENT,
                f"manifest {seen.location}: {name} differs from the descriptor",
                expected=f"{value['compat'].get(name)}",
                observed=f"{value[name]}",
                record=seen.record,
                requires=("KVCS-5-5",),
            )
    return upheld(f"manifest {seen.location} agrees with the namespace", seen.record)


@judge("digests-listed", at=NODE)
def digests_listed(evidence: Evidence, arguments: dict[str, Any]) -> Iterator[Finding]:
    """The last manifest lists the Data Digest of every Object of every data track, per Group and
    in Object order. What it and each version before it list is what the headers of the delivered
    Objects say."""
    node = arguments.get("at", "consumer")
    versions = manifests(evidence, node)
    if not versions or not entries_of(versions[-1]):
        yield unseen("no manifest with a segment was seen")
        return
    for track in evidence.data_tracks():
        right = {
            seen.location: FIELDS["digest"].of(seen.head).hex()
            for seen in evidence.objects(node)
            if seen.track == track and seen.is_data
        }
        found = [_listed(seen, track, right, last=seen is versions[-1]) for seen in versions]
        yield next((one for one in found if one.outcome is Outcome.CONTRADICTED), found[-1])


def _listed(seen: Seen, track: str, right: dict[tuple[int, int], str], *, last: bool) -> Finding:
    """Whether one version lists the digests that a track's Objects have; the last one lists all."""
    number = int(track.rpartition(".s")[2])
    own = next((one for one in entries_of(seen) or () if one.get("segment") == number), {})
    groups = listed_digests(own).get(track)
    if groups is None and (last or "object_digests" in own):
        return contradicted(
            Reason.MANIFEST_SHAPE,
            f"manifest {seen.location} lists no digests of {track}",
            expected="object_digests with an array per completed Group",
            observed=f"{own.get('object_digests', 'absent')}"[:200],
            record=seen.record,
            requires=("KVCS-5-8", "KVCS-10-3"),
        )
    stated = {
        (g, o): digest for g, group in enumerate(groups or ()) for o, digest in enumerate(group)
    }
    places = stated.keys() | right.keys() if last else stated.keys() & right.keys()
    wrong = min((place for place in places if stated.get(place) != right.get(place)), default=None)
    if wrong is not None:
        return contradicted(
            Reason.MANIFEST_INCONSISTENT,
            f"manifest {seen.location}: digest of {track} {wrong} is another",
            expected=right.get(wrong, "no Object there"),
            observed=stated.get(wrong, "not listed"),
            record=seen.record,
            requires=("KVCS-5-9", "KVCS-10-3"),
        )
    return upheld(f"{track}: {len(stated)} digests listed and right", seen.record)
