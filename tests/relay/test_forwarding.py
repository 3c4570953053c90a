"""What a relay makes of the streams and Objects that it forwards."""

from __future__ import annotations

from moqt.drivers.memory import Link
from moqt.session import Request, RequestKind, SubscriptionSender
from moqt.session.events import ObjectReceived
from moqt.wire.errors import PublishDoneCode, RequestErrorCode, StreamError
from moqt.wire.objects import ObjectStatus

from .world import SPACE, TRACK, World, fill, make


def test_reset_subgroup_is_reset_downstream() -> None:
    """R165: a reset subgroup stream is reset downstream; the subscription goes on."""
    world = World()
    origin = world.origin()
    track = origin.add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    track.publish(make(0, 0))
    world.settle()
    for sender in track.senders.values():
        sender.reset_subgroup(0, 0, StreamError.DELIVERY_TIMEOUT)
    fill(track, range(1, 2))
    world.settle()
    assert subscriber.ends(request) == [StreamError.DELIVERY_TIMEOUT, None]
    assert (1, 2) in subscriber.objects(request)


def test_hole_in_a_subgroup_opens_a_new_stream() -> None:
    """R167, R168: only the next Object continues a stream; over a hole of unknown state it ends."""
    world = World()
    publishers = [world.origin("one"), world.origin("two")]
    tracks = [origin.add_track(TRACK) for origin in publishers]
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    tracks[0].publish(make(0, 0))
    world.settle()
    tracks[1].publish(make(0, 5))
    world.settle()
    assert subscriber.objects(request) == [(0, 0), (0, 5)]
    assert subscriber.ends(request) == [StreamError.CANCELLED]


def test_hole_on_one_upstream_stream_is_kept() -> None:
    """R167: Objects that were adjacent on the upstream stream stay on one stream."""
    world = World()
    track = world.origin().add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    sender = next(iter(track.senders.values()))
    for number in (0, 4, 9):
        sender.offer(make(0, number), first=number == 0, adjacent=True)
    sender.end_subgroup(0, 0)
    world.settle()
    assert subscriber.objects(request) == [(0, 0), (0, 4), (0, 9)]
    assert subscriber.ends(request) == [None]


def test_first_object_flag_is_not_invented() -> None:
    """R008: FIRST_OBJECT is only kept where the relay forwards from that very Object."""
    world = World()
    track = world.origin().add_track(TRACK)
    early = world.peer("early")
    late = world.peer("late")
    first = world.subscribe(early)
    track.publish(make(0, 0))
    world.settle()
    second = world.subscribe(late)
    track.publish(make(0, 1))
    world.settle()
    flags = [
        event.stream.first_object
        for peer, request in ((early, first), (late, second))
        for event in peer.of(ObjectReceived, request)
    ]
    assert flags == [True, True, False]


def test_datagrams_stay_datagrams() -> None:
    """R004: Delivery Mode is kept; the cache serves them as datagram Objects too."""
    world = World()
    track = world.origin().add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    item = make(0, 0)
    track.publish(type(item)(item.location, None, 128, item.payload))
    world.settle()
    (event,) = subscriber.of(ObjectReceived, request)
    assert event.object.subgroup is None
    assert event.stream.stream_id is None
    fetched = world.fetch(subscriber, (0, 0), (0, 0))
    (event,) = subscriber.of(ObjectReceived, fetched)
    assert event.object.subgroup is None


def test_status_objects_are_forwarded_once() -> None:
    """End of Group and End of Track reach the subscriber; the cache knows what they mean."""
    world = World()
    track = world.origin().add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    track.publish(make(0, 0))
    track.publish(make(0, 1, b"", status=ObjectStatus.END_OF_GROUP))
    track.publish(make(1, 0, b"", status=ObjectStatus.END_OF_TRACK))
    world.settle()
    statuses = [event.object.status for event in subscriber.of(ObjectReceived, request)]
    assert statuses == [ObjectStatus.NORMAL, ObjectStatus.END_OF_GROUP, ObjectStatus.END_OF_TRACK]


def test_two_publishers_are_merged_by_location() -> None:
    """R207: both are accepted and forwarded; every Location reaches the subscriber once."""
    world = World()
    tracks = [world.origin(name).add_track(TRACK) for name in ("one", "two")]
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    for track in tracks:
        fill(track, range(2))
        world.settle()
    tracks[1].publish(make(2, 0))
    world.settle()
    expected = [(g, o) for g in range(2) for o in range(3)] + [(2, 0)]
    assert sorted(subscriber.objects(request)) == expected


def test_contradicting_publishers_make_the_track_malformed() -> None:
    """Field case 16, R203, R180, R181, R182: PUBLISH_DONE 0x12, nothing cached, refused after."""
    world = World()
    origins = [world.origin(name) for name in ("one", "two")]
    tracks = [origin.add_track(TRACK) for origin in origins]
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    tracks[0].publish(make(1, 0, b"one thing"))
    world.settle()
    tracks[1].publish(make(1, 0, b"another"))
    world.settle()
    assert subscriber.payloads(request) == {(1, 0): b"one thing"}
    assert subscriber.done(request) == [PublishDoneCode.MALFORMED_TRACK]
    assert [len(track.senders) for track in tracks] == [0, 0]
    assert world.relay.budget.used == 0
    error = subscriber.error(world.fetch(subscriber, (1, 0), (1, 0)))
    assert error is not None
    assert error.code == RequestErrorCode.MALFORMED_TRACK
    origins[1].sessions.copy().pop().close()
    origins[0].sessions.copy().pop().close()
    world.settle()
    third = world.origin("three")
    third.add_track(TRACK).publish(make(1, 0, b"one thing"))
    assert subscriber.payloads(world.fetch(subscriber, (1, 0), (1, 0))) == {(1, 0): b"one thing"}


def test_object_that_broke_off_is_fetched() -> None:
    """A FETCH waits for an Object that is arriving; when its stream is reset, upstream is asked."""
    world = World()
    world.net.set_link("publisher", "relay", Link(bandwidth=100_000))
    senders: list[SubscriptionSender] = []

    def accept(request: Request) -> None:
        if request.kind is RequestKind.SUBSCRIBE:
            senders.append(request.session.accept_subscribe(request, largest=None))

    publisher = world.peer("publisher", accept)
    publisher.session.publish_namespace(SPACE)
    world.settle()
    subscriber = world.peer("subscriber")
    world.subscribe(subscriber)
    senders[0].offer(make(0, 0, bytes(200_000)), first=True)
    world.settle(0.5)
    fetch = world.fetch(subscriber, (0, 0), (0, 0))
    assert [request.kind for request in publisher.requests()] == [RequestKind.SUBSCRIBE]
    senders[0].reset_subgroup(0, 0, StreamError.INTERNAL_ERROR)
    world.settle(2.5)
    assert [request.kind for request in publisher.requests()][1:] == [RequestKind.FETCH]
    assert subscriber.objects(fetch) == []
