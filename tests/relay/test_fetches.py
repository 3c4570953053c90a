"""FETCH, fills and TRACK_STATUS through a relay: cache, holes, and what stays unknown."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Link
from moqt.relay import RelayConfig
from moqt.session import FetchState, Request, RequestKind, SubscriptionSender
from moqt.session.events import ObjectReceived, RequestCancelled, StreamEnded, Via
from moqt.wire.errors import RequestErrorCode, RequestRefused, StreamError
from moqt.wire.filters import (
    LocationFilter,
    LocationFilterType,
    RangeFilter,
    RangeFilterType,
)
from moqt.wire.messages import FetchOk, Parameters, RequestOk
from moqt.wire.names import Location
from moqt.wire.objects import Object, RangeKind
from moqt.wire.properties import encode_properties

from .world import LAST, SPACE, TRACK, OpenOrigin, Peer, World, absolute, fill, make


def locations(groups: range, objects: int = 3) -> list[tuple[int, int]]:
    return [(group, number) for group in groups for number in range(objects)]


def served(groups: int = 4, config: RelayConfig | None = None) -> tuple[World, OpenOrigin, Peer]:
    """An origin with `groups` Groups of three Objects, and a peer."""
    world = World(config)
    origin = world.origin()
    fill(origin.add_track(TRACK, properties=encode_properties([(0x0E, 99)])), range(groups))
    return world, origin, world.peer("peer")


def gone(world: World, origin: OpenOrigin) -> None:
    """The origin's session ends."""
    for session in tuple(origin.sessions):
        session.close()
    world.settle()


def test_whole_group_cold_then_warm() -> None:
    """Field case 3, R217, R205: three identical Objects both times, one upstream FETCH."""
    world, origin, peer = served()
    cold = world.fetch(peer, (0, 0), (0, LAST))
    warm = world.fetch(peer, (0, 0), (0, LAST))
    expected = list(next(iter(origin.tracks.values())).store)[:3]
    for request in (cold, warm):
        assert [event.object for event in peer.of(ObjectReceived, request)] == expected
        answer = peer.ok(request)
        assert isinstance(answer, FetchOk)
        assert answer.end == Location(0, 2)
        assert answer.track_properties == encode_properties([(0x0E, 99)])
        assert peer.ends(request) == [None]
    assert origin.kinds() == ["FETCH"]


def test_end_is_not_clamped_to_the_cache() -> None:
    """Field case 4: after a FETCH of Groups 0 and 1 another one of 0 to 3 gets four Groups."""
    world, _, peer = served()
    world.fetch(peer, (0, 0), (1, LAST))
    request = world.fetch(peer, (0, 0), (3, LAST))
    assert peer.objects(request) == locations(range(4))
    answer = peer.ok(request)
    assert isinstance(answer, FetchOk)
    assert answer.end == Location(3, 2)


def test_open_ended_fetch() -> None:
    """Without an end the FETCH reaches Largest, cold and then warm."""
    world, _, peer = served()
    for request in (world.fetch(peer), world.fetch(peer)):
        assert peer.objects(request) == locations(range(4))
        answer = peer.ok(request)
        assert isinstance(answer, FetchOk)
        assert answer.end == Location(3, 2)


def test_zero_length_object() -> None:
    """Field case 5: an Object without payload is forwarded and cached like any other."""
    world = World()
    track = world.origin().add_track(TRACK)
    track.publish(make(0, 0, b""))
    track.publish(make(0, 1, b"x"))
    peer = world.peer("peer")
    for request in (world.fetch(peer, (0, 0), (0, 1)), world.fetch(peer, (0, 0), (0, 1))):
        assert peer.payloads(request) == {(0, 0): b"", (0, 1): b"x"}


def test_group_that_never_existed() -> None:
    """Field case 7: Group 1 never existed; 2 and 3 are delivered, the gap is absence."""
    world = World()
    track = world.origin().add_track(TRACK)
    fill(track, range(1))
    fill(track, range(2, 4))
    peer = world.peer("peer")
    for request in (world.fetch(peer, (0, 0), (3, 2)), world.fetch(peer, (0, 0), (3, 2))):
        assert peer.objects(request) == [(g, o) for g in (0, 2, 3) for o in range(3)]
        assert peer.ranges(request) == []


def test_fetch_right_after_the_announcement() -> None:
    """Field case 11: FETCH and SUBSCRIBE straight after PUBLISH_NAMESPACE_OK find the publisher."""
    world = World()
    peer = world.peer("peer")
    origin = world.origin(announce=False)
    fill(origin.add_track(TRACK), range(1))
    requests: list[Request] = []

    def announced(session: object, namespace: object) -> None:
        requests.append(peer.session.fetch(TRACK))
        requests.append(peer.session.subscribe(TRACK))

    origin.on_announced = announced  # type: ignore[method-assign]
    origin.announce(SPACE)
    world.settle()
    assert [peer.error(request) for request in requests] == [None, None]
    assert peer.objects(requests[0]) == locations(range(1))


def test_fetch_stops_at_the_hole_until_it_is_resolved() -> None:
    """R228, R210, R140: FETCH_OK and everything past the hole wait for the publisher."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(SPACE)
    peer = world.peer("peer")
    request = world.fetch(peer, (0, 0), (0, 3))
    (upstream,) = publisher.requests()
    assert upstream.parameters.location_filter == absolute((0, 0), (0, 3))
    items: list[Object | FetchState] = [make(0, 0), make(0, 1), FetchState.WAIT]

    class Source:
        def next_item(self) -> Object | FetchState:
            return items[0] if items[0] is FetchState.WAIT else items.pop(0)

    sender = upstream.session.open_fetch(upstream, Source())
    world.settle()
    assert peer.ok(request) is None
    upstream.session.accept_fetch(upstream, FetchOk(False, Location(0, 3)))
    world.settle()
    assert peer.ok(request) is not None
    assert peer.objects(request) == [(0, 0), (0, 1)]
    assert peer.ends(request) == []
    items[:] = [make(0, 3), FetchState.END, FetchState.WAIT]
    sender.wake()
    world.settle()
    assert peer.objects(request) == [(0, 0), (0, 1), (0, 3)]
    assert peer.ends(request) == [None]


def test_unknown_is_marked_when_no_publisher_is_left() -> None:
    """R144: half a cache and no upstream: the rest is 0x10C, never absence."""
    world, origin, peer = served()
    world.fetch(peer, (1, 0), (1, 2))
    world.fetch(peer, (3, 0), (3, 2))
    gone(world, origin)
    request = world.fetch(peer, (0, 0), (3, 2))
    assert peer.objects(request) == locations(range(1, 2)) + locations(range(3, 4))
    assert peer.ranges(request) == [
        (RangeKind.UNKNOWN, Location(0, 0), Location(0, LAST)),
        (RangeKind.UNKNOWN, Location(1, 3), Location(2, LAST)),
    ]
    assert peer.ends(request) == [None]


def test_cache_serves_without_its_publisher() -> None:
    """What is cached whole is served although nobody publishes it any more."""
    world, origin, peer = served()
    world.fetch(peer, (0, 0), (1, 2))
    gone(world, origin)
    request = world.fetch(peer, (0, 0), (1, 2))
    assert peer.objects(request) == locations(range(2))
    error = peer.error(world.fetch(peer, (0, 0), track=TRACK._replace(name=b"never")))
    assert error is not None
    assert error.code == RequestErrorCode.DOES_NOT_EXIST


def test_max_cache_duration() -> None:
    """R170: a hit at 4:59, a miss at 5:01 with the publisher gone; a hit renews nothing."""
    world = World()
    origin = world.origin()
    track = origin.add_track(TRACK, properties=encode_properties([(0x04, 300_000)]))
    fill(track, range(1))
    peer = world.peer("peer")
    world.fetch(peer, (0, 0), (0, 2))
    start = world.net.now
    gone(world, origin)
    for at in (240.0, 299.0):
        world.net.run(start + at)
        assert len(peer.objects(world.fetch(peer, (0, 0), (0, 2)))) == 3
    world.net.run(start + 301.0)
    request = world.fetch(peer, (0, 0), (0, 2))
    assert peer.objects(request) == []
    assert peer.ranges(request) == [(RangeKind.UNKNOWN, Location(0, 0), Location(0, 2))]


def test_expired_objects_come_from_upstream_again() -> None:
    """An expired Object is unknown: with a publisher it is fetched anew."""
    world = World()
    origin = world.origin()
    fill(origin.add_track(TRACK, properties=encode_properties([(0x04, 1000)])), range(1))
    peer = world.peer("peer")
    world.fetch(peer, (0, 0), (0, 2))
    world.settle(2.0)
    assert len(peer.objects(world.fetch(peer, (0, 0), (0, 2)))) == 3
    assert origin.kinds() == ["FETCH", "FETCH"]


@pytest.mark.parametrize(("start", "end"), [((9, 0), None), ((4, 0), (4, 9)), ((2, 5), (2, 4))])
def test_invalid_ranges(start: tuple[int, int], end: tuple[int, int] | None) -> None:
    """R142: a start behind Largest, or an end before the start, is INVALID_RANGE."""
    world, _, peer = served()
    world.fetch(peer, (0, 0), (0, 2))
    error = peer.error(world.fetch(peer, start, end))
    assert error is not None
    assert error.code == RequestErrorCode.INVALID_RANGE
    world.subscribe(peer)
    error = peer.error(world.fetch(peer, start, end))
    assert error is not None
    assert error.code == RequestErrorCode.INVALID_RANGE


def test_nothing_published() -> None:
    """R141: nothing published is INVALID_RANGE, learned upstream and known when subscribed."""
    world = World()
    world.origin().add_track(TRACK)
    peer = world.peer("peer")
    codes = [peer.error(world.fetch(peer))]
    world.subscribe(peer)
    codes.append(peer.error(world.fetch(peer)))
    assert [error.code for error in codes if error] == [RequestErrorCode.INVALID_RANGE] * 2


def test_descending_fetch_cold_and_warm() -> None:
    """R143: Groups descend; the upstream FETCH that fills the cache ascends."""
    world, origin, peer = served()
    expected = [(group, number) for group in (3, 2, 1, 0) for number in range(3)]
    assert peer.objects(world.fetch(peer, (0, 0), (3, 2), group_order=2)) == expected
    assert peer.objects(world.fetch(peer, (0, 0), (3, 2), group_order=2)) == expected
    assert [request.parameters.group_order for request in origin.asked] == [None]


def test_relative_fetch_without_subscription() -> None:
    """A relative start is resolved with the publisher's Largest, asked by TRACK_STATUS."""
    world, origin, peer = served()
    request = peer.session.fetch(
        TRACK,
        Parameters(location_filter=LocationFilter(LocationFilterType.RELATIVE_START, 2)),
    )
    world.settle()
    assert peer.objects(request) == locations(range(2, 4))
    assert origin.kinds() == ["TRACK_STATUS", "FETCH"]


def test_range_filters_are_applied_to_what_is_fetched_whole() -> None:
    """R131: the relay fetches unfiltered and filters what it sends."""
    world, _, peer = served()
    only_first = RangeFilter(RangeFilterType.OBJECT_ID, set_id=0, ranges=((0, 0),))
    request = world.fetch(peer, range_filters=(only_first,))
    assert peer.objects(request) == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert peer.objects(world.fetch(peer)) == locations(range(4))


def test_fill_timeout() -> None:
    """R081: FILL_TIMEOUT is the whole wait: then 0x20C and on; 0 does not wait at all."""
    world = World()
    origin = world.origin("one")
    fill(origin.add_track(TRACK), range(2))
    peer = world.peer("peer")
    world.fetch(peer, (1, 0), (1, 2))
    gone(world, origin)
    silent = world.peer("silent")
    silent.session.publish_namespace(SPACE)
    world.settle()
    waiting = world.fetch(peer, (0, 1), (1, 2), fill_timeout=1000)
    at_once = world.fetch(peer, (0, 1), (1, 2), fill_timeout=0)
    timed_out = [(RangeKind.TIMED_OUT, Location(0, 1), Location(0, LAST))]
    assert peer.objects(waiting) == []
    assert peer.ranges(at_once) == timed_out
    world.settle(1.0)
    assert peer.ranges(waiting) == timed_out
    assert peer.objects(waiting) == peer.objects(at_once) == locations(range(1, 2))
    assert len(silent.requests()) == 1
    cold = world.fetch(peer, track=TRACK._replace(name=b"cold"), fill_timeout=500)
    world.settle(0.5)
    error = peer.error(cold)
    assert error is not None
    assert error.code == RequestErrorCode.TIMEOUT


def test_silent_publisher_is_given_up() -> None:
    """Field case 6: a publisher that never answers a FETCH ends in a bounded time."""
    world = World(RelayConfig(upstream_timeout=1.0))
    world.peer("silent").session.publish_namespace(SPACE)
    peer = world.peer("peer")
    request = world.fetch(peer)
    world.settle(2.0)
    error = peer.error(request)
    assert error is not None
    assert error.code == RequestErrorCode.TIMEOUT


def test_next_publisher_is_asked() -> None:
    """A publisher that refuses a FETCH is no verdict: the next one is asked."""
    world = World()
    origins = [world.origin(name) for name in ("one", "two")]
    origins[0].refusal = RequestRefused("busy", RequestErrorCode.EXCESSIVE_LOAD, 5)
    fill(origins[1].add_track(TRACK), range(2))
    peer = world.peer("peer")
    request = world.fetch(peer, (0, 0), (1, 2))
    assert peer.objects(request) == locations(range(2))
    origins[1].refusal = origins[0].refusal
    error = peer.error(world.fetch(peer, track=TRACK._replace(name=b"other")))
    assert error is not None
    assert (error.code, error.retry_interval) == (RequestErrorCode.EXCESSIVE_LOAD, 5)


def test_two_fetches_share_one_upstream_fetch() -> None:
    """Two readers of one hole wait for the same upstream FETCH."""
    world, origin, peer = served()
    world.subscribe(peer)
    other = world.peer("other")
    requests = [peer.session.fetch(TRACK), other.session.fetch(TRACK)]
    world.settle()
    assert peer.objects(requests[0]) == other.objects(requests[1]) == locations(range(4))
    assert origin.kinds().count("FETCH") == 1


def test_cancelled_fetch_cancels_upstream() -> None:
    """R147: when the only reader leaves, the upstream FETCH is cancelled as well."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish_namespace(SPACE)
    peer = world.peer("peer")
    request = world.fetch(peer)
    peer.session.cancel(request)
    world.settle()
    assert [type(event).__name__ for event in publisher.events][-1] == "RequestCancelled"
    assert world.relay.tracks == {}


def test_unknown_mandatory_property_in_fetch_ok_and_publish() -> None:
    """R179: FETCH_OK with an unknown mandatory property is 0x33 downstream, PUBLISH is refused."""
    world = World()
    mandatory = encode_properties([(0x4001, b"")])
    fill(world.origin().add_track(TRACK, properties=mandatory), range(1))
    peer = world.peer("peer")
    fetch = world.fetch(peer)
    publish = peer.session.publish(TRACK._replace(name=b"x"), track_properties=mandatory).request
    world.settle()
    errors = [peer.error(request) for request in (fetch, publish)]
    expected = [RequestErrorCode.UNSUPPORTED_EXTENSION] * 2
    assert [error.code for error in errors if error] == expected


def test_stopped_fill_leaves_the_subscription() -> None:
    """R137: STOP_SENDING on a fill ends its reading, upstream too; Objects still come live."""
    world = World()
    senders: list[SubscriptionSender] = []

    def accept(request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE:
            senders.append(request.session.accept_subscribe(request, largest=Location(3, 0)))

    publisher = world.peer("publisher", accept)
    publisher.session.publish_namespace(SPACE)
    peer = world.peer("peer")
    request = world.subscribe(peer, fill=Parameters(location_filter=absolute((0, 0))))
    (fetched,) = [one for one in publisher.requests() if one.kind is RequestKind.FETCH]

    class Source:
        def __init__(self) -> None:
            self.items: list[Object | FetchState] = [make(0, 0)]

        def next_item(self) -> Object | FetchState:
            return self.items.pop(0) if self.items else FetchState.WAIT

    fetched.session.open_fetch(fetched, Source())
    world.settle()
    (arrived,) = peer.of(ObjectReceived, request)
    assert arrived.stream.stream_id is not None
    world.net.stop_sending(peer.session, arrived.stream.stream_id, StreamError.CANCELLED)
    world.settle()
    assert not fetched.session.closed
    assert [one.request for one in publisher.of(RequestCancelled)] == [fetched]
    senders[0].offer(make(3, 1))
    world.settle()
    assert peer.objects(request, Via.SUBSCRIPTION) == [(3, 1)]


def test_malformed_track_in_a_fetch() -> None:
    """R180, R181, R182: an Object that contradicts the cache resets the fetch with 0x12."""
    world = World()
    first = world.origin("one")
    first.add_track(TRACK).publish(make(0, 1, b"first"))
    peer = world.peer("peer")
    world.fetch(peer, (0, 1), (0, 1))
    gone(world, first)

    class Source:
        def __init__(self) -> None:
            self.items: list[Object | FetchState] = [
                make(0, 0),
                make(0, 1, b"second"),
                FetchState.END,
            ]

        def next_item(self) -> Object | FetchState:
            return self.items.pop(0)

    def answer(request: Request) -> None:
        request.session.open_fetch(request, Source())
        request.session.accept_fetch(request, FetchOk(False, Location(0, 1)))

    publisher = world.peer("publisher", answer)
    publisher.session.publish_namespace(SPACE)
    world.settle()
    request = world.fetch(peer, (0, 0), (0, 2))
    assert b"second" not in peer.payloads(request).values()
    assert peer.ends(request) == [StreamError.MALFORMED_TRACK]
    assert world.relay.budget.used == 0


def test_fill_that_nobody_can_serve_is_marked() -> None:
    """R136, R144: a fill whose publisher refuses the FETCH is not presented as complete."""
    world, origin, peer = served(2)
    subscribed = world.subscribe(peer)
    origin.refusal = RequestRefused("busy", RequestErrorCode.EXCESSIVE_LOAD)
    peer.session.update(subscribed, Parameters(fill=Parameters(location_filter=absolute((0, 0)))))
    world.settle()
    (event,) = [e for e in peer.of(StreamEnded, subscribed) if e.stream.via is Via.FILL]
    assert event.code is None
    assert peer.objects(subscribed) == []
    assert peer.ranges(subscribed) == [(RangeKind.UNKNOWN, Location(0, 0), Location(1, 2))]


def test_cancelled_subscription_closes_its_fill() -> None:
    """R135: the fill of a cancelled subscription stops, and so does its upstream FETCH."""
    world = World()

    def accept(request: Request) -> None:
        if request.kind.name == "SUBSCRIBE":
            request.session.accept_subscribe(request, largest=Location(3, 0))

    publisher = world.peer("publisher", accept)
    publisher.session.publish_namespace(SPACE)
    peer = world.peer("peer")
    request = world.subscribe(peer, fill=Parameters(location_filter=absolute((0, 0))))
    assert [one.kind.name for one in publisher.requests()] == ["SUBSCRIBE", "FETCH"]
    peer.session.cancel(request)
    world.settle()
    cancelled = [e for e in publisher.events if type(e).__name__ == "RequestCancelled"]
    assert len(cancelled) == 2
    assert world.relay.tracks == {}


def test_track_status_is_passed_on_or_answered() -> None:
    """R211, R226: TRACK_STATUS goes upstream, or is answered from an Established subscription."""
    world, origin, peer = served()
    asked = peer.session.track_status(TRACK)
    world.settle()
    world.subscribe(peer)
    known = peer.session.track_status(TRACK)
    unknown = peer.session.track_status(TRACK._replace(name=b"no"))
    world.settle()
    for request in (asked, known):
        answer = peer.ok(request)
        assert isinstance(answer, RequestOk)
        assert answer.parameters.largest_object == Location(3, 2)
        assert answer.track_properties == encode_properties([(0x0E, 99)])
    error = peer.error(unknown)
    assert error is not None
    assert error.code == RequestErrorCode.DOES_NOT_EXIST
    assert origin.kinds() == ["TRACK_STATUS", "SUBSCRIBE", "TRACK_STATUS"]


def test_immutable_properties_keep_their_octets() -> None:
    """R173, R174, R178: property octets with odd integer lengths are cached and served as sent."""
    world = World()
    track = world.origin().add_track(TRACK)
    odd = bytes.fromhex("8078 8005 800b 8003 780001")
    item = make(0, 0)
    track.publish(Object(item.location, 0, 128, item.payload, properties=odd))
    peer = world.peer("peer")
    for request in (world.fetch(peer, (0, 0), (0, 0)), world.fetch(peer, (0, 0), (0, 0))):
        (event,) = peer.of(ObjectReceived, request)
        assert event.object.properties == odd


@pytest.mark.parametrize("descending", [False, True])
def test_transfer_larger_than_the_cache(descending: bool) -> None:
    """A FETCH of many times the cache budget gets everything; the cache keeps to its budget."""
    config = RelayConfig(cache_budget=64_000, high_water=16_000, low_water=8_000)
    world = World(config)
    world.net.set_link("origin", "relay", Link(stream_window=20_000, buffer=10_000))
    track = world.origin().add_track(TRACK)
    for group in range(20):
        for number in range(8):
            track.publish(make(group, number, bytes([group, number]) * 1000), end_of_group=True)
        track.end_subgroup(group, 0)
    peer = world.peer("peer")
    used: list[int] = []
    request = peer.session.fetch(TRACK, Parameters(group_order=2 if descending else 1))
    for _ in range(400):
        world.settle(0.02)
        used.append(world.relay.budget.used)
    groups = range(19, -1, -1) if descending else range(20)
    assert peer.objects(request) == [(group, number) for group in groups for number in range(8)]
    assert peer.ranges(request) == []
    assert 0 < max(used) <= 64_000


def test_slow_reader_holds_the_upstream_fetch() -> None:
    """The upstream FETCH is held back while its only reader stalls, and goes on after."""
    config = RelayConfig(high_water=50_000, low_water=20_000)
    world = World(config)
    track = world.origin().add_track(TRACK)
    for number in range(1000):
        track.publish(make(0, number, bytes(10_000)))
    peer = world.peer("peer")
    request = peer.session.fetch(TRACK)
    world.settle(0.03)
    world.net.partition("peer", "relay")
    world.settle(2.0)
    held = world.relay.budget.used
    assert held < 10_000_000
    world.net.heal("peer", "relay")
    world.settle(5.0)
    assert len(peer.objects(request)) == 1000
