"""The numpy model: a cache that somebody else can compute from, bit for bit."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from kvcs.model import LayerCache, ModelPass, encode_text, open_model
from kvcs.model.base import BFLOAT16, ModelShape
from kvcs.model.causal import CausalModel, attend

SHAPE = ModelShape(layers=3, hidden=32, heads=4, kv_heads=2, head_dim=8, feed_forward=48)
TOKENS = encode_text("the quick brown fox jumps over")


def small(seed: int = 7) -> CausalModel:
    """A model small enough for a test."""
    return CausalModel(SHAPE, seed=seed)


def octets(cache: list[LayerCache]) -> list[tuple[int, int, bytes, bytes]]:
    """A cache as comparable values."""
    return [(c.token_start, c.layer, c.k.tobytes(), c.v.tobytes()) for c in cache]


def run(step: ModelPass, past: list[LayerCache]) -> tuple[list[bytes], bytes]:
    """Attention of each layer and the logits of a pass after `past`."""
    attention = [step.advance(layer.k, layer.v).attention.tobytes() for layer in past]
    return attention, step.logits().tobytes()


def test_prefill_yields_each_layer_in_order_as_bfloat16() -> None:
    """One LayerCache per layer, ascending, (tokens, kv_heads, head_dim) in bfloat16."""
    cache = list(small().prefill(TOKENS))
    assert [c.layer for c in cache] == [0, 1, 2]
    assert {(len(TOKENS), 2, 8)} == {c.k.shape for c in cache} | {c.v.shape for c in cache}
    assert {BFLOAT16} == {c.k.dtype for c in cache} | {c.v.dtype for c in cache}


def test_same_seed_gives_the_same_bits_and_another_seed_does_not() -> None:
    """Weights, and with them the cache and the descriptor, follow from the seed alone."""
    assert octets(list(small(7).prefill(TOKENS))) == octets(list(small(7).prefill(TOKENS)))
    assert octets(list(small(7).prefill(TOKENS))) != octets(list(small(8).prefill(TOKENS)))
    assert small(7).descriptor(4) == small(7).descriptor(4)
    assert small(7).descriptor(4) != small(8).descriptor(4)


def test_layers_of_a_cache_depend_only_on_tokens_before() -> None:
    """Causality: a changed last token changes no earlier token's K and V."""
    changed = [*TOKENS[:-1], TOKENS[-1] ^ 1]
    for before, after in zip(small().prefill(TOKENS), small().prefill(changed), strict=True):
        np.testing.assert_allclose(
            before.k[:-1].astype(np.float32), after.k[:-1].astype(np.float32), rtol=1e-2, atol=1e-2
        )
        assert before.k[-1].tobytes() != after.k[-1].tobytes()


def test_continuation_from_a_copied_cache_is_bit_identical() -> None:
    """Whoever holds the cache's octets computes the same attention and the same logits."""
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
    assert run(small().begin(TOKENS[24:], 24), made) == run(
        small().begin(TOKENS[24:], 24), received
    )


def test_one_flipped_bit_of_the_cache_changes_the_attention() -> None:
    """The comparison above can fail: attention really reads the cache it is given."""
    made = list(small().prefill(TOKENS[:24]))
    damaged = [c._replace(v=c.v.copy()) for c in made]
    damaged[1].v.view(np.uint16)[3, 0, 0] ^= 0x40
    good, _ = run(small().begin(TOKENS[24:], 24), made)
    bad, _ = run(small().begin(TOKENS[24:], 24), damaged)
    assert [g == b for g, b in zip(good, bad, strict=True)] == [True, False, False]


def test_chunked_prefill_passes_each_chunk_through_all_layers() -> None:
    """Layers ascend within a chunk, chunks follow one another, and together cover the tokens."""
    chunks = list(small().prefill(TOKENS, chunk_tokens=12))
    expected = [(start, layer) for start in (0, 12, 24) for layer in range(3)]
    assert expected == [(c.token_start, c.layer) for c in chunks]
    assert [12, 12, len(TOKENS) - 24] == [len(c.k) for c in chunks[::3]]


def test_chunked_prefill_computes_the_same_function() -> None:
    """Chunks see the chunks before: the values agree with one pass up to bfloat16 rounding."""
    whole = list(small().prefill(TOKENS))
    chunks = list(small().prefill(TOKENS, chunk_tokens=12))
    for layer, one in enumerate(whole):
        joined = np.concatenate([c.v for c in chunks if c.layer == layer])
        np.testing.assert_allclose(
            one.v.astype(np.float32), joined.astype(np.float32), rtol=5e-2, atol=5e-2
        )


def test_attend_equals_a_plain_loop_over_heads_and_tokens() -> None:
    """Grouped-query attention: heads 0 and 1 read key head 0, heads 2 and 3 key head 1."""
    random = np.random.Generator(np.random.PCG64(1))
    q = random.standard_normal((3, 4, 8), dtype=np.float32)
    k = random.standard_normal((5, 2, 8), dtype=np.float32).astype(BFLOAT16)
    v = random.standard_normal((5, 2, 8), dtype=np.float32).astype(BFLOAT16)
    got = attend(q, k, v, np.array([2, 3, 4]))
    for token in range(3):
        for head in range(4):
            keys = k[: token + 3, head // 2].astype(np.float64)
            values = v[: token + 3, head // 2].astype(np.float64)
            scores = np.exp(keys @ q[token, head] / np.sqrt(8))
            np.testing.assert_allclose(got[token, head], scores @ values / scores.sum(), rtol=1e-4)


def test_rotation_depends_on_distance_alone() -> None:
    """Rotary embedding: the product of a rotated query and key depends on their distance."""
    model = small()
    random = np.random.Generator(np.random.PCG64(2))
    q, k = random.standard_normal((2, 1, 1, 8), dtype=np.float32)

    def product(query_at: int, key_at: int) -> float:
        rotated = model.rotate(q, np.array([query_at])), model.rotate(k, np.array([key_at]))
        return float(np.vdot(*rotated))

    np.testing.assert_allclose(product(9, 4), product(105, 100), rtol=1e-4)
    assert abs(product(9, 4) - product(9, 5)) > 1e-3


def test_descriptor_names_the_geometry_and_the_weights() -> None:
    """Profile P0 members; the weights digest is SHA-256 over sorted "name sha256" lines."""
    model = small()
    descriptor = model.descriptor(16)
    lines = "".join(
        f"{name} {hashlib.sha256(array.tobytes()).hexdigest()}\n"
        for name, array in sorted(model.weights.items())
    )
    assert f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}" == descriptor["model"]["weights"]
    wanted = {"layers": 3, "kv_heads": 2, "head_dim": 8, "v_head_dim": 8, "dtype": "bf16"}
    assert wanted == {name: descriptor[name] for name in wanted}
    assert tuple(descriptor[n] for n in ("block_tokens", "layout", "attention")) == (
        16,
        "thd",
        "gqa",
    )


def test_past_of_another_length_or_type_is_refused() -> None:
    """A cache that does not cover exactly the tokens before the pass is an error, not a guess."""
    made = next(iter(small().prefill(TOKENS[:8])))
    with pytest.raises(ValueError, match=r"shape \(8, 2, 8\), this pass needs \(9, 2, 8\)"):
        small().begin(TOKENS[9:], 9).advance(made.k, made.v)
    with pytest.raises(ValueError, match="float32, this model needs bfloat16"):
        small().begin(TOKENS[8:], 8).advance(made.k.astype(np.float32), made.v)


def test_layers_are_counted() -> None:
    """No logits before the last layer, no layer after it, no pass without tokens."""
    step = small().begin(TOKENS)
    with pytest.raises(ValueError, match="3 layers are not computed yet"):
        step.logits()
    for _ in range(3):
        step.advance()
    with pytest.raises(ValueError, match="all 3 layers are done"):
        step.advance()
    with pytest.raises(ValueError, match=r"one or more of 0 \.\. 255"):
        small().begin([256])
    with pytest.raises(ValueError, match="no model is called 'gpt'"):
        open_model("gpt")
