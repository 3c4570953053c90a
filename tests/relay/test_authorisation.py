"""Who may do what at a relay, cache or not."""

from __future__ import annotations

import pytest
from moqt.relay import BOTH_VERBS, Grant, RelayConfig, ScopePolicy, Verb
from moqt.session import SessionConfig
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.messages import Parameters, SetupOptions
from moqt.wire.names import FullTrackName, TrackNamespace

from .world import Peer, World, fill, token

A = bytes(range(16))
B = bytes(range(15)) + b"\xff"
SCOPE_A: TrackNamespace = (b"kvcs-1", A)
SCOPE_B: TrackNamespace = (b"kvcs-1", B)
NAME_A = FullTrackName((*SCOPE_A, b"rest"), b"track")
NAME_B = FullTrackName((*SCOPE_B, b"rest"), b"track")

POLICY = ScopePolicy(
    {
        (0, b"a"): [Grant(BOTH_VERBS, SCOPE_A)],
        (0, b"b"): [Grant(BOTH_VERBS, SCOPE_B)],
        (0, b"a-reads"): [Grant(frozenset({Verb.SUBSCRIBE}), SCOPE_A)],
    },
    everyone=[Grant(frozenset({Verb.SUBSCRIBE}), (b"public",))],
)
AS_A = Parameters(authorization_tokens=(token(b"a"),))
AS_B = Parameters(authorization_tokens=(token(b"b"),))


def warm() -> tuple[World, Peer]:
    """A relay whose cache holds a Track of scope B, and a peer."""
    from moqt.origin import Origin

    world = World(RelayConfig(authorise=POLICY))
    origin = Origin()
    world.net.client("origin", origin)
    origin.connect("moqt://relay/", world.session)
    origin.announce(SCOPE_B, (token(b"b"),))
    fill(origin.add_track(NAME_B), range(2))
    world.settle()
    reader = world.peer("reader")
    request = reader.session.fetch(NAME_B, AS_B)
    world.settle()
    assert len(reader.objects(request)) == 6
    return world, world.peer("peer")


@pytest.mark.parametrize("parameters", [AS_A, Parameters()])
def test_everything_of_another_scope_is_refused_from_cache_too(parameters: Parameters) -> None:
    """Field case 13, R198, R208, R213, R229, R231, R232: nothing of B with a token of A or none."""
    world, peer = warm()
    session = peer.session
    requests = [
        session.subscribe(NAME_B, parameters),
        session.fetch(NAME_B, parameters),
        session.track_status(NAME_B, parameters),
        session.subscribe_namespace((b"kvcs-1",), parameters),
        session.subscribe_tracks(SCOPE_B, parameters),
        session.publish_namespace(SCOPE_B, parameters),
        session.publish(NAME_B, parameters).request,
    ]
    world.settle()
    codes = [error.code if (error := peer.error(request)) else None for request in requests]
    assert codes == [RequestErrorCode.UNAUTHORIZED] * 7


def test_token_that_nobody_was_given_is_malformed() -> None:
    """R104: a token that is not valid is refused as such, one of another scope as unauthorised."""
    world, peer = warm()
    unknown = Parameters(authorization_tokens=(token(b"x"),))
    requests = [peer.session.track_status(NAME_B, one) for one in (unknown, AS_A)]
    world.settle()
    codes = [error.code if (error := peer.error(request)) else None for request in requests]
    assert codes == [RequestErrorCode.MALFORMED_AUTH_TOKEN, RequestErrorCode.UNAUTHORIZED]


def test_subscribers_of_one_track_are_authorised_one_by_one() -> None:
    """R229: a second subscriber of an Established Track needs a right of its own."""
    world, peer = warm()
    allowed = peer.session.subscribe(NAME_B, AS_B)
    world.settle()
    refused = peer.session.subscribe(NAME_B, AS_A)
    world.settle()
    assert peer.ok(allowed) is not None
    assert peer.error(refused) is not None


@pytest.mark.parametrize(
    "prefix",
    [
        (),
        (b"kvcs-1",),
        (b"kvcs-1", A[:15]),
        (b"kvcs-1" + A[:1], A[1:]),
        (b"kvcs-1", A[:8], A[8:]),
        SCOPE_B,
    ],
)
def test_prefixes_are_compared_field_by_field(prefix: TrackNamespace) -> None:
    """Field case 12: a short or moved boundary gets nothing."""
    world, peer = warm()
    request = peer.session.subscribe_namespace(prefix, AS_A)
    world.settle()
    error = peer.error(request)
    assert error is not None
    assert error.code == RequestErrorCode.UNAUTHORIZED
    exact = peer.session.subscribe_namespace(SCOPE_A, AS_A)
    world.settle()
    assert peer.ok(exact) is not None
    assert peer.namespaces(exact) == []


def test_verbs_are_separate() -> None:
    """R214: a right to read is none to publish, and one Track's right is not another's."""
    world, peer = warm()
    reads = Parameters(authorization_tokens=(token(b"a-reads"),))
    status = peer.session.subscribe_namespace(SCOPE_A, reads)
    publish = peer.session.publish(NAME_A, reads).request
    announce = peer.session.publish_namespace(SCOPE_A, reads)
    world.settle()
    assert peer.ok(status) is not None
    assert [peer.error(one) is not None for one in (publish, announce)] == [True, True]


def test_grants_without_token_and_tokens_in_setup() -> None:
    """A public prefix needs no token; a token in SETUP counts for every request."""
    world, peer = warm()
    public = peer.session.subscribe_namespace((b"public", b"x"))
    config = SessionConfig(setup=SetupOptions(authorization_tokens=(token(b"b"),)))
    holder = world.peer("holder", config=config)
    request = holder.session.fetch(NAME_B)
    world.settle()
    assert peer.ok(public) is not None
    assert len(holder.objects(request)) == 6


def test_update_needs_a_right_too() -> None:
    """An update that changes tokens or prefix is authorised anew; refused, it ends the request."""
    world, peer = warm()
    subscription = peer.session.subscribe(NAME_B, AS_B)
    discovery = peer.session.subscribe_namespace((*SCOPE_B, b"rest"), AS_B)
    world.settle()
    assert peer.ok(subscription) is not None
    assert peer.ok(discovery) is not None
    peer.session.update(subscription, AS_A)
    peer.session.update(discovery, Parameters(track_namespace_prefix=(b"kvcs-1",)))
    world.settle()
    assert peer.done(subscription) == [PublishDoneCode.UPDATE_FAILED]
    track = world.relay.tracks[NAME_B]
    assert track.subscribers.senders == {}
    renewed = peer.session.subscribe_namespace((*SCOPE_B, b"rest"), AS_B)
    world.settle()
    assert peer.ok(renewed) is not None
