"""A Llama-architecture model of `transformers` in bfloat16; needs the extra `tensors`.

Its weights are drawn from a seed, not loaded. K and V are taken from, and given back to, the
library's own `DynamicCache`; between torch and numpy only the type's name changes, never a bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import signature
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

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

# transformers 5 renamed the argument; older versions swallow the new name without using it.
_CACHE = (
    "cache" if "cache" in signature(LlamaDecoderLayer.forward).parameters else "past_key_values"
)


class LlamaModel:
    """The model; one pass computes at a time, whichever thread it is in."""

    name = "llama"

    def __init__(self, shape: ModelShape | None = None, *, seed: int = 0) -> None:
        self.shape = shape or ModelShape()
        config = LlamaConfig(
            vocab_size=self.shape.vocabulary,
            hidden_size=self.shape.hidden,
            intermediate_size=self.shape.feed_forward,
            num_hidden_layers=self.shape.layers,
            num_attention_heads=self.shape.heads,
            num_key_value_heads=self.shape.kv_heads,
            head_dim=self.shape.head_dim,
            rope_theta=float(self.shape.rope_base),
            attn_implementation="eager",
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        self.busy = Lock()

    def descriptor(self, block_tokens: int) -> dict[str, Any]:
        """See `CacheModel.descriptor`."""
        weights = {
            name: tensor.contiguous().view(torch.int16).numpy().tobytes()
            for name, tensor in self.network.state_dict().items()
        }
        return describe(self.shape, "example/llama-gqa", weights, block_tokens)

    def begin(self, tokens: Sequence[int], token_start: int = 0) -> LlamaPass:
        """See `CacheModel.begin`; raises ValueError for no token or one out of range."""
        return LlamaPass(self, tokens, token_start)

    def prefill(
        self, tokens: Sequence[int], chunk_tokens: int | None = None
    ) -> Iterator[LayerCache]:
        """See `CacheModel.prefill`."""
        return prefill(self, tokens, chunk_tokens)


class LlamaPass:
    """See `ModelPass`; `LayerStep.attention` holds bfloat16 values as uint16 patterns."""

    def __init__(self, model: LlamaModel, tokens: Sequence[int], token_start: int) -> None:
        ids = torch.tensor([list(tokens)], dtype=torch.int64)
        if not ids.numel() or ids.min() < 0 or ids.max() >= model.shape.vocabulary:
            raise ValueError(f"tokens must be one or more of 0 .. {model.shape.vocabulary - 1}")
        self._model = model
        self._start = token_start
        self._layer = 0
        self._cache = DynamicCache()
        count = ids.shape[1]
        with torch.inference_mode():
            self._positions = torch.arange(token_start, token_start + count)[None]
            self._hidden = model.network.model.embed_tokens(ids)
            self._rotary = model.network.model.rotary_emb(self._hidden, self._positions)
            later = torch.arange(token_start + count) > self._positions[0, :, None]
            mask = torch.zeros(later.shape, dtype=torch.bfloat16).masked_fill(later, float("-inf"))
            self._mask = mask[None, None]

    def advance(self, past_k: KvArray | None = None, past_v: KvArray | None = None) -> LayerStep:
        """See `ModelPass.advance`."""
        shape, layer = self._model.shape, self._layer
        if layer == shape.layers:
            raise ValueError(f"all {shape.layers} layers are done")
        check_past(past_k, past_v, self._start, shape)
        seen: list[torch.Tensor] = []
        decoder = self._model.network.model.layers[layer]
        with self._model.busy, torch.inference_mode():
            if past_k is not None and past_v is not None:
                self._cache.update(cache_from_array(past_k), cache_from_array(past_v), layer)
            hook = decoder.self_attn.o_proj.register_forward_pre_hook(
                lambda _, arguments: seen.append(arguments[0])
            )
            try:
                self._hidden = decoder(
                    self._hidden,
                    attention_mask=self._mask,
                    position_ids=self._positions,
                    position_embeddings=self._rotary,
                    use_cache=True,
                    **{_CACHE: self._cache},
                )
            finally:
                hook.remove()
        self._layer += 1
        held = self._cache.layers[layer]
        attention = seen[0].view(torch.int16).numpy().view(np.uint16)
        return LayerStep(
            layer,
            array_from_cache(held.keys)[self._start :],
            array_from_cache(held.values)[self._start :],
            attention.reshape(-1, shape.heads, shape.head_dim),
        )

    def logits(self) -> NDArray[np.float32]:
        """See `ModelPass.logits`."""
        left = self._model.shape.layers - self._layer
        if left:
            raise ValueError(f"{left} layers are not computed yet")
        with torch.inference_mode():
            network = self._model.network
            scores = network.lm_head(network.model.norm(self._hidden[:, -1]))
        result: NDArray[np.float32] = scores[0].float().numpy()
        return result


def array_from_cache(tensor: torch.Tensor) -> KvArray:
    """A cache tensor (1, kv_heads, tokens, head_dim) as a KvArray, bit for bit.

    Raises ValueError for another type than bfloat16.
    """
    if tensor.dtype != torch.bfloat16:
        raise ValueError(f"the cache holds {tensor.dtype}, expected torch.bfloat16")
    tokens_first = tensor[0].permute(1, 0, 2).contiguous()
    array: KvArray = tokens_first.view(torch.int16).numpy().view(BFLOAT16)
    return array


def cache_from_array(array: KvArray) -> torch.Tensor:
    """The inverse of `array_from_cache`; the tensor owns its octets."""
    patterns = torch.from_numpy(np.array(array, order="C").view(np.int16))
    return patterns.view(torch.bfloat16).permute(1, 0, 2)[None].contiguous()
