"""When a retrieval of a completed cache is over."""

from __future__ import annotations

from kvcs.consumer import Mode

from tests.kvcs.chain import Scene, produce, request, restore, spec


def test_a_completed_retrieval_is_done_with_its_last_fetch() -> None:
    """KVCS-7.2-7: FIN after everything ends a track; nothing more is waited for."""
    scene = Scene()
    produce(scene.publisher().open(spec()))
    restored = restore(scene, request("origin", mode=Mode.COMPLETED))
    ended = [event["by"] for event in restored.named("track-complete")]
    assert [["fetch"], ["fetch"]] == ended
    last = max(event["time"] for event in restored.named("track-complete"))
    assert [last] == [event["time"] for event in restored.named("done")]
