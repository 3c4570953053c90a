"""The model of the extra `tensors`: torch's bits come through numpy unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from kvcs.model import LayerCache, encode_text, have_tensors
from kvcs.model.base import BFLOAT16, ModelShape

if TYPE_CHECKING:
    from kvcs.model.llama import LlamaModel

pytestmark = [
    pytest.mark.tensors,
    pytest.mark.slow,
    pytest.mark.skipif(
        not have_tensors(), reason="needs the extra 'tensors' (torch, transformers)"
    ),
]

SHAPE = ModelShape(layers=3, hidden=64, heads=4, kv_heads=2, head_dim=16, feed_forward=96)
TOKENS = encode_text("the quick brown fox jumps over")


def small(seed: int = 7) -> LlamaModel:
    """A model small enough for a test."""
    from kvcs.model.llama import LlamaModel

    return LlamaModel(SHAPE, seed=seed)


def test_layer_by_layer_equals_the_library_in_one_call() -> None:
    """Logits and cache are those of the library's own forward call, bit for bit."""
    import torch
    from kvcs.model.llama import _CACHE, array_from_cache
    from transformers import DynamicCache

    model = small()
    step = model.begin(TOKENS)
    layers = [step.advance() for _ in range(3)]
    cache = DynamicCache()
    with torch.inference_mode():
        output = model.network(torch.tensor([TOKENS]), use_cache=True, **{_CACHE: cache})
    assert output.logits[0, -1].float().numpy().tobytes() == step.logits().tobytes()
    for layer in layers:
        held = cache.layers[layer.layer]
        assert array_from_cache(held.keys).tobytes() == layer.k.tobytes()
        assert array_from_cache(held.values).tobytes() == layer.v.tobytes()


def test_continuation_from_a_copied_cache_is_bit_identical() -> None:
    """A second instance that only has the seed and the octets gives the same next-token logits."""
    made = list(small().prefill(TOKENS[:24]))
    received = [
        LayerCache(
            0,
            c.layer,
            np.frombuffer(c.k.tobytes(), BFLOAT16).reshape(c.k.shape),
            np.frombuffer(c.v.tobytes(), BFLOAT16).reshape(c.v.shape),
        )
        for c in made
    ]
    results = []
    for past in (made, received):
        step = small().begin(TOKENS[24:], 24)
        attention = [step.advance(layer.k, layer.v).attention.tobytes() for layer in past]
        results.append((attention, step.logits().tobytes()))
    assert results[0] == results[1]


def test_every_16_bit_pattern_survives_the_way_through_torch() -> None:
    """NaN payloads, minus zero and subnormals too: patterns are compared, not values."""
    from kvcs.model.llama import array_from_cache, cache_from_array

    patterns = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 2, 16)
    back = array_from_cache(cache_from_array(patterns.view(BFLOAT16)))
    assert patterns.tobytes() == back.tobytes()


def test_same_seed_gives_the_same_descriptor() -> None:
    """The weights digest follows from the seed, and the global random state stays untouched."""
    import torch

    before = torch.random.get_rng_state()
    assert small(7).descriptor(4) == small(7).descriptor(4)
    assert small(7).descriptor(4) != small(8).descriptor(4)
    assert torch.equal(before, torch.random.get_rng_state())


def test_chunked_prefill_covers_the_tokens_chunk_by_chunk() -> None:
    """Each chunk yields only its own tokens, for all layers, before the next one starts."""
    chunks = list(small().prefill(TOKENS, chunk_tokens=16))
    assert [(c.token_start, c.layer) for c in chunks] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (16, 0),
        (16, 1),
        (16, 2),
    ]
    assert [len(c.k) for c in chunks] == [16, 16, 16, 14, 14, 14]
