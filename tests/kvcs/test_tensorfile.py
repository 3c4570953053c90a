"""Tensor files: bits survive, bad ones are refused in one line, nothing is half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kvcs.errors import InputError
from kvcs.model.base import ModelShape, describe
from kvcs.tensorfile import (
    Layer,
    TensorFile,
    check_tokens,
    read_tensor_file,
    write_tensor_file,
)
from kvcs.tensors import DTYPES
from safetensors.numpy import save_file

SHAPE = ModelShape(layers=2, heads=4, kv_heads=2, head_dim=8)
TOKENS = list(range(100, 110))
BF16 = np.dtype(ml_dtypes.bfloat16)


def descriptor(**changes: Any) -> dict[str, Any]:
    """A descriptor of two layers in blocks of four tokens."""
    return describe(SHAPE, "example/test", {}, 4) | changes


def patterns(shape: tuple[int, ...], dtype: np.dtype[Any], start: int) -> np.ndarray[Any, Any]:
    """An array whose octets count up, so that every element differs."""
    octets = (np.arange(int(np.prod(shape)) * dtype.itemsize) + start).astype(np.uint8)
    return octets.view(dtype).reshape(shape)


def tensors(dtype: np.dtype[Any] = BF16, tokens: int = 8) -> dict[str, np.ndarray[Any, Any]]:
    """The four tensors of a well-shaped file."""
    names = [f"layers.{i}.{c}" for i in range(2) for c in "kv"]
    return {name: patterns((tokens, 2, 8), dtype, 7 * n) for n, name in enumerate(names)}


def saved(folder: Path, arrays: dict[str, np.ndarray[Any, Any]], **metadata: Any) -> Path:
    """A file with the given tensors; metadata defaults to the right one, None leaves it out."""
    entries = {"tokens": TOKENS, "descriptor": descriptor()} | metadata
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in entries.items() if v}
    path = folder / "cache.safetensors"
    save_file(arrays, path, texts)
    return path


def refusal(path: Path, **arguments: Any) -> str:
    """The message with which a file is refused: always one line that names the file."""
    with pytest.raises(InputError) as caught:
        read_tensor_file(path, **arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_type_is_read_as_its_bit_patterns(tmp_path: Path, name: str) -> None:
    """All six element types of a descriptor come out of a file octet for octet."""
    arrays = tensors(DTYPES[name])
    cache = read_tensor_file(saved(tmp_path, arrays, descriptor=descriptor(dtype=name)))
    assert list(cache.layers) == [0, 1]
    assert (tuple(TOKENS), 8) == (cache.tokens, cache.cached)
    for index, layer in cache.layers.items():
        assert layer.v is not None
        assert arrays[f"layers.{index}.k"].tobytes() == layer.k.tobytes()
        assert arrays[f"layers.{index}.v"].tobytes() == layer.v.tobytes()
        assert layer.k.shape == (8, 2, 8)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Writing and reading is the identity on descriptor, tokens and bits, in any memory order."""
    arrays = tensors()
    turned = np.asfortranarray(arrays["layers.0.k"])
    layers = {
        0: Layer(turned, arrays["layers.0.v"]),
        1: Layer(arrays["layers.1.k"], arrays["layers.1.v"]),
    }
    path = tmp_path / "copy.safetensors"
    write_tensor_file(path, TensorFile(descriptor(), tuple(TOKENS), layers))
    back = read_tensor_file(path)
    assert descriptor() == back.descriptor
    assert arrays["layers.0.k"].tobytes() == back.layers[0].k.tobytes()
    assert [path] == list(tmp_path.iterdir())
    (plain := tmp_path / "plain").touch()
    assert plain.stat().st_mode == path.stat().st_mode


def test_latent_attention_has_keys_alone(tmp_path: Path) -> None:
    """With v_head_dim 0 there is no V tensor, and one that exists is refused."""
    latent = descriptor(attention="mla", kv_heads=1, head_dim=8, v_head_dim=0)
    arrays = {f"layers.{i}.k": patterns((8, 1, 8), BF16, i) for i in range(2)}
    cache = read_tensor_file(saved(tmp_path, arrays, descriptor=latent))
    assert [layer.v for layer in cache.layers.values()] == [None, None]
    arrays["layers.1.v"] = patterns((8, 1, 8), BF16, 9)
    assert "layers.1.v exists" in refusal(saved(tmp_path, arrays, descriptor=latent))


def test_arguments_replace_metadata(tmp_path: Path) -> None:
    """A descriptor and tokens that the caller gives win over those of the file."""
    path = saved(tmp_path, tensors(), descriptor=None, tokens=None)
    cache = read_tensor_file(path, descriptor=descriptor(), tokens=range(8))
    assert tuple(range(8)) == cache.tokens


def test_some_layers_can_be_written_but_not_published(tmp_path: Path) -> None:
    """A partial retrieval makes a file; to publish it is refused with the missing tensor's name."""
    arrays = tensors()
    path = tmp_path / "part.safetensors"
    layers = {1: Layer(arrays["layers.1.k"], arrays["layers.1.v"])}
    write_tensor_file(path, TensorFile(descriptor(), tuple(TOKENS), layers))
    assert "the tensor layers.0.k is missing" in refusal(path)


def without(name: str) -> dict[str, np.ndarray[Any, Any]]:
    """The tensors but one."""
    return {key: array for key, array in tensors().items() if key != name}


BAD: dict[str, tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any], str]] = {
    "missing layer": (without("layers.1.v"), {}, "the tensor layers.1.v is missing"),
    "surplus layer": (
        tensors() | {"layers.2.k": tensors()["layers.0.k"]},
        {},
        "layers.2.k is beyond the descriptor's 2 layers",
    ),
    "other name": (tensors() | {"k.0": np.zeros(1)}, {}, "'k.0' is not named layers.{i}.k"),
    "other heads": (
        tensors() | {"layers.1.k": patterns((8, 3, 8), BF16, 0)},
        {},
        "layers.1.k has shape [8, 3, 8], expected [8, 2, 8]",
    ),
    "other tokens": (
        tensors() | {"layers.1.v": patterns((4, 2, 8), BF16, 0)},
        {},
        "layers.1.v has shape [4, 2, 8], expected [8, 2, 8]",
    ),
    "no axes": (
        tensors() | {"layers.0.k": np.zeros((), BF16)},
        {},
        "less than one block of 4",
    ),
    "other type": (
        tensors(np.dtype(np.float16)),
        {},
        "layers.0.k holds F16 (fp16), the descriptor says bf16",
    ),
    "unknown type": (
        tensors() | {"layers.0.k": np.zeros((8, 2, 8), np.int64)},
        {},
        "layers.0.k holds the unknown dtype I64, the descriptor says bf16",
    ),
    "unknown descriptor type": (
        tensors(),
        {"descriptor": descriptor(dtype="int4")},
        "int4",
    ),
    "scales": (
        tensors(),
        {
            "descriptor": descriptor(
                quant={"scheme": "x", "scale_dtype": "fp32", "granularity": "token_head"}
            )
        },
        "quant must be null",
    ),
    "huge layer count": (
        tensors(),
        {"descriptor": descriptor(layers=2**32 - 1)},
        "layers.2.k is missing",
    ),
    "too few tokens": (tensors(), {"tokens": [1, 2, 3]}, "cover 8 tokens, but only 3 are listed"),
    "no block": (tensors(tokens=3), {}, "cover 3 tokens, less than one block of 4"),
    "no descriptor": (tensors(), {"descriptor": None}, "give --descriptor FILE.json"),
    "no tokens": (tensors(), {"tokens": None}, "give --tokens FILE.json"),
    "descriptor not JSON": (
        tensors(),
        {"descriptor": "{"},
        "'descriptor': not JSON",
    ),
    "descriptor not an object": (tensors(), {"descriptor": "[1]"}, "'descriptor' is a JSON object"),
    "descriptor incomplete": (tensors(), {"descriptor": '{"layers": 2}'}, "is missing"),
    "token out of range": (tensors(), {"tokens": [1, -1]}, "tokens[1] is an integer from 0"),
    "token of another type": (tensors(), {"tokens": '[1, "a"]'}, "tokens[1] is an integer"),
    "tokens not an array": (tensors(), {"tokens": "7"}, "tokens is a JSON array"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    """Each kind of bad file has its message: what was wrong, where, what would be right."""
    arrays, metadata, expected = BAD[case]
    message = refusal(saved(tmp_path, arrays, **metadata))
    assert expected in message


def test_an_unreadable_file_is_refused_in_one_line(tmp_path: Path) -> None:
    """No file, a folder, an empty file, garbage, and a truncated file all say that much."""
    whole = saved(tmp_path, tensors()).read_bytes()
    broken = tmp_path / "broken.safetensors"
    assert f"{broken}: no such file" == refusal(broken)
    assert f"{tmp_path}: a folder, not a file" == refusal(tmp_path)
    for octets in (b"", b"not tensors at all", whole[:-1], whole + b"\0"):
        broken.write_bytes(octets)
        assert "not a readable safetensors file" in refusal(broken)


def test_nothing_is_left_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    """A missing folder, a folder in the way: one line, and no trace of a file."""
    arrays = tensors()
    cache = TensorFile(
        descriptor(), tuple(TOKENS), {0: Layer(arrays["layers.0.k"], arrays["layers.0.v"])}
    )
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        write_tensor_file(tmp_path / "absent" / "x.safetensors", cache)
    with pytest.raises(InputError, match="it is a folder"):
        write_tensor_file(tmp_path, cache)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_file_that_was_there(tmp_path: Path) -> None:
    """An array that the descriptor contradicts stops the write before the old file is touched."""
    path = saved(tmp_path, tensors())
    before = path.read_bytes()
    bad = Layer(np.zeros((8, 2, 8), np.float32), None)
    with pytest.raises(ValueError, match=r"layers\.0\.k is float32"):
        write_tensor_file(path, TensorFile(descriptor(), tuple(TOKENS), {0: bad}))
    assert before == path.read_bytes()
    assert [path] == list(tmp_path.iterdir())


def test_token_ids_are_checked_for_type_and_range() -> None:
    """Zero and 2^32-1 are token ids; true, 2^32 and an empty array are not."""
    assert check_tokens([0, 2**32 - 1], "t") == (0, 2**32 - 1)
    for bad in ([True], [2**32], [], [1.0]):
        with pytest.raises(InputError):
            check_tokens(bad, "t")
