"""Sections from arrays and back: bit patterns, strides, layouts, the vectors' digests."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.errors import InputError
from kvcs.geometry import Geometry
from kvcs.names import Component
from kvcs.tensors import (
    DTYPES,
    Array,
    block_array,
    block_scales,
    join_layer,
    join_scales,
    split_kv,
    split_layer,
    split_layer_kv,
)

from tests.kvcs import vectors as v

K, V = Component.K, Component.V
LAYOUTS = ("thd", "htd")


def geometry(**changes: Any) -> Geometry:
    """Blocks of 4 tokens, 3 heads, 5 channels of K and 7 of V."""
    members: dict[str, Any] = {
        "layers": 2,
        "kv_heads": 3,
        "head_dim": 5,
        "v_head_dim": 7,
        "dtype": "bf16",
        "block_tokens": 4,
    }
    return Geometry(**(members | changes))


def random_array(dtype: str, shape: tuple[int, ...], seed: int = 1) -> Array:
    """Every bit pattern: NaNs of all kinds, negative zeros, subnormals."""
    kind = DTYPES[dtype]
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8)
    return bits.view(kind)[..., 0]


def bits(array: Array) -> bytes:
    """The octets of an array in C order."""
    return np.ascontiguousarray(array).tobytes()


def test_bfloat16_little_endian_vector() -> None:
    """The octets of five bf16 values (kvsp-p0 §4 byte_order, field-cases.md)."""
    values = np.array([1, -2.5, 3.14159, 65504, 1e-8], dtype=ml_dtypes.bfloat16)
    shape = geometry(kv_heads=1, head_dim=5, block_tokens=1)
    (section,) = split_layer(values.reshape(1, 1, 5), shape, K)
    assert bytes.fromhex("803f20c0494080472c32") == section


def test_the_vectors_sections() -> None:
    """Sections of layer 0 from one array have the digests of kvsp-p0 §10 (KVCS-4-17)."""
    shape = Geometry.from_descriptor(v.p0_descriptor())

    def layer(kv: int) -> Array:
        octets = b"".join(v.p0_section(0, block, kv) for block in range(2))
        return np.frombuffer(octets, "<u2").reshape(8, 8, 128)

    k, w = split_layer(layer(0), shape, K)[1], split_layer(layer(1), shape, V)[1]
    assert v.P0_SHA256_K == sha256(k).digest()
    assert v.P0_SHA256_V == sha256(w).digest()
    joined = split_layer_kv(layer(0), layer(1), shape)[1]
    assert v.P0_LAYER_DIGEST == sha256(joined).digest()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout_round_trips(dtype: str, layout: str) -> None:
    """All bit patterns come back unchanged; the partial last block does not (field case 21)."""
    shape = geometry(dtype=dtype, layout=layout)
    array = random_array(dtype, (11, 3, 5))
    sections = split_layer(array, shape, K)
    assert [shape.octets(K)] * 2 == [len(section) for section in sections]
    back = join_layer(sections, shape, K)
    assert array[:8].dtype == back.dtype
    assert bits(array[:8]) == bits(back)


def test_axis_orders() -> None:
    """thd runs over tokens first, htd over heads first (kvsp-p0 §4 layout)."""
    array = np.arange(2 * 3 * 2, dtype=np.uint8).reshape(2, 3, 2)
    members: dict[str, Any] = {"dtype": "int8", "head_dim": 2, "block_tokens": 2}
    (thd,) = split_layer(array, geometry(**members), K)
    (htd,) = split_layer(array, geometry(**members, layout="htd"), K)
    assert bytes(range(12)) == thd
    assert bytes([0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]) == htd


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3", "fp32"])
def test_strides_do_not_matter(dtype: str, layout: str) -> None:
    """HND storage, Fortran order, negative strides, big-endian and raw bits: equal sections."""
    shape = geometry(dtype=dtype, layout=layout)
    array = random_array(dtype, (8, 3, 5))
    expected = [bytes(section) for section in split_layer(array, shape, K)]
    raw = array.view(f"u{array.itemsize}")
    views = {
        "hnd": np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1),
        "fortran": np.asfortranarray(raw),
        "negative": np.ascontiguousarray(raw[::-1, :, ::-1])[::-1, :, ::-1],
        "packed": np.concatenate([raw, raw], axis=2)[..., :5],
        "big-endian": raw.astype(raw.dtype.newbyteorder(">")),
        "bits": raw,
    }
    for name, view in views.items():
        found = [bytes(section) for section in split_layer(view, shape, K)]
        assert expected == found, name


def test_contiguous_arrays_are_not_copied() -> None:
    """With thd a section is a read-only view of the array."""
    array = np.zeros((8, 3, 5), np.uint16)
    first, second = split_layer(array, geometry(), K)
    array[4] = 0x0102
    assert (0, 2) == (first[0], second[0])
    assert first.readonly


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sections_are_read_without_copies(layout: str) -> None:
    """One section as an array is a read-only view in the order token, head, channel."""
    shape = geometry(layout=layout)
    array = random_array("bf16", (4, 3, 5))
    octets = bytearray(split_layer(array, shape, K)[0])
    block = block_array(octets, shape, K)
    assert bits(array) == bits(block)
    assert np.shares_memory(block, np.frombuffer(octets, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        block[0, 0, 0] = 0


def test_tensor_parallel_shards_concatenate_to_the_same_sections() -> None:
    """Field case 22: two heads from one or from two shards are the same Objects."""
    shape = geometry(kv_heads=2)
    array = random_array("bf16", (8, 2, 5))
    shards = [array[:, :1], array[:, 1:]]
    whole = [bytes(section) for section in split_layer(array, shape, K)]
    joined = split_layer(np.concatenate(shards, axis=1), shape, K)
    assert whole == [bytes(section) for section in joined]


def test_kv_is_k_then_v() -> None:
    """Component kv is the K section followed by the V section (KVCS-4-16)."""
    shape = geometry()
    k, w = random_array("bf16", (9, 3, 5)), random_array("bf16", (9, 3, 7), seed=2)
    joined = split_layer_kv(k, w, shape)
    pairs = zip(split_layer(k, shape, K), split_layer(w, shape, V), strict=True)
    assert [bytes(a) + bytes(b) for a, b in pairs] == joined
    first, second = split_kv(joined[1], shape)
    assert (split_layer(k, shape, K)[1], split_layer(w, shape, V)[1]) == (first, second)


def test_one_latent_is_all_of_kv() -> None:
    """Without a V section, kv is K and copies nothing (A21)."""
    shape = geometry(kv_heads=1, head_dim=576, v_head_dim=0)
    latent = random_array("bf16", (8, 1, 576))
    joined = split_layer_kv(latent, None, shape)
    assert bits(latent) == b"".join(joined)
    assert np.shares_memory(np.frombuffer(joined[0], np.uint8), latent)
    assert [0, 0] == [len(s) for s in split_layer(latent[..., :0], shape, V)]
    assert (8, 1, 0) == join_layer([b"", b""], shape, V).shape


@pytest.mark.parametrize("layout", LAYOUTS)
def test_scales_are_appended_in_the_same_order(layout: str) -> None:
    """int8 with fp32 scales per token and head: elements, then scales (kvsp-p0 §6)."""
    shape = geometry(dtype="int8", scale_dtype="fp32", layout=layout)
    array, scales = random_array("int8", (9, 3, 5)), random_array("fp32", (9, 3))
    sections = split_layer(array, shape, K, scales)
    assert [4 * 3 * 5 + 4 * 3 * 4] * 2 == [len(section) for section in sections]
    assert bits(array[:8]) == bits(join_layer(sections, shape, K))
    assert bits(scales[:8]) == bits(join_scales(sections, shape, K))
    order = scales[:4] if layout == "thd" else scales[:4].T
    assert bits(order) == bytes(sections[0][60:])


def test_no_complete_block_is_no_section() -> None:
    """Three tokens of a block of four give nothing; no sections give an empty layer."""
    assert [] == split_layer(random_array("bf16", (3, 3, 5)), geometry(), K)
    assert [] == split_layer(random_array("bf16", (0, 3, 5)), geometry(), K)
    assert (0, 3, 5) == join_layer([], geometry(), K).shape


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16, np.uint8, "O"])
def test_another_type_is_refused(dtype: Any) -> None:
    """No value is ever converted: float32 is not bf16, nor is float16 of the same width."""
    with pytest.raises(InputError, match="dtype bf16 wants bfloat16 or uint16"):
        split_layer(np.zeros((4, 3, 5), dtype), geometry(), K)


@pytest.mark.parametrize("shape", [(4, 3), (4, 5, 3), (4, 3, 7), (1, 4, 3, 5)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """The message has the shape that is right: (tokens, heads, channels)."""
    with pytest.raises(InputError, match=r"not \(tokens, 3, 5\)"):
        split_layer(np.zeros(shape, np.uint16), geometry(), K)


def test_other_misuse_is_refused() -> None:
    """Missing or surplus scales, missing V, sections of the wrong size or component."""
    array = np.zeros((4, 3, 5), np.uint16)
    scaled = geometry(scale_dtype="fp32")
    scales = np.zeros((4, 3), np.float32)
    for call in (
        lambda: split_layer(array, scaled, K),
        lambda: split_layer(array, scaled, K, scales[:3]),
        lambda: split_layer(array, geometry(), K, scales),
        lambda: split_layer(array, geometry(), Component.KV),
        lambda: split_layer_kv(array, None, geometry()),
        lambda: split_layer_kv(array, np.zeros((3, 3, 7), np.uint16), geometry()),
        lambda: split_kv(bytes(10), geometry()),
        lambda: block_array(bytes(10), geometry(), K),
        lambda: block_scales(bytes(geometry().octets(K)), geometry(), K),
        lambda: join_layer([bytes(10)], geometry(), K),
        lambda: join_scales([], scaled, K),
    ):
        with pytest.raises(InputError):
            call()


@given(
    st.sampled_from(sorted(DTYPES)),
    st.sampled_from(LAYOUTS),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 20),
    st.integers(0, 99),
)
@settings(max_examples=100, deadline=None)
def test_any_geometry_round_trips(
    dtype: str, layout: str, block: int, heads: int, dim: int, tokens: int, seed: int
) -> None:
    """Complete blocks of any shape come back bit for bit."""
    shape = geometry(dtype=dtype, layout=layout, block_tokens=block, kv_heads=heads, head_dim=dim)
    array = random_array(dtype, (tokens, heads, dim), seed)
    sections = split_layer(array, shape, K)
    assert shape.blocks(tokens) == len(sections)
    whole = shape.blocks(tokens) * block
    assert bits(array[:whole]) == bits(join_layer(sections, shape, K))
