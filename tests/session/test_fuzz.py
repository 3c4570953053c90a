"""Whatever a peer sends, a session does not raise: it goes on or closes with a code of MOQT."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moqt.session import Session
from moqt.session.events import RequestReceived, SessionClosed, UpdateReceived
from moqt.wire.errors import LocalProtocolError, SessionError
from moqt.wire.messages import NO_PARAMETERS, FetchOk, Parameters
from moqt.wire.names import Location

from tests.session.openers import NAME, opener
from tests.session.pair import LIVE, TRACK, ListSource, WireTap, config, obj

FRAMES = [
    bytes.fromhex(octets)
    for octets in (
        *(opener(kind, number) for number, kind in enumerate(("SUBSCRIBE", "PUBLISH", "FETCH"))),
        opener("SUBSCRIBE_NAMESPACE", 3),
        opener("SUBSCRIBE_TRACKS", 4),
        opener("PUBLISH_NAMESPACE", 5),
        f"03 001b 06 {NAME} 04 10 01 10 80 01 05 02 05 01 21 02 00 00",
        f"03 0013 08 {NAME} 01 26 03 00 00 01",
        "02 0004 07 01 10 00",
        "04 0002 07 00",
        "04 0005 07 01 09 03 07",
        "05 0003 10 00 00",
        "07 0001 00",
        "18 0004 00 0f 09 00",
        "0b 0003 02 01 00",
        "22 0006 02 09 0307 0700",
        "08 0001 00",
        "0e 0001 00",
        "0f 0003 00 01 61",
        "10 0003 00 9388",
        "af00 0000",
        "af00 0002 04 05",
        "70 07 03 00 05 68656c6c6f 00 00 03",
        "55 07 03 02 40 05 02 3e02 02 6869",
        "05 00 1c 0c 05 80 02 61 61 00 02 62 62 81 0c 0d 09",
        "05 04 81 0c 0d 09",
        "f0132b3e28 0000",
        "08 07 03 01 64617461",
    )
]

octets = st.one_of(
    st.sampled_from(FRAMES),
    st.lists(st.sampled_from(FRAMES), min_size=1, max_size=3).map(b"".join),
    st.binary(max_size=40),
    st.tuples(st.sampled_from(FRAMES), st.integers(0, 60), st.integers(0, 255)).map(
        lambda t: t[0][: t[1]] + bytes((t[2],)) + t[0][t[1] + 1 :]
    ),
    st.tuples(st.sampled_from(FRAMES), st.integers(0, 60)).map(lambda t: t[0][: t[1]]),
)
actions = st.one_of(
    st.tuples(st.just("data"), st.integers(0, 23), octets, st.booleans()),
    st.tuples(st.just("reset"), st.integers(0, 23), st.integers(0, 20), st.none()),
    st.tuples(st.just("stop"), st.integers(0, 23), st.integers(0, 20), st.none()),
    st.tuples(st.just("datagram"), st.none(), octets, st.none()),
    st.tuples(st.just("wait"), st.none(), st.sampled_from([0.1, 3.0, 11.0]), st.none()),
)


def answer(session: Session, event: object) -> None:
    """An application that says yes to everything."""
    match event:
        case RequestReceived(request=request):
            if request.kind.name == "SUBSCRIBE":
                sender = session.accept_subscribe(request, largest=Location(0, 0))
                sender.offer(obj(1, 0))
                if request.parameters.fill is not None:
                    sender.open_fill(request.id, ListSource([obj(0, 0)]))
            elif request.kind.name == "FETCH":
                session.open_fetch(request, ListSource([obj(0, 0)]))
                session.accept_fetch(request, FetchOk(False, Location(0, 0)))
            else:
                session.accept(request)
        case UpdateReceived(request=request, update=update):
            session.accept_update(request, update)


def play(is_client: bool, with_setup: bool, script: list[tuple[object, ...]]) -> None:
    tap = WireTap(is_client)
    session = Session(is_client, tap, config(early_data_budget=200))
    now = 0.0
    session.start(now)
    if with_setup:
        session.stream_data(3 if is_client else 2, bytes.fromhex("af000000"), False, now)
    session.subscribe(TRACK, Parameters(fill=NO_PARAMETERS))
    session.fetch(TRACK, LIVE)
    session.subscribe_namespace((b"live",))
    session.publish(TRACK).offer(obj(0, 0))
    closed: list[SessionClosed] = []
    for name, stream, what, fin in script:
        match name:
            case "data":
                # Streams that the session opened carry the peer's answers, too.
                assert isinstance(stream, int)
                if not (stream & 2 and (stream & 1 == 0) == is_client):
                    session.stream_data(stream, what, bool(fin), now)  # type: ignore[arg-type]
            case "reset":
                session.stream_reset(stream, what, now)  # type: ignore[arg-type]
            case "stop":
                session.stop_sending_received(stream, what, now)  # type: ignore[arg-type]
            case "datagram":
                session.datagram(what, now)  # type: ignore[arg-type]
            case _:
                now += what  # type: ignore[operator]
                session.handle_timer(now)
        session.writable(now)
        while (event := session.next_event()) is not None:
            assert not closed, "SessionClosed is the last event"
            if isinstance(event, SessionClosed):
                closed.append(event)
                continue
            try:
                answer(session, event)
            except LocalProtocolError:
                # The request ended, or the session closed, while its event waited.
                continue
    assert session.closed == bool(closed)
    if closed:
        assert closed[0].code in set(SessionError)
        assert (closed[0].code, False) == (tap.closed and tap.closed[0], closed[0].by_peer)


@pytest.mark.slow
@settings(max_examples=200)
@given(is_client=st.booleans(), script=st.lists(actions, max_size=25))
def test_any_octets_on_any_stream(is_client: bool, script: list[tuple[object, ...]]) -> None:
    """R225: streams, resets, datagrams and time in any order, well-formed, mutated or random."""
    play(is_client, True, script)


@pytest.mark.slow
@settings(max_examples=100)
@given(is_client=st.booleans(), script=st.lists(actions, max_size=15))
def test_any_octets_before_setup(is_client: bool, script: list[tuple[object, ...]]) -> None:
    """R022: the same before the peer's SETUP."""
    play(is_client, False, script)


@pytest.mark.parametrize("is_client", [True, False])
def test_the_chunking_of_a_dialogue_does_not_matter(is_client: bool) -> None:
    """R027, R161: octet by octet is the same as all at once."""
    outcomes = []
    for size in (1, 1000):
        tap = WireTap(is_client)
        session = Session(is_client, tap, config())
        session.start(0.0)
        control, uni, bidi = (3, 7, 1) if is_client else (2, 6, 0)
        request = session.subscribe(TRACK)
        assert request.stream_id is not None
        for stream, data in (
            (control, bytes.fromhex("af000002 0405")),
            (request.stream_id, bytes.fromhex("04 0005 07 01 09 03 07")),
            (uni, bytes.fromhex("55 07 03 02 40 08 02 3e02 02 6869")),
            (bidi, bytes.fromhex(opener("FETCH", 1 if is_client else 0))),
        ):
            for at in range(0, len(data), size):
                session.stream_data(stream, data[at : at + size], False, 0.0)
        events = []
        while (event := session.next_event()) is not None:
            if type(event).__name__ != "ObjectStarted":
                events.append(type(event).__name__)
        outcomes.append(events)
    assert ["SetupReceived", "RequestAccepted", "ObjectReceived", "RequestReceived"] == outcomes[0]
    assert outcomes[0] == outcomes[1]
