"""From the JSON text of a manifest to its value, collecting every defect (KVCS 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvcs.errors import Defect, JsonError, ManifestError, TrackNameError, refuse
from kvcs.manifest.values import Groups, Manifest, Segment
from kvcs.names import DataTrack, parse_track_name
from kvcs.payload import Octets
from kvcs.strict_json import MAX_INTEGER, parse_json

_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_MAX_BLOCKS = 2**32
"""Object IDs of a data track fit the payload's 32-bit Block Index (reading A18)."""


def parse_manifest(octets: Octets) -> Manifest:
    """The manifest that the octets of a "manifest" Object, or the payload of a COSE_Sign1, hold.

    Raises ManifestError with every defect found, each with its JSON path (KVCS-5-3, KVCS-5-5 to
    KVCS-5-9). It says nothing of the namespace: see `check_consistency`.
    """
    manifest, defects = _read(octets)
    if manifest is None:
        raise refuse(ManifestError, "not a KVCS manifest", defects)
    return manifest


def _read(octets: Octets) -> tuple[Manifest | None, list[Defect]]:
    """The manifest, or None and what is wrong with it."""
    try:
        document = parse_json(memoryview(octets))
    except JsonError as error:
        return None, [Defect("manifest-json", "KVCS-5-3", error.reason, "$")]
    reader = _Reader()
    manifest = reader.manifest(document)
    return (None if reader.defects else manifest), reader.defects


class _Reader:
    """Reads one document; `defects` make it unusable, `remarks` do not."""

    def __init__(self) -> None:
        self.defects: list[Defect] = []
        self.remarks: list[Defect] = []

    def manifest(self, document: Any) -> Manifest | None:
        if not isinstance(document, Mapping):
            self._wrong(
                "manifest-type", "KVCS-5-3", f"should be a JSON object, not {_kind(document)}", "$"
            )
            return None
        version = self._integer(document, "kvcs", "$", "KVCS-5-5", 0, MAX_INTEGER)
        if version is not None and version != 1:
            self._wrong("manifest-version", "KVCS-5-5", f"kvcs is {version}, should be 1", "$.kvcs")
        compat = self._member(document, "compat", "$", "KVCS-5-5", Mapping, "an object")
        layers = self._integer(document, "layers", "$", "KVCS-5-5", 1, 2**32)
        block_tokens = self._integer(document, "block_tokens", "$", "KVCS-5-5", 1, 2**32 - 1)
        deterministic = self._bool(document, "deterministic", "$", "KVCS-5-5")
        entries = self._member(document, "segments", "$", "KVCS-5-5", list, "an array")
        segments = [
            self._segment(entry, f"$.segments[{index}]", layers)
            for index, entry in enumerate(entries or ())
        ]
        if self.defects:
            return None
        whole = tuple(segment for segment in segments if segment is not None)
        self._check_order(whole)
        return Manifest(
            compat=compat,
            layers=layers or 0,
            block_tokens=block_tokens or 0,
            deterministic=bool(deterministic),
            segments=whole,
            remarks=tuple(self.remarks),
        )

    def _segment(self, entry: Any, path: str, layers: int | None) -> Segment | None:
        if not isinstance(entry, Mapping):
            self._wrong(
                "segment-type", "KVCS-5-6", f"should be an object, not {_kind(entry)}", path
            )
            return None
        number = self._integer(entry, "segment", path, "KVCS-5-6", 0, MAX_INTEGER)
        first_block = self._integer(entry, "first_block", path, "KVCS-5-6", 0, MAX_INTEGER)
        blocks = self._integer(entry, "blocks", path, "KVCS-5-6", 0, _MAX_BLOCKS)
        keys = self._member(entry, "block_keys_sha256", path, "KVCS-5-6", str, "a string")
        complete = self._bool(entry, "complete", path, "KVCS-5-6")
        if keys is not None and not _DIGEST.fullmatch(keys):
            what = f"should be 64 hexadecimal digits, not {keys[:80]!a}"
            self._wrong("block-keys-format", "KVCS-5-7", what, f"{path}.block_keys_sha256")
            keys = None
        tracks = self._tracks(entry, path, number)
        digests = None
        if "object_digests" in entry and None not in (blocks, complete, layers):
            assert blocks is not None
            assert layers is not None
            digests = self._digests(
                entry["object_digests"],
                f"{path}.object_digests",
                tracks,
                blocks,
                layers,
                complete is True,
            )
        if number is None or first_block is None or blocks is None or keys is None:
            return None
        return Segment(
            segment=number,
            first_block=first_block,
            blocks=blocks,
            block_keys_sha256=bytes.fromhex(keys),
            tracks=tracks,
            complete=bool(complete),
            object_digests=digests,
        )

    def _tracks(
        self, entry: Mapping[str, Any], path: str, number: int | None
    ) -> tuple[DataTrack, ...]:
        names = self._member(entry, "tracks", path, "KVCS-5-6", list, "an array")
        tracks: list[DataTrack] = []
        for index, name in enumerate(names or ()):
            where = f"{path}.tracks[{index}]"
            if not isinstance(name, str):
                self._wrong(
                    "track-type", "KVCS-5-6", f"should be a string, not {_kind(name)}", where
                )
                continue
            track = self._track(name, where)
            if track is None:
                continue
            if number is not None and track.segment != number:
                what = f"{name!a} names segment {track.segment} in the entry of segment {number}"
                self._wrong("track-segment", "KVCS-5-6", what, where)
            elif track in tracks:
                self._wrong("track-twice", "KVCS-5-6", f"{name!a} is listed twice", where)
            tracks.append(track)
        return tuple(tracks)

    def _track(self, name: str, where: str) -> DataTrack | None:
        """The data track of a name; one that names none is remarked and left aside."""
        try:
            track = parse_track_name(name.encode())
        except TrackNameError as error:
            self._remark("track-unknown", "KVCS-3.2-1", error.reason, where)
            return None
        if not isinstance(track, DataTrack):
            what = f"{name!a} is a manifest, not a data track"
            self._remark("track-unknown", "KVCS-12-4", what, where)
            return None
        return track

    def _digests(
        self,
        value: Any,
        path: str,
        tracks: tuple[DataTrack, ...],
        blocks: int,
        layers: int,
        complete: bool,
    ) -> dict[DataTrack, Groups] | None:
        if not isinstance(value, Mapping):
            what = f"should be an object from track name to array, not {_kind(value)}"
            self._wrong("digests-type", "KVCS-5-9", what, path)
            return None
        listed: dict[DataTrack, Groups] = {}
        for name, groups in value.items():
            where = f"{path}[{name[:64]!a}]"
            track = self._track(name, where)
            if track is None:
                continue
            if track not in tracks:
                what = f"{name!a} is not among the segment's tracks"
                self._remark("digests-track", "KVCS-5-9", what, where)
                continue
            listed[track] = self._groups(groups, where, blocks)
            found = len(listed[track])
            if found > layers or (complete and found != layers):
                right = f"{layers}" if complete else f"at most {layers}"
                what = f"holds one element per completed Group, {right}; there are {found}"
                self._wrong("digests-groups", "KVCS-5-9", what, where)
        for track in tracks:
            if track not in listed:
                what = f"{track} has no digests"
                self._remark("digests-absent", "KVCS-5-9", what, path)
        return listed

    def _groups(self, groups: Any, path: str, blocks: int) -> Groups:
        if not isinstance(groups, list):
            self._wrong(
                "digests-type", "KVCS-5-9", f"should be an array, not {_kind(groups)}", path
            )
            return ()
        return tuple(
            self._group(group, f"{path}[{index}]", blocks) for index, group in enumerate(groups)
        )

    def _group(self, group: Any, path: str, blocks: int) -> tuple[bytes, ...]:
        if not isinstance(group, list):
            self._wrong("digests-type", "KVCS-5-9", f"should be an array, not {_kind(group)}", path)
            return ()
        if len(group) != blocks:
            what = f"holds one digest per Object of the Group, {blocks}; there are {len(group)}"
            self._wrong("digests-objects", "KVCS-5-9", what, path)
        for index, digest in enumerate(group):
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                found = f"{digest[:80]!a}" if isinstance(digest, str) else _kind(digest)
                what = f"should be 64 hexadecimal digits, not {found}"
                self._wrong("digests-format", "KVCS-5-9", what, f"{path}[{index}]")
                return ()
        return tuple(map(bytes.fromhex, group))

    def _check_order(self, segments: tuple[Segment, ...]) -> None:
        """KVCS-2-3: from block 0 on, each segment starts where the one before ends."""
        block, number = 0, -1
        for index, segment in enumerate(segments):
            path = f"$.segments[{index}]"
            if segment.segment <= number or (index == 0 and segment.segment != 0):
                right = "0" if index == 0 else f"above {number}"
                what = f"the segment number is {segment.segment}, should be {right} here"
                self._wrong("segment-order", "KVCS-2-3", what, f"{path}.segment")
            if segment.first_block != block:
                what = f"first_block is {segment.first_block}, should be {block} here"
                self._wrong("segment-gap", "KVCS-2-3", what, f"{path}.first_block")
            block, number = segment.first_block + segment.blocks, segment.segment

    def _member(
        self,
        entry: Mapping[str, Any],
        name: str,
        path: str,
        clause: str,
        kind: type,
        right: str,
    ) -> Any:
        where = f"{path}.{name}"
        if name not in entry:
            self._wrong("member-missing", clause, f"the member {name!r} is missing", where)
            return None
        if not isinstance(entry[name], kind):
            self._wrong(
                "member-type", clause, f"should be {right}, not {_kind(entry[name])}", where
            )
            return None
        return entry[name]

    def _bool(self, entry: Mapping[str, Any], name: str, path: str, clause: str) -> bool | None:
        value = self._member(entry, name, path, clause, bool, "true or false")
        assert value is None or isinstance(value, bool)
        return value

    def _integer(
        self, entry: Mapping[str, Any], name: str, path: str, clause: str, low: int, high: int
    ) -> int | None:
        value = self._member(entry, name, path, clause, int, "an integer")
        if value is None:
            return None
        if isinstance(value, bool):
            self._wrong(
                "member-type", clause, f"should be an integer, not {value!r}", f"{path}.{name}"
            )
            return None
        if not low <= value <= high:
            what = f"{name} is {value}, should be from {low} to {high}"
            self._wrong("member-range", clause, what, f"{path}.{name}")
            return None
        assert isinstance(value, int)
        return value

    def _wrong(self, name: str, clause: str, what: str, where: str) -> None:
        self.defects.append(Defect(name, clause, what, where))

    def _remark(self, name: str, clause: str, what: str, where: str) -> None:
        self.remarks.append(Defect(name, clause, what, where, mandatory=False))


def _kind(value: Any) -> str:
    """A JSON value in the words of JSON."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    for kind, word in ((str, "a string"), (Mapping, "an object"), (list, "an array")):
        if isinstance(value, kind):
            return word
    return f"the number {value}"
