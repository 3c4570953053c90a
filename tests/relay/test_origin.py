"""An original publisher that is asked directly."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import Network
from moqt.origin import LocalTrack
from moqt.relay import Relay
from moqt.session.events import ObjectReceived, Via
from moqt.wire.errors import (
    LocalProtocolError,
    PublishDoneCode,
    RequestErrorCode,
    RequestRefused,
    StreamError,
)
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import FetchOk, Parameters, RequestOk, SubscribeOk
from moqt.wire.names import Location
from moqt.wire.objects import ObjectStatus
from moqt.wire.properties import encode_properties

from .world import LAST, SESSION, SPACE, TRACK, OpenOrigin, Peer, World, absolute, fill, make


class Direct:
    """An origin that listens, and one peer that is connected to it."""

    def __init__(self, **options: int) -> None:
        self.net = Network(seed=1)
        self.origin = OpenOrigin(**options)
        self.net.listen("origin", self.origin, SESSION)
        self.peer = Peer()
        host = self.net.client("peer", self.peer)
        self.peer.sessions.append(host.connect("moqt://origin/", SESSION))
        self.settle()

    def settle(self) -> None:
        self.net.run(self.net.now + 0.2)

    def track(self, groups: int = 0, properties: bytes = b"") -> LocalTrack:
        track = self.origin.add_track(TRACK, properties=properties)
        fill(track, range(groups))
        return track


def test_join_sees_every_location_once() -> None:
    """R138, R133: Next Object with a fill from {0,0}: union complete, intersection empty."""
    direct = Direct()
    track = direct.track(2)
    parameters = Parameters(
        location_filter=NEXT_OBJECT, fill=Parameters(location_filter=absolute((0, 0)))
    )
    request = direct.peer.session.subscribe(TRACK, parameters)
    direct.settle()
    fill(track, range(2, 4))
    direct.settle()
    assert direct.peer.objects(request, Via.FILL) == [(g, o) for g in (0, 1) for o in range(3)]
    assert direct.peer.objects(request, Via.SUBSCRIPTION) == [
        (g, o) for g in (2, 3) for o in range(3)
    ]


def test_subscribe_ok_tells_largest_and_properties() -> None:
    """R115, R121: SUBSCRIBE_OK carries LARGEST_OBJECT and all Track Properties."""
    direct = Direct()
    properties = encode_properties([(0x04, 60000), (0x0E, 64)])
    direct.track(1, properties)
    request = direct.peer.session.subscribe(TRACK)
    direct.settle()
    answer = direct.peer.ok(request)
    assert isinstance(answer, SubscribeOk)
    assert answer.parameters.largest_object == Location(0, 2)
    assert answer.track_properties == properties


def test_finish_delivers_everything_then_says_done() -> None:
    """R117, R125: all streams end with FIN, then PUBLISH_DONE counts them."""
    direct = Direct()
    track = direct.track()
    request = direct.peer.session.subscribe(TRACK)
    direct.settle()
    fill(track, range(3))
    track.finish()
    direct.settle()
    assert len(direct.peer.objects(request)) == 9
    assert direct.peer.ends(request) == [None, None, None]
    assert direct.peer.done(request) == [PublishDoneCode.TRACK_ENDED]


def test_subscription_of_a_finished_track_gets_its_fill() -> None:
    """A late subscriber of a finished Track gets the fill, then PUBLISH_DONE."""
    direct = Direct()
    track = direct.track(1)
    track.finish()
    request = direct.peer.session.subscribe(
        TRACK, Parameters(fill=Parameters(location_filter=absolute((0, 0))))
    )
    direct.settle()
    assert direct.peer.objects(request, Via.FILL) == [(0, 0), (0, 1), (0, 2)]
    assert direct.peer.done(request) == [PublishDoneCode.TRACK_ENDED]


@pytest.mark.parametrize(
    ("end", "expected_end", "count"),
    [((0, 1), (0, 1), 2), ((1, LAST), (1, 2), 6), (None, (3, 2), 12), ((9, 9), (3, 2), 12)],
)
def test_fetch_range(
    end: tuple[int, int] | None, expected_end: tuple[int, int], count: int
) -> None:
    """FETCH_OK names the requested end, or the last Object where it ends earlier."""
    direct = Direct()
    direct.track(4)
    request = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0), end)))
    direct.settle()
    answer = direct.peer.ok(request)
    assert isinstance(answer, FetchOk)
    assert answer.end == Location(*expected_end)
    assert not answer.end_of_track
    assert len(direct.peer.objects(request)) == count
    assert direct.peer.ends(request) == [None]


def test_fetch_of_a_finished_track_says_end_of_track() -> None:
    """End Of Track is set when the End Location is the final Object."""
    direct = Direct()
    direct.track(2).finish()
    whole = direct.peer.session.fetch(TRACK)
    part = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0), (0, 2))))
    direct.settle()
    answers = [direct.peer.ok(request) for request in (whole, part)]
    assert [a.end_of_track for a in answers if isinstance(a, FetchOk)] == [True, False]


def test_fetch_beyond_what_exists() -> None:
    """R141, R142: nothing published, or a start behind Largest, is INVALID_RANGE."""
    direct = Direct()
    track = direct.track()
    empty = direct.peer.session.fetch(TRACK)
    direct.settle()
    fill(track, range(1))
    beyond = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 3))))
    direct.settle()
    errors = [direct.peer.error(request) for request in (empty, beyond)]
    assert [error.code for error in errors if error] == [RequestErrorCode.INVALID_RANGE] * 2


def test_descending_fetch() -> None:
    """R143: GROUP_ORDER 2 turns the Groups round."""
    direct = Direct()
    direct.track(3)
    request = direct.peer.session.fetch(TRACK, Parameters(group_order=2))
    direct.settle()
    expected = [(group, number) for group in (2, 1, 0) for number in range(3)]
    assert direct.peer.objects(request) == expected


def test_gap_of_a_group_that_never_existed() -> None:
    """R144: what was not published below Largest does not exist; no marker."""
    direct = Direct()
    track = direct.track(1)
    fill(track, range(2, 4))
    request = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0), (3, 2))))
    direct.settle()
    assert [group for group, _ in direct.peer.objects(request)] == [0] * 3 + [2] * 3 + [3] * 3
    assert direct.peer.ranges(request) == []


def test_relative_fetch() -> None:
    """A start relative to Largest: 1 is the current Group."""
    direct = Direct()
    direct.track(3)
    relative = LocationFilter(LocationFilterType.RELATIVE_START, 1)
    request = direct.peer.session.fetch(TRACK, Parameters(location_filter=relative))
    direct.settle()
    assert direct.peer.objects(request) == [(2, 0), (2, 1), (2, 2)]


def test_status_objects_end_group_and_track() -> None:
    """End of Group and End of Track travel on; after them nothing can be published."""
    direct = Direct()
    track = direct.track()
    request = direct.peer.session.subscribe(TRACK)
    direct.settle()
    track.publish(make(0, 0))
    track.publish(make(0, 1, b"", status=ObjectStatus.END_OF_GROUP))
    with pytest.raises(LocalProtocolError):
        track.publish(make(0, 2))
    track.publish(make(1, 0, b"", status=ObjectStatus.END_OF_TRACK))
    direct.settle()
    assert direct.peer.objects(request) == [(0, 0), (0, 1), (1, 0)]
    assert direct.peer.ends(request)[0] is None


def test_fetch_limit_refuses_at_once() -> None:
    """R230: with two FETCHes allowed, three of five are refused at once with a Retry Interval."""
    direct = Direct(max_fetches_per_session=2)
    track = direct.track(1)
    for number in range(40):
        track.publish(make(1, number, bytes(100_000)))
    requests = [direct.peer.session.fetch(TRACK) for _ in range(5)]
    direct.settle()
    refused = [error for request in requests if (error := direct.peer.error(request))]
    assert [(e.code, e.retry_interval > 0) for e in refused] == [
        (RequestErrorCode.EXCESSIVE_LOAD, True)
    ] * 3
    again = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0), (0, 0))))
    direct.settle()
    assert direct.peer.ok(again) is not None


def test_track_status_and_unknown_track() -> None:
    """TRACK_STATUS answers with Largest and properties; an unknown Track DOES_NOT_EXIST."""
    direct = Direct()
    direct.track(1, encode_properties([(0x0E, 9)]))
    known = direct.peer.session.track_status(TRACK)
    unknown = direct.peer.session.track_status(TRACK._replace(name=b"other"))
    direct.settle()
    answer = direct.peer.ok(known)
    assert isinstance(answer, RequestOk)
    assert answer.parameters.largest_object == Location(0, 2)
    assert answer.track_properties == encode_properties([(0x0E, 9)])
    error = direct.peer.error(unknown)
    assert error is not None
    assert error.code == RequestErrorCode.DOES_NOT_EXIST


def test_announcements_go_to_every_session_and_can_be_withdrawn() -> None:
    """Field case 10: the whole namespace is announced unprompted, now and later; withdrawn."""
    direct = Direct()
    direct.peer.answer = lambda request: request.session.accept(request)
    direct.origin.announce(SPACE)
    direct.settle()
    (request,) = direct.peer.requests()
    assert request.namespace == SPACE
    direct.origin.withdraw(SPACE)
    direct.settle()
    assert [type(event).__name__ for event in direct.peer.events][-1] == "RequestCancelled"


def test_discovery_of_namespaces_and_tracks() -> None:
    """R193, R202: NAMESPACE for what is there and comes; PUBLISH for Tracks, FORWARD 0 written."""
    direct = Direct()
    direct.origin.announce(SPACE)
    direct.peer.answer = lambda request: request.session.accept(request)
    names = direct.peer.session.subscribe_namespace(SPACE[:1])
    tracks = direct.peer.session.subscribe_tracks(SPACE[:1], Parameters(forward=0))
    direct.settle()
    direct.origin.announce((b"live", b"second"))
    direct.track()
    direct.settle()
    assert direct.peer.namespaces(names) == [("+", SPACE), ("+", (b"live", b"second"))]
    assert direct.peer.ok(tracks) is not None
    published = [r for r in direct.peer.requests() if r.kind.name == "PUBLISH"]
    assert [(one.track, one.parameters.forward) for one in published] == [(TRACK, 0)]


def test_update_opens_a_fill_and_tells_largest() -> None:
    """R132, R134: pausing stops Objects; resuming with a fill brings the missed ones."""
    direct = Direct()
    track = direct.track(1)
    request = direct.peer.session.subscribe(TRACK, Parameters(location_filter=NEXT_OBJECT))
    direct.settle()
    direct.peer.session.update(request, Parameters(forward=0))
    direct.settle()
    fill(track, range(1, 2))
    direct.settle()
    assert direct.peer.objects(request) == []
    direct.peer.session.update(
        request,
        Parameters(forward=1, fill=Parameters(location_filter=absolute((1, 0)))),
    )
    direct.settle()
    assert direct.peer.objects(request, Via.FILL) == [(1, 0), (1, 1), (1, 2)]


def test_authorisation_comes_before_existence() -> None:
    """R208: an unauthorised peer does not learn whether a Track exists."""
    direct = Direct()
    direct.origin.refusal = RequestRefused("no", RequestErrorCode.UNAUTHORIZED)
    request = direct.peer.session.subscribe(TRACK)
    direct.settle()
    error = direct.peer.error(request)
    assert error is not None
    assert error.code == RequestErrorCode.UNAUTHORIZED


def test_publishing_what_contradicts_is_refused() -> None:
    """R003: an Object that was published cannot be published with other content."""
    track = LocalTrack(TRACK)
    track.publish(make(0, 0))
    with pytest.raises(LocalProtocolError):
        track.publish(make(0, 0, b"other"))


def test_stopped_fetch_makes_room_for_another() -> None:
    """R147: STOP_SENDING on the data stream ends the FETCH, also for the limit of FETCHes."""
    direct = Direct(max_fetches_per_session=1)
    track = direct.track(1)
    for number in range(100):
        track.publish(make(1, number, bytes(100_000)))
    first = direct.peer.session.fetch(TRACK)
    direct.net.run(lambda: bool(direct.peer.objects(first)))
    (event, *_) = direct.peer.of(ObjectReceived, first)
    assert event.stream.stream_id is not None
    direct.net.stop_sending(direct.peer.session, event.stream.stream_id, StreamError.CANCELLED)
    direct.settle()
    second = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0), (0, 2))))
    direct.settle()
    assert direct.peer.objects(second) == [(0, 0), (0, 1), (0, 2)]


def test_origin_follows_goaway() -> None:
    """GOAWAY: the namespaces are announced on a new session; the old one ends with its use."""
    world = World()
    spare = Relay()
    world.net.listen("spare", spare, world.session)
    origin = world.origin()
    track = origin.add_track(TRACK)
    subscriber = world.peer("subscriber")
    request = world.subscribe(subscriber)
    (old,) = origin.sessions
    for session in world.relay.sessions:
        if session is not subscriber.session:
            session.goaway(b"moqt://spare/")
    world.settle()
    fill(track, range(1))
    world.settle()
    assert subscriber.objects(request) == [(0, 0), (0, 1), (0, 2)]
    assert not old.closed
    late = world.peer("late", url="moqt://spare/")
    fetched = world.fetch(late)
    assert late.objects(fetched) == [(0, 0), (0, 1), (0, 2)]
    subscriber.session.cancel(request)
    world.settle()
    assert old.closed
