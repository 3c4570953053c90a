"""The same session, the same scenarios, over both drivers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from moqt.drivers.memory import Link, Network
from moqt.drivers.quic import QuicOptions
from moqt.session import FetchState, Session, SessionConfig, SubscriptionSender
from moqt.session.events import (
    Event,
    ObjectReceived,
    RequestAccepted,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    SessionClosed,
    SetupReceived,
    StreamEnded,
    StreamStopped,
    SubscriptionEnded,
    Via,
)
from moqt.session.fetching import FetchItem
from moqt.wire.errors import PublishDoneCode, RequestErrorCode, StreamError
from moqt.wire.filters import NEXT_OBJECT, LocationFilter, LocationFilterType
from moqt.wire.messages import Fetch, FetchOk, Parameters, SetupOptions, Subscribe
from moqt.wire.names import FullTrackName, Location
from moqt.wire.objects import Object

from tests.drivers.rigs import Rig, Scenario, run_in_memory, run_over_quic

Run = Callable[[Scenario], None]

TRACK = FullTrackName((b"live",), b"video")
LIVE = Parameters(location_filter=NEXT_OBJECT)
CONFIG = SessionConfig(setup=SetupOptions(implementation=b"test"), max_object_size=1_000_000)


@pytest.fixture(params=["memory", "memory-narrow", "quic"])
def run(request: pytest.FixtureRequest, certificate: tuple[Path, Path]) -> Run:
    """Runs a scenario: on a network that reorders, on one of small windows, and on loopback."""
    if request.param == "quic":
        return lambda scenario: run_over_quic(certificate, CONFIG, scenario)
    link = Link(jitter=0.02, chunk=(1, 5000))
    if request.param == "memory-narrow":
        link = Link(bandwidth=1e6, stream_window=20_000, connection_window=30_000, buffer=8000)
    return lambda scenario: run_in_memory(Network(7, link=link), CONFIG, scenario)


def items(groups: int, objects: int, size: int, *, datagrams: bool = False) -> list[Object]:
    """Objects whose payloads tell them apart."""
    return [
        Object(Location(g, o), None if datagrams else 0, 128, bytes([g, o]) * (size // 2))
        for g in range(groups)
        for o in range(objects)
    ]


class ListSource:
    """A FetchSource over a list."""

    def __init__(self, objects: list[Object]) -> None:
        self._objects = iter(objects)

    def next_item(self) -> FetchItem:
        return next(self._objects, FetchState.END)


class Serving:
    """A publisher's answers: SUBSCRIBE is accepted, FETCH is served from `objects`."""

    def __init__(self, objects: list[Object]) -> None:
        self.objects = objects
        self.sender: SubscriptionSender | None = None

    def __call__(self, session: Session, event: Event) -> None:
        if not isinstance(event, RequestReceived):
            return
        request = event.request
        match request.message:
            case Subscribe():
                self.sender = session.accept_subscribe(request, largest=None)
            case Fetch() if self.objects:
                end = self.objects[-1].location
                session.open_fetch(request, ListSource(self.objects))
                session.accept_fetch(request, FetchOk(True, Location(end.group, end.object)))
            case _:
                session.refuse(request, RequestErrorCode.DOES_NOT_EXIST, "nothing here")

    def offer(self, objects: list[Object]) -> None:
        """Publish on the subscription."""
        assert self.sender is not None
        for item in objects:
            assert self.sender.offer(item, first=item.location.object == 0)


async def subscribe(rig: Rig, serving: Serving) -> None:
    """A subscription that both sides know of."""
    rig.publisher.answer = serving
    await rig.until(lambda: rig.consumer.seen(SetupReceived))
    await rig.act(lambda: rig.near.subscribe(TRACK, LIVE))
    await rig.until(lambda: rig.consumer.seen(RequestAccepted))


def received(rig: Rig) -> list[Object]:
    """What the consumer has, in the order of Locations."""
    objects = [event.object for event in rig.consumer.seen(ObjectReceived)]
    return sorted(objects, key=lambda item: item.location)


def test_setup_reaches_both_sides(run: Run) -> None:
    """SETUP travels both ways; the client's carries PATH and AUTHORITY (R023)."""

    async def scenario(rig: Rig) -> None:
        await rig.until(
            lambda: rig.consumer.seen(SetupReceived) and rig.publisher.seen(SetupReceived)
        )
        options = rig.publisher.seen(SetupReceived)[0].options
        assert b"/p" == options.path
        assert options.authority
        assert None is rig.consumer.seen(SetupReceived)[0].options.path
        assert b"test" == rig.consumer.seen(SetupReceived)[0].options.implementation

    run(scenario)


def test_subscription_delivers_and_ends(run: Run) -> None:
    """Every Object arrives once and whole; PUBLISH_DONE counts the streams that came."""
    objects = items(4, 5, 20_000)

    async def scenario(rig: Rig) -> None:
        serving = Serving([])
        await subscribe(rig, serving)

        def publish() -> None:
            serving.offer(objects)
            assert serving.sender is not None
            for group in range(4):
                serving.sender.end_subgroup(group, 0)
            serving.sender.finish(PublishDoneCode.TRACK_ENDED)

        await rig.act(publish)
        await rig.until(lambda: rig.consumer.seen(SubscriptionEnded))
        assert objects == received(rig)
        (ended,) = rig.consumer.seen(SubscriptionEnded)
        assert (True, 4) == (ended.complete, ended.message.stream_count)

    run(scenario)


def test_fetch_delivers_its_range(run: Run) -> None:
    """The whole range arrives in order on one stream that ends with FIN."""
    objects = items(3, 10, 10_000)
    whole = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 0, 0, 2, 9)

    async def scenario(rig: Rig) -> None:
        rig.publisher.answer = Serving(objects)
        await rig.until(lambda: rig.consumer.seen(SetupReceived))
        await rig.act(lambda: rig.near.fetch(TRACK, Parameters(location_filter=whole)))
        await rig.until(lambda: rig.consumer.seen(StreamEnded))
        events = rig.consumer.seen(ObjectReceived)
        assert objects == [event.object for event in events]
        assert {Via.FETCH} == {event.stream.via for event in events}
        assert rig.consumer.seen(StreamEnded)[0].complete

    run(scenario)


def test_refused_fetch_tells_its_code(run: Run) -> None:
    """REQUEST_ERROR arrives with code and reason; the session lives."""
    whole = LocationFilter(LocationFilterType.ABSOLUTE_RANGE, 0, 0, 2, 9)

    async def scenario(rig: Rig) -> None:
        rig.publisher.answer = Serving([])
        await rig.until(lambda: rig.consumer.seen(SetupReceived))
        await rig.act(lambda: rig.near.fetch(TRACK, Parameters(location_filter=whole)))
        await rig.until(lambda: rig.consumer.seen(RequestFailed))
        error = rig.consumer.seen(RequestFailed)[0].error
        assert error is not None
        assert (RequestErrorCode.DOES_NOT_EXIST, "nothing here") == (error.code, error.reason)
        assert not rig.near.closed

    run(scenario)


def test_cancel_reaches_the_publisher(run: Run) -> None:
    """A cancelled subscription is told to its publisher with its code."""

    async def scenario(rig: Rig) -> None:
        serving = Serving([])
        await subscribe(rig, serving)
        await rig.act(lambda: serving.offer(items(1, 3, 1000)))
        await rig.until(lambda: len(received(rig)) == 3)
        request = rig.consumer.seen(RequestAccepted)[0].request
        await rig.act(lambda: rig.near.cancel(request))
        await rig.until(lambda: rig.publisher.seen(RequestCancelled))
        assert [StreamError.CANCELLED] == [
            event.code for event in rig.publisher.seen(RequestCancelled)
        ]
        assert not rig.far.closed

    run(scenario)


def test_reset_subgroup_is_seen_with_its_code(run: Run) -> None:
    """RESET_STREAM ends the data stream at the consumer."""

    async def scenario(rig: Rig) -> None:
        serving = Serving([])
        await subscribe(rig, serving)
        await rig.act(lambda: serving.offer(items(1, 2, 1000)))
        await rig.until(lambda: len(received(rig)) == 2)

        def reset() -> None:
            assert serving.sender is not None
            serving.sender.reset_subgroup(0, 0, StreamError.INTERNAL_ERROR)

        await rig.act(reset)
        await rig.until(lambda: rig.consumer.seen(StreamEnded))
        assert [StreamError.INTERNAL_ERROR] == [e.code for e in rig.consumer.seen(StreamEnded)]

    run(scenario)


def test_stop_sending_is_seen_with_its_code(run: Run) -> None:
    """A stream that the consumer does not want further is stopped; the publisher hears it."""
    large = Object(Location(0, 0), 0, 128, bytes(1_000_001))

    async def scenario(rig: Rig) -> None:
        serving = Serving([])
        await subscribe(rig, serving)
        await rig.act(lambda: serving.offer([large]))
        await rig.until(lambda: rig.publisher.seen(StreamStopped))
        assert [] == received(rig)
        assert not rig.near.closed

    run(scenario)


def test_datagrams_carry_objects(run: Run) -> None:
    """Objects of Delivery Mode Datagram arrive as they were."""
    objects = items(1, 5, 100, datagrams=True)

    async def scenario(rig: Rig) -> None:
        serving = Serving([])
        await subscribe(rig, serving)
        await rig.act(lambda: serving.offer(objects))
        await rig.until(lambda: len(received(rig)) == 5)
        assert objects == received(rig)

    run(scenario)


@pytest.mark.slow
def test_paused_request_holds_its_publisher(run: Run) -> None:
    """What is paused costs its windows, not all; after resume everything arrives."""
    objects = items(2, 12, 100_000)

    async def scenario(rig: Rig) -> None:
        serving = Serving([])
        await subscribe(rig, serving)
        request = rig.consumer.seen(RequestAccepted)[0].request
        await rig.act(lambda: rig.near.pause_request(request))
        await rig.act(lambda: serving.offer(objects))
        await rig.act(lambda: rig.near.subscribe(FullTrackName((b"live",), b"other"), LIVE))
        await rig.until(lambda: len(rig.consumer.seen(RequestAccepted)) == 2)
        assert sum(len(item.payload) for item in received(rig)) <= 2 << 20
        await rig.act(lambda: rig.near.resume_request(request))
        await rig.until(lambda: len(received(rig)) == 24)
        assert objects == received(rig)

    run(scenario)


@pytest.fixture(params=["memory", "quic"])
def run_small(request: pytest.FixtureRequest, certificate: tuple[Path, Path]) -> Run:
    """Runs a scenario where a connection's window is 1 MB, and a stream's is 100 kB."""
    windows = {"stream_window": 100_000, "connection_window": 1_000_000}
    if request.param == "quic":
        options = QuicOptions(**windows)  # type: ignore[arg-type]
        return lambda scenario: run_over_quic(certificate, CONFIG, scenario, options)
    link = Link(**windows)  # type: ignore[arg-type]
    return lambda scenario: run_in_memory(Network(7, link=link), CONFIG, scenario)


def fetched(rig: Rig) -> list[Object]:
    """What came by FETCH."""
    events = rig.consumer.seen(ObjectReceived)
    return [event.object for event in events if event.stream.via is Via.FETCH]


async def hold_back(rig: Rig, serving: Serving, objects: list[Object]) -> int:
    """Publish to a paused subscription; its backlog once nothing more of it leaves.

    Each look is a TRACK_STATUS that is asked and answered meanwhile.
    """
    await subscribe(rig, serving)
    request = rig.consumer.seen(RequestAccepted)[0].request
    await rig.act(lambda: rig.near.pause_request(request))
    await rig.act(lambda: serving.offer(objects))
    sender = serving.sender
    assert sender is not None
    backlogs: list[int] = []
    while len(backlogs) < 30 or sender.backlog < backlogs[-30]:
        backlogs.append(sender.backlog)
        await rig.act(lambda: rig.near.track_status(TRACK, Parameters()))
        await rig.until(lambda: len(rig.consumer.seen(RequestFailed)) == len(backlogs))
    # What came whole in the batch that opened its stream was delivered before the pause held.
    assert len(received(rig)) < len(objects) / 4
    return sender.backlog


@pytest.mark.slow
def test_held_data_leaves_credit_to_requests(run_small: Run) -> None:
    """R054: more than all credit of a Track is held back; requests and their answers pass."""
    objects = items(50, 1, 90_000)

    async def scenario(rig: Rig) -> None:
        left = await hold_back(rig, Serving([]), objects)
        assert 1_000_000 < left < 4_500_000 - 1_000_000

    run_small(scenario)


@pytest.mark.slow
def test_a_track_that_is_held_back_stops_no_other(run_small: Run) -> None:
    """More than a connection's window of one Track is held back; a fetch still comes whole."""
    stalled, wanted = items(14, 1, 90_000), items(2, 5, 100_000)

    async def scenario(rig: Rig) -> None:
        assert 0 == await hold_back(rig, Serving(wanted), stalled)
        await rig.act(lambda: rig.near.fetch(TRACK, Parameters()))
        await rig.until(lambda: len(fetched(rig)) == len(wanted))
        assert wanted == fetched(rig)

    run_small(scenario)


def test_close_reaches_the_peer_with_its_code(run: Run) -> None:
    """SessionClosed is the last event on both sides and tells who closed."""

    async def scenario(rig: Rig) -> None:
        await rig.until(
            lambda: rig.consumer.seen(SetupReceived) and rig.publisher.seen(SetupReceived)
        )
        await rig.act(lambda: rig.near.close(0x1, "enough"))
        await rig.until(
            lambda: rig.consumer.seen(SessionClosed) and rig.publisher.seen(SessionClosed)
        )
        assert SessionClosed(0x1, "enough", by_peer=False) == rig.consumer.events[-1]
        assert SessionClosed(0x1, "enough", by_peer=True) == rig.publisher.events[-1]

    run(scenario)


def test_broken_rule_closes_with_its_code(run: Run) -> None:
    """A second SETUP on the control stream closes the session at both ends."""

    async def scenario(rig: Rig) -> None:
        await rig.until(lambda: rig.publisher.seen(SetupReceived))
        transport = rig.near._core.transport
        await rig.act(lambda: transport.send(2, bytes.fromhex("af000000")))
        await rig.until(lambda: rig.consumer.seen(SessionClosed))
        assert 0x3 == rig.consumer.seen(SessionClosed)[0].code
        assert rig.consumer.seen(SessionClosed)[0].by_peer

    run(scenario)
