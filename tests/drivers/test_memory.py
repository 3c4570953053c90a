"""The simulated network, seen by sessions that only record."""

from __future__ import annotations

import pytest
from moqt.drivers.memory import ConnectionEvent, Link

from tests.drivers.memory_pair import Pair


def test_connection_takes_a_round_trip() -> None:
    """The server's session opens after one latency, the client's after two."""
    pair = Pair(Link(latency=0.25))
    assert 0.5 == pair.net.now
    assert ("start",) == pair.far.told[0]
    assert 0.25 == pair.far.now
    assert ("moqt://server/p", "moqt-22") == (pair.near.url, pair.near.alpn)


def test_stream_octets_and_fin_arrive_after_the_latency() -> None:
    """What is sent arrives whole, in order, once, and is then acknowledged."""
    pair = Pair(Link(latency=0.1))
    stream_id = pair.open()
    pair.near.transport.send(stream_id, b"ab")
    pair.near.transport.send(stream_id, memoryview(b"cd"), True)
    sent = pair.net.now
    assert not pair.near.transport.all_acknowledged(stream_id)
    pair.until(lambda: stream_id in pair.far.finished)
    assert b"abcd" == pair.far.received[stream_id]
    assert pytest.approx(0.1) == pair.net.now - sent
    pair.until(lambda: pair.near.transport.all_acknowledged(stream_id))


def test_stream_ids_follow_rfc_9000() -> None:
    """Bit 0 marks the server's streams, bit 1 unidirectional ones."""
    pair = Pair()
    near, far = pair.near.transport, pair.far.transport
    opened = [
        t.open_stream(unidirectional=u)
        for t in (near, far)
        for u in (False, True)
        for _ in range(2)
    ]
    assert [0, 4, 2, 6, 1, 5, 3, 7] == opened


def test_answer_travels_back_on_a_bidirectional_stream() -> None:
    """Both directions of a request stream work and end on their own."""
    pair = Pair()
    stream_id = pair.open(unidirectional=False)
    pair.near.transport.send(stream_id, b"ask", True)
    pair.until(lambda: stream_id in pair.far.finished)
    pair.far.transport.send(stream_id, b"answer", True)
    pair.until(lambda: stream_id in pair.near.finished)
    assert b"answer" == pair.near.received[stream_id]


def test_chunks_split_what_arrives() -> None:
    """Partial delivery: pieces of the sizes that the link allows."""
    pair = Pair(Link(chunk=(1, 3)))
    stream_id = pair.open()
    data = bytes(range(100))
    pair.near.transport.send(stream_id, data, True)
    pair.until(lambda: stream_id in pair.far.finished)
    assert data == pair.far.received[stream_id]
    assert {1, 2, 3} == set(pair.far.pieces[stream_id])


def test_jitter_reorders_streams_but_not_octets() -> None:
    """Streams overtake each other; each keeps its own order."""
    pair = Pair(Link(jitter=0.1, chunk=(1, 50)))
    ids = [pair.open() for _ in range(8)]
    data = bytes(range(200))
    for stream_id in ids:
        pair.near.transport.send(stream_id, data, True)
    pair.until(lambda: pair.far.finished == set(ids))
    assert all(data == pair.far.received[stream_id] for stream_id in ids)
    first = list(dict.fromkeys(event[1] for event in pair.far.named("data")))
    assert sorted(first) != first


def test_course_is_a_function_of_the_seed() -> None:
    """Equal seeds give equal events at equal times; another seed gives others."""

    def course(seed: int) -> list[ConnectionEvent]:
        seen: list[ConnectionEvent] = []
        link = Link(jitter=0.05, chunk=(1, 40), datagram_loss=0.5)
        pair = Pair(link, seed, observer=seen.append)
        for _ in range(5):
            pair.near.transport.send(pair.open(), bytes(200), True)
            pair.near.transport.send_datagram(b"d")
        pair.net.run(pair.net.now + 1.0)
        return seen

    assert course(1) == course(1)
    assert course(1) != course(2)


def test_narrow_link_keeps_the_order_of_the_writes() -> None:
    """Octets leave at the bandwidth, in the order in which the session wrote them."""
    pair = Pair(Link(latency=0.0, bandwidth=1200.0))
    ids = [pair.open() for _ in range(3)]
    start = pair.net.now
    for stream_id in (ids[2], ids[0], ids[1], ids[0]):
        pair.near.transport.send(stream_id, bytes(1200))
    pair.until(lambda: sum(len(r) for r in pair.far.received.values()) == 4800)
    assert [ids[2], ids[0], ids[1], ids[0]] == [event[1] for event in pair.far.named("data")]
    assert pytest.approx(4.0) == pair.net.now - start


def test_narrow_link_bounds_what_a_sender_buffers() -> None:
    """`room` counts down to 0 with the buffer and grows again as the link takes octets."""
    pair = Pair(Link(bandwidth=10_000.0, buffer=4000))
    stream_id = pair.open()
    pair.near.send_all(stream_id, bytes(40_000))
    assert 0 == pair.near.transport.room(stream_id)
    pair.until(lambda: stream_id in pair.far.finished)
    assert 40_000 == len(pair.far.received[stream_id])


def test_flow_control_counts_what_was_consumed() -> None:
    """A paused stream takes one window and no more; the rest comes after resume."""
    pair = Pair(Link(stream_window=1000))
    stream_id = pair.open()
    pair.near.transport.send(stream_id, b"x")
    pair.until(lambda: stream_id in pair.far.received)
    pair.far.transport.pause(stream_id)
    pair.near.send_all(stream_id, bytes(5000))
    pair.net.run(pair.net.now + 1.0)
    assert 1 == len(pair.far.received[stream_id])
    assert 0 == pair.near.transport.room(stream_id)
    pair.far.transport.resume(stream_id)
    pair.until(lambda: stream_id in pair.far.finished)
    assert 5001 == len(pair.far.received[stream_id])


def test_paused_streams_cost_the_connection_what_exceeds_a_window() -> None:
    """A window of held octets is granted again; a quarter of the credit is left to requests."""
    pair = Pair(Link(stream_window=1000, connection_window=1600))
    first, second, other = pair.open(), pair.open(), pair.open()
    for held in (first, second):
        pair.near.transport.send(held, b"x")
        pair.net.run(pair.net.now + 1.0)
        assert held in pair.far.received
        pair.far.transport.pause(held)
    pair.near.send_all(first, bytes(999))
    pair.net.run(pair.net.now + 1.0)
    assert 1000 == pair.near.transport.room(other)
    pair.near.send_all(second, bytes(999))
    pair.net.run(pair.net.now + 1.0)
    # The last credit went out when 1001 octets were read or held; the next is not due yet.
    assert 1001 + 1600 - 2000 - 400 == pair.near.transport.room(other)
    pair.far.transport.resume(first)
    pair.far.transport.resume(second)
    pair.until(lambda: pair.near.transport.room(other) == 1000)


def test_more_than_the_window_sent_at_once_waits_for_credit() -> None:
    """A sender that does not ask `room` loses nothing: the rest goes when credit comes."""
    pair = Pair(Link(stream_window=100, connection_window=150))
    first, second = pair.open(), pair.open()
    pair.near.transport.send(first, bytes(700), True)
    pair.near.transport.send(second, bytes(10), True)
    pair.until(lambda: pair.far.finished == {first, second})
    assert 700 == len(pair.far.received[first])


def test_stream_credit_returns_when_streams_end() -> None:
    """No stream beyond the peer's limit; one more for each that ended in both directions."""
    pair = Pair(Link(unidirectional_streams=2, bidirectional_streams=1))
    transport = pair.near.transport
    first, _ = pair.open(), pair.open()
    assert transport.open_stream(unidirectional=True) is None
    transport.send(first, b"", True)
    pair.until(lambda: first in pair.far.finished)
    pair.net.run(pair.net.now + 1.0)
    assert 10 == transport.open_stream(unidirectional=True)
    request = pair.open(unidirectional=False)
    transport.send(request, b"ask", True)
    pair.until(lambda: request in pair.far.finished)
    pair.net.run(pair.net.now + 1.0)
    assert transport.open_stream(unidirectional=False) is None
    pair.far.transport.reset(request, 1)
    pair.net.run(pair.net.now + 1.0)
    assert 4 == transport.open_stream(unidirectional=False)


def test_reset_reaches_the_peer_with_its_code() -> None:
    """RESET_STREAM ends the stream; what had not left is dropped."""
    pair = Pair()
    stream_id = pair.open()
    pair.near.transport.send(stream_id, b"ab")
    pair.near.transport.reset(stream_id, 5)
    pair.near.transport.send(stream_id, b"late")
    pair.until(lambda: bool(pair.far.named("reset")))
    assert [("reset", stream_id, 5)] == pair.far.named("reset")
    assert b"ab" == pair.far.received[stream_id]


@pytest.mark.parametrize(("own", "expected"), [(None, 7), (2, 2)])
def test_stop_sending_is_answered_with_a_reset(own: int | None, expected: int) -> None:
    """The session resets with its own code, else the driver copies the peer's."""
    pair = Pair()
    pair.near.reset_on_stop = own
    stream_id = pair.open()
    pair.near.transport.send(stream_id, b"a")
    pair.until(lambda: stream_id in pair.far.received)
    pair.far.transport.stop_sending(stream_id, 7)
    pair.until(lambda: bool(pair.far.named("reset")))
    assert [("stop", stream_id, 7)] == pair.near.named("stop")
    assert [("reset", stream_id, expected)] == pair.far.named("reset")


def test_datagrams_named_lost_do_not_arrive() -> None:
    """The loss list names datagrams by their number; one that is too large is refused."""
    pair = Pair(Link(datagrams_lost=frozenset({1}), max_datagram=3))
    sent = [pair.near.transport.send_datagram(d) for d in (b"a", b"b", b"c", b"toolong")]
    pair.net.run(pair.net.now + 1.0)
    assert [True, True, True, False] == sent
    assert [("datagram", b"a"), ("datagram", b"c")] == pair.far.named("datagram")


def test_close_comes_after_what_was_sent_before_it() -> None:
    """Both sides hear the code; the octets before it arrive first, jitter or not."""
    pair = Pair(Link(jitter=0.1, chunk=(1, 9), stream_window=50))
    stream_id = pair.open()
    pair.near.transport.send(stream_id, bytes(300), True)
    pair.near.transport.close(3, "broken")
    pair.until(lambda: pair.far.closed and pair.near.closed)
    assert 300 == len(pair.far.received[stream_id])
    assert [("closed", 3, "broken", True)] == pair.far.named("closed")
    assert [("closed", 3, "broken", False)] == pair.near.named("closed")
    assert pair.near.transport.open_stream(unidirectional=True) is None


def test_close_gives_up_on_a_peer_that_grants_nothing() -> None:
    """A peer that reads nothing does not keep a connection from closing."""
    pair = Pair(Link(stream_window=10))
    stream_id = pair.open()
    pair.near.transport.send(stream_id, b"x")
    pair.until(lambda: stream_id in pair.far.received)
    pair.far.transport.pause(stream_id)
    pair.near.transport.send(stream_id, bytes(300), True)
    pair.near.transport.close(0, "")
    pair.until(lambda: pair.far.closed)
    assert [("closed", 0, "", True)] == pair.far.named("closed")


def test_timers_of_sessions_and_endpoints_fire_at_their_time() -> None:
    """Virtual time goes to the earliest timer; a timer that was withdrawn does not fire."""
    pair = Pair()
    pair.near.timer = pair.net.now + 3.0
    pair.client.timer = pair.net.now + 2.0
    pair.server.timer = pair.net.now + 1.0
    start = pair.net.now
    pair.net.at(start + 0.5, lambda: setattr(pair.server, "timer", None))
    pair.until(lambda: bool(pair.near.named("timer")))
    assert pytest.approx(start + 3.0) == pair.net.now
    assert [pytest.approx(start + 2.0)] == pair.client.timers
    assert [] == pair.server.timers


def test_callback_acts_at_its_time() -> None:
    """`at` runs the callback at that time with sessions that know the time."""
    pair = Pair(Link(latency=0.5))
    times: list[float] = []
    pair.net.at(10.0, lambda: times.append(pair.near.now))
    pair.net.run(20.0)
    assert [10.0] == times
    assert 20.0 == pair.net.now


def test_observer_sees_what_passes() -> None:
    """Every frame that matters is told once at each side, with its octets."""
    seen: list[ConnectionEvent] = []
    pair = Pair(observer=seen.append)
    stream_id = pair.open()
    pair.near.transport.send(stream_id, b"ab", True)
    pair.until(lambda: stream_id in pair.far.finished)
    kinds = [(event.node, event.kind, event.data, event.fin) for event in seen]
    assert [
        ("client", "connecting", b"", False),
        ("server", "established", b"", False),
        ("client", "established", b"", False),
        ("client", "data-sent", b"ab", True),
        ("server", "data-received", b"ab", True),
    ] == kinds
