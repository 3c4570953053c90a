"""The logs of all nodes as one sequence: who told whom what, and when.

A record of something sent is joined to the record of its arrival at another node by what stands in
both: stream, octets, Location. Objects of one Group on one stream are one row, so that a run can be
looked at.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from kvcs_conformance.evidence.read import Evidence, Record
from kvcs_conformance.report.events import ECHOES, describe, message_words
from kvcs_conformance.report.plain import short

Place = tuple[str, int]
"""A record: whose log, and which event of it."""

NETWORK = "network"
"""Whose log has what befell the network; it is no node."""

_ORDER = {"publisher": 0, "relay": 1}
_STATUS = {"END_OF_GROUP": "End of Group", "END_OF_TRACK": "End of Track"}
_QUIET = ECHOES | {"kvcs:delivered", "kvcs:tensors", "moqt:stream_opened", "moqt:stream_accepted"}


class Kind(StrEnum):
    """What a row stands for; each is drawn in its own way."""

    MESSAGE = "message"
    OBJECTS = "objects"
    RESET = "reset"
    CLOSE = "close"
    EVENT = "event"
    NETWORK = "network"


@dataclass(slots=True)
class Row:
    """One line of a sequence diagram; `target` is "" for what a node does by itself, `source` too
    for what befell the network, and `places` are the records that it stands for."""

    time: float
    source: str
    target: str
    kind: Kind
    text: str
    places: list[Place] = field(default_factory=list)
    times: int = 1
    finished: bool = False
    objects: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The nodes from left to right, rows in order of time, for each record its other end, and for
    each record of a control message its words."""

    nodes: tuple[str, ...]
    rows: tuple[Row, ...]
    other_end: Mapping[Place, Record]
    messages: Mapping[Place, str]


def timeline(evidence: Evidence, apart: Iterable[Place] = ()) -> Timeline:
    """Everything that was seen in one sequence; the records in `apart` get rows of their own."""
    nodes = _nodes(evidence)
    rank = {name: i for i, name in enumerate(nodes)}
    records = sorted(
        (record for log in evidence.logs.values() for record in log),
        key=lambda record: (record.time, rank.get(record.node, -1), record.index),
    )
    pairs = _Pairs(evidence, nodes, records)
    builder = _Builder(pairs, set(apart))
    for record in records:
        builder.take(record)
    words = builder.messages()
    return Timeline(nodes, tuple(builder.finish()), pairs.other_end, words)


def _nodes(evidence: Evidence) -> tuple[str, ...]:
    kinds = {name: node.get("kind", "") for name, node in evidence.facts.get("nodes", {}).items()}
    names = {*kinds, *(name for name in evidence.logs if name != NETWORK)}
    return tuple(sorted(names, key=lambda name: (_ORDER.get(kinds.get(name, ""), 2), name)))


def _hubs(evidence: Evidence, nodes: Iterable[str]) -> frozenset[str]:
    """The nodes that the others connect to: relays, or else whom a publisher connects to."""
    kinds = evidence.facts.get("nodes", {})
    relays = {name for name in nodes if kinds.get(name, {}).get("kind") == "relay"}
    return frozenset(relays or {name for name in nodes if name == "consumer"})


def _way(record: Record) -> tuple[str, str]:
    """What crossed the network and in which direction ("" for what did not)."""
    area, _, action = record.name.partition(":")
    what, _, way = action.rpartition("_")
    if area != "moqt" or way not in ("sent", "received", "unwanted") or what == "stream":
        return "", ""
    return what, "sent" if way == "sent" else "received"


def _content(what: str, record: Record) -> tuple[Any, ...]:
    data = record.data
    if what == "message":
        return (what, data.get("stream"), data.get("raw"))
    if "track" in data and "group" in data:
        track = data["track"]
        return (what, data.get("stream"), track["name"], data["group"], data.get("object"))
    return (what, data.get("stream"), data.get("code"))


class _Pairs:
    """Which record of an arrival belongs to which record of a sending."""

    def __init__(
        self, evidence: Evidence, nodes: tuple[str, ...], records: Iterable[Record]
    ) -> None:
        self.nodes = nodes
        self.hubs = _hubs(evidence, nodes)
        self.other_end: dict[Place, Record] = {}
        self._silent = {name for name in nodes if not _crossed(evidence.logs.get(name, ()))}
        records = list(records)
        arrivals: dict[tuple[Any, ...], dict[str, deque[Record]]] = defaultdict(
            lambda: defaultdict(deque)
        )
        for record in records:
            what, way = _way(record)
            if way == "received":
                arrivals[_content(what, record)][record.node].append(record)
        for record in records:
            what, way = _way(record)
            if way == "sent":
                self._join(record, arrivals.get(_content(what, record), {}))

    def _join(self, sent: Record, arrived: Mapping[str, deque[Record]]) -> None:
        queues = [arrived[node] for node in self._peers(sent.node) if arrived.get(node)]
        if not queues:
            return
        # The first that is not earlier; clocks of two processes may differ by a little.
        chosen = min(queues, key=lambda queue: (queue[0].time < sent.time, queue[0].time))
        received = chosen.popleft()
        self.other_end[sent.node, sent.index] = received
        self.other_end[received.node, received.index] = sent

    def _peers(self, node: str) -> list[str]:
        """Whom a node may have a session with: a hub with everybody, the others with hubs."""
        others = [name for name in self.nodes if name != node]
        return others if node in self.hubs else [name for name in others if name in self.hubs]

    def across(self, record: Record) -> str:
        """The node at the other end of what a record tells; "?" when nothing says it."""
        end = self.other_end.get((record.node, record.index))
        if end is not None:
            return end.node
        peers = self._peers(record.node)
        quiet = [name for name in peers if name in self._silent]
        for names in (quiet, peers):
            if len(names) == 1:
                return names[0]
        return "?"


def _crossed(log: Iterable[Record]) -> bool:
    return any(_way(record)[1] for record in log)


class _Builder:
    """Rows from records in order of time."""

    def __init__(self, pairs: _Pairs, apart: set[Place]) -> None:
        self._pairs = pairs
        self._apart = apart
        self._rows: list[Row] = []
        self._runs: dict[tuple[Any, ...], Row] = {}
        self._last_run: dict[tuple[str, str, int], Row] = {}
        self._tracks: dict[tuple[frozenset[str], int], str] = {}

    def take(self, record: Record) -> None:
        what, way = _way(record)
        place = (record.node, record.index)
        if way == "received" and place in self._pairs.other_end:
            return  # told by the record of its sending
        if not way:
            self._event(record, place)
            return
        other = self._pairs.across(record)
        source, target = (record.node, other) if way == "sent" else (other, record.node)
        places = [place]
        if end := self._pairs.other_end.get(place):
            places.append((end.node, end.index))
        single = not self._apart.isdisjoint(places)
        if what in ("object", "datagram") and "group" in record.data:
            self._object(record, source, target, places, single)
        elif what == "fin":
            self._fin(record, source, target, places, single)
        elif what in ("reset", "stop"):
            self._reset(what, record, source, target, places)
        elif what == "message":
            text = self._message(record, source, target)
            self._tell(Row(record.time, source, target, Kind.MESSAGE, text, places), single)
        else:
            text = describe(record)
            self._tell(Row(record.time, source, target, Kind.MESSAGE, text, places), single)

    def _add(self, row: Row) -> Row:
        self._rows.append(row)
        return row

    def _tell(self, row: Row, single: bool) -> None:
        """Add a message, or count it to the same one just before it."""
        last = self._rows[-1] if self._rows else None
        if (
            last is not None
            and not single
            and (last.source, last.target, last.kind) == (row.source, row.target, row.kind)
            and last.text == row.text
            and self._apart.isdisjoint(last.places)
        ):
            last.times += 1
            last.places += row.places
        else:
            self._add(row)

    def _message(self, record: Record, source: str, target: str) -> str:
        message, stream = record.data["message"], record.data.get("stream")
        key = (frozenset((source, target)), stream if isinstance(stream, int) else -1)
        if "track" in message:
            self._tracks[key] = message["track"]["name"]
        return short(message_words(message, self._tracks.get(key, "")), 60)

    def _object(
        self, record: Record, source: str, target: str, places: list[Place], single: bool
    ) -> None:
        data = record.data
        key = (source, target, data.get("stream"), data["track"]["name"], data["group"])
        run = None if single else self._runs.get(key)
        if run is None:
            run = self._add(Row(record.time, source, target, Kind.OBJECTS, ""))
            self._runs[key] = run
        if single:
            self._runs.pop(key, None)
        run.objects.append(data)
        run.places += places
        if isinstance(data.get("stream"), int):
            self._last_run[source, target, data["stream"]] = run

    def _fin(
        self, record: Record, source: str, target: str, places: list[Place], single: bool
    ) -> None:
        run = self._last_run.pop((source, target, record.data["stream"]), None)
        if run is not None and not single:
            run.finished = True
            run.places += places
        elif single:
            text = f"FIN of stream {record.data['stream']}"
            self._add(Row(record.time, source, target, Kind.MESSAGE, text, places))

    def _reset(
        self, what: str, record: Record, source: str, target: str, places: list[Place]
    ) -> None:
        stream, code = record.data["stream"], record.data.get("code")
        name = "RESET_STREAM" if what == "reset" else "STOP_SENDING"
        last = self._rows[-1] if self._rows else None
        if last and (last.source, last.target, last.kind) == (source, target, Kind.RESET):
            before = last.text
            if before.endswith(f" stream {stream}, code {code}") and name not in before:
                last.text = f"{before.split(' ')[0]} + {name} stream {stream}, code {code}"
                last.places += places
                return
        track = self._tracks.get((frozenset((source, target)), stream), "")
        of = f" of {track}" if track else ""
        text = short(f"{name}{of} stream {stream}, code {code}", 80)
        self._add(Row(record.time, source, target, Kind.RESET, text, places))

    def _event(self, record: Record, place: Place) -> None:
        if record.name in _QUIET and place not in self._apart:
            return
        if record.node == NETWORK:
            self._add(Row(record.time, "", "", Kind.NETWORK, describe(record), [place]))
            return
        if record.name == "moqt:session_closed":
            other = self._pairs.across(record)
            by_peer = record.data.get("by_peer")
            source, target = (other, record.node) if by_peer else (record.node, other)
            if any(
                row.kind is Kind.CLOSE and (row.source, row.target) == (source, target)
                for row in self._rows[-4:]
            ):
                return
            text = f"closes, code {record.data.get('code')} {record.data.get('reason') or ''}"
            row = Row(record.time, source, target, Kind.CLOSE, short(text.strip(), 60), [place])
            self._add(row)
            return
        last = self._rows[-1] if self._rows else None
        alone = place in self._apart
        if (
            last is not None
            and not alone
            and last.kind is Kind.EVENT
            and last.source == record.node
            and last.objects
            and last.objects[0]["name"] == record.name
            and self._apart.isdisjoint(last.places)
            and "block" in record.data
        ):
            last.objects.append({"name": record.name, "data": record.data})
            last.places.append(place)
            return
        row = Row(record.time, record.node, "", Kind.EVENT, describe(record), [place])
        row.objects.append({"name": record.name, "data": record.data})
        self._add(row)

    def messages(self) -> dict[Place, str]:
        """The words of each control message."""
        told = (row for row in self._rows if row.kind is Kind.MESSAGE)
        return {place: row.text for row in told for place in row.places}

    def finish(self) -> list[Row]:
        """All rows, with the words of those that stand for several records."""
        for row in self._rows:
            if row.kind is Kind.OBJECTS:
                row.text = short(_objects_text(row), 60)
            elif row.times > 1:
                row.text = f"{row.text} ×{row.times}"
            elif row.kind is Kind.EVENT and len(row.objects) > 1:
                row.text = short(_events_text(row), 60)
        return self._rows


def _objects_text(row: Row) -> str:
    first = row.objects[0]
    group = first["group"]
    normal = [data["object"] for data in row.objects if data["status"] == "NORMAL"]
    parts = [f"({group}, {_span(normal)})"] if normal else []
    for data in row.objects:
        if data["status"] != "NORMAL":
            name = _STATUS.get(data["status"], data["status"])
            usual = normal and data["object"] == normal[-1] + 1
            parts.append(name if usual else f"{name} ({group}, {data['object']})")
    via = "" if first.get("via") in ("", None, "subscription") else f" by {first['via']}"
    parts += ["FIN"] if row.finished else []
    return f"{first['track']['name']}{via} {' · '.join(parts)}"


def _span(numbers: list[int]) -> str:
    if len(numbers) > 1 and all(b == a + 1 for a, b in pairwise(numbers)):
        return f"{numbers[0]}–{numbers[-1]}"
    shown = ", ".join(map(str, numbers[:6]))
    return shown if len(numbers) <= 6 else f"{shown}, … {len(numbers)} Objects"


def _events_text(row: Row) -> str:
    name = row.objects[0]["name"].partition(":")[2].replace("_", " ")
    places = [entry["data"] for entry in row.objects]
    first, last = places[0], places[-1]
    span = f"({first.get('layer')}, {first['block']}) … ({last.get('layer')}, {last['block']})"
    return f"{name} ×{len(places)} {first.get('track', '')} {span}"
