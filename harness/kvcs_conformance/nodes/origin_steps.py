"""The steps of an origin, by the words of `cases.words.origin`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from moqt.session import RequestKind, Session
from moqt.wire.errors import SessionError
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object, ObjectStatus
from moqt.wire.properties import PropertyType, encode_properties

from kvcs_conformance.scenario import seconds

if TYPE_CHECKING:
    from kvcs_conformance.nodes.origin import OriginNode
    from kvcs_conformance.nodes.scripted import ScriptedNode

StepFunction: TypeAlias = "Callable[[OriginNode, Mapping[str, Any], str], None]"

STEPS: dict[str, StepFunction] = {}
"""Each is called with the node, what is written with it, and its label."""

_TRACK = "k.raw.s0"
_KINDS = {
    "subscribe": RequestKind.SUBSCRIBE,
    "fetch": RequestKind.FETCH,
    "track-status": RequestKind.TRACK_STATUS,
}
_STATUSES = {
    "end-of-group": ObjectStatus.END_OF_GROUP,
    "end-of-track": ObjectStatus.END_OF_TRACK,
}
_DEFAULT_PRIORITY = 128
_DEFAULT_OCTETS = 160
_RUSH = 0.05


def step(word: str) -> Callable[[StepFunction], StepFunction]:
    """Enter a function into the table."""

    def enter(function: StepFunction) -> StepFunction:
        STEPS[word] = function
        return function

    return enter


@step("publish")
def publish(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Objects at these Locations, one after another."""
    every = seconds(body.get("every", "0ms"))
    for i, place in enumerate(body["publish"]):
        put = partial(_publish, node, body, Location(*place))
        if every:
            node.link.later(node.name, i * every, put)
        else:
            put()


def _publish(node: OriginNode, body: Mapping[str, Any], at: Location) -> None:
    if not node.scenario.values.get("alike", False):
        body = {**body, **body.get("wrong", {})}
    local = node.track(body.get("track", _TRACK))
    subgroup = body.get("subgroup", 0)
    status = _STATUSES.get(body.get("status", ""), ObjectStatus.NORMAL)
    octets = b""
    if status is ObjectStatus.NORMAL:
        octets = node.payload(
            local, at, body.get("octets", _DEFAULT_OCTETS), body.get("version", "first")
        )
    item = Object(
        at,
        None if subgroup == "datagram" else subgroup,
        body.get("priority", _DEFAULT_PRIORITY),
        octets,
        status,
        bytes.fromhex(body.get("properties", "").replace(" ", "")),
    )
    node.publish(
        local,
        item,
        end_of_group=body.get("largest-of-group", False),
        first=body.get("first"),
    )
    if body.get("fin", False) and item.subgroup is not None:
        local.fin(at.group, item.subgroup)


@step("fin")
def fin(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """FIN for the subgroups `[group, subgroup]`."""
    for group, subgroup in body["fin"]:
        node.track(body.get("track", _TRACK)).fin(group, subgroup)


@step("reset")
def reset(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """RESET_STREAM for the subgroups `[group, subgroup]`."""
    for group, subgroup in body["reset"]:
        node.track(body.get("track", _TRACK)).reset(group, subgroup, body.get("code", 0))


@step("finish")
def finish(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """PUBLISH_DONE on every subscription of these tracks."""
    for track in body["finish"]:
        node.track(track).finish(body.get("code", 0x2))


@step("track")
def track(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """The track anew, without Objects."""
    octets = bytes.fromhex(body.get("properties", "").replace(" ", ""))
    if "properties" not in body:
        retention = node.scenario.retention_ms
        octets = encode_properties([(PropertyType.MAX_CACHE_DURATION, retention)])
    node.remake(body["track"], octets, knows_all=body.get("knows-all", True))


@step("largest")
def largest(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Report this as Largest Object from now on; with `notify` tell the subscribers at once."""
    local = node.track(body.get("track", _TRACK))
    local.forced = Location(*body["largest"])
    if body.get("notify", False):
        for request in local.senders:
            request.session.state_notify(request, Parameters(largest_object=local.forced))


@step("hold")
def hold(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Leave requests of these kinds without an answer."""
    for word in body["hold"]:
        if word == "fetch-ok":
            node.endpoint.held_oks = []
        else:
            node.endpoint.held.setdefault(word, [])


@step("release")
def release(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Answer what was held."""
    for word in body["release"]:
        node.endpoint.release(word)
    node.recorder.trace("kvcs:released", {"what": list(body["release"])})


@step("refuse")
def refuse(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Refuse requests of these kinds from now on, the held ones too."""
    for word in body["refuse"]:
        node.endpoint.refusals[_KINDS[word]] = body["code"]


@step("announce")
def announce(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """PUBLISH_NAMESPACE of the publication, or of the first fields of its namespace."""
    fields = node.namespaces()[0][: body["announce"]]
    node.endpoint.announce(fields, node.tokens)


@step("withdraw")
def withdraw(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Take the announcement back."""
    node.endpoint.withdraw(node.namespaces()[0][: body["withdraw"]])


@step("publish-many")
def publish_many(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Further publications, announced and published whole."""
    for i in range(body["publish-many"]):
        namespace = node.namespace_of(f"copy-{i}")
        local = node.track(_TRACK, namespace=namespace)
        for group in range(body["groups"]):
            for number in range(body["objects"]):
                at = Location(group, number)
                octets = node.payload(local, at, body["octets"], "first")
                node.publish(local, Object(at, 0, _DEFAULT_PRIORITY, octets))
        node.endpoint.announce(namespace, node.tokens)


@step("rush")
def rush(node: OriginNode, body: Mapping[str, Any], label: str) -> None:
    """One publication after another; another node asks for each right after it was accepted."""
    count = body["rush"]
    asker = cast("ScriptedNode", node.setting.node(body["by"]))

    def announce_next(i: int) -> None:
        if i == count:
            return
        namespace = node.namespace_of(f"rush-{i}")
        local = node.track(_TRACK, namespace=namespace)
        at = Location(0, 0)
        octets = node.payload(local, at, _DEFAULT_OCTETS, "first")
        node.publish(local, Object(at, 0, _DEFAULT_PRIORITY, octets))

        def on_accepted() -> None:
            ask = partial(_ask_for, asker, local.name, label)
            node.link.later(asker.name, _RUSH * i / count, ask)
            announce_next(i + 1)

        node.when_accepted[namespace] = on_accepted
        node.endpoint.announce(namespace, node.tokens)

    announce_next(0)


def _ask_for(asker: ScriptedNode, track: FullTrackName, label: str) -> None:
    """SUBSCRIBE and FETCH of a track's one Object."""
    whole = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 0, 0, 0, 0)
    subscribe = Parameters(authorization_tokens=asker.tokens, location_filter=NEXT_OBJECT)
    fetch = Parameters(authorization_tokens=asker.tokens, location_filter=whole)
    asker.ask(label, "FETCH", _TRACK, partial(Session.fetch, track=track, parameters=fetch))
    send = partial(Session.subscribe, track=track, parameters=subscribe)
    asker.ask(label, "SUBSCRIBE", _TRACK, send)


@step("leave")
def leave(node: OriginNode, body: Mapping[str, Any], _: str) -> None:
    """Close every session."""
    for session in tuple(node.endpoint.sessions):
        session.close(SessionError.NO_ERROR, "the publisher leaves")
    node.recorder.trace("kvcs:left", {})
