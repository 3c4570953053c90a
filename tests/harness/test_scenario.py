"""What a scenario publishes: segments, tails, and what makes content another."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs.names import Component
from kvcs_conformance.scenario import Scenario

PLAIN: dict[str, Any] = {
    "layers": 2,
    "blocks": 3,
    "block-tokens": 4,
    "kv-heads": 2,
    "head-dim": 8,
    "components": ["k", "v"],
    "manifest": "manifest",
    "deterministic": False,
    "layer-time": "20ms",
    "retention": "60s",
}


def test_segments_and_tail() -> None:
    """Segments follow one another; the tail belongs to none of them (KVCS-2-3)."""
    scenario = Scenario({**PLAIN, "appended": [2, 1], "tail": 3})
    assert [range(3), range(3, 5), range(5, 6)] == [scenario.span(n) for n in range(3)]
    assert (6, 27) == (scenario.total_blocks, len(scenario.tokens))


def test_segments_keep_their_sections() -> None:
    """A block has the same section whichever segment it is in (KVCS-3.4-2)."""
    whole = Scenario({**PLAIN, "blocks": 5})
    split = Scenario({**PLAIN, "appended": [2]})
    joined = [*split.sections(1)[Component.K], *split.sections(1, 1)[Component.K]]
    assert whole.sections(1)[Component.K] == joined
    assert whole.layer_digest(1) == split.layer_digest(1)


@pytest.mark.parametrize(
    "change",
    [
        {"changed-token": 5},
        {"weights": "tuned"},
        {"adapters": ["a"]},
        {"salt": "a"},
        {"scope": "other"},
        {"descriptor": {"x": 1}},
    ],
)
def test_other_content(change: dict[str, Any]) -> None:
    """What identifies content changes the namespace, and the tensors with it (KVCS-3.1-6)."""
    plain, other = Scenario(PLAIN), Scenario({**PLAIN, **change})

    def prefix(scenario: Scenario) -> tuple[bytes, ...]:
        spec = scenario.publication(bytes(16))
        return spec.namespace(spec.block_keys(spec.tokens)).prefix(4)

    assert prefix(plain) != prefix(other)
    assert plain.section(Component.K, 0, 0) != other.section(Component.K, 0, 0)


def test_one_token_changes() -> None:
    """Of the prompt, just the token that is named is another."""
    plain, other = Scenario(PLAIN).tokens, Scenario({**PLAIN, "changed-token": 5}).tokens
    assert [5] == [i for i, (a, b) in enumerate(zip(plain, other, strict=True)) if a != b]


def test_encodings() -> None:
    """A component without a codec is raw (KVCS-3.2-1)."""
    scenario = Scenario({**PLAIN, "components": ["k", "kv.zstd"]})
    assert [(Component.K, "raw"), (Component.KV, "zstd")] == list(scenario.encodings)
