"""Subscriptions from SUBSCRIBE to PUBLISH_DONE, between two sessions."""

from __future__ import annotations

from moqt.session.events import (
    ObjectReceived,
    RequestAccepted,
    StreamEnded,
    SubscriptionEnded,
)
from moqt.session.requests import RequestState
from moqt.wire.errors import PublishDoneCode
from moqt.wire.names import Location

from tests.session.pair import TRACK, Pair, obj, subscribed


def test_a_subscription_delivers_objects_and_ends() -> None:
    """R110, R121, R164: SUBSCRIBE_OK, then Objects in order, FIN, PUBLISH_DONE, the end."""
    pair = Pair()
    ours, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    assert pair.one(0, RequestAccepted).request is ours
    objects = [obj(1, 0, b"hello"), obj(1, 1, b"world")]
    assert [True, True] == [sender.offer(item, first=True) for item in objects]
    sender.end_subgroup(1, 0)
    sender.finish(PublishDoneCode.TRACK_ENDED)
    pair.run()
    assert objects == [event.object for event in pair.seen(0, ObjectReceived)]
    assert pair.one(0, StreamEnded).complete
    ended = pair.one(0, SubscriptionEnded)
    assert (True, 1) == (ended.complete, ended.message.stream_count)
    assert RequestState.TERMINATED is ours.state
    assert RequestState.TERMINATED is theirs.state
    assert TRACK == ours.track
    assert Location(1, 1) == sender.reported
    assert not pair.client.closed
    assert not pair.server.closed
