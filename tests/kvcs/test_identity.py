"""The profiles kvsp-p0 and kvcs-example against their vectors, and what they refuse."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from kvcs.codecs import Codec
from kvcs.descriptor import canonical, check_descriptor, unknown_members
from kvcs.errors import CodecError, DescriptorError, InputError, KvcsError, ProfileError
from kvcs.identity import EXAMPLE, P0, KvspP0, profile

from tests.kvcs import vectors as v

REFERENCE = Path(__file__).parents[2] / "reference"


def test_canonical_form_is_the_published_line() -> None:
    """The vectors' descriptor serialises to its 510 octets whatever the member order (§4)."""
    reordered = dict(reversed(v.p0_descriptor().items()))
    assert v.P0_CANONICAL == canonical(reordered)
    assert len(canonical(reordered)) == 510


def test_compatibility_id_vector() -> None:
    """The Compatibility ID is the vectors' (KVCS-5-17, kvsp-p0 §10)."""
    assert v.P0_COMPAT_ID == P0.compat_id(v.p0_descriptor())


def test_scope_id_vector() -> None:
    """The scope key 00 01 .. 1f gives the Scope ID of the KVCS example (KVCS-3.1-6)."""
    assert v.EXAMPLE_SCOPE_ID == P0.scope_id(v.P0_SCOPE_KEY)


def test_block_key_vectors() -> None:
    """Ten tokens in blocks of four give two keys; the rest of two has none (KVCS-2-1)."""
    assert v.P0_KEYS == P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, v.P0_TOKENS, 4)


def test_salted_block_key_vectors() -> None:
    """A salt changes every key of the chain (kvsp-p0 §10)."""
    keys = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, v.P0_TOKENS, 4, salt=b"tenant-7")
    assert v.P0_SALTED_KEYS == keys


def test_extra_input_block_key_vector() -> None:
    """An image in block 1 leaves key 0 as it is and changes key 1 (kvsp-p0 §10)."""
    extra = {1: sha256(b"image").digest()}
    keys = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, v.P0_TOKENS, 4, extra=extra)
    assert [v.P0_KEYS[0], v.P0_IMAGE_KEY_1] == keys


def test_layer_digest_vector() -> None:
    """SHA-256 of K then V of layer 0, block 1 (KVCS-4-17)."""
    k, w = v.p0_section(0, 1, 0), v.p0_section(0, 1, 1)
    assert v.P0_SHA256_K == sha256(k).digest()
    assert v.P0_SHA256_V == sha256(w).digest()
    assert v.P0_LAYER_DIGEST == P0.layer_digest(k, w)


def test_section_sizes_of_the_example_geometry() -> None:
    """4 tokens x 8 heads x 128 channels of two octets are 8192 (KVCS-4-15)."""
    assert (8192, 8192) == P0.sections(v.p0_descriptor())


@pytest.mark.parametrize(
    ("tokens", "blocks"), [(15, 0), (16, 1), (17, 1), (31, 1), (32, 2), (1023, 63)]
)
def test_a_partial_last_block_has_no_key(tokens: int, blocks: int) -> None:
    """Field case 21: only complete blocks of 16 count (KVCS-4-11)."""
    assert blocks == len(P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, range(tokens), 16))


@given(st.lists(st.integers(0, 2**32 - 1), max_size=24), st.integers(1, 5), st.data())
@settings(max_examples=100, deadline=None)
def test_keys_form_one_chain(tokens: list[int], block_tokens: int, data: st.DataObject) -> None:
    """A prefix's keys are the first keys of the whole; a changed token changes all from its block
    on (KVCS-7.1-4, field case 27)."""
    keys = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, tokens, block_tokens)
    cut = data.draw(st.integers(0, len(tokens)))
    prefix = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, tokens[:cut], block_tokens)
    assert keys[: len(prefix)] == prefix
    if tokens:
        at = data.draw(st.integers(0, len(tokens) - 1))
        changed = [*tokens[:at], tokens[at] ^ 1, *tokens[at + 1 :]]
        others = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, changed, block_tokens)
        same = [a == b for a, b in zip(keys, others, strict=True)]
        assert [block < at // block_tokens for block in range(len(keys))] == same


@pytest.mark.parametrize(
    "change",
    [
        {"scope_key": bytes(range(1, 33))},
        {"compat_id": bytes(32)},
        {"salt": b"a"},
        {"extra": {0: b"a"}},
    ],
)
def test_keys_depend_on_every_input(change: dict[str, Any]) -> None:
    """Another scope key, descriptor, salt or image gives other keys from block 0 on (§5)."""
    given_: dict[str, Any] = {
        "scope_key": v.P0_SCOPE_KEY,
        "compat_id": v.P0_COMPAT_ID,
        "tokens": v.P0_TOKENS,
        "block_tokens": 4,
    }
    keys = P0.block_keys(**(given_ | change))
    assert not set(v.P0_KEYS) & set(keys)


def test_equal_blocks_at_other_positions_have_other_keys() -> None:
    """The position is in the key: two equal blocks do not share one (kvsp-p0 §5)."""
    keys = P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, [7] * 8, 4)
    assert keys[0] != keys[1]


@pytest.mark.slow
def test_identifiers_do_not_depend_on_the_process() -> None:
    """Field case 17: any PYTHONHASHSEED gives the same identifiers (KVCS-3.1-6)."""
    program = (
        "import json,sys; from kvcs.identity import P0; d=json.loads(sys.argv[1]);"
        "c=P0.compat_id(d); keys=P0.block_keys(bytes(range(32)), c, range(1,11), 4);"
        "print(c.hex(), keys[-1].hex())"
    )
    expected = f"{v.P0_COMPAT_ID.hex()} {v.P0_KEYS[1].hex()}\n"
    for seed in ("0", "1", "random"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(REFERENCE)}
        command = [sys.executable, "-c", program, v.P0_CANONICAL.decode()]
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert expected == found.stdout


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "fp16"},
        {"dtype": "fp8_e4m3"},
        {"dtype": "fp8_e5m2"},
        {"model": {"id": "example/tiny-gqa", "weights": "sha256:" + "0" * 64}},
        {"adapters": ["sha256:" + "0" * 64]},
        {"blind": "random"},
    ],
)
def test_any_change_of_the_descriptor_changes_the_id(change: dict[str, Any]) -> None:
    """Field cases 18 and 19: dtype, weights and adapters are part of the identity."""
    assert v.P0_COMPAT_ID != P0.compat_id(v.p0_descriptor(**change))


@pytest.mark.parametrize(
    "value",
    [1e-5, 1.0, 2**53, -(2**53), float("nan"), float("inf"), "\ud800", {"\ufb33": 1}, b"octets"],
)
def test_what_implementations_would_hash_differently_is_refused(value: object) -> None:
    """Field case 26: no floats, no integer beyond 2^53-1, ASCII names only (kvsp-p0 §4)."""
    with pytest.raises(DescriptorError):
        P0.compat_id(v.p0_descriptor(extra=value))


def test_other_mappings_than_plain_objects_are_refused() -> None:
    """A nested read-only mapping has no canonical form; it is told, not raised through."""
    with pytest.raises(DescriptorError, match="no canonical form"):
        P0.compat_id(v.p0_descriptor(extra=MappingProxyType({"a": 1})))


def test_non_ascii_member_names_are_refused() -> None:
    """Field case 26: U+1F600 as a member name has no canonical form in P0."""
    with pytest.raises(DescriptorError, match="not ASCII"):
        P0.compat_id(v.p0_descriptor(**{"\U0001f600": 1}))


def test_the_largest_integers_are_accepted() -> None:
    """Plus and minus 2^53-1 are inside the range."""
    low, high = v.p0_descriptor(a=-(2**53) + 1), v.p0_descriptor(a=2**53 - 1)
    assert P0.compat_id(low) != P0.compat_id(high)


def test_the_vectors_descriptor_has_no_defect() -> None:
    """The table of the profile accepts its own vector."""
    assert [] == check_descriptor(v.p0_descriptor())
    assert () == unknown_members(v.p0_descriptor())


def test_unknown_members_are_hashed_and_listed() -> None:
    """A member outside the table is permitted, changes the ID and is told to the consumer (§4)."""
    descriptor = v.p0_descriptor(blind="x")
    descriptor["model"] = descriptor["model"] | {"revision": "1"}
    assert [] == check_descriptor(descriptor)
    assert ("$.blind", "$.model.revision") == unknown_members(descriptor)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"kvsp_profile": "p1"}, "$.kvsp_profile"),
        ({"layers": 0}, "$.layers"),
        ({"layers": True}, "$.layers"),
        ({"kv_heads": "8"}, "$.kv_heads"),
        ({"head_dim": -1}, "$.head_dim"),
        ({"dtype": "float16"}, "$.dtype"),
        ({"dtype": ["bf16"]}, "$.dtype"),
        ({"layout": "dht"}, "$.layout"),
        ({"byte_order": "big"}, "$.byte_order"),
        ({"attention": "mqa2"}, "$.attention"),
        ({"attention": "mla"}, "$.attention"),
        ({"v_head_dim": 0}, "$.v_head_dim"),
        ({"tokenizer": "sha256:" + "A" * 64}, "$.tokenizer"),
        ({"adapters": [1]}, "$.adapters"),
        ({"quant": {"scheme": "x"}}, "$.quant.scale_dtype"),
        ({"quant": 1}, "$.quant"),
        ({"windows": [0]}, "$.windows"),
        ({"windows": [0, -1]}, "$.windows"),
        ({"model": {}}, "$.model.id"),
        ({"model": None}, "$.model"),
        ({"position": {"type": "rope"}}, "$.position.applied"),
    ],
)
def test_defects_of_a_descriptor_are_named(change: dict[str, Any], where: str) -> None:
    """Each departure from the table of §4 is told with its JSON path."""
    assert where in [defect.where for defect in check_descriptor(v.p0_descriptor(**change))]


def test_a_missing_member_is_named() -> None:
    """Without dtype the path of dtype is told."""
    descriptor = v.p0_descriptor()
    del descriptor["dtype"]
    assert ["$.dtype"] == [defect.where for defect in check_descriptor(descriptor)]


@pytest.mark.parametrize("octets", [0, 1, 15])
def test_a_short_scope_key_is_refused(octets: int) -> None:
    """A scope key has at least 16 octets (kvsp-p0 §5)."""
    with pytest.raises(InputError, match="scope key"):
        P0.scope_id(bytes(octets))
    with pytest.raises(InputError, match="scope key"):
        P0.block_keys(bytes(octets), v.P0_COMPAT_ID, [1], 1)


@pytest.mark.parametrize("token", [-1, 2**32, 1.5, "1", None])
def test_a_token_is_an_unsigned_32_bit_integer(token: Any) -> None:
    """Anything else is told with its block (kvsp-p0 §5)."""
    with pytest.raises(InputError, match="block 1 holds a token"):
        P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, [1, 2, token, 4], 2)


def test_wrong_sizes_of_other_inputs_are_refused() -> None:
    """A Compatibility ID has 32 octets and a block at least one token."""
    with pytest.raises(InputError, match="32 octets"):
        P0.block_keys(v.P0_SCOPE_KEY, bytes(31), [1], 1)
    with pytest.raises(InputError, match="block_tokens"):
        P0.block_keys(v.P0_SCOPE_KEY, v.P0_COMPAT_ID, [1], 0)


def test_codec_table() -> None:
    """raw is 1 in every profile; zstd 2 and deflate 3 are P0's (KVCS-4-12, KVCS-3.2-2)."""
    names = ["raw", "zstd", "deflate"]
    assert [1, 2, 3] == [P0.codec_by_name(name) for name in names]
    assert names == [P0.codec_by_value(value) for value in (1, 2, 3)]
    assert 1 == EXAMPLE.codec_by_name("raw")


@pytest.mark.parametrize("call", [lambda: P0.codec_by_name("lz4"), lambda: P0.codec_by_value(0)])
def test_unknown_codecs_are_refused(call: Callable[[], object]) -> None:
    """A name or value outside the table is a ProfileError (KVCS-3.2-2)."""
    with pytest.raises(ProfileError, match="has no codec"):
        call()


def test_a_private_codec_may_be_added() -> None:
    """Values from 0xff00 with a name x-... are private (kvsp-p0 §6)."""
    flip = Codec("x-flip", 0xFF00, lambda s: bytes(s)[::-1], lambda d, _: bytes(d)[::-1])
    own = KvspP0([flip])
    assert "x-flip" == own.codec_by_value(0xFF00)
    assert b"abc" == own.decode("x-flip", own.encode("x-flip", b"abc"), 3)


@pytest.mark.parametrize(("name", "value"), [("x-flip", 4), ("flip", 0xFF00)])
def test_a_private_codec_stays_private(name: str, value: int) -> None:
    """A registered-looking value or name is refused for a private codec."""
    with pytest.raises(InputError, match="private codec"):
        KvspP0([Codec(name, value, lambda s: s, lambda d, _: d)])


@pytest.mark.parametrize("codec", ["raw", "zstd", "deflate"])
@given(section=st.binary(max_size=300))
@settings(max_examples=50, deadline=None)
def test_codecs_round_trip(codec: str, section: bytes) -> None:
    """What a codec encodes it decodes, from a view too."""
    data = P0.encode(codec, memoryview(section))
    assert section == bytes(P0.decode(codec, memoryview(data), len(section)))


def test_raw_data_is_the_section_itself() -> None:
    """Codec raw copies nothing."""
    section = bytes(10)
    assert P0.encode("raw", section) is section
    assert P0.decode("raw", section, 10) is section


@pytest.mark.parametrize("codec", ["raw", "zstd", "deflate"])
@pytest.mark.parametrize("octets", [0, 999, 1001])
def test_a_section_of_another_size_is_refused(codec: str, octets: int) -> None:
    """Data that decodes to more or fewer octets than the section has is refused (§6)."""
    data = P0.encode(codec, bytes(1000))
    with pytest.raises(CodecError):
        P0.decode(codec, data, octets)


def _unsized_zstd(section: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return compressor.compress(section) + compressor.flush()


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        ("zstd", zstandard.compress(bytes(2**24))),
        ("zstd", _unsized_zstd(bytes(2**24))),
        ("deflate", zlib.compress(bytes(2**24))),
    ],
)
def test_decompression_bombs_are_refused(codec: str, bomb: bytes) -> None:
    """A few octets that expand to 16 MiB do not pass for a section of 8 KiB (§6)."""
    assert len(bomb) < 20_000
    with pytest.raises(CodecError):
        P0.decode(codec, bomb, 8192)


def test_a_frame_is_not_believed_about_its_size() -> None:
    """A Zstandard header that states 2^62 octets is refused before anything is allocated (§6)."""
    frame = bytes.fromhex("28b52ffd e0") + (2**62).to_bytes(8, "little") + bytes.fromhex("010000")
    with pytest.raises(CodecError, match="holds 4611686018427387904 octets, a section has 8192"):
        P0.decode("zstd", frame, 8192)


@pytest.mark.parametrize("codec", ["zstd", "deflate"])
def test_truncated_or_continued_data_is_refused(codec: str) -> None:
    """One frame, whole, with nothing after it (§6)."""
    data = bytes(P0.encode(codec, bytes(range(200))))
    for bad in (data[:-1], data + b"\x00", data + data, b""):
        with pytest.raises(CodecError):
            P0.decode(codec, bad, 200)


@pytest.mark.parametrize("codec", ["raw", "zstd", "deflate"])
@given(data=st.binary(max_size=100), octets=st.integers(0, 200))
@settings(max_examples=60, deadline=None)
def test_any_data_decodes_to_the_size_or_is_refused(codec: str, data: bytes, octets: int) -> None:
    """Arbitrary Data gives exactly the octets asked for, or our own error."""
    try:
        found = len(P0.decode(codec, data, octets))
    except CodecError:
        return
    assert octets == found


def test_the_example_profile_returns_the_constants() -> None:
    """kvcs-example knows the identifiers of KVCS A and no derivation."""
    geometry = {"block_tokens": 4, "kv_heads": 8, "head_dim": 128}
    assert v.EXAMPLE_SCOPE_ID == EXAMPLE.scope_id(bytes(range(32)))
    assert v.EXAMPLE_COMPAT_ID == EXAMPLE.compat_id(geometry)
    assert v.EXAMPLE_ANCHOR_KEY == EXAMPLE.anchor_key
    assert v.EXAMPLE_PUBLICATION_ID == EXAMPLE.publication_id
    assert (8192, 8192) == EXAMPLE.sections(geometry)


def test_the_example_profile_refuses_everything_else() -> None:
    """Another scope key, geometry, codec, or any tokens: ProfileError."""
    for call in (
        lambda: EXAMPLE.scope_id(bytes(32)),
        lambda: EXAMPLE.compat_id({"block_tokens": 16, "kv_heads": 8, "head_dim": 128}),
        lambda: EXAMPLE.block_keys(bytes(range(32)), v.EXAMPLE_COMPAT_ID, [1, 2, 3, 4], 4),
        lambda: EXAMPLE.codec_by_name("zstd"),
    ):
        with pytest.raises(ProfileError):
            call()


def test_profiles_are_found_by_name() -> None:
    """Both built-in profiles; another name is one clear line that lists them."""
    assert P0 is profile("kvsp-p0")
    assert EXAMPLE is profile("kvcs-example")
    with pytest.raises(InputError, match="kvsp-p0, kvcs-example"):
        profile("kvsp")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=8), json_values, max_size=5), json_values)
@settings(max_examples=100, deadline=None)
def test_any_descriptor_gives_an_id_or_our_error(extra: dict[str, Any], value: Any) -> None:
    """Whatever a peer calls a descriptor is hashed or refused, never anything else."""
    for name in ("layers", "model", "quant", "position", "windows", "dtype"):
        descriptor = v.p0_descriptor(**{name: value}) | extra
        check_descriptor(descriptor)
        with contextlib.suppress(KvcsError):
            assert 32 == len(P0.compat_id(descriptor))
            assert min(P0.sections(descriptor)) >= 0
    assert isinstance(check_descriptor(value), list)


def test_equal_json_texts_give_equal_ids() -> None:
    """Member order and white space do not matter (KVCS-5-17)."""
    text = json.dumps(dict(reversed(v.p0_descriptor().items())), indent=3)
    assert v.P0_COMPAT_ID == P0.compat_id(json.loads(text))
