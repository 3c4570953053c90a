"""Evidence as a judge sees it: records of every node, and the facts that the run wrote down."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvcs_conformance.errors import UsageError
from kvcs_conformance.evidence.facts import checked_facts
from kvcs_conformance.evidence.files import (
    CASE,
    LOG_SUFFIX,
    RUN,
    check_files,
    read_json,
    read_octets,
)

HEADER_OCTETS = 68


@dataclass(frozen=True, slots=True)
class Record:
    """One event of one node's log; `time` in seconds since the run began."""

    node: str
    index: int
    time: float
    name: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """One Object as a node received or sent it."""

    record: Record
    namespace: tuple[str, ...]
    track: str
    group: int
    object: int
    status: str
    subgroup: int | None
    priority: int
    properties: str
    payload: Mapping[str, Any]
    request: int | None
    via: str
    stream: int | None

    @property
    def location(self) -> tuple[int, int]:
        return (self.group, self.object)

    @property
    def is_data(self) -> bool:
        """Whether it is a Normal Object of a data track."""
        return self.status == "NORMAL" and not self.track.startswith("manifest")

    @property
    def head(self) -> bytes:
        return bytes.fromhex(self.payload["head"])


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a scripted node: the label of its step, and what was asked."""

    record: Record
    label: str
    kind: str
    track: str
    request: int


@dataclass(frozen=True)
class Evidence:
    """All of one run of one case.

    A judge looks at facts and logs. What each peer was asked (`requests`), what it reported in
    its own words (`reported`), the TLS secrets and the QUIC library's logs are kept beside them,
    and not read back.
    """

    facts: Mapping[str, Any]
    logs: Mapping[str, Sequence[Record]]
    requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reported: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    keylog: str = ""
    quic_logs: Mapping[str, str] = field(default_factory=dict)

    @property
    def scenario(self) -> Mapping[str, Any]:
        scenario: Mapping[str, Any] = self.facts["scenario"]
        return scenario

    @property
    def layers(self) -> int:
        return int(self.scenario["layers"])

    @property
    def blocks(self) -> int:
        return int(self.scenario["blocks"])

    def blocks_of(self, track: str) -> int:
        """The blocks of the segment that a data track belongs to."""
        return self._lengths()[_segment(track)]

    def first_block_of(self, track: str) -> int:
        """The absolute index of the first block of a data track's segment."""
        return sum(self._lengths()[: _segment(track)])

    def _lengths(self) -> list[int]:
        return [self.blocks, *self.scenario.get("appended", ())]

    def data_tracks(self, segment: int | None = None) -> tuple[str, ...]:
        """The names of the data tracks of a segment, by default of all of them."""
        segments = range(len(self._lengths())) if segment is None else (segment,)
        return tuple(
            f"{component if '.' in component else component + '.raw'}.s{number}"
            for number in segments
            for component in self.scenario["components"]
        )

    def tracks(self, chosen: str | Sequence[str]) -> tuple[str, ...]:
        """What the argument `tracks` of a judge word names: `data`, or the names themselves."""
        return self.data_tracks() if chosen == "data" else tuple(chosen)

    def records(self, node: str, *names: str) -> Iterator[Record]:
        """The records of a node, of these names only if any is given."""
        for record in self.logs.get(node, ()):
            if not names or record.name in names:
                yield record

    def objects(self, node: str, *, sent: bool = False, unwanted: bool = False) -> Iterator[Seen]:
        """The Objects that a node received (or sent), in order.

        `unwanted` adds those that arrived although the filters of their request exclude them.
        """
        names = ["moqt:object_sent" if sent else "moqt:object_received"]
        if unwanted:
            names.append("moqt:object_unwanted")
        for record in self.records(node, *names):
            yield seen(record)

    def messages(
        self, node: str, *types: str, sent: bool = False
    ) -> Iterator[tuple[Record, Mapping[str, Any]]]:
        """The control messages that a node received (or sent), by their type names."""
        name = "moqt:message_sent" if sent else "moqt:message_received"
        for record in self.records(node, name):
            if record.data["message"]["type"] in types:
                yield record, record.data["message"]

    def asked(self, label: str, node: str | None = None) -> list[Asked]:
        """The requests that the step labelled `label` made."""
        return [
            asked(record)
            for name in ([node] if node else self.logs)
            for record in self.records(name, "kvcs:asked")
            if record.data["label"] == label
        ]

    def reports(self, node: str, *events: str) -> Iterator[Record]:
        """What a consumer or publisher reported, by event name."""
        return self.records(node, *(f"kvcs:{event}" for event in events))


def _segment(track: str) -> int:
    """The segment of a data track, by its name."""
    return int(track.rpartition(".s")[2])


def seen(record: Record) -> Seen:
    """A record of an Object as a value."""
    data = record.data
    return Seen(
        record,
        tuple(data["track"]["namespace"]),
        data["track"]["name"],
        data["group"],
        data["object"],
        data["status"],
        data.get("subgroup"),
        data["priority"],
        data.get("properties") or "",
        data["payload"],
        data.get("request"),
        data.get("via") or "",
        data.get("stream"),
    )


def asked(record: Record) -> Asked:
    """A record of a scripted request as a value."""
    data = record.data
    return Asked(record, data["label"], data["kind"], data["track"], data["request"])


def read_log(path: Path) -> list[Record]:
    """Read one node's JSON text sequence; raises UsageError for a file that is none."""
    node = path.name.removesuffix(LOG_SUFFIX)
    try:
        before, *texts = read_octets(path).decode("utf-8").split("\x1e")
    except ValueError as error:
        raise UsageError(f"{path}: not an event log: not text in UTF-8") from error
    if before or not texts:
        raise UsageError(f"{path}: not an event log: it does not begin with a record")
    return [_record(path, node, i, text) for i, text in enumerate(texts[1:])]


def _record(path: Path, node: str, index: int, text: str) -> Record:
    """One record of a log; the header is line 1, record 0 is line 2."""
    try:
        event = json.loads(text)
        time, name, data = float(event["time"]), event["name"], event["data"]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise UsageError(f"{path}: line {index + 2} is not a record of an event log") from error
    if not (math.isfinite(time) and isinstance(name, str) and isinstance(data, dict)):
        raise UsageError(f"{path}: line {index + 2} is not a record of an event log")
    return Record(node, index, round(time / 1000, 6), name, data)


def read_evidence(folder: Path) -> Evidence:
    """Read the evidence folder of one run.

    Raises UsageError when something of it is missing: silence in a log that was cut off would
    speak against a peer, or for it. A file that was altered since is refused, too.
    """
    facts = checked_facts(folder / RUN, read_json(folder / RUN))
    logs = {}
    for node, count in facts["records"].items():
        path = folder / f"{node}{LOG_SUFFIX}"
        logs[node] = read_log(path)
        if len(logs[node]) != count:
            raise UsageError(
                f"{path}: {len(logs[node])} records, but {count} were written by the run"
            )
    cases = [CASE] if (folder / CASE).is_file() else []
    check_files(folder, [RUN, *cases, *(f"{node}{LOG_SUFFIX}" for node in logs)])
    return Evidence(facts, logs)
