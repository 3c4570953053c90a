"""Models that really compute a KV cache, layer by layer, to publish and to use it.

`causal` needs numpy alone; `llama` needs the extra `tensors`. Both give and take the same arrays:
K and V of one layer as bfloat16 of shape (tokens, kv_heads, head_dim), keys after rotation.
"""

from __future__ import annotations

from kvcs.model.base import CacheModel, KvArray, LayerCache, LayerStep, ModelPass, encode_text

__all__ = [
    "CacheModel",
    "KvArray",
    "LayerCache",
    "LayerStep",
    "ModelPass",
    "encode_text",
    "have_tensors",
    "open_model",
]

MODELS = ("causal", "llama")


def have_tensors() -> bool:
    """Whether the extra `tensors` (torch and transformers) is installed."""
    from importlib.util import find_spec

    return find_spec("torch") is not None and find_spec("transformers") is not None


def open_model(name: str, *, seed: int = 0) -> CacheModel:
    """The model `name` ("causal" or "llama") with weights drawn from `seed`.

    Raises ValueError for another name, and for "llama" without the extra `tensors`.
    """
    if name == "causal":
        from kvcs.model.causal import CausalModel

        return CausalModel(seed=seed)
    if name == "llama":
        if not have_tensors():
            raise ValueError("the model 'llama' needs the extra 'tensors' (torch, transformers)")
        from kvcs.model.llama import LlamaModel

        return LlamaModel(seed=seed)
    raise ValueError(f"no model is called {name!r}; there are {', '.join(MODELS)}")
