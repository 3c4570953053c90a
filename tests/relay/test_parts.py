"""The classes that a relay and an origin are made of can be named by subclasses."""

from __future__ import annotations

from moqt.relay import Relay
from moqt.relay.readers import DownstreamFetch
from moqt.relay.subscribers import Subscribers
from moqt.relay.track import RelayTrack
from moqt.relay.upstream import Upstream
from moqt.session import Request
from moqt.session.events import ObjectReceived
from moqt.tracks import TrackStore
from moqt.wire.messages import FetchOk, Parameters

from .test_origin import Direct
from .world import TRACK, absolute


def test_a_relay_makes_its_parts_of_the_classes_that_it_names() -> None:
    """Track, store, subscribers and publishers are what the class says."""

    class Store(TrackStore):
        """Another store."""

    class Subscriptions(Subscribers):
        """Other subscriptions."""

    class Track(RelayTrack):
        """A Track of other parts."""

        store_class = Store
        subscribers_class = Subscriptions

    class Other(Relay):
        """A relay of such Tracks."""

        track_class = Track

    relay = Other()
    track = relay.track_class(TRACK, relay._context)
    assert isinstance(track.store, Store)
    assert isinstance(track.subscribers, Subscriptions)
    assert (track.upstream_class, relay.fetch_class) == (Upstream, DownstreamFetch)


def test_an_origin_may_hold_its_fetch_ok_back() -> None:
    """R140: Objects and FIN come although FETCH_OK is left to a later moment."""
    held: list[tuple[Request, FetchOk]] = []
    direct = Direct()
    direct.track(1)
    direct.origin.answer_fetch = lambda *told: held.append(told)  # type: ignore[method-assign]
    request = direct.peer.session.fetch(TRACK, Parameters(location_filter=absolute((0, 0), (0, 2))))
    direct.settle()
    assert [(0, 0), (0, 1), (0, 2)] == direct.peer.objects(request)
    assert direct.peer.ok(request) is None
    ((asked, message),) = held
    asked.session.accept_fetch(asked, message)
    direct.settle()
    assert message == direct.peer.ok(request)
    assert len(direct.peer.of(ObjectReceived)) == 3
