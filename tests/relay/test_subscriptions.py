"""Subscriptions through a relay: one upstream for many, forwarded as they are."""

from __future__ import annotations

from moqt.relay import Relay, RelayConfig
from moqt.session import Request, SubscriptionSender
from moqt.session.events import ObjectReceived, StreamEnded, UpdateReceived, Via
from moqt.wire.errors import PublishDoneCode, RequestErrorCode
from moqt.wire.messages import Parameters, Redirect, SubscribeOk
from moqt.wire.names import FullTrackName, Location
from moqt.wire.properties import encode_properties

from .world import SPACE, TRACK, Peer, World, absolute, fill, make

PROPERTIES = bytes.fromhex("8002 87d0 02 c0ea60 0a 40")
"""Track Properties {0x02: 2000, 0x04: 60000, 0x0E: 64}, the first Delta Type not minimal."""


def announce(world: World, peer: Peer) -> None:
    peer.session.publish_namespace(SPACE)
    world.settle()


def test_no_subscribe_ok_before_a_publisher_accepted() -> None:
    """R209, R211, R226: SUBSCRIBE_OK waits for upstream, and repeats Largest and properties."""
    world = World()
    publisher = world.peer("publisher")
    announce(world, publisher)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    (upstream,) = publisher.requests()
    assert upstream.track == TRACK
    assert upstream.parameters.forward != 0
    assert subscriber.ok(request) is None
    upstream.session.accept_subscribe(upstream, largest=Location(3, 7), track_properties=PROPERTIES)
    world.settle()
    answer = subscriber.ok(request)
    assert isinstance(answer, SubscribeOk)
    assert answer.parameters.largest_object == Location(3, 7)
    assert answer.track_properties == PROPERTIES


def test_one_upstream_subscription_serves_many() -> None:
    """R218: with an Established upstream a SUBSCRIBE is answered without a new request there."""
    world = World()
    origin = world.origin()
    track = origin.add_track(TRACK)
    peers = [world.peer(f"peer{number}") for number in range(3)]
    requests = [world.subscribe(peer) for peer in peers]
    fill(track, range(2))
    world.settle()
    assert origin.kinds() == ["SUBSCRIBE"]
    expected = [(g, o) for g in range(2) for o in range(3)]
    assert [peer.objects(one) for peer, one in zip(peers, requests, strict=True)] == [expected] * 3


def test_same_objects_direct_and_over_one_and_two_relays() -> None:
    """Field case 1, R227, R212: Locations, octets, order and stream ends are equal on all paths."""
    world = World()
    lower = Relay(RelayConfig(upstreams=("moqt://relay/",)))
    world.net.listen("lower", lower, world.session)
    origin = world.origin()
    track = origin.add_track(TRACK, default_priority=7)
    one = world.peer("one")
    two = world.peer("two", url="moqt://lower/")
    requests = [world.subscribe(one), world.subscribe(two)]
    properties = encode_properties([(0x78, 3), (0x3801, b"opaque")])
    for group in range(2):
        for number in range(3):
            item = make(group, number, bytes([group, number]) * 50)
            track.publish(
                type(item)(item.location, 0, 7, item.payload, properties=properties),
                end_of_group=True,
            )
        track.end_subgroup(group, 0)
    world.settle()
    expected = list(track.store)
    for peer, request in zip((one, two), requests, strict=True):
        received = peer.of(ObjectReceived, request)
        assert [event.object for event in received] == expected
        assert all(event.stream.first_object for event in received)
        assert all(event.stream.end_of_group for event in received)
        assert peer.ends(request) == [None, None]


def test_every_matching_publisher_is_subscribed() -> None:
    """R216: publishers of the namespace and of a prefix of it all see the SUBSCRIBE."""
    world = World()
    publishers = [world.peer(name) for name in ("exact", "prefix", "other")]
    namespaces = (SPACE, SPACE[:1], (b"live", b"roo"))
    for peer, namespace in zip(publishers, namespaces, strict=True):
        peer.session.publish_namespace(namespace)
    world.settle()
    world.subscribe(world.peer("subscriber"))
    assert [len(peer.requests()) for peer in publishers] == [1, 1, 0]


def test_publisher_that_announces_later_is_subscribed_too() -> None:
    """R224: a new PUBLISH_NAMESPACE gets a SUBSCRIBE for each matching running subscription."""
    world = World()
    origin = world.origin()
    origin.add_track(TRACK)
    world.subscribe(world.peer("subscriber"))
    late = world.peer("late")
    announce(world, late)
    assert [request.track for request in late.requests()] == [TRACK]


def test_publish_of_one_track_is_no_route_to_another() -> None:
    """R215: no SUBSCRIBE reaches a publisher that only sent PUBLISH of another track."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.publish(FullTrackName(SPACE, b"audio"))
    world.settle()
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    assert publisher.requests() == []
    error = subscriber.error(request)
    assert error is not None
    assert error.code == RequestErrorCode.DOES_NOT_EXIST


def test_rendezvous_waits_for_a_publisher() -> None:
    """R082: with RENDEZVOUS_TIMEOUT a publisher that comes in time serves; else TIMEOUT."""
    world = World()
    subscriber = world.peer("subscriber")
    served = world.subscribe(subscriber, rendezvous_timeout=2000)
    lost = world.subscribe(subscriber, FullTrackName(SPACE, b"never"), rendezvous_timeout=2000)
    origin = world.origin(announce=False)
    track = origin.add_track(TRACK)
    origin.announce(SPACE)
    world.settle()
    assert subscriber.ok(served) is not None
    fill(track, range(1))
    world.settle(2.5)
    assert subscriber.objects(served) == [(0, 0), (0, 1), (0, 2)]
    error = subscriber.error(lost)
    assert error is not None
    assert error.code == RequestErrorCode.TIMEOUT


def test_publisher_that_never_answers() -> None:
    """A publisher that does not answer leaves nobody waiting for ever: TIMEOUT."""
    world = World(RelayConfig(upstream_timeout=1.0))
    announce(world, world.peer("publisher"))
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    world.settle(1.5)
    error = subscriber.error(request)
    assert error is not None
    assert error.code == RequestErrorCode.TIMEOUT


def test_upstream_refusal_is_passed_on() -> None:
    """When the last publisher refuses, its code reaches the subscriber."""
    world = World()
    publisher = world.peer("publisher", lambda one: one.session.refuse(one, 0x1, "not yours"))
    announce(world, publisher)
    subscriber = world.peer("subscriber")
    error = subscriber.error(world.subscribe(subscriber))
    assert error is not None
    assert (error.code, error.reason) == (RequestErrorCode.UNAUTHORIZED, "not yours")


def test_redirect_of_a_publisher_is_not_passed_on() -> None:
    """A publisher's REDIRECT is for the relay: the subscriber gets an error without it."""
    world = World()

    def redirect(request: Request) -> None:
        elsewhere = Redirect(b"", FullTrackName(SPACE, b"other"))
        request.session.refuse(request, RequestErrorCode.REDIRECT, redirect=elsewhere)

    announce(world, world.peer("publisher", redirect))
    subscriber = world.peer("subscriber")
    errors = [subscriber.error(world.subscribe(subscriber))]
    errors.append(subscriber.error(world.fetch(subscriber)))
    assert [error.code for error in errors if error] == [RequestErrorCode.INTERNAL_ERROR] * 2


def test_unknown_mandatory_property_refuses_who_waits() -> None:
    """R179: SUBSCRIBE_OK with an unknown mandatory property is cancelled, 0x33 goes downstream."""
    world = World()
    origin = world.origin()
    origin.add_track(TRACK, properties=encode_properties([(0x4001, b"")]))
    subscriber = world.peer("subscriber")
    error = subscriber.error(world.subscribe(subscriber))
    assert error is not None
    assert error.code == RequestErrorCode.UNSUPPORTED_EXTENSION


def test_unpaused_subscriber_resumes_the_upstream() -> None:
    """R206, R219, R220: a paused one starts paused; the first unpaused one resumes upstream."""
    world = World()

    def accept(request: Request) -> None:
        request.session.accept_subscribe(request, largest=None)

    publisher = world.peer("publisher", accept)
    announce(world, publisher)
    world.subscribe(world.peer("paused"), forward=0)
    (upstream,) = publisher.requests()
    assert upstream.parameters.forward == 0
    world.subscribe(world.peer("eager"))
    updates = publisher.of(UpdateReceived, upstream)
    assert [event.update.parameters.forward for event in updates] == [1]


def test_update_resumes_the_upstream() -> None:
    """R219: REQUEST_UPDATE FORWARD 1 of the only subscriber goes on upstream."""
    world = World()

    def accept(request: Request) -> None:
        request.session.accept_subscribe(request, largest=None)

    publisher = world.peer("publisher", accept)
    announce(world, publisher)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber, forward=0)
    subscriber.session.update(request, Parameters(forward=1))
    world.settle()
    (upstream,) = publisher.requests()
    updates = publisher.of(UpdateReceived, upstream)
    assert [event.update.parameters.forward for event in updates] == [1]


def test_new_group_request_goes_upstream_once() -> None:
    """R094: in the first SUBSCRIBE upstream, then in an update unless one is outstanding."""
    world = World()
    dynamic = encode_properties([(0x30, 1)])
    senders: list[SubscriptionSender] = []

    def accept(request: Request) -> None:
        largest = Location(3, 0)
        sender = request.session.accept_subscribe(
            request, largest=largest, track_properties=dynamic
        )
        senders.append(sender)

    publisher = world.peer("publisher", accept)
    announce(world, publisher)
    one, two = world.peer("one"), world.peer("two")
    first = world.subscribe(one, new_group_request=4)
    (upstream,) = publisher.requests()
    assert upstream.parameters.new_group_request == 4
    one.session.update(first, Parameters(new_group_request=0))
    world.settle()
    world.subscribe(two, new_group_request=4)
    world.subscribe(two, new_group_request=2)
    asked = [event.update.parameters for event in publisher.of(UpdateReceived, upstream)]
    assert [parameters.new_group_request for parameters in asked] == [0, 4]
    one.session.update(first, Parameters(new_group_request=4))
    world.settle()
    assert len(publisher.of(UpdateReceived, upstream)) == 2
    senders[0].offer(make(4, 0), first=True)
    world.settle()
    one.session.update(first, Parameters(new_group_request=5))
    world.settle()
    assert len(publisher.of(UpdateReceived, upstream)) == 3


def test_publish_done_is_passed_on_after_the_data() -> None:
    """Field case 2, R117: the end of the last publisher ends the subscription, data first."""
    world = World()
    track = world.origin().add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    fill(track, range(4))
    track.finish(PublishDoneCode.TRACK_ENDED, "that was all")
    world.settle(1.0)
    assert len(subscriber.objects(request)) == 12
    assert subscriber.ends(request) == [None] * 4
    assert subscriber.done(request) == [PublishDoneCode.TRACK_ENDED]


def test_lost_publisher_ends_the_subscription() -> None:
    """A publisher that vanishes: what came is delivered, then PUBLISH_DONE; the relay lives."""
    world = World()
    origin = world.origin()
    track = origin.add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    fill(track, range(1))
    world.settle()
    next(iter(origin.sessions)).close()
    world.settle()
    assert len(subscriber.objects(request)) == 3
    assert subscriber.done(request) == [PublishDoneCode.GOING_AWAY]


def test_one_of_two_publishers_lost_changes_nothing() -> None:
    """As long as one publisher is left the subscription goes on."""
    world = World()
    origins = [world.origin(name) for name in ("one", "two")]
    tracks = [origin.add_track(TRACK) for origin in origins]
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    next(iter(origins[0].sessions)).close()
    world.settle()
    fill(tracks[1], range(1))
    world.settle()
    assert subscriber.objects(request) == [(0, 0), (0, 1), (0, 2)]
    assert subscriber.done(request) == []


def test_last_subscriber_leaves() -> None:
    """The upstream subscription is cancelled when nobody wants it; a new one comes back."""
    world = World()
    origin = world.origin()
    track = origin.add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    subscriber.session.cancel(request)
    world.settle()
    assert track.senders == {}
    again = world.subscribe(subscriber)
    fill(track, range(1))
    world.settle()
    assert subscriber.objects(again) == [(0, 0), (0, 1), (0, 2)]


def test_publisher_may_subscribe_to_its_own_track() -> None:
    """A publisher that subscribes to its own Track through the relay gets its Objects."""
    world = World()

    def accept(request: Request) -> None:
        sender = request.session.accept_subscribe(request, largest=None)
        sender.offer(make(0, 0), first=True)
        sender.end_subgroup(0, 0)

    peer = world.peer("peer", accept)
    announce(world, peer)
    request = world.subscribe(peer)
    world.settle()
    assert peer.objects(request) == [(0, 0)]


def test_publish_serves_waiting_and_interested() -> None:
    """R221, R222, R223: a waiting SUBSCRIBE gets SUBSCRIBE_OK, SUBSCRIBE_TRACKS a PUBLISH."""
    world = World()
    waiting = world.peer("waiting")
    request = world.subscribe(waiting, rendezvous_timeout=5000)
    interested = world.peer("interested", lambda one: one.session.accept(one))
    interested.session.subscribe_tracks(SPACE[:1])
    both = world.peer("both", lambda one: one.session.accept(one))
    both.session.subscribe_tracks(SPACE[:1])
    world.subscribe(both, rendezvous_timeout=5000)
    publisher = world.peer("publisher")
    sender = publisher.session.publish(
        TRACK, Parameters(largest_object=Location(0, 5), forward=0), PROPERTIES
    )
    world.settle()
    answer = waiting.ok(request)
    assert isinstance(answer, SubscribeOk)
    assert answer.parameters.largest_object == Location(0, 5)
    assert publisher.ok(sender.request) is not None
    updates = publisher.of(UpdateReceived, sender.request)
    assert [event.update.parameters.forward for event in updates] == [1]
    (published,) = interested.requests()
    assert published.message.track_properties == PROPERTIES  # type: ignore[union-attr]
    assert published.parameters.largest_object == Location(0, 5)
    assert both.requests() == []
    publisher.session.accept_update(sender.request, updates[0].update)
    sender.offer(make(1, 0), first=True)
    world.settle()
    assert waiting.objects(request) == [(1, 0)]
    assert interested.objects(published) == [(1, 0)]


def test_no_publish_to_its_own_publisher_nor_after_cancel() -> None:
    """R113, R200: SUBSCRIBE_TRACKS excludes own tracks; once cancelled no PUBLISH comes."""
    world = World()
    publisher = world.peer("publisher")
    publisher.session.subscribe_tracks(SPACE[:1])
    gone = world.peer("gone")
    request = gone.session.subscribe_tracks(SPACE[:1])
    world.settle()
    gone.session.cancel(request)
    world.settle()
    publisher.session.publish(TRACK)
    world.settle()
    assert publisher.requests() == []
    assert gone.requests() == []


def test_violation_closes_only_the_session_of_its_maker() -> None:
    """R225: what closes a publisher's session is not passed on; the subscriber's session lives."""
    world = World()
    publisher = world.peer("publisher")
    announce(world, publisher)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    (upstream,) = publisher.requests()
    sender = upstream.session.accept_subscribe(upstream, largest=None)
    sender.offer(make(0, 0), first=True)
    world.settle()
    transport = publisher.session._core.transport
    stream = transport.open_stream(unidirectional=True)
    assert stream is not None
    transport.send(stream, b"\x16\x00\x00", True)
    world.settle()
    assert publisher.session.closed
    assert not subscriber.session.closed
    assert subscriber.objects(request) == [(0, 0)]


def test_slow_subscriber_does_not_hold_a_fast_one() -> None:
    """The publishers flow while one subscriber keeps up, whatever another one does."""
    world = World(RelayConfig(high_water=2000, low_water=1000))
    track = world.origin().add_track(TRACK)
    fast, slow = world.peer("fast"), world.peer("slow")
    requests = [world.subscribe(fast), world.subscribe(slow)]
    world.net.partition("slow", "relay")
    for number in range(200):
        track.publish(make(0, number, bytes(1000)))
    world.settle(1.0)
    assert len(fast.objects(requests[0])) == 200
    world.net.heal("slow", "relay")
    world.settle(3.0)
    assert len(slow.objects(requests[1])) == 200


def test_join_through_the_relay() -> None:
    """Field case 9, R138: 0 and 1 come in the fill, 2 and 3 live, each Location once."""
    world = World()
    track = world.origin().add_track(TRACK)
    fill(track, range(2))
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber, fill=Parameters(location_filter=absolute((0, 0))))
    fill(track, range(2, 4))
    world.settle()
    assert subscriber.objects(request, Via.FILL) == [(g, o) for g in (0, 1) for o in range(3)]
    live = [(g, o) for g in (2, 3) for o in range(3)]
    assert subscriber.objects(request, Via.SUBSCRIPTION) == live
    fills = [e for e in subscriber.of(StreamEnded, request) if e.stream.via is Via.FILL]
    assert [event.code for event in fills] == [None]
