"""Which Object goes first (MOQT-22 §5.1.2)."""

from __future__ import annotations

from collections import Counter

import pytest
from moqt.session.events import ObjectReceived, RequestReceived, UpdateReceived
from moqt.wire.filters import FROM_START, NEXT_OBJECT
from moqt.wire.messages import Parameters
from moqt.wire.names import FullTrackName, Location

from tests.session.pair import LIVE, TRACK, ListSource, Pair, obj, subscribed


def order(pair: Pair) -> list[tuple[int, int | None, int]]:
    return [
        (e.object.location.group, e.object.subgroup, e.object.location.object)
        for e in pair.seen(0, ObjectReceived)
    ]


@pytest.mark.parametrize(("group_order", "groups"), [(1, [1, 2, 3]), (2, [3, 2, 1])])
def test_group_order_within_a_subscription(group_order: int, groups: list[int]) -> None:
    """R190: ascending or descending as asked."""
    pair = Pair()
    _, theirs = subscribed(pair, Parameters(group_order=group_order))
    assert theirs.sender is not None
    for group in (2, 1, 3):
        theirs.sender.offer(obj(group, 0))
    pair.run()
    assert groups == [group for group, _, _ in order(pair)]


def test_the_tracks_own_group_order_is_the_default() -> None:
    """R190: DEFAULT_PUBLISHER_GROUP_ORDER counts where GROUP_ORDER is absent."""
    pair = Pair()
    _, theirs = subscribed(pair, LIVE, track_properties=bytes.fromhex("2202"))
    assert theirs.sender is not None
    for group in (1, 2):
        theirs.sender.offer(obj(group, 0))
    pair.run()
    assert [2, 1] == [group for group, _, _ in order(pair)]


def test_within_a_group_lower_subgroups_go_first_and_datagrams_before_them() -> None:
    """R190: Publisher Priority before all of that."""
    pair = Pair()
    _, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    sender.offer(obj(1, 2, subgroup=2))
    sender.offer(obj(1, 1, subgroup=1))
    sender.offer(obj(1, 5, subgroup=None))
    sender.offer(obj(9, 0, subgroup=0, priority=1))
    pair.run()
    assert [(9, 0, 0), (1, None, 5), (1, 1, 1), (1, 2, 2)] == order(pair)


def test_subscriber_priority_between_requests() -> None:
    """R190: lower numbers first, whatever the Publisher Priority; updates change it."""
    pair = Pair()
    senders = []
    for number, priority in enumerate((200, 100)):
        track = FullTrackName((b"live",), b"%d" % number)
        pair.client.subscribe(track, Parameters(subscriber_priority=priority))
        pair.run()
        senders.append(pair.server.accept_subscribe(pair.request(), largest=None))
    pair.run()
    senders[0].offer(obj(0, 0, priority=0))
    senders[1].offer(obj(1, 0, priority=255))
    pair.run()
    assert [1, 0] == [group for group, _, _ in order(pair)]
    first = senders[0].request
    ours = pair.seen(0, ObjectReceived)[1].request
    pair.client.update(ours, Parameters(subscriber_priority=0))
    pair.run()
    senders[0].offer(obj(2, 0))
    senders[1].offer(obj(3, 0))
    pair.server.accept_update(first, pair.one(1, UpdateReceived).update)
    pair.run()
    assert [2, 3] == [group for group, _, _ in order(pair)[2:]]


def test_two_fetches_of_different_priority() -> None:
    """R190: on a narrow path the urgent one is finished first."""
    pair = Pair()
    pair.taps[1].window = 0
    for number, priority in enumerate((128, 3)):
        track = FullTrackName((b"live",), b"%d" % number)
        pair.client.fetch(track, Parameters(subscriber_priority=priority))
    pair.run()
    for number, event in enumerate(pair.seen(1, RequestReceived)):
        pair.server.open_fetch(
            event.request, ListSource(obj(number, n, bytes(100)) for n in range(5))
        )
    for _ in range(60):
        pair.taps[1].window = 50
        pair.run()
    assert [1] * 5 + [0] * 5 == [group for group, _, _ in order(pair)]


def test_equals_share() -> None:
    """R190: between requests of equal priority nobody waits for the other to finish."""
    pair = Pair()
    for number in range(3):
        pair.client.fetch(FullTrackName((b"live",), b"%d" % number))
    pair.run()
    for number, event in enumerate(pair.seen(1, RequestReceived)):
        pair.server.open_fetch(
            event.request, ListSource(obj(number, n, bytes(30_000)) for n in range(40))
        )
    pair.taps[1].window = 1_800_000
    pair.run()
    counts = Counter(group for group, _, _ in order(pair))
    assert max(counts.values()) - min(counts.values()) <= 3
    assert 3 == len(counts)


@pytest.mark.parametrize("priority", [3, 128, 250])
def test_equals_share_a_narrow_path(priority: int) -> None:
    """R190: with room for part of an Object at a time, a later equal is served from the start."""
    pair = Pair()
    pair.taps[1].window = 120
    for number in range(2):
        pair.client.fetch(FullTrackName((b"live",), b"%d" % number))
    pair.run()
    for number, event in enumerate(pair.seen(1, RequestReceived)):
        pair.server.open_fetch(
            event.request,
            ListSource(obj(number, n, bytes(1000), priority=priority) for n in range(5)),
        )
        pair.run()
    for window in (7, 100) * 20:
        pair.taps[1].window = window
        pair.run()
    shares = [len(pair.taps[1].on_stream(stream)) for stream in pair.taps[1].data_streams()]
    assert 120 + 20 * 107 == sum(shares)
    assert abs(shares[0] - shares[1]) <= 250


def test_a_later_fetch_goes_by_the_priority_of_its_objects() -> None:
    """R190: Publisher Priority counts from the first Object of a fetch on."""
    pair = Pair()
    pair.taps[1].window = 60
    for number in range(3):
        pair.client.fetch(FullTrackName((b"live",), b"%d" % number))
    pair.run()
    for event, priority in zip(pair.seen(1, RequestReceived), (100, 3, 200), strict=True):
        source = ListSource(obj(priority, n, bytes(200), priority=priority) for n in range(2))
        pair.server.open_fetch(event.request, source)
        pair.run()
    for _ in range(60):
        pair.taps[1].window = 50
        pair.run()
    assert [3, 3, 100, 100, 200, 200] == [group for group, _, _ in order(pair)]


def test_stream_credit_goes_to_the_most_urgent() -> None:
    """Without stream credit everything waits; what comes serves the most urgent first."""
    pair = Pair()
    _, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].credit[True] = 0
    for group in (3, 1, 2):
        sender.offer(obj(group, 0))
        sender.end_subgroup(group, 0)
    pair.run()
    assert [] == order(pair)
    for _ in range(2):
        pair.taps[1].credit[True] = 1
        pair.run()
    assert [1, 2] == [group for group, _, _ in order(pair)]


def test_many_streams_with_little_credit_all_finish() -> None:
    """160 streams against credit that comes back one by one: no deadlock."""
    pair = Pair()
    _, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].credit[True] = 8
    for group in range(160):
        sender.offer(obj(group, 0, bytes(50)))
        sender.end_subgroup(group, 0)
    for _ in range(160):
        pair.run()
        pair.taps[1].credit[True] += 1
    pair.run()
    assert list(range(160)) == [group for group, _, _ in order(pair)]


def test_a_fill_of_other_order_comes_after_the_subscription() -> None:
    """R190: fill and subscription in different Group Orders: the subscription's Objects first."""
    pair = Pair()
    fill = Parameters(location_filter=FROM_START, group_order=2)
    _, theirs = subscribed(pair, Parameters(location_filter=NEXT_OBJECT, fill=fill), Location(1, 0))
    sender = theirs.sender
    assert sender is not None
    sender.open_fill(theirs.id, ListSource([obj(1, 0), obj(0, 0)]))
    sender.offer(obj(5, 0))
    pair.run()
    assert [5, 1, 0] == [group for group, _, _ in order(pair)]


def test_a_blocked_stream_does_not_block_others() -> None:
    """Flow control of one stream holds back that stream only."""
    pair = Pair()
    _, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    plain = pair.taps[1].room

    def room(stream_id: int) -> int:
        written = len(pair.taps[1].on_stream(7))
        return max(0, 10 - written) if stream_id == 7 else plain(stream_id)

    pair.taps[1].room = room  # type: ignore[method-assign]
    sender.offer(obj(0, 0, bytes(100)))
    sender.offer(obj(1, 0))
    pair.run()
    assert [1] == [group for group, _, _ in order(pair)]
    pair.taps[1].room = plain  # type: ignore[method-assign]
    pair.run()
    assert [1, 0] == [group for group, _, _ in order(pair)]
    assert TRACK == theirs.track


def test_no_stream_is_opened_without_room_for_it() -> None:
    """Streams are a credit, too: a connection without room opens one and waits."""
    pair = Pair()
    _, theirs = subscribed(pair)
    sender = theirs.sender
    assert sender is not None
    pair.taps[1].window = 0
    for group in range(10):
        sender.offer(obj(group, 0))
    for _ in range(10):
        pair.run()
    assert 2 == pair.taps[1].opened[True]
    pair.taps[1].window = None
    pair.run()
    assert 10 == len(pair.seen(0, ObjectReceived))
