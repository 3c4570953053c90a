"""What a hostile relay says to a consumer: it always ends, and nothing but `done` comes of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kvcs.consumer import Consumer
from kvcs.consumer.routes import MAX_PUBLICATIONS
from moqt.drivers.memory import Network
from moqt.session import Request, RequestKind, Session, SessionConfig
from moqt.wire.errors import RequestErrorCode

from tests.kvcs.chain import QUICK, Event, request
from tests.relay.world import Peer

Act = Callable[[Session], None]


def say_goaway(session: Session) -> None:
    """GOAWAY without another URI."""
    session.goaway()


def hang_up(session: Session) -> None:
    """Close the session."""
    session.close()


ENDS = pytest.mark.parametrize("end", [say_goaway, hang_up])


def restore(
    answer: Callable[[Request], None] | None = None, *, later: Act | None = None, at: float = 0.05
) -> list[Event]:
    """The events of a restore from one scripted relay, which does `later` at a time."""
    network = Network(seed=1)
    relay = Peer(answer)
    network.listen("relay", relay, SessionConfig())
    events: list[Event] = []
    consumer = Consumer(request("relay"), events.append)
    network.client("consumer", consumer)
    if later is not None:
        network.at(at, lambda: later(relay.session))
    network.run(lambda: consumer.done, limit=QUICK.total + 1)
    return events


def listing(count: int, on_subscribe: Callable[[Request], None]) -> Callable[[Request], None]:
    """Answers every probe with `count` publications."""

    def answer(asked: Request) -> None:
        if asked.kind is RequestKind.SUBSCRIBE_NAMESPACE:
            asked.session.accept(asked)
            for number in range(count):
                publication = number.to_bytes(16, "big")
                asked.session.namespace(asked, (*(asked.namespace or ()), publication))
        elif asked.kind is RequestKind.SUBSCRIBE:
            on_subscribe(asked)

    return answer


@ENDS
def test_a_source_that_leaves_between_two_probes_is_asked_no_more(end: Act) -> None:
    """GOAWAY or the end of the session while a probe runs: no further request, a clean end."""
    events = restore(later=end)
    assert ["done"] == [one["event"] for one in events if one["event"] == "done"]
    assert "recompute" == events[-1]["outcome"]


@ENDS
def test_a_refused_manifest_is_not_asked_for_again_on_a_source_that_leaves(end: Act) -> None:
    """DOES_NOT_EXIST for "manifest.cose" and GOAWAY, or the end, in one flight."""

    def refuse(asked: Request) -> None:
        asked.session.refuse(asked, RequestErrorCode.DOES_NOT_EXIST)
        end(asked.session)

    events = restore(listing(1, refuse))
    assert "recompute" == events[-1]["outcome"]


@ENDS
def test_publications_without_end_are_cut(end: Act) -> None:
    """A source lists far more publications than any prompt has, answers nothing, and leaves."""
    count = MAX_PUBLICATIONS + 100
    events = restore(listing(count, lambda asked: None), later=end, at=0.2)
    names = [one["event"] for one in events]
    assert MAX_PUBLICATIONS == names.count("publication")
    assert 100 == names.count("namespace-ignored")
    assert "recompute" == events[-1]["outcome"]
