"""Steps about who may ask, by the words of `cases.words.scripted_access`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from moqt.session import Request, Session
from moqt.wire.filters import FROM_START, NEXT_OBJECT
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, TrackNamespace
from moqt.wire.tokens import Token

from kvcs_conformance.cases.words.scripted_access import KINDS
from kvcs_conformance.nodes.scripted.steps import step, tokens_of

if TYPE_CHECKING:
    from kvcs_conformance.nodes.scripted.node import ScriptedNode


def shaped(node: ScriptedNode, shape: str, number: int = 0) -> TrackNamespace:
    """The namespace or prefix that a word of `SHAPES` names."""
    fields = node.setting.namespace()
    version, scope, compat, anchor, own = fields
    scenario = node.scenario
    new = scenario.publication_id(f"another publisher {node.name} {number}")
    apart = scenario.publication_id(f"publisher of another anchor {node.name}")
    near = anchor[:-1] + bytes([anchor[-1] ^ 0x01])
    return {
        "publication": fields,
        "another": (version, scope, compat, anchor, new),
        "another-anchor": (version, scope, compat, near, apart),
        "neighbour-publication": (version, scenario.neighbour_scope_id, compat, anchor, own),
        "other-publication": (version, scenario.other_scope_id, compat, anchor, own),
        "four-fields": fields[:4],
        "six-fields": (*fields, b"more"),
        "scope": fields[:2],
        "neighbour-scope": (version, scenario.neighbour_scope_id),
        "version": fields[:1],
        "everything": (),
    }[shape]


@step("ask")
def ask(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """Requests of all the kinds, so many times."""
    kinds = KINDS if body["ask"] == "everything" else body["ask"]
    tokens = tokens_of(node, body)
    track = body.get("track", "k.raw.s0")
    for number in range(body.get("times", 1)):
        for kind in kinds:
            make = _request(node, kind, track, tokens, number)
            node.ask(
                label, kind.upper().replace("-", "_"), track if kind in _OF_TRACK else "", make
            )


_OF_TRACK = ("subscribe", "fetch", "track-status")


def _request(
    node: ScriptedNode, kind: str, track: str, tokens: tuple[Token, ...], number: int
) -> Callable[[Session], Request]:
    parameters = Parameters(authorization_tokens=tokens)
    name = FullTrackName(node.setting.namespace(), track.encode())
    everything = Parameters(authorization_tokens=tokens, location_filter=FROM_START)
    joining = Parameters(
        authorization_tokens=tokens,
        location_filter=NEXT_OBJECT,
        fill=Parameters(location_filter=FROM_START),
    )
    scope = shaped(node, "scope")
    new = shaped(node, "another", number)
    own = FullTrackName(new, track.encode())
    makers: dict[str, Callable[[Session], Request]] = {
        "subscribe": partial(Session.subscribe, track=name, parameters=joining),
        "fetch": partial(Session.fetch, track=name, parameters=everything),
        "track-status": partial(Session.track_status, track=name, parameters=parameters),
        "subscribe-namespace": partial(
            Session.subscribe_namespace, prefix=scope, parameters=parameters
        ),
        "subscribe-tracks": partial(Session.subscribe_tracks, prefix=scope, parameters=parameters),
        "publish-namespace": partial(
            Session.publish_namespace, namespace=new, parameters=parameters
        ),
        "publish": lambda session: session.publish(own, parameters).request,
    }
    return makers[kind]


@step("announce")
def announce(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """One PUBLISH_NAMESPACE for each shape."""
    parameters = Parameters(authorization_tokens=tokens_of(node, body))
    for shape in body["announce"]:
        make = partial(
            Session.publish_namespace, namespace=shaped(node, shape), parameters=parameters
        )
        node.ask(label, "PUBLISH_NAMESPACE", shape, make)


@step("list")
def list_(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """SUBSCRIBE_NAMESPACE of the shape."""
    parameters = Parameters(authorization_tokens=tokens_of(node, body))
    prefix = shaped(node, body["list"])
    make = partial(Session.subscribe_namespace, prefix=prefix, parameters=parameters)
    node.ask(label, "SUBSCRIBE_NAMESPACE", body["list"], make)


@step("withdraw")
def withdraw(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """Cancel what the step asked for."""
    for request in node.requests(body["withdraw"]):
        node.recorder.trace("kvcs:withdrawn", {"of": body["withdraw"], "request": request.id})
        request.session.cancel(request)


@step("renew")
def renew(node: ScriptedNode, label: str, body: Mapping[str, Any]) -> None:
    """REQUEST_UPDATE of what the step asked for."""
    parameters = Parameters(
        authorization_tokens=tokens_of(node, body),
        fill=Parameters(location_filter=FROM_START) if body.get("fill") else None,
        track_namespace_prefix=shaped(node, body["prefix"]) if "prefix" in body else None,
    )
    for request in node.requests(body["renew"]):
        node.update(label, body["renew"], request, parameters)
