"""The main job: it holds on the reference, and each of its findings can fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
from kvcs.model.base import ModelShape
from kvcs.model.causal import CausalModel
from kvcs_conformance.mainjob.findings import findings
from kvcs_conformance.mainjob.job import Done, Plan, do_job
from kvcs_conformance.mainjob.table import print_job

SHAPE = ModelShape(layers=4, hidden=32, heads=4, kv_heads=2, head_dim=8, feed_forward=32)


@pytest.fixture(scope="module")
def done() -> Done:
    """One small job over real QUIC."""
    return asyncio.run(do_job(Plan(blocks=3, block_tokens=4, tail=3), lambda: CausalModel(SHAPE)))


@pytest.mark.slow
def test_every_object_arrives_once_and_everything_is_bit_identical(done: Done) -> None:
    """What does not depend on who is faster holds for a job of any size."""
    upheld = {finding.what: finding.upheld for finding in findings(done)}
    timing = {what for what in upheld if what.startswith(("layer 0", "who joined half-way"))}
    assert 2 == len(timing)
    assert [] == [what for what, ok in upheld.items() if not ok and what not in timing]
    assert {24} == {link.crossed.total() for link in done.links.values()}
    assert [12, 12] == [reader.reused_tokens for reader in done.readers]


def lose_object(done: Done) -> None:
    """One Object never crossed the last link."""
    crossed = done.readers[1].link.crossed
    del crossed[next(iter(crossed))]


def repeat_object(done: Done) -> None:
    """One Object crossed the first link twice."""
    crossed = next(iter(done.links.values())).crossed
    crossed[next(iter(crossed))] += 1


def flip_bit(done: Done) -> None:
    """One bit of one restored tensor is another."""
    k = done.readers[0].layers[2].k.copy()
    k.view(np.uint16)[5, 1, 3] ^= 1
    done.readers[0].layers[2] = done.readers[0].layers[2]._replace(k=k)


def lose_layer(done: Done) -> None:
    """The last layer never became usable."""
    done.readers[0].layers.pop()


def change_attention(done: Done) -> None:
    """Attention of one layer came out differently."""
    done.readers[1].result.attention[3] = b"other"


def change_scores(done: Done) -> None:
    """Only the next-token scores differ."""
    done.readers[1].result.logits = b"other"


def come_late(done: Done) -> None:
    """Layer 0 became usable when everything was published."""
    done.readers[0].usable[0] = done.published[-1] + 1


def ask_upstream(done: Done) -> None:
    """Relay B had to ask again for the one who came afterwards."""
    done.readers[1].upstream_objects = 1


def fill_all(done: Done) -> None:
    """Nothing came by subscription."""
    done.readers[0].link.ways.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "broken"),
    [
        (lose_object, "every Object crossed relay B - consumer 2 once"),
        (repeat_object, "every Object crossed publisher - relay A once"),
        (flip_bit, "consumer 1: tensors are bit-identical"),
        (lose_layer, "consumer 1: tensors are bit-identical"),
        (change_attention, "consumer 2: attention output"),
        (change_scores, "consumer 2: attention output"),
        (come_late, "layer 0 was usable"),
        (ask_upstream, "who came afterwards"),
        (fill_all, "who joined half-way"),
    ],
)
def test_each_finding_can_fail(done: Done, spoil: Callable[[Done], None], broken: str) -> None:
    """A job that was spoilt in one place fails the finding that is about it."""
    spoilt = deepcopy(done)
    spoil(spoilt)
    failed = [finding.what for finding in findings(spoilt) if not finding.upheld]
    assert any(what.startswith(broken) for what in failed)


@pytest.mark.slow
def test_the_result_names_everything_in_figures(
    done: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed and in JSON: findings, links, relays, and when each layer was usable."""
    found = findings(done)
    result = json.loads(json.dumps(done.as_json(found)))
    assert [f.what for f in found] == [one["what"] for one in result["findings"]]
    assert [4, 4] == [len(one["usable_s"]) for one in result["consumers"]]
    assert {"relay A", "relay B"} == set(result["relays"])
    print_job(done, found)
    shown = capsys.readouterr().out
    assert "relay A holds" in shown
    assert all(link in shown for link in done.links)
