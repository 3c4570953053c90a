"""When a retrieval of a completed cache is over."""

from __future__ import annotations

import pytest
from kvcs.consumer import Mode
from kvcs.names import Component
from kvcs.publisher.spec import Encoding

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


@pytest.mark.parametrize("mode", list(Mode))
def test_a_segment_without_a_usable_offer_is_not_waited_for(mode: Mode) -> None:
    """KVCS-3.2-5, KVCS-7.4-5: "k" and "v" of two codecs are no pair, and waiting makes none."""
    scene = Scene()
    pair = (Encoding(Component.K, "raw"), Encoding(Component.V, "zstd"))
    produce(scene.publisher().open(spec(encodings=pair)))
    restored = restore(scene, request("origin", mode=mode))
    assert 0 == restored.reused
    assert ["no-complete-offer"] == [e["reason"] for e in restored.named("segment-unusable")]
    assert restored.last("done")["time"] < restored.last("segment-unusable")["time"] + 5
