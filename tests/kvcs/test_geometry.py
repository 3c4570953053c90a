"""Sizes of sections, from the descriptor and for the models of the field."""

from __future__ import annotations

from typing import Any

import pytest
from kvcs.errors import DescriptorError, InputError
from kvcs.geometry import Geometry
from kvcs.names import Component

from tests.kvcs import vectors as v

LLAMA: dict[str, Any] = {
    "layers": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "v_head_dim": 128,
    "dtype": "bf16",
    "block_tokens": 16,
}


def test_the_vectors_geometry() -> None:
    """The descriptor of kvsp-p0 §10 gives 8192 octets for K and for V (KVCS-4-15)."""
    geometry = Geometry.from_descriptor(v.p0_descriptor())
    expected = Geometry(
        layers=2, kv_heads=8, head_dim=128, v_head_dim=128, dtype="bf16", block_tokens=4
    )
    assert expected == geometry
    assert [8192, 8192, 16384] == [geometry.octets(component) for component in Component]


@pytest.mark.parametrize(
    ("model", "layers", "kv_heads", "head_dim", "object_16", "token"),
    [
        ("Llama-3.1-8B", 32, 8, 128, 32 * 1024, 131072),
        ("Llama-3.1-70B", 80, 8, 128, 32 * 1024, 327680),
        ("Qwen2.5-7B", 28, 4, 128, 16 * 1024, 57344),
        ("Qwen3-8B", 36, 8, 128, 32 * 1024, 147456),
        ("Phi-4 14B", 40, 10, 128, 40 * 1024, 204800),
        ("Phi-3-mini", 32, 32, 96, 96 * 1024, 393216),
        ("GLM-4-9B", 40, 2, 128, 8 * 1024, 40960),
        ("GPT-OSS-20B", 24, 8, 64, 16 * 1024, 49152),
        ("Gemma-3-12B", 48, 8, 256, 64 * 1024, 393216),
    ],
)
def test_models_of_the_field(
    model: str, layers: int, kv_heads: int, head_dim: int, object_16: int, token: int
) -> None:
    """Object sizes of 16 bf16 tokens, and octets per token over all layers (KVCS-9-1)."""
    geometry = Geometry(
        layers=layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        dtype="bf16",
        block_tokens=16,
    )
    assert object_16 == geometry.octets(Component.K), model
    assert token == layers * geometry.octets(Component.KV) // 16, model


def test_one_latent_has_no_v_section() -> None:
    """DeepSeek-V3: 576 channels, 18 KiB for 16 tokens, all of it the K section (A21)."""
    descriptor = v.p0_descriptor(
        attention="mla", layers=61, kv_heads=1, head_dim=576, v_head_dim=0, block_tokens=16
    )
    geometry = Geometry.from_descriptor(descriptor)
    assert [18 * 1024, 0, 18 * 1024] == [geometry.octets(component) for component in Component]
    assert 70272 == 61 * geometry.octets(Component.KV) // 16


def test_scales_follow_the_elements() -> None:
    """Quantisation per token and head adds block_tokens x kv_heads scales (kvsp-p0 §6)."""
    quant = {"scheme": "symmetric", "scale_dtype": "fp32", "granularity": "token_head"}
    geometry = Geometry.from_descriptor(v.p0_descriptor(dtype="int8", quant=quant))
    assert 4 * 8 * 128 + 4 * 8 * 4 == geometry.octets(Component.K)


def test_scales_of_another_granularity_have_no_size() -> None:
    """The profile defines only one granularity."""
    quant = {"scheme": "x", "scale_dtype": "fp32", "granularity": "channel"}
    with pytest.raises(DescriptorError, match="granularity"):
        Geometry.from_descriptor(v.p0_descriptor(quant=quant))


def test_a_descriptor_with_defects_has_no_geometry() -> None:
    """All its defects are told at once."""
    with pytest.raises(DescriptorError) as caught:
        Geometry.from_descriptor(v.p0_descriptor(dtype="x", layers=0))
    assert {"$.dtype", "$.layers"} == {defect.where for defect in caught.value.defects}


@pytest.mark.parametrize(("tokens", "blocks"), [(0, 0), (15, 0), (16, 1), (17, 1), (1023, 63)])
def test_complete_blocks(tokens: int, blocks: int) -> None:
    """A partial last block does not count (field case 21)."""
    assert blocks == Geometry(**LLAMA).blocks(tokens)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers": 0}, "layers is at least 1"),
        ({"kv_heads": 0}, "kv_heads is at least 1"),
        ({"head_dim": -1}, "head_dim is at least 1"),
        ({"v_head_dim": -1}, "v_head_dim is at least 0"),
        ({"block_tokens": 0}, "block_tokens is at least 1"),
        ({"dtype": "float16"}, "unknown dtype 'float16'; known: fp32"),
        ({"scale_dtype": "x"}, "unknown dtype"),
        ({"layout": "dht"}, "unknown layout 'dht'; known: thd, htd"),
        ({"block_tokens": 2**20}, "2\\^32-1"),
    ],
)
def test_impossible_geometries_are_refused(change: dict[str, Any], reason: str) -> None:
    """One clear line says which value is wrong; Data fits 32 bits of length (KVCS-4-13)."""
    with pytest.raises(InputError, match=reason):
        Geometry(**(LLAMA | change))
