"""SUBSCRIBE_NAMESPACE at a relay, alone and in a chain; limits; moving away."""

from __future__ import annotations

from dataclasses import replace

from moqt.relay import Grant, Relay, RelayConfig, ScopePolicy, Verb
from moqt.session.events import GoawayReceived
from moqt.wire.errors import RequestErrorCode, RequestRefused
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, TrackNamespace

from .world import SPACE, TRACK, Peer, World, absolute, fill, token

OTHER: TrackNamespace = (b"live", b"roof")


def announced(world: World, peer: Peer, *namespaces: TrackNamespace) -> list[object]:
    requests: list[object] = [peer.session.publish_namespace(one) for one in namespaces]
    world.settle()
    return requests


def lower(world: World, config: RelayConfig | None = None) -> Relay:
    """A second relay that asks the first one."""
    chosen = replace(config or RelayConfig(), upstreams=("moqt://relay/",))
    relay = Relay(chosen)
    world.net.listen("lower", relay, world.session)
    return relay


def test_namespaces_that_match_now_and_later() -> None:
    """R193, R196: NAMESPACE for what matches, then changes; another first field never."""
    world = World()
    publisher, peer = world.peer("publisher"), world.peer("peer")
    announced(world, publisher, SPACE, (b"other", b"room"))
    request = peer.session.subscribe_namespace(SPACE[:1])
    world.settle()
    (late,) = announced(world, publisher, OTHER)
    publisher.session.cancel(late)  # type: ignore[arg-type]
    world.settle()
    assert peer.namespaces(request) == [("+", SPACE), ("+", OTHER), ("-", OTHER)]


def test_prefix_matches_whole_fields_only() -> None:
    """Field case 12: ("live") + ("room") is neither ("liveroom") nor ("live", "roo")."""
    world = World()
    publisher, peer = world.peer("publisher"), world.peer("peer")
    announced(world, publisher, (b"liveroom",), (b"li", b"veroom"), SPACE)
    request = peer.session.subscribe_namespace((b"live",))
    short = world.peer("short").session.subscribe_namespace((b"live", b"roo"))
    world.settle()
    assert peer.namespaces(request) == [("+", SPACE)]
    assert short.session.context is None


def test_two_publishers_of_one_namespace_count_once() -> None:
    """A namespace ends when its last publisher withdraws it or is gone."""
    world = World()
    one, two, peer = world.peer("one"), world.peer("two"), world.peer("peer")
    request = peer.session.subscribe_namespace(())
    announced(world, one, SPACE)
    announced(world, two, SPACE)
    one.session.close()
    world.settle()
    assert peer.namespaces(request) == [("+", SPACE)]
    two.session.close()
    world.settle()
    assert peer.namespaces(request) == [("+", SPACE), ("-", SPACE)]


def test_own_namespaces_are_listed() -> None:
    """R193: what the asker itself announced is listed as well."""
    world = World()
    peer = world.peer("peer")
    announced(world, peer, SPACE)
    request = peer.session.subscribe_namespace(SPACE)
    world.settle()
    assert peer.namespaces(request) == [("+", SPACE)]


def test_too_many_namespaces() -> None:
    """NAMESPACE_TOO_LARGE for a prefix that matches more than the limit."""
    world = World(RelayConfig(max_listed_namespaces=1))
    peer = world.peer("peer")
    announced(world, peer, SPACE, OTHER)
    wide = peer.session.subscribe_namespace(SPACE[:1])
    world.settle()
    error = peer.error(wide)
    assert error is not None
    assert error.code == RequestErrorCode.NAMESPACE_TOO_LARGE
    narrow = peer.session.subscribe_namespace(SPACE)
    world.settle()
    assert peer.ok(narrow) is not None


def test_request_rate() -> None:
    """R230: beyond the burst requests get EXCESSIVE_LOAD with a Retry Interval, for a while."""
    world = World(RelayConfig(request_rate=10.0, request_burst=3))
    peer = world.peer("peer")
    requests = [peer.session.track_status(TRACK) for _ in range(5)]
    world.settle()
    errors = [error for one in requests if (error := peer.error(one))]
    assert [error.code for error in errors] == [RequestErrorCode.DOES_NOT_EXIST] * 3 + [
        RequestErrorCode.EXCESSIVE_LOAD
    ] * 2
    assert errors[-1].retry_interval == 1001
    world.settle(1.0)
    later = peer.session.track_status(TRACK)
    world.settle()
    error = peer.error(later)
    assert error is not None
    assert error.code == RequestErrorCode.DOES_NOT_EXIST


def test_open_requests_and_namespaces_are_limited() -> None:
    """R230: so many open requests and announcements per session; ended ones make room."""
    world = World(RelayConfig(max_requests=3, max_namespaces=2))
    peer = world.peer("peer")
    requests = announced(world, peer, SPACE, OTHER, (b"third",))
    codes = [error.code if (error := peer.error(one)) else None for one in requests]  # type: ignore[arg-type]
    assert codes == [None, None, RequestErrorCode.EXCESSIVE_LOAD]
    first = peer.session.subscribe_namespace((b"x",))
    second = peer.session.subscribe_tracks((b"x",))
    world.settle()
    assert peer.ok(first) is not None
    error = peer.error(second)
    assert error is not None
    assert error.code == RequestErrorCode.EXCESSIVE_LOAD
    peer.session.cancel(first)
    world.settle()
    third = peer.session.subscribe_tracks((b"x",))
    world.settle()
    assert peer.ok(third) is not None


def test_ended_requests_are_forgotten() -> None:
    """R230: however many requests a session made, only open ones count and are remembered."""
    world = World()
    fill(world.origin().add_track(TRACK), range(1))
    peer = world.peer("peer")
    for _ in range(200):
        request = world.fetch(peer, (0, 0), (0, 0))
        assert peer.objects(request) == [(0, 0)]
    assert max(len(limits._open) for limits in world.relay.sessions.values()) <= 64


def test_chain_lists_namespaces_of_the_upper_relay() -> None:
    """SUBSCRIBE_NAMESPACE goes upstream once for a prefix; NAMESPACEs and their ends come down."""
    world = World()
    lower(world)
    publisher = world.peer("publisher")
    (first,) = announced(world, publisher, SPACE)
    one = world.peer("one", url="moqt://lower/")
    two = world.peer("two", url="moqt://lower/")
    requests = [
        one.session.subscribe_namespace(SPACE),
        two.session.subscribe_namespace(SPACE[:1]),
    ]
    world.settle(1.5)
    announced(world, publisher, OTHER)
    publisher.session.cancel(first)  # type: ignore[arg-type]
    world.settle()
    assert one.namespaces(requests[0]) == [("+", SPACE), ("-", SPACE)]
    assert two.namespaces(requests[1]) == [("+", SPACE), ("+", OTHER), ("-", SPACE)]


def test_wider_prefix_takes_over_without_a_gap() -> None:
    """A shorter prefix replaces the longer one upstream; what was listed stays listed."""
    world = World()
    lower(world)
    publisher = world.peer("publisher")
    (announcement,) = announced(world, publisher, SPACE)
    one = world.peer("one", url="moqt://lower/")
    narrow = one.session.subscribe_namespace(SPACE)
    world.settle()
    two = world.peer("two", url="moqt://lower/")
    wide = two.session.subscribe_namespace(())
    world.settle(3.0)
    assert one.namespaces(narrow) == [("+", SPACE)]
    assert two.namespaces(wide) == [("+", SPACE)]
    two.session.cancel(wide)
    world.settle(3.0)
    assert one.namespaces(narrow) == [("+", SPACE)]
    publisher.session.cancel(announcement)  # type: ignore[arg-type]
    world.settle()
    assert one.namespaces(narrow) == [("+", SPACE), ("-", SPACE)]


def test_chain_carries_subscriptions_and_fetches() -> None:
    """A default route upstream: subscription, fill and FETCH work over two relays, then cached."""
    world = World()
    relay = lower(world)
    origin = world.origin()
    track = origin.add_track(TRACK)
    fill(track, range(2))
    peer = world.peer("peer", url="moqt://lower/")
    request = world.subscribe(peer, fill=Parameters(location_filter=absolute((0, 0))))
    fill(track, range(2, 4))
    world.settle()
    expected = [(group, number) for group in range(4) for number in range(3)]
    assert sorted(peer.objects(request)) == expected
    assert peer.objects(world.fetch(peer, (0, 0), (3, 2))) == expected
    assert relay.budget.used == world.relay.budget.used > 0


def test_relay_tokens_never_widen_a_subscriber() -> None:
    """The lower relay asks upstream with its own token; its peers need rights of their own."""
    policy = ScopePolicy(
        {(0, b"relay"): [Grant(frozenset(Verb), ())], (0, b"me"): [Grant(frozenset(Verb), SPACE)]}
    )
    world = World(RelayConfig(authorise=policy))
    lower(world, RelayConfig(authorise=policy, upstream_tokens=(token(b"relay"),)))
    peer = world.peer("peer", url="moqt://lower/")
    me = Parameters(authorization_tokens=(token(b"me"),))
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(SPACE, me)
    world.settle()
    stranger = peer.session.subscribe_namespace(SPACE)
    world.settle()
    friend = peer.session.subscribe_namespace(SPACE, me)
    world.settle()
    error = peer.error(stranger)
    assert error is not None
    assert error.code == RequestErrorCode.UNAUTHORIZED
    assert peer.namespaces(friend) == [("+", SPACE)]


def test_lost_upper_relay_is_reached_again() -> None:
    """When the session upstream is lost its namespaces end; they come back with it."""
    world = World()
    lower(world)
    announced(world, world.peer("publisher"), SPACE)
    peer = world.peer("peer", url="moqt://lower/")
    request = peer.session.subscribe_namespace(SPACE)
    world.settle()
    for session in tuple(world.relay.sessions):
        if any(one is session for one in _sessions_from_below(world)):
            session.close()
    world.settle(3.0)
    assert peer.namespaces(request) == [("+", SPACE), ("-", SPACE), ("+", SPACE)]


def test_moving_on_goaway() -> None:
    """GOAWAY of the upper relay: subscribe on a new session first, then leave the old one."""
    world = World()
    spare = Relay()
    world.net.listen("spare", spare, world.session)
    lower(world)
    origin = world.origin()
    origin.connect("moqt://spare/", world.session)
    world.settle()
    track = origin.add_track(TRACK)
    peer = world.peer("peer", url="moqt://lower/")
    request = world.subscribe(peer)
    fill(track, range(1))
    world.settle()
    (session,) = _sessions_from_below(world)
    session.goaway(b"moqt://spare/", 0)
    world.settle(1.0)
    assert session.closed
    fill(track, range(1, 2))
    world.settle()
    expected = [(group, number) for group in range(2) for number in range(3)]
    assert peer.objects(request) == expected
    assert peer.done(request) == []


def test_drain_tells_every_peer() -> None:
    """A relay that leaves says GOAWAY on every session."""
    world = World()
    peers = [world.peer("one"), world.peer("two")]
    world.relay.drain(b"moqt://elsewhere/")
    world.settle()
    uris = [event.message.uri for peer in peers for event in peer.of(GoawayReceived)]
    assert uris == [b"moqt://elsewhere/"] * 2


def test_refused_discovery_upstream_leaves_local_discovery_alone() -> None:
    """What the upper relay refuses ends nothing here: local namespaces are still listed."""
    world = World()

    def refuse(request: object) -> None:
        raise RequestRefused("no", RequestErrorCode.UNAUTHORIZED)

    world.relay.config = replace(world.relay.config, authorise=refuse)
    lower(world)
    peer = world.peer("peer", url="moqt://lower/")
    announced(world, peer, SPACE)
    request = peer.session.subscribe_namespace(SPACE)
    world.settle(3.0)
    assert peer.namespaces(request) == [("+", SPACE)]


def test_tracks_of_unknown_namespace() -> None:
    """Without any publisher SUBSCRIBE and FETCH are DOES_NOT_EXIST at once; nothing is kept."""
    world = World()
    peer = world.peer("peer")
    name = FullTrackName((b"nowhere",), b"x")
    requests = [peer.session.subscribe(name), peer.session.fetch(name)]
    world.settle()
    codes = [error.code for one in requests if (error := peer.error(one))]
    assert codes == [RequestErrorCode.DOES_NOT_EXIST] * 2
    assert world.relay.tracks == {}


def _sessions_from_below(world: World) -> list:  # type: ignore[type-arg]
    """The upper relay's sessions that the lower relay opened."""
    ends = world.net._nodes["relay"].ends
    return [end.session for end in ends if end.peer_name == "lower"]
