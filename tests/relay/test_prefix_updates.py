"""A discovery prefix that goes to and fro (MOQT-22 §9.5.1, §9.16)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moqt.session.events import UpdateAnswered
from moqt.wire.messages import Namespace, Parameters, RequestOk
from moqt.wire.names import TrackNamespace

from tests.relay.world import SESSION, SPACE, World

OTHER: TrackNamespace = (b"talk", b"room")


def test_a_namespace_is_told_again_only_when_it_was_out_of_view() -> None:
    """Wider and narrower again, to another path and back: no doubles, and no error."""
    suffixes: list[TrackNamespace] = []

    def trace(name: str, data: dict[str, Any]) -> None:
        if name == "moqt:message_received" and isinstance(data["message"], Namespace):
            suffixes.append(data["message"].suffix)

    world = World()
    publisher = world.peer("publisher")
    for namespace in (SPACE, OTHER):
        publisher.session.publish_namespace(namespace)
    world.settle()
    reader = world.peer("reader", config=replace(SESSION, trace=trace))
    request = reader.session.subscribe_namespace(SPACE[:1])
    world.settle()
    told = [tuple(suffixes)]
    for prefix in ((), SPACE[:1], OTHER[:1], ()):
        suffixes.clear()
        reader.session.update(request, Parameters(track_namespace_prefix=prefix))
        world.settle()
        told.append(tuple(suffixes))
    assert [(SPACE[1:],), (OTHER,), (), (OTHER[1:],), (SPACE,)] == told
    answers = reader.of(UpdateAnswered, request)
    assert [True] * 4 == [isinstance(one.response, RequestOk) for one in answers]
