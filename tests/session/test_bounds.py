"""What a peer can make a session remember, and what each message may cost (MOQT-22 §19)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from moqt.session import prefixes
from moqt.session.events import (
    NamespaceEnded,
    NamespaceReceived,
    RequestCancelled,
    RequestReceived,
)
from moqt.session.exchange import RequestStream
from moqt.session.intervals import MAX_INTERVALS, Intervals
from moqt.session.prefixes import Prefixes
from moqt.session.registry import Registry
from moqt.session.requests import Request, RequestIds
from moqt.session.subscription import Delivered
from moqt.session.trackrules import MAX_GROUPS, MAX_PARTS, MAX_SUBGROUPS, TrackRules
from moqt.wire.codec import encode_message
from moqt.wire.drafts import DRAFT_22
from moqt.wire.errors import RemoteProtocolError, RequestErrorCode, SessionError, StreamError
from moqt.wire.messages import (
    NO_PARAMETERS,
    Message,
    Namespace,
    NamespaceDone,
    RequestOk,
    Subscribe,
    SubscribeNamespace,
    TrackStatus,
)
from moqt.wire.names import TrackNamespace
from moqt.wire.properties import PropertyType, encode_properties

from tests.session.pair import TRACK, ListSource, Pair, RawPeer, obj, subscribed


def frame(message: Message) -> bytes:
    """A message in octets."""
    return encode_message(message, DRAFT_22)


def request(number: int) -> Request:
    """A request of the peer's."""
    message = SubscribeNamespace(2 * number, (b"a",), NO_PARAMETERS)
    return Request.of(RawPeer().session, message, ours=False)


# Open requests.


def test_requests_that_ended_make_room() -> None:
    """R230: answered, refused, done and cancelled requests do not count; open ones do."""
    peer = RawPeer(max_open_requests=4)
    session = peer.session
    streams = [peer.request(frame(Subscribe(2 * n, TRACK, NO_PARAMETERS))) for n in range(3)]
    peer.request(frame(TrackStatus(6, TRACK, NO_PARAMETERS)))
    one, two, _, status = [event.request for event in peer.seen(RequestReceived)]
    peer.request(frame(Subscribe(8, TRACK, NO_PARAMETERS)))
    assert 4 == len(peer.seen(RequestReceived))
    session.accept(status)
    session.refuse(one, RequestErrorCode.TIMEOUT)
    session.accept_subscribe(two, largest=None).finish(0)
    peer.take()
    session.stream_reset(streams[2], 0, peer.now)
    for number in range(5, 10):
        peer.request(frame(Subscribe(2 * number, TRACK, NO_PARAMETERS)))
    assert 8 == len(peer.seen(RequestReceived))


def test_a_request_beyond_the_limit_looks_at_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """R230: to refuse it costs the same, however many are open."""
    looks: list[RequestStream] = []
    live = Registry.live

    def counted(registry: Registry) -> Iterator[RequestStream]:
        for stream in live(registry):
            looks.append(stream)
            yield stream

    monkeypatch.setattr(Registry, "live", counted)
    peer = RawPeer(max_open_requests=8)
    for number in range(10):
        peer.request(frame(Subscribe(2 * number, TRACK, NO_PARAMETERS)))
    assert 8 == len(peer.seen(RequestReceived))
    assert [] == looks


def test_a_prefix_is_compared_with_no_other_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """R230: thousands of discovery requests may be open; one more looks up its own path alone."""
    peer = RawPeer()
    comparisons = 0

    def counted(prefix: TrackNamespace, namespace: TrackNamespace) -> bool:
        nonlocal comparisons
        comparisons += 1
        return namespace[: len(prefix)] == prefix

    monkeypatch.setattr(prefixes, "is_prefix", counted)
    for number in range(100):
        prefix = (b"live", b"%d" % number, b"x")
        peer.request(frame(SubscribeNamespace(2 * number, prefix, NO_PARAMETERS)))
    assert 100 == len(peer.seen(RequestReceived))
    assert comparisons <= 2 * 100


def test_prefixes_of_requests_that_ended_are_free() -> None:
    """R194: above, at and below a live prefix there is none; nothing is left of an ended one."""
    ours = Prefixes()
    one, two, three = (request(number) for number in range(3))
    ours.set(one, (b"a", b"b"))
    for taken in ((), (b"a",), (b"a", b"b"), (b"a", b"b", b"c")):
        assert ours.overlaps(two, taken)
        assert not ours.overlaps(one, taken)
    for free in ((b"b",), (b"a", b"c")):
        assert not ours.overlaps(two, free)
    ours.set(two, (b"a", b"c"))
    assert ours.overlaps(one, (b"a",))
    ours.set(one, (b"z",))
    assert not ours.overlaps(three, (b"a", b"b"))
    ours.discard(one)
    ours.discard(two)
    ours.discard(three)
    assert not ours.overlaps(three, ())


# Request IDs.


def test_ids_may_come_in_any_order() -> None:
    """R057: each once; a repeated one is INVALID_REQUEST_ID wherever it lies."""
    ids = RequestIds(is_client=False)
    for request_id in (8, 2, 0, 6):
        ids.use_of_peer(request_id)
    for request_id in (0, 2, 6, 8):
        with pytest.raises(RemoteProtocolError) as caught:
            ids.use_of_peer(request_id)
        assert SessionError.INVALID_REQUEST_ID == caught.value.code
    ids.use_of_peer(4)


def test_ids_that_are_left_out_cost_no_memory_without_end() -> None:
    """Of thousands of gaps the oldest count as used; the later ones may still be filled."""
    ids = RequestIds(is_client=False)
    count = MAX_INTERVALS + 100
    for number in range(count):
        ids.use_of_peer(4 * number)
    for request_id in (4 * count - 6, 4 * 102 - 2):
        ids.use_of_peer(request_id)
    with pytest.raises(RemoteProtocolError) as caught:
        ids.use_of_peer(4 * 50 - 2)
    assert SessionError.INVALID_REQUEST_ID == caught.value.code


# Objects.


@pytest.mark.parametrize("step", [2, -2])
def test_intervals_are_few_in_either_direction(step: int) -> None:
    """Thousands of separate members, upwards or downwards: the lowest ones are forgotten."""
    members = Intervals()
    for value in range(30_000, 30_000 + step * (MAX_INTERVALS + 50), step):
        members.add(value, value)
    assert MAX_INTERVALS == len(members)
    assert members.largest in members


def test_subgroups_of_all_groups_together_are_bounded() -> None:
    """The rules forget the first Groups once what they remember in all of them is too much."""
    rules = TrackRules()
    groups = MAX_PARTS // MAX_SUBGROUPS + 1
    for group in range(groups):
        for subgroup in range(MAX_SUBGROUPS):
            assert rules.received(obj(group, subgroup, subgroup=subgroup, priority=1)) is None
    assert rules.received(obj(0, 9, subgroup=5, priority=2)) is None
    assert rules.received(obj(groups - 1, 9, subgroup=5, priority=2)) is not None


def test_a_gap_over_a_group_of_long_ago_is_found() -> None:
    """R180: which Groups came is known longer than what came of them."""
    rules = TrackRules()
    groups = MAX_GROUPS + 10
    for group in range(groups):
        assert rules.received(obj(group, 0)) is None
    gap = encode_properties([(PropertyType.PRIOR_GROUP_ID_GAP, groups - 5)])
    breach = f"a gap before Group {groups} covers a Group that came"
    assert breach == rules.received(obj(groups, 0, properties=gap))
    apart = encode_properties([(PropertyType.PRIOR_GROUP_ID_GAP, 2)])
    assert rules.received(obj(groups + 2, 0, properties=apart)) is None


def test_groups_with_few_parts_are_all_remembered() -> None:
    """The sum costs no ordinary Track its memory: 4,096 Groups of 2 subgroups each."""
    rules = TrackRules()
    for group in range(MAX_GROUPS):
        for subgroup in range(2):
            assert rules.received(obj(group, subgroup, subgroup=subgroup, priority=1)) is None
    assert rules.received(obj(0, 9, subgroup=0, priority=2)) is not None


def test_what_was_delivered_is_remembered_within_bounds() -> None:
    """Several subscriptions on one alias: a duplicate is known unless it is very old."""
    delivered = Delivered()
    each = MAX_INTERVALS - 1
    for group in range(MAX_PARTS // each + 1):
        for number in range(each):
            assert delivered.is_new(obj(group, 2 * number))
    assert delivered.is_new(obj(0, 0))
    assert not delivered.is_new(obj(2, 0))


# Octets that wait.


def test_a_request_that_comes_octet_by_octet_before_setup_costs_its_octets() -> None:
    """What waits for SETUP is charged by its octets, so it may not cost many times as much."""
    peer = RawPeer(setup=None)
    piece = bytes(2)
    stream = peer.request(piece)
    count = 20_000
    tracemalloc.start()
    try:
        for _ in range(count):
            peer.session.stream_data(stream, memoryview(piece), False, peer.now)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 4 * count * len(piece)


def test_what_came_before_setup_is_read_after_it() -> None:
    """In any pieces, FIN alone included; a stream that was cancelled meanwhile is not read."""
    peer = RawPeer(setup=None)
    octets = frame(TrackStatus(0, TRACK, NO_PARAMETERS))
    stream = peer.request(octets[:3])
    cancelled = peer.request(octets)
    peer.session.stream_reset(cancelled, 0, peer.now)
    peer.send(stream, octets[3:])
    peer.send(stream, b"", fin=True)
    peer.send(peer.control, "af000000")
    assert [stream] == [event.request.stream_id for event in peer.seen(RequestReceived)]
    assert peer.code is None


# Namespaces in view.


def view(peer: RawPeer, names: range) -> None:
    """NAMESPACE for each number, on the session's first request stream."""
    for name in names:
        peer.send(0, frame(Namespace((b"%d" % name,))))


def test_a_view_of_too_many_namespaces_is_given_up() -> None:
    """R230: the request is cancelled with EXCESSIVE_LOAD, and what it named is gone."""
    peer = RawPeer(session_is_client=True, max_announced=3)
    peer.session.subscribe_namespace((b"live",))
    peer.send(0, frame(RequestOk(NO_PARAMETERS, b"")))
    view(peer, range(3))
    peer.send(0, frame(NamespaceDone((b"1",))))
    view(peer, range(2, 4))
    assert [] == peer.seen(RequestCancelled)
    view(peer, range(4, 6))
    assert [StreamError.EXCESSIVE_LOAD] == [event.code for event in peer.seen(RequestCancelled)]
    assert {0: StreamError.EXCESSIVE_LOAD} == peer.tap.codes("reset")
    assert {0: StreamError.EXCESSIVE_LOAD} == peer.tap.codes("stop")
    assert 4 == len(peer.seen(NamespaceReceived)) == len(peer.seen(NamespaceEnded))
    assert peer.code is None


# Headers that do not come.


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("70", SessionError.DATA_STREAM_TIMEOUT),
        ("c0", SessionError.DATA_STREAM_TIMEOUT),
        ("05", SessionError.DATA_STREAM_TIMEOUT),
        ("70 07", SessionError.DATA_STREAM_TIMEOUT),
        ("70 07 80", SessionError.DATA_STREAM_TIMEOUT),
        ("70 07 03", None),
        ("70 07 03 00", None),
        ("05 02", None),
    ],
    ids=[
        "no alias",
        "half a type",
        "no request",
        "no group",
        "half a group",
        "whole subgroup header",
        "half an Object header",
        "whole fetch header",
    ],
)
def test_a_header_that_does_not_come_closes_in_time(octets: str, code: int | None) -> None:
    """MOQT-22 §19.3: counted from the first octet; what follows a header may take any time."""
    peer = RawPeer(session_is_client=True, data_stream_timeout=20.0)
    peer.session.subscribe(TRACK)
    peer.session.fetch(TRACK)
    peer.send(0, "04 0002 07 00")
    stream = peer.uni
    peer.uni += 4
    for octet in bytes.fromhex(octets):
        peer.send(stream, bytes((octet,)))
        peer.wait(1.0)
    peer.wait(18.9 - len(bytes.fromhex(octets)))
    assert peer.code is None
    peer.wait(1.2)
    assert code == peer.code


def test_each_header_has_its_own_time() -> None:
    """Those that came in time, were reset or have ended do not count; the next one does."""
    peer = RawPeer(session_is_client=True, data_stream_timeout=10.0)
    peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    late = peer.stream("70 07")
    reset = peer.stream("70")
    peer.wait(6.0)
    never = peer.stream("70 07")
    peer.send(late, "03 00 01 61", fin=True)
    peer.session.stream_reset(reset, 0, peer.now)
    peer.wait(9.9)
    assert peer.code is None
    peer.wait(0.2)
    reason = f"the header of stream {never} was incomplete for 10 s"
    assert (SessionError.DATA_STREAM_TIMEOUT, reason) == peer.tap.closed


def test_no_header_is_late_on_a_stream_that_we_hold_back() -> None:
    """The time of a paused stream starts anew, and runs when the pause is over."""
    peer = RawPeer(session_is_client=True, data_stream_timeout=10.0)
    request = peer.session.subscribe(TRACK)
    peer.send(0, "04 0002 07 00")
    peer.stream("70 07")
    peer.session.pause_request(request)
    peer.wait(95.0)
    peer.session.resume_request(request)
    peer.wait(4.0)
    assert peer.code is None
    peer.wait(2.0)
    assert SessionError.DATA_STREAM_TIMEOUT == peer.code


def test_the_wait_for_an_alias_is_no_late_header() -> None:
    """A header that is there but cannot be read yet has the time of early data instead."""
    peer = RawPeer(session_is_client=True, data_stream_timeout=3.0, done_timeout=60.0)
    peer.session.subscribe(TRACK)
    peer.stream("70 07")
    peer.wait(50.0)
    assert peer.code is None
    peer.send(0, "04 0002 07 00")
    peer.wait(3.1)
    assert SessionError.DATA_STREAM_TIMEOUT == peer.code


@pytest.mark.parametrize("room", [1, 3, 5])
def test_our_own_headers_come_whole(room: int) -> None:
    """However little room there is: behind more urgent streams their end might come too late."""
    pair = Pair()
    _, theirs = subscribed(pair)
    assert theirs.sender is not None
    pair.taps[1].window = room
    theirs.sender.offer(obj(300, 0, bytes(50), subgroup=300))
    pair.run()
    pair.client.fetch(TRACK)
    pair.run()
    pair.taps[1].window = 1
    pair.server.open_fetch(pair.request(), ListSource([]))
    pair.run()
    subgroup, fetch = pair.taps[1].data_streams()
    assert b"\x05\x02" == pair.taps[1].on_stream(fetch)
    # Type, alias 0, Group 300, Subgroup 300.
    assert bytes.fromhex("00 812c 812c") == pair.taps[1].on_stream(subgroup)[1:6]
    pair.wait(60.0)
    assert not pair.client.closed
