"""A causal transformer in numpy: grouped-query attention, rotary embedding, KV in bfloat16.

It computes in float32 and rounds K and V to bfloat16 before attention reads them, so that whoever
holds the cache computes from the same numbers as the one who made it. The same operations on the
same shapes give the same bits; other chunk sizes may round differently, as on real hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kvcs.model.base import (
    BFLOAT16,
    KvArray,
    LayerCache,
    LayerStep,
    ModelShape,
    check_past,
    describe,
    prefill,
)

Floats: TypeAlias = NDArray[np.float32]


class CausalModel:
    """The model; weights are a function of shape, seed and numpy's PCG64."""

    name = "causal"

    def __init__(self, shape: ModelShape | None = None, *, seed: int = 0) -> None:
        self.shape = shape or ModelShape()
        self.weights = _draw_weights(self.shape, seed)
        half = np.arange(0, self.shape.head_dim, 2, dtype=np.float64) / self.shape.head_dim
        self._frequencies = 1.0 / float(self.shape.rope_base) ** half

    def descriptor(self, block_tokens: int) -> dict[str, Any]:
        """See `CacheModel.descriptor`."""
        octets = {name: array.tobytes() for name, array in self.weights.items()}
        return describe(self.shape, "example/causal-gqa", octets, block_tokens)

    def begin(self, tokens: Sequence[int], token_start: int = 0) -> CausalPass:
        """See `CacheModel.begin`; raises ValueError for no token or one out of range."""
        return CausalPass(self, tokens, token_start)

    def prefill(
        self, tokens: Sequence[int], chunk_tokens: int | None = None
    ) -> Iterator[LayerCache]:
        """See `CacheModel.prefill`."""
        return prefill(self, tokens, chunk_tokens)

    def rotate(self, x: Floats, positions: NDArray[np.int64]) -> Floats:
        """Rotary embedding of (tokens, heads, head_dim), the halves of a head rotated as pairs."""
        angle = np.outer(positions, self._frequencies)
        cos = np.cos(angle).astype(np.float32)[:, None, :]
        sin = np.sin(angle).astype(np.float32)[:, None, :]
        low, high = np.split(x, 2, axis=-1)
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)


class CausalPass:
    """See `ModelPass`."""

    def __init__(self, model: CausalModel, tokens: Sequence[int], token_start: int) -> None:
        ids = np.asarray(tokens, dtype=np.int64)
        if not ids.size or ids.min() < 0 or ids.max() >= model.shape.vocabulary:
            raise ValueError(f"tokens must be one or more of 0 .. {model.shape.vocabulary - 1}")
        self._model = model
        self._start = token_start
        self._positions = np.arange(token_start, token_start + ids.size)
        self._hidden: Floats = model.weights["embedding"][ids]
        self._layer = 0

    def advance(self, past_k: KvArray | None = None, past_v: KvArray | None = None) -> LayerStep:
        """See `ModelPass.advance`."""
        model, shape, layer = self._model, self._model.shape, self._layer
        if layer == shape.layers:
            raise ValueError(f"all {shape.layers} layers are done")
        check_past(past_k, past_v, self._start, shape)
        weights = {
            name: model.weights[f"{layer}.{name}"] for name in ("q", "k", "v", "o", "up", "down")
        }
        x = _normed(self._hidden)
        q = model.rotate(_heads(x @ weights["q"], shape.heads), self._positions)
        k = model.rotate(_heads(x @ weights["k"], shape.kv_heads), self._positions)
        new_k, new_v = (
            k.astype(BFLOAT16),
            _heads(x @ weights["v"], shape.kv_heads).astype(BFLOAT16),
        )
        keys = new_k if past_k is None else np.concatenate([past_k, new_k])
        values = new_v if past_v is None else np.concatenate([past_v, new_v])
        attention = attend(q, keys, values, self._positions)
        self._hidden = self._hidden + attention.reshape(len(q), -1) @ weights["o"]
        gate, up = np.split(_normed(self._hidden) @ weights["up"], 2, axis=-1)
        self._hidden = self._hidden + (gate / (1 + np.exp(-gate)) * up) @ weights["down"]
        self._layer += 1
        return LayerStep(layer, new_k, new_v, attention)

    def logits(self) -> Floats:
        """See `ModelPass.logits`."""
        left = self._model.shape.layers - self._layer
        if left:
            raise ValueError(f"{left} layers are not computed yet")
        scores: Floats = _normed(self._hidden[-1]) @ self._model.weights["embedding"].T
        return scores


def attend(q: Floats, k: KvArray, v: KvArray, positions: NDArray[np.int64]) -> Floats:
    """Causal grouped-query attention.

    `q` is (tokens, heads, head_dim), its rows standing at `positions`; `k` and `v` are
    (context, kv_heads, head_dim) from position 0 on. Each group of heads / kv_heads neighbouring
    heads shares one key and value head. Returns (tokens, heads, head_dim).
    """
    tokens, heads, head_dim = q.shape
    context, kv_heads, _ = k.shape
    keys = k.astype(np.float32).transpose(1, 2, 0)
    values = v.astype(np.float32).transpose(1, 0, 2)
    grouped = q.reshape(tokens, kv_heads, heads // kv_heads, head_dim).transpose(1, 2, 0, 3)
    scores = grouped @ keys[:, None] / np.float32(np.sqrt(head_dim))
    scores += np.where(np.arange(context) > positions[:, None], np.float32(-np.inf), np.float32(0))
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores, out=scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed = weights @ values[:, None]
    return np.ascontiguousarray(mixed.transpose(2, 0, 1, 3).reshape(tokens, heads, head_dim))


def _draw_weights(shape: ModelShape, seed: int) -> dict[str, Floats]:
    random = np.random.Generator(np.random.PCG64(seed))

    def matrix(rows: int, columns: int) -> Floats:
        drawn = random.standard_normal((rows, columns), dtype=np.float32)
        scaled: Floats = drawn / np.float32(np.sqrt(rows))
        return scaled

    weights = {"embedding": matrix(shape.vocabulary, shape.hidden)}
    attention, cache = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    for layer in range(shape.layers):
        weights |= {
            f"{layer}.q": matrix(shape.hidden, attention),
            f"{layer}.k": matrix(shape.hidden, cache),
            f"{layer}.v": matrix(shape.hidden, cache),
            f"{layer}.o": matrix(attention, shape.hidden),
            f"{layer}.up": matrix(shape.hidden, 2 * shape.feed_forward),
            f"{layer}.down": matrix(shape.feed_forward, shape.hidden),
        }
    return weights


def _normed(x: Floats) -> Floats:
    scale = np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(1e-6))
    normed: Floats = x / scale
    return normed


def _heads(x: Floats, heads: int) -> Floats:
    return x.reshape(len(x), heads, -1)
