"""Steps about ranges, fills, filters and ends, by the words of `cases.words.scripted_delivery`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from moqt.session import Request, Session
from moqt.wire.errors import StreamError
from moqt.wire.filters import (
    FROM_START,
    NEXT_OBJECT,
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import Parameters, SetupOptions
from moqt.wire.names import FullTrackName

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.nodes.origin import OriginNode
from kvcs_conformance.nodes.scripted.steps import step
from kvcs_conformance.scenario import seconds

if TYPE_CHECKING:
    from kvcs_conformance.nodes.scripted.node import ScriptedNode

_ORDERS = {"ascending": 1, "descending": 2}


@step("subscribe-range")
def subscribe_range(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """One SUBSCRIBE for each track."""
    parameters = Parameters(
        authorization_tokens=node.tokens,
        location_filter=_from(body),
        forward=body.get("forward"),
        fill=_fill(body),
        range_filters=_objects(body),
        rendezvous_timeout=body.get("rendezvous"),
    )

    def act() -> None:
        for track in body["subscribe-range"]:
            name = _name(node, track)
            send = partial(Session.subscribe, track=name, parameters=parameters)
            if "ranges" in body:
                send = partial(_subscribe_beyond_limit, track=name, parameters=parameters)
            node.ask(label, "SUBSCRIBE", track, send)

    _when(node, body, act)


@step("fetch-range")
def fetch_range(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """One FETCH for each track."""
    parameters = Parameters(
        authorization_tokens=node.tokens,
        location_filter=_range(body["from"], body["to"]),
        group_order=_ORDERS[body.get("order", "ascending")],
        fill_timeout=body.get("fill-timeout"),
        range_filters=_objects(body),
        subscriber_priority=body.get("priority"),
    )

    def act() -> None:
        for track in body["fetch-range"]:
            name = _name(node, track)
            send = partial(Session.fetch, track=name, parameters=parameters)
            node.ask(label, "FETCH", track, send)

    _when(node, body, act)


@step("fetch-many")
def fetch_many(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """A FETCH for the track of each further publication."""
    origin = node.setting.node("publisher")
    assert isinstance(origin, OriginNode)
    parameters = Parameters(
        authorization_tokens=node.tokens, location_filter=FROM_START, group_order=1
    )
    for i in range(body["fetch-many"]):
        name = FullTrackName(origin.namespace_of(f"copy-{i}"), b"k.raw.s0")
        node.ask(
            label, "FETCH", "k.raw.s0", partial(Session.fetch, track=name, parameters=parameters)
        )


@step("update")
def update(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """REQUEST_UPDATE on each subscription of the step."""
    parameters = Parameters(forward=body.get("forward"), fill=_fill(body))

    def act() -> None:
        for request in node.requests(body["update"]):
            number = request.session.update(request, parameters)
            values = {"label": label, "of": body["update"], "request": request.id, "update": number}
            node.recorder.trace("kvcs:updated", values)

    _when(node, body, act)


@step("cancel")
def cancel(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """Cancel the step's requests, or stop their request streams alone."""

    def act() -> None:
        for request in node.requests(body["cancel"]):
            node.recorder.trace("kvcs:cancel", {"of": body["cancel"], "request": request.id})
            if body.get("by", "all") == "all":
                request.session.cancel(request)
            elif body["by"] == "fin" and request.stream_id is not None:
                request.session._core.fin(request.stream_id)
            else:
                _leave_data_streams(request.session)
                _stop(request.session, request.stream_id)

    _when(node, body, act)


def _leave_data_streams(session: Session) -> None:
    """From now on the session itself stops no data stream: what the peer does with them shows."""
    core = session._core

    def stop(stream_id: int, code: int) -> None:
        if not stream_id & 2:
            type(core).stop(core, stream_id, code)

    core.stop = stop  # type: ignore[method-assign]


def _subscribe_beyond_limit(
    session: Session, *, track: FullTrackName, parameters: Parameters
) -> Request:
    """SUBSCRIBE with a Range more than the peer announced; our session would not let it pass."""
    setup = session.peer_setup
    limit = 0 if setup is None else setup.max_filter_ranges
    ranges = tuple((2 * i, 2 * i) for i in range(limit + 1))
    many = RangeFilter(RangeFilterType.OBJECT_ID, 0, None, ranges)
    session._core.peer_setup = replace(setup or SetupOptions(), max_filter_ranges=limit + 1)
    try:
        return session.subscribe(track, replace(parameters, range_filters=(many,)))
    finally:
        session._core.peer_setup = setup


@step("finish")
def finish(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """FIN on our half of the step's request streams."""

    def act() -> None:
        for request in node.requests(body["finish"]):
            node.recorder.trace("kvcs:finish", {"of": body["finish"], "request": request.id})
            stream = request.session._registry.find(request)
            if stream is not None:
                stream.finish()

    _when(node, body, act)


@step("stop-stream")
def stop_stream(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """STOP_SENDING for a data stream of the step."""

    def act() -> None:
        for request in node.requests(body["stop-stream"]):
            stream = _stream_of(node, request.id, body)
            node.recorder.trace(
                "kvcs:stop", {"of": body["stop-stream"], "request": request.id, "stream": stream}
            )
            _stop(request.session, stream)

    _when(node, body, act)


def _stop(session: Session, stream: int | None) -> None:
    """STOP_SENDING and nothing else; the session itself would end all that belongs together."""
    if stream is None:
        raise SetupFailed("there is no stream to stop")
    core = session._core
    type(core).stop(core, stream, StreamError.CANCELLED)


def _stream_of(node: ScriptedNode, request: int, body: Mapping[str, Any]) -> int | None:
    for record in node.recorder.records:
        data = record.data
        if (
            record.name in ("moqt:object_received", "moqt:object_unwanted")
            and data["request"] == request
            and data["via"] == body.get("via", data["via"])
            and data["group"] == body.get("group", data["group"])
        ):
            stream = data["stream"]
            return None if stream is None else int(stream)
    return None


def _when(node: ScriptedNode, body: Mapping[str, Any], act: Callable[[], None]) -> None:
    if "after" in body:
        node.link.later(node.name, seconds(body["after"]), act)
    else:
        act()


def _from(body: Mapping[str, Any]) -> LocationFilter:
    start, last = body.get("from"), body.get("to-group")
    if start is None:
        return NEXT_OBJECT
    if last is None:
        return LocationFilter(LocationFilterType.ABSOLUTE_START, start[0], start[1])
    kind = LocationFilterType.ABSOLUTE_START_GROUP_END
    return LocationFilter(kind, start[0], start[1], last - start[0])


def _range(start: list[int], end: list[int]) -> LocationFilter:
    kind = LocationFilterType.ABSOLUTE_RANGE
    return LocationFilter(kind, start[0], start[1], end[0] - start[0], end[1])


def _fill(body: Mapping[str, Any]) -> Parameters | None:
    fill = body.get("fill")
    if fill is None:
        return None
    start = fill.get("from", [0, 0])
    wanted = _range(start, fill["to"]) if "to" in fill else FROM_START
    if "to" not in fill and start != [0, 0]:
        wanted = LocationFilter(LocationFilterType.ABSOLUTE_START, start[0], start[1])
    return Parameters(location_filter=wanted, fill_timeout=fill.get("timeout"))


def _objects(body: Mapping[str, Any]) -> tuple[RangeFilter, ...]:
    if "objects" not in body:
        return ()
    first, last = body["objects"]
    return (RangeFilter(RangeFilterType.OBJECT_ID, 0, None, ((first, last),)),)


def _name(node: ScriptedNode, track: str) -> FullTrackName:
    return FullTrackName(node.setting.namespace(), track.encode())
