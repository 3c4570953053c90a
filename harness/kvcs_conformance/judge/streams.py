"""What a scripted node saw of the data streams of its requests, put together for judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvcs_conformance.evidence.read import Asked, Evidence, Record, Seen, seen

Place = tuple[tuple[str, ...], str, int, int]
"""Namespace in hex, Track Name, Group ID, Object ID."""

_OBJECTS = ("moqt:object_received", "moqt:object_unwanted")


@dataclass
class Stream:
    """A data stream as it arrived: header, Objects in order, and FIN or a reset."""

    id: int
    record: Record
    header: Mapping[str, Any]
    objects: list[Seen] = field(default_factory=list)
    fin: Record | None = None
    reset: Record | None = None

    @property
    def group(self) -> int:
        return int(self.header["group"])

    @property
    def subgroup(self) -> int | None:
        """Subgroup ID, that of the first Object where the header leaves it to it."""
        own = self.header["subgroup"]
        if own is None and self.objects:
            return self.objects[0].subgroup
        return None if own is None else int(own)

    def __str__(self) -> str:
        if self.header["type"] == "FetchHeader":
            return f"stream {self.id} of request {self.header['request_id']}"
        return f"stream {self.id}, Group {self.group} Subgroup {self.subgroup}"


def data_streams(evidence: Evidence, node: str) -> list[Stream]:
    """All data streams that a node accepted, in order."""
    streams: dict[int, Stream] = {}
    for record in evidence.records(
        node, "moqt:stream_accepted", "moqt:fin_received", "moqt:reset_received", *_OBJECTS
    ):
        number = record.data.get("stream")
        if number is None:
            continue  # a datagram
        if record.name == "moqt:stream_accepted":
            if record.data["kind"] in ("subgroup", "fetch"):
                streams[number] = Stream(number, record, record.data["header"])
        elif number in streams:
            if record.name == "moqt:fin_received":
                streams[number].fin = record
            elif record.name == "moqt:reset_received":
                streams[number].reset = record
            else:
                streams[number].objects.append(seen(record))
    # FIN may be noted before the header that came in the same octets.
    for record in evidence.records(node, "moqt:fin_received"):
        stream = streams.get(record.data["stream"])
        if stream is not None and stream.fin is None:
            stream.fin = record
    return list(streams.values())


def subgroup_streams(evidence: Evidence, request: Asked) -> list[Stream]:
    """The subgroup streams under the Track Alias that SUBSCRIBE_OK gave the request."""
    alias = next(
        (
            record.data["response"].get("track_alias")
            for record in evidence.records(request.record.node, "kvcs:answered")
            if record.data["request"] == request.request
        ),
        None,
    )
    return [
        stream
        for stream in data_streams(evidence, request.record.node)
        if stream.header["type"] == "SubgroupHeader" and stream.header["track_alias"] == alias
    ]


def fetch_streams(evidence: Evidence, request: Asked) -> list[Stream]:
    """The fetch or fill streams of the request, and of the updates of it."""
    numbers = {request.request} | {
        record.data["update"]
        for record in evidence.records(request.record.node, "kvcs:updated")
        if record.data["request"] == request.request
    }
    return [
        stream
        for stream in data_streams(evidence, request.record.node)
        if stream.header["type"] == "FetchHeader" and stream.header["request_id"] in numbers
    ]


def messages_on(evidence: Evidence, request: Asked) -> Iterator[tuple[Record, Mapping[str, Any]]]:
    """The control messages that arrived on the stream of a request, in order."""
    node = request.record.node
    stream = request_stream(evidence, request)
    for record in evidence.records(node, "moqt:message_received"):
        if stream is not None and record.data["stream"] == stream:
            yield record, record.data["message"]


def full_name(evidence: Evidence, request: Asked) -> tuple[tuple[str, ...], str] | None:
    """Namespace in hex and Track Name that a request asks for."""
    for record in evidence.records(request.record.node, "moqt:message_sent"):
        message = record.data["message"]
        if message.get("request_id") == request.request and "track" in message:
            return tuple(message["track"]["namespace"]), message["track"]["name"]
    return None


def request_stream(evidence: Evidence, request: Asked) -> int | None:
    """The number of a request's own stream."""
    for record in evidence.records(request.record.node, "moqt:message_sent"):
        message = record.data["message"]
        opens = message.get("request_id") == request.request
        if opens and message["type"] != "RequestUpdate":
            return int(record.data["stream"])
    return None


def published(evidence: Evidence, node: str | None = None) -> list[Seen]:
    """What origins published, in order of time; of one of them if named."""
    found = [
        seen(record)
        for name in ([node] if node else evidence.logs)
        for record in evidence.records(name, "moqt:object_published")
    ]
    return sorted(found, key=lambda one: one.record.time)


def place(one: Seen) -> Place:
    """Where an Object belongs."""
    return (one.namespace, one.track, one.group, one.object)


def first_published(evidence: Evidence) -> dict[Place, Seen]:
    """The first version of each Object."""
    found: dict[Place, Seen] = {}
    for one in published(evidence):
        found.setdefault(place(one), one)
    return found
