"""What every model offers: passes of tokens through the layers, one layer at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

KvArray: TypeAlias = NDArray[Any]
"""bfloat16 of shape (tokens, kv_heads, head_dim), C order."""

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
TOKENIZER = b"octets: one token per octet of UTF-8 text, its value is its id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Sizes of a model; `heads` is a multiple of `kv_heads`."""

    layers: int = 16
    hidden: int = 512
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 64
    feed_forward: int = 1024
    vocabulary: int = 256
    rope_base: int = 10000


class LayerCache(NamedTuple):
    """K and V that one pass added to one layer, for the tokens from `token_start` on."""

    token_start: int
    layer: int
    k: KvArray
    v: KvArray


class LayerStep(NamedTuple):
    """One layer of one pass: K and V of the pass's own tokens, and what attention gave.

    `attention` has the shape (tokens, heads, head_dim), in the type that the model computes in;
    types that numpy does not have are given as their 16-bit patterns.
    """

    layer: int
    k: KvArray
    v: KvArray
    attention: NDArray[Any]


class ModelPass(Protocol):
    """Tokens on their way through the layers."""

    def advance(self, past_k: KvArray | None = None, past_v: KvArray | None = None) -> LayerStep:
        """Compute the next layer; `past_k` and `past_v` hold all tokens before this pass.

        Raises ValueError when the past does not cover exactly those tokens, or no layer is left.
        """

    def logits(self) -> NDArray[Any]:
        """Scores of the token after the last one, float32 of shape (vocabulary,).

        Raises ValueError while layers are left.
        """


class CacheModel(Protocol):
    """A causal transformer whose weights follow from a seed."""

    name: str
    shape: ModelShape

    def descriptor(self, block_tokens: int) -> dict[str, Any]:
        """The Compatibility Descriptor of profile P0 for blocks of `block_tokens` tokens."""

    def begin(self, tokens: Sequence[int], token_start: int = 0) -> ModelPass:
        """A pass of `tokens`, the first of which stands at position `token_start`."""

    def prefill(
        self, tokens: Sequence[int], chunk_tokens: int | None = None
    ) -> Iterator[LayerCache]:
        """K and V of `tokens`, each layer as soon as it is computed.

        With `chunk_tokens`, each chunk of so many tokens goes through all layers before the next
        chunk does (chunked prefill).
        """


def encode_text(text: str) -> list[int]:
    """Token ids of `text`, 0 .. 255: the tokenizer that these models are made for."""
    return list(text.encode())


def prefill(
    model: CacheModel, tokens: Sequence[int], chunk_tokens: int | None
) -> Iterator[LayerCache]:
    """`CacheModel.prefill` in terms of `begin`."""
    size = chunk_tokens or len(tokens)
    past: list[tuple[KvArray, KvArray] | None] = [None] * model.shape.layers
    for start in range(0, len(tokens), size):
        chunk = model.begin(tokens[start : start + size], start)
        for layer in range(model.shape.layers):
            before = past[layer]
            step = chunk.advance(*before) if before else chunk.advance()
            yield LayerCache(start, layer, step.k, step.v)
            if start + size < len(tokens):
                past[layer] = (
                    (np.concatenate([before[0], step.k]), np.concatenate([before[1], step.v]))
                    if before
                    else (step.k, step.v)
                )


def describe(
    shape: ModelShape, model_id: str, weights: dict[str, bytes], block_tokens: int
) -> dict[str, Any]:
    """The P0 descriptor of a model; `weights` are the octets of its tensors by name."""
    listing = "".join(
        f"{name} {hashlib.sha256(octets).hexdigest()}\n" for name, octets in sorted(weights.items())
    )
    return {
        "kvsp_profile": "p0",
        "model": {
            "id": model_id,
            "weights": f"sha256:{hashlib.sha256(listing.encode()).hexdigest()}",
        },
        "tokenizer": f"sha256:{hashlib.sha256(TOKENIZER).hexdigest()}",
        "adapters": [],
        "layers": shape.layers,
        "attention": "gqa",
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "v_head_dim": shape.head_dim,
        "dtype": "bf16",
        "quant": None,
        "block_tokens": block_tokens,
        "layout": "thd",
        "byte_order": "little",
        "position": {
            "type": "rope",
            "applied": True,
            "base": str(shape.rope_base),
            "rotary_dim": shape.head_dim,
            "scaling": None,
            "origin": 0,
        },
        "windows": None,
    }


def check_past(
    past_k: KvArray | None, past_v: KvArray | None, token_start: int, shape: ModelShape
) -> None:
    """Raise ValueError unless the past is bfloat16 of (token_start, kv_heads, head_dim)."""
    expected = (token_start, shape.kv_heads, shape.head_dim)
    for name, array in (("K", past_k), ("V", past_v)):
        found = (0, *expected[1:]) if array is None else array.shape
        if found != expected:
            raise ValueError(f"{name} of the past has shape {found}, this pass needs {expected}")
        if array is not None and array.dtype != BFLOAT16:
            raise ValueError(f"{name} of the past is {array.dtype}, this model needs bfloat16")
