"""Sections from numpy arrays and back, bit for bit (kvsp-p0 §6, KVCS-4-15, KVCS-4-16).

An array of one layer has the shape (tokens, kv_heads, channels) in any strides. Bit patterns pass
unchanged: no value is ever converted, so NaN payloads, negative zeros and subnormals survive. With
layout "thd" a contiguous array is cut into views without a copy; layout "htd", strided input and
scales cost one copy of the layer. A partial last block has no section (KVCS-4-11).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from kvcs.descriptor import ELEMENT_OCTETS
from kvcs.errors import InputError
from kvcs.geometry import Geometry
from kvcs.names import Component
from kvcs.payload import Octets

Array: TypeAlias = npt.NDArray[Any]

DTYPES: dict[str, np.dtype[Any]] = {
    "fp32": np.dtype("<f4"),
    "fp16": np.dtype("<f2"),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp8_e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "int8": np.dtype("int8"),
}
"""The numpy type of each `dtype`. fp8_e4m3 is the finite-only form that inference engines store."""


def split_layer(
    array: Array, geometry: Geometry, component: Component, scales: Array | None = None
) -> list[memoryview]:
    """The K or the V section of each complete block of one layer, in block order.

    `array` is (tokens, kv_heads, channels) of the geometry's dtype, or of unsigned integers of the
    same width that hold its bits. `scales` is (tokens, kv_heads), for a geometry with scales only.
    Raises InputError for another shape or type.
    """
    _check_section(component)
    shape = (geometry.kv_heads, geometry.dim(component))
    tokens = _check_shape(array, shape, "array")
    blocks = geometry.blocks(tokens)
    elements = _in_layout(_bits(array, geometry.dtype, "array"), blocks, geometry)
    parts = [_octets(elements)]
    if geometry.scale_dtype is not None and geometry.dim(component):
        if scales is None:
            raise InputError(f"dtype {geometry.dtype} with scales: the array of scales is missing")
        if _check_shape(scales, shape[:1], "scales") != tokens:
            raise InputError(f"scales are for {len(scales)} tokens, the array for {tokens}")
        factors = _in_layout(_bits(scales, geometry.scale_dtype, "scales"), blocks, geometry)
        parts.append(_octets(factors))
    elif scales is not None:
        raise InputError("this geometry has no scales")
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    view = whole.reshape(-1).data.toreadonly()
    size = geometry.octets(component)
    return [view[block * size : (block + 1) * size] for block in range(blocks)]


def split_layer_kv(
    k: Array,
    v: Array | None,
    geometry: Geometry,
    k_scales: Array | None = None,
    v_scales: Array | None = None,
) -> list[Octets]:
    """K section followed by V section of each complete block (component "kv", KVCS-4-16).

    `v` may be None when the geometry has no V section (MLA): then nothing is copied.
    """
    keys = split_layer(k, geometry, Component.K, k_scales)
    if geometry.v_head_dim == 0:
        return list(keys)
    if v is None:
        raise InputError("the array of V is missing")
    if len(v) != len(k):
        raise InputError(f"K has {len(k)} tokens and V {len(v)}")
    values = split_layer(v, geometry, Component.V, v_scales)
    return [b"".join(pair) for pair in zip(keys, values, strict=True)]


def split_kv(section: Octets, geometry: Geometry) -> tuple[memoryview, memoryview]:
    """The K and the V section inside raw "kv" Data, as views (KVCS-4-16)."""
    view = memoryview(section)
    if view.nbytes != geometry.octets(Component.KV):
        raise InputError(
            f"K and V of a block have {geometry.octets(Component.KV)} octets, not {view.nbytes}"
        )
    middle = geometry.octets(Component.K)
    return view[:middle], view[middle:]


def block_array(section: Octets, geometry: Geometry, component: Component) -> Array:
    """One section as (block_tokens, kv_heads, channels): a read-only view, nothing is copied."""
    _check_section(component)
    _check_octets(section, geometry, component)
    shape = _axes(1, geometry, geometry.dim(component))[1:]
    count = int(np.prod(shape))
    elements = np.frombuffer(section, DTYPES[geometry.dtype], count).reshape(shape)
    elements.flags.writeable = False
    return elements.swapaxes(0, 1) if geometry.layout == "htd" else elements


def block_scales(section: Octets, geometry: Geometry, component: Component) -> Array:
    """The scales of one section as (block_tokens, kv_heads): a read-only view."""
    _check_section(component)
    _check_octets(section, geometry, component)
    if geometry.scale_dtype is None or geometry.dim(component) == 0:
        raise InputError("this section has no scales")
    shape = _axes(1, geometry, 1)[1:3]
    start = geometry.octets(component) - geometry.scale_octets
    scales = np.frombuffer(section, DTYPES[geometry.scale_dtype], offset=start).reshape(shape)
    scales.flags.writeable = False
    return scales.swapaxes(0, 1) if geometry.layout == "htd" else scales


def join_layer(sections: Sequence[Octets], geometry: Geometry, component: Component) -> Array:
    """One layer as (tokens, kv_heads, channels) from its sections in block order; one copy."""
    shape = (len(sections), geometry.block_tokens, geometry.kv_heads, geometry.dim(component))
    layer = np.empty(shape, DTYPES[geometry.dtype])
    for index, section in enumerate(sections):
        layer[index] = block_array(section, geometry, component)
    return layer.reshape(shape[0] * shape[1], *shape[2:])


def join_scales(sections: Sequence[Octets], geometry: Geometry, component: Component) -> Array:
    """The scales of one layer as (tokens, kv_heads); one copy."""
    if not sections:
        raise InputError("no sections")
    return np.concatenate([block_scales(section, geometry, component) for section in sections])


def _in_layout(bits: Array, blocks: int, geometry: Geometry) -> Array:
    """(tokens, heads, ...) as contiguous (blocks, *axes of one section); the tail is dropped."""
    whole = bits[: blocks * geometry.block_tokens]
    cut = whole.reshape(blocks, geometry.block_tokens, *bits.shape[1:])
    if geometry.layout == "htd":
        cut = cut.swapaxes(1, 2)
    return np.ascontiguousarray(cut)


def _axes(blocks: int, geometry: Geometry, dim: int) -> tuple[int, int, int, int]:
    if geometry.layout == "thd":
        return (blocks, geometry.block_tokens, geometry.kv_heads, dim)
    return (blocks, geometry.kv_heads, geometry.block_tokens, dim)


def _octets(sections: Array) -> Array:
    """(blocks, *axes) as (blocks, octets of one section)."""
    count, each = len(sections), int(np.prod(sections.shape[1:])) * sections.itemsize
    return sections.reshape(-1).view(np.uint8).reshape(count, each)


def _bits(array: Array, dtype: str, what: str) -> Array:
    """The array as little-endian unsigned integers of its element's width; no value changes."""
    width = ELEMENT_OCTETS[dtype]
    wanted = DTYPES[dtype]
    same = array.dtype.newbyteorder("<") == wanted
    if not same and not (array.dtype.kind == "u" and array.dtype.itemsize == width):
        raise InputError(
            f"the {what} is {array.dtype}, dtype {dtype} wants {wanted.name} or uint{8 * width}"
        )
    order = ">" if array.dtype.byteorder == ">" else "<"
    return array.view(np.dtype(f"{order}u{width}")).astype(f"<u{width}", copy=False)


def _check_section(component: Component) -> None:
    if component is Component.KV:
        raise InputError("a section is K or V; split_layer_kv and split_kv handle both together")


def _check_shape(array: Array, shape: tuple[int, ...], what: str) -> int:
    if array.ndim != 1 + len(shape) or array.shape[1:] != shape:
        right = ", ".join(map(str, shape))
        raise InputError(f"the {what} has the shape {array.shape}, not (tokens, {right})")
    return int(array.shape[0])


def _check_octets(section: Octets, geometry: Geometry, component: Component) -> None:
    octets, right = memoryview(section).nbytes, geometry.octets(component)
    if octets != right:
        raise InputError(f"the {component.name} section has {octets} octets, not {right}")
