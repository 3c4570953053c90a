"""A KV cache in a safetensors file: read by `kvcs publish --from`, written by `kvcs consume --to`.

Tensors `layers.{i}.k` and `layers.{i}.v`, each [tokens, kv_heads, head_dim] (`v`: v_head_dim; no
`v` at all when the descriptor's v_head_dim is 0), and two metadata entries in JSON: `tokens`, the
token ids of the context, and `descriptor`, its Compatibility Descriptor. docs/tensor-files.md
tells it at length.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from kvcs.descriptor import Descriptor
from kvcs.errors import DescriptorError, InputError, JsonError
from kvcs.geometry import Geometry
from kvcs.names import Component
from kvcs.strict_json import JsonValue, parse_json
from kvcs.tensors import DTYPES, Array, join_layer

if TYPE_CHECKING:
    from kvcs.consumer.result import Result

CODES: Mapping[str, str] = {
    "fp32": "F32",
    "fp16": "F16",
    "bf16": "BF16",
    "fp8_e4m3": "F8_E4M3",
    "fp8_e5m2": "F8_E5M2",
    "int8": "I8",
}
"""The code in a safetensors file of each `dtype` of a descriptor."""

_NAME = re.compile(r"layers\.(0|[1-9][0-9]{0,9})\.([kv])")
_MAX_TOKEN = 2**32 - 1


class Layer(NamedTuple):
    """K and V of one layer, [tokens, kv_heads, channels]; `v` is None without a V section."""

    k: Array
    v: Array | None


def restored_layer(result: Result, geometry: Geometry, layer: int, blocks: int) -> Layer:
    """One layer of the first `blocks` blocks of what a consumer retrieved.

    Raises InputError when a block is not verified in that layer.
    """
    sections = [result.sections(layer, block) for block in range(blocks)]
    k = join_layer([section for section, _ in sections], geometry, Component.K)
    if not geometry.v_head_dim:
        return Layer(k, None)
    return Layer(k, join_layer([section for _, section in sections], geometry, Component.V))


@dataclass(frozen=True, slots=True)
class TensorFile:
    """A cache: `layers` by index, covering the first `cached` tokens of `tokens`.

    Arrays that were read are views of the mapped file and cannot be written to.
    """

    descriptor: Descriptor
    tokens: tuple[int, ...]
    layers: Mapping[int, Layer]

    @property
    def geometry(self) -> Geometry:
        """The sizes that the descriptor states."""
        return Geometry.from_descriptor(self.descriptor)

    @property
    def cached(self) -> int:
        """Tokens that the tensors cover."""
        return min((len(layer.k) for layer in self.layers.values()), default=0)


def read_tensor_file(
    path: Path, *, descriptor: Descriptor | None = None, tokens: Sequence[int] | None = None
) -> TensorFile:
    """The cache in `path`, complete and well-shaped; the arguments win over the file's metadata.

    Raises InputError, with one line that says what is wrong, for a file that cannot be read, is no
    safetensors file, has no or an unusable descriptor or token list, lacks a layer, or holds a
    tensor of another name, shape or type than the descriptor asks for.
    """
    metadata, entries, data = _map(path)
    where = "--descriptor"
    if descriptor is None:
        descriptor, where = _descriptor(path, metadata), str(path)
    if tokens is None:
        tokens = _tokens(path, metadata)
    geometry = tensor_geometry(descriptor, where)
    for name in entries:
        _check_name(path, name, geometry)
    for name, _ in _wanted(geometry):
        if name not in entries:
            raise InputError(
                f"{path}: the tensor {name} is missing; the descriptor asks for layers 0 to "
                f"{geometry.layers - 1}"
            )
    cached = _cached_tokens(path, entries["layers.0.k"], geometry, len(tokens))
    arrays = {
        name: _array(path, name, entries[name], data, geometry, (cached, *heads))
        for name, heads in _wanted(geometry)
    }
    layers = {
        i: Layer(arrays[f"layers.{i}.k"], arrays.get(f"layers.{i}.v"))
        for i in range(geometry.layers)
    }
    return TensorFile(descriptor, tuple(tokens), layers)


def read_context(path: Path) -> tuple[Descriptor, tuple[int, ...]]:
    """Descriptor and tokens of a tensor file, whatever tensors it holds; InputError without."""
    metadata, _, _ = _map(path)
    return _descriptor(path, metadata), _tokens(path, metadata)


def write_tensor_file(path: Path, cache: TensorFile) -> None:
    """Write `cache` to `path`: the whole file appears there, or nothing does.

    `layers` may be some layers only (a partial retrieval). Raises InputError when the file cannot
    be written, and ValueError when an array is not what the descriptor says.
    """
    geometry = tensor_geometry(cache.descriptor)
    dtype = DTYPES[geometry.dtype]
    arrays: dict[str, Array] = {}
    for index, layer in sorted(cache.layers.items()):
        for component, array in ((Component.K, layer.k), (Component.V, layer.v)):
            if array is None:
                continue
            shape = (cache.cached, geometry.kv_heads, geometry.dim(component))
            name = f"layers.{index}.{component.label}"
            if array.shape != shape or array.dtype != dtype:
                raise ValueError(f"{name} is {array.dtype} {array.shape}, not {dtype} {shape}")
            arrays[name] = np.ascontiguousarray(array)
    metadata = {
        "descriptor": json.dumps(dict(cache.descriptor), sort_keys=True),
        "tokens": json.dumps(list(cache.tokens), separators=(",", ":")),
    }
    check_writable(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # The library makes files that only their owner can read; ours follow the umask.
        unfinished.touch()
        mode = unfinished.stat().st_mode
        save_file(arrays, unfinished, metadata)
        unfinished.chmod(mode)
        os.replace(unfinished, path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot write {path}: {_plain(error)}") from None
    finally:
        unfinished.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise InputError when `path` cannot become a file: known before a long transfer starts."""
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: the folder {folder} does not exist")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: the folder {folder} is not writable")


def check_tokens(value: JsonValue, where: str) -> tuple[int, ...]:
    """`value` as token ids; InputError unless it is an array of integers from 0 to 2^32-1."""
    if not isinstance(value, list) or not value:
        raise InputError(f"{where}: tokens is a JSON array of at least one token id")
    for index, token in enumerate(value):
        if isinstance(token, bool) or not isinstance(token, int) or not 0 <= token <= _MAX_TOKEN:
            raise InputError(
                f"{where}: tokens[{index}] is an integer from 0 to {_MAX_TOKEN}, not {token!r:.40}"
            )
    return tuple(value)


def tensor_geometry(descriptor: Descriptor, where: str = "the descriptor") -> Geometry:
    """The geometry of a descriptor; InputError when tensor files have no form for it.

    `where` the descriptor stood begins the error.
    """
    try:
        geometry = Geometry.from_descriptor(descriptor)
    except DescriptorError as error:
        raise InputError(f"{where}: {error}") from None
    if geometry.scale_dtype is not None:
        raise InputError(
            f"{where}: tensor files have no form for scales: the descriptor's quant must be null"
        )
    return geometry


def _map(path: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]], memoryview]:
    """Metadata, header entries and data of a valid safetensors file, mapped, not read."""
    if path.is_dir():
        raise InputError(f"{path}: a folder, not a file")
    try:
        # The library checks the header, sizes and overlaps; the types that it has no numpy name
        # for are why the arrays are taken from the mapped octets here.
        with safe_open(path, framework="np") as file:
            metadata = dict(file.metadata() or {})
        octets = np.memmap(path, dtype=np.uint8, mode="r").data
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(f"{path}: not a readable safetensors file: {_plain(error)}") from None
    (length,) = struct.unpack_from("<Q", octets)
    header = json.loads(bytes(octets[8 : 8 + length]))
    header.pop("__metadata__", None)
    return metadata, header, octets[8 + length :]


def _metadata(path: Path, metadata: Mapping[str, str], name: str) -> JsonValue:
    if name not in metadata:
        raise InputError(
            f"{path}: the metadata entry '{name}' is missing; add it, or give --{name} FILE.json"
        )
    try:
        return parse_json(metadata[name].encode())
    except JsonError as error:
        raise InputError(f"{path}: metadata entry '{name}': {error}") from None


def _descriptor(path: Path, metadata: Mapping[str, str]) -> Descriptor:
    value = _metadata(path, metadata, "descriptor")
    if not isinstance(value, Mapping):
        raise InputError(f"{path}: metadata entry 'descriptor' is a JSON object")
    return value


def _tokens(path: Path, metadata: Mapping[str, str]) -> tuple[int, ...]:
    return check_tokens(_metadata(path, metadata, "tokens"), str(path))


def _wanted(geometry: Geometry) -> Iterator[tuple[str, tuple[int, int]]]:
    """Name of every tensor, with its heads and channels."""
    for i in range(geometry.layers):
        yield f"layers.{i}.k", (geometry.kv_heads, geometry.head_dim)
        if geometry.v_head_dim:
            yield f"layers.{i}.v", (geometry.kv_heads, geometry.v_head_dim)


def _check_name(path: Path, name: str, geometry: Geometry) -> None:
    match = _NAME.fullmatch(name)
    if match is None:
        raise InputError(
            f"{path}: the tensor {name!a} is not named layers.{{i}}.k or layers.{{i}}.v"
        )
    if int(match[1]) >= geometry.layers:
        raise InputError(
            f"{path}: the tensor {name} is beyond the descriptor's {geometry.layers} layers"
        )
    if match[2] == "v" and not geometry.v_head_dim:
        raise InputError(f"{path}: the tensor {name} exists, but the descriptor's v_head_dim is 0")


def _cached_tokens(path: Path, entry: dict[str, Any], geometry: Geometry, tokens: int) -> int:
    shape = entry["shape"]
    cached = int(shape[0]) if shape else 0
    if cached > tokens:
        raise InputError(f"{path}: the tensors cover {cached} tokens, but only {tokens} are listed")
    if cached < geometry.block_tokens:
        raise InputError(
            f"{path}: the tensors cover {cached} tokens, less than one block of "
            f"{geometry.block_tokens}: there is nothing to publish"
        )
    return cached


def _array(
    path: Path,
    name: str,
    entry: dict[str, Any],
    data: memoryview,
    geometry: Geometry,
    shape: tuple[int, ...],
) -> Array:
    if entry["dtype"] != CODES[geometry.dtype]:
        known = {code: name for name, code in CODES.items()}
        found = known.get(entry["dtype"])
        held = f"{entry['dtype']} ({found})" if found else f"the unknown dtype {entry['dtype']}"
        raise InputError(f"{path}: {name} holds {held}, the descriptor says {geometry.dtype}")
    if tuple(entry["shape"]) != shape:
        raise InputError(
            f"{path}: {name} has shape {entry['shape']}, expected {list(shape)} "
            "([tokens, kv_heads, head_dim])"
        )
    start, end = entry["data_offsets"]
    return np.frombuffer(data[start:end], DTYPES[geometry.dtype]).reshape(shape)


def _plain(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
