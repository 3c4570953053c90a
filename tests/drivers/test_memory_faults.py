"""Faults of the simulated network, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from moqt.drivers.memory import Link, Network, SimulationError

from tests.drivers.memory_pair import Pair
from tests.drivers.stand_in import (
    FACTORY,
    StandInDraft,
    StandInEndpoint,
    stand_in_config,
)


def test_unknown_name_is_a_close_without_code() -> None:
    """A URL that names nobody ends in connection_closed(None) and says so."""
    net = Network(session_factory=FACTORY)
    session: Any = net.client("c", StandInEndpoint()).connect("moqt://nobody/", stand_in_config())
    net.run(lambda: session.closed)
    assert [("closed", None, "no node listens as 'nobody'", False)] == session.told


def test_alpn_that_the_server_does_not_take_is_refused() -> None:
    """No common version: no session (MOQT-22 §6.2)."""
    net = Network(session_factory=FACTORY)
    server = StandInEndpoint()
    net.listen("s", server, stand_in_config())
    config = stand_in_config(draft=StandInDraft("moqt-07"))
    session: Any = net.client("c", StandInEndpoint()).connect("moqt://s/", config)
    net.run(lambda: session.closed)
    assert [None] == [event[1] for event in session.told]
    assert "moqt-07" in session.told[0][2]
    assert [] == server.sessions


def test_partition_delays_streams_and_drops_datagrams() -> None:
    """After heal, streams go on where they were, in order; datagrams sent meanwhile are gone."""
    pair = Pair()
    stream_id = pair.open()
    pair.net.partition("client", "server")
    pair.near.transport.send(stream_id, b"a")
    pair.near.transport.send_datagram(b"gone")
    pair.net.run(pair.net.now + 5.0)
    assert {} == pair.far.received
    pair.net.heal("client", "server")
    pair.near.transport.send(stream_id, b"b", True)
    pair.until(lambda: stream_id in pair.far.finished)
    assert b"ab" == pair.far.received[stream_id]
    assert [] == pair.far.named("datagram")


def test_partition_that_lasts_loses_the_connection() -> None:
    """Both sides lose it after the idle timeout, without a code."""
    pair = Pair(idle_timeout=10.0)
    pair.net.partition("client", "server")
    start = pair.net.now
    pair.until(lambda: pair.near.closed and pair.far.closed)
    assert pytest.approx(10.0) == pair.net.now - start
    assert [None, None] == [s.named("closed")[0][1] for s in (pair.near, pair.far)]


def test_severed_connection_is_lost_and_a_new_one_is_not() -> None:
    """Nothing passes on it, both ends lose it after the idle timeout; the nodes can meet again."""
    pair = Pair(idle_timeout=10.0)
    stream_id = pair.open()
    pair.net.sever("client", "server")
    pair.near.transport.send(stream_id, b"a", True)
    again = pair.host.connect("moqt://server/", stand_in_config())
    pair.until(lambda: bool(again.named("start")))
    start = pair.net.now
    pair.until(lambda: pair.near.closed and pair.far.closed)
    assert {} == pair.far.received
    assert 10.0 >= pair.net.now - start > 9.9
    assert not again.closed


def test_lost_piece_comes_late_and_others_overtake_it() -> None:
    """The octets of a lost packet come with its repetition, and what follows on its stream."""
    lossy = Link(latency=0.01, pieces_lost=frozenset({0}), recovery=0.5)
    seen: list[tuple[str, bytes]] = []
    pair = Pair(lossy, observer=lambda event: seen.append((event.kind, event.data)))
    one, two = pair.open(), pair.open()
    for stream_id in (one, two):
        pair.near.transport.send(stream_id, b"a")
        pair.near.transport.send(stream_id, b"b", True)
    start = pair.net.now
    pair.until(lambda: two in pair.far.finished)
    assert pytest.approx(0.01) == pair.net.now - start
    assert {two: b"ab"} == pair.far.received
    pair.until(lambda: one in pair.far.finished)
    assert pytest.approx(0.51) == pair.net.now - start
    assert b"ab" == pair.far.received[one]
    assert [b"a"] == [data for kind, data in seen if kind == "data-lost"]


def test_killed_node_goes_silent() -> None:
    """The peer of a killed node loses the connection after the idle timeout; nothing answers."""
    pair = Pair(idle_timeout=10.0)
    stream_id = pair.open()
    pair.net.kill("server")
    pair.near.transport.send(stream_id, b"a", True)
    pair.until(lambda: pair.near.closed)
    assert [("closed", None, "server went silent", False)] == pair.near.named("closed")
    assert {} == pair.far.received
    assert not pair.far.closed


def test_name_of_a_killed_node_can_listen_again() -> None:
    """A restarted server is reached by the same name."""
    pair = Pair()
    pair.net.kill("server")
    again = StandInEndpoint()
    pair.net.listen("server", again, stand_in_config())
    session = pair.host.connect("moqt://server/", stand_in_config())
    pair.until(lambda: bool(session.named("start")))
    assert 1 == len(again.sessions)


def test_faults_act_behind_the_session() -> None:
    """reset_stream and stop_sending reach the peer as if the session had sent them."""
    pair = Pair()
    one, two = pair.open(), pair.open()
    for stream_id in (one, two):
        pair.near.transport.send(stream_id, b"a")
    pair.until(lambda: two in pair.far.received)
    pair.net.reset_stream(pair.near, one, 9)
    pair.net.stop_sending(pair.far, two, 8)
    pair.until(lambda: len(pair.far.named("reset")) == 2)
    assert {("reset", one, 9), ("reset", two, 8)} == set(pair.far.named("reset"))


def test_condition_that_never_holds_is_an_error() -> None:
    """Nothing scheduled, or the limit passed: SimulationError, not a hang."""
    pair = Pair()
    with pytest.raises(SimulationError, match="nothing more happens"):
        pair.net.run(lambda: False)
    pair.near.timer = pair.net.now + 100.0
    with pytest.raises(SimulationError, match="within 60 s"):
        pair.net.run(lambda: False)


def test_timer_that_does_not_move_is_an_error() -> None:
    """An endpoint whose timer is always due is found out."""
    pair = Pair()

    class Looping(StandInEndpoint):
        def next_timer(self) -> float | None:
            return 1.0

    pair.net.client("loop", Looping())
    with pytest.raises(SimulationError, match="time does not move"):
        pair.net.run(lambda: False)


@pytest.mark.parametrize(
    "bad",
    [
        {"latency": -1.0},
        {"jitter": -1.0},
        {"recovery": -1.0},
        {"bandwidth": 0.0},
        {"chunk": (0, 5)},
        {"chunk": (6, 5)},
    ],
)
def test_link_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    """A link that would stand still or go back in time is a ValueError."""
    with pytest.raises(ValueError, match="a link's"):
        Link(**bad)


def test_names_that_are_not_there_are_errors() -> None:
    """A second node of one name, and faults on unknown nodes or sessions, say what is wrong."""
    pair = Pair()
    with pytest.raises(ValueError, match="has a node 'server' already"):
        pair.net.client("server", StandInEndpoint())
    with pytest.raises(ValueError, match="has no node 'nobody'; it has server, client"):
        pair.net.kill("nobody")
    pair.near.transport.close(0, "")
    pair.until(lambda: pair.far.closed)
    with pytest.raises(ValueError, match="not, or no longer"):
        pair.net.reset_stream(pair.near, 2, 0)
