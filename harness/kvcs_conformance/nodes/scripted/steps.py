"""The steps of a scripted node, by the words of `cases.words.scripted`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from kvcs.authorization import bearer
from moqt.session import Session
from moqt.wire.filters import FROM_START, NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName
from moqt.wire.tokens import Token

from kvcs_conformance.errors import SetupFailed
from kvcs_conformance.nodes.node import TOKENS

if TYPE_CHECKING:
    from kvcs_conformance.nodes.scripted.node import ScriptedNode

StepFunction: TypeAlias = "Callable[[ScriptedNode, str, Mapping[str, Any]], None]"

STEPS: dict[str, StepFunction] = {}
"""Each is called with the node, the label of the step, and what is written with it."""

_FILLS = {
    "start": Parameters(location_filter=FROM_START),
    "current": Parameters(location_filter=LocationFilter(LocationFilterType.RELATIVE_START, 1)),
}
_ASCENDING = 1


def step(word: str) -> Callable[[StepFunction], StepFunction]:
    """Enter a function into the table."""

    def enter(function: StepFunction) -> StepFunction:
        STEPS[word] = function
        return function

    return enter


def tokens_of(node: ScriptedNode, body: Mapping[str, Any]) -> tuple[Token, ...]:
    """The tokens that go with the requests of a step: its own, or those of the node."""
    if "token" not in body:
        return node.tokens
    value = TOKENS[body["token"]]
    return (bearer(value),) if value else ()


@step("subscribe")
def subscribe(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """One SUBSCRIBE for each track, with Next Object and perhaps a fill."""
    parameters = Parameters(
        authorization_tokens=tokens_of(node, body),
        location_filter=NEXT_OBJECT,
        fill=_FILLS.get(body["from"]),
    )
    for track in body["subscribe"]:
        node.ask(
            label,
            "SUBSCRIBE",
            track,
            partial(Session.subscribe, track=_name(node, track, body), parameters=parameters),
        )


@step("fetch")
def fetch(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """One FETCH for each track, of whole Groups, ascending."""
    first, last = body["layers"]
    wanted = LocationFilter(LocationFilterType.ABSOLUTE_START_GROUP_END, first, 0, last - first)
    parameters = Parameters(
        authorization_tokens=tokens_of(node, body),
        location_filter=wanted,
        group_order=_ASCENDING,
        subscriber_priority=body.get("priority"),
    )
    for track in body["fetch"]:
        node.ask(
            label,
            "FETCH",
            track,
            partial(Session.fetch, track=_name(node, track, body), parameters=parameters),
        )


@step("track-status")
def track_status(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """One TRACK_STATUS for each track."""
    parameters = Parameters(authorization_tokens=tokens_of(node, body))
    for track in body["track-status"]:
        node.ask(
            label,
            "TRACK_STATUS",
            track,
            partial(Session.track_status, track=_name(node, track), parameters=parameters),
        )


@step("subscribe-namespace")
def subscribe_namespace(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """SUBSCRIBE_NAMESPACE of a prefix of the publication's namespace, or of what looks like one."""
    parameters = Parameters(authorization_tokens=tokens_of(node, body))
    prefix = _prefix(node.setting.namespace(), body["subscribe-namespace"])
    node.ask(
        label,
        "SUBSCRIBE_NAMESPACE",
        "",
        lambda session: session.subscribe_namespace(prefix, parameters),
    )


@step("publish-namespace")
def publish_namespace(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """PUBLISH_NAMESPACE of a new publication of the same prefix and scope."""
    parameters = Parameters(authorization_tokens=tokens_of(node, body))
    another = node.scenario.publication_id("another publisher")
    namespace = (*node.setting.namespace()[:4], another)
    node.ask(
        label,
        "PUBLISH_NAMESPACE",
        "",
        lambda session: session.publish_namespace(namespace, parameters),
    )


AS_PUBLISHER: tuple[Mapping[str, Any], ...] = (
    {"request": "06 [00 $mine 00]"},
    {"answered": 1},
)
"""What a hostile publisher does before its own lines: it announces a namespace."""


@step("attempt")
def attempt(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """Write the octets of each attempt, perhaps as the publisher of a Track that is asked for."""
    asked = body.get("when-asked-to")
    before = [*AS_PUBLISHER, {"downstream": asked}, {"asked": 1}] if asked else []
    node.attempt(
        label,
        [{**entry, "sends": [*before, *entry["sends"]]} for entry in body["attempt"]],
    )


def _name(node: ScriptedNode, track: str, body: Mapping[str, Any] | None = None) -> FullTrackName:
    namespace = node.setting.namespace()
    if body is not None and "publication" in body:
        known = list(dict.fromkeys(node.announced))
        if body["publication"] >= len(known):
            raise SetupFailed(f"{len(known)} publications were announced to {node.name}")
        namespace = known[body["publication"]]
    return FullTrackName(namespace, track.encode())


def _prefix(namespace: Sequence[bytes], word: int | str) -> tuple[bytes, ...]:
    """The prefix that a `subscribe-namespace` step asks for."""
    version, scope = namespace[:2]
    if isinstance(word, int):
        return tuple(namespace[:word])
    if word == "scope-cut":
        return (version, scope[:-1])
    if word == "scope-other":
        return (version, scope[:-1] + bytes([scope[-1] ^ 0x01]))
    return (version + scope[:1], scope[1:])
