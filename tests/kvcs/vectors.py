"""Golden values: the KVCS example and the vectors of the profile kvsp-p0, octet for octet."""

from __future__ import annotations

import json
from typing import Any

# KVCS A: the Track Namespace (108 octets) and the payload header of a "k" Object (68 octets).
EXAMPLE_NAMESPACE = bytes.fromhex(
    "05 06 6b 76 63 73 2d 31 10 6d 1c 64 81 cd 42 87 37 da 31 2c 08 9d b3 83 2a 20 5e d5 c2 f2"
    "38 83 96 55 d7 c4 02 9e 12 b7 f3 1c af 9e 74 21 f4 ed b4 05 7f ee e6 da b7 60 ee 0f 20 65"
    "32 75 88 4c a4 4f 89 45 fd 4c 90 26 11 c4 67 39 4b 73 65 6e 64 c7 8d 85 22 64 8c b7 5a ef"
    "c1 10 01 23 45 67 89 ab cd ef 01 23 45 67 89 ab cd ef"
)
EXAMPLE_SCOPE_ID = bytes.fromhex("6d1c6481cd428737da312c089db3832a")
EXAMPLE_COMPAT_ID = bytes.fromhex(
    "5ed5c2f238839655d7c4029e12b7f31caf9e7421f4edb4057feee6dab760ee0f"
)
EXAMPLE_ANCHOR_KEY = bytes.fromhex(
    "653275884ca44f8945fd4c902611c467394b73656e64c78d8522648cb75aefc1"
)
EXAMPLE_PUBLICATION_ID = bytes.fromhex("0123456789abcdef0123456789abcdef")
EXAMPLE_HEADER = bytes.fromhex(
    "4b 56 4f 31 01 01 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 04 00 00 00 04 00 01"
    "00 00 00 00 00 10 be 45 cb 26 05 bf 36 be bd e6 84 84 1a 28 f0 fd 43 c6 98 50 a3 dc e5 fe"
    "db a6 99 28 ee 3a 89 91"
)
EXAMPLE_DATA = bytes(range(16))
EXAMPLE_PAYLOAD = EXAMPLE_HEADER + EXAMPLE_DATA

# KVCS 5: the manifest's shape, with its two placeholders filled.
EXAMPLE_MANIFEST: dict[str, Any] = {
    "kvcs": 1,
    "compat": {"layers": 32, "block_tokens": 16},
    "layers": 32,
    "block_tokens": 16,
    "deterministic": False,
    "segments": [
        {
            "segment": 0,
            "first_block": 0,
            "blocks": 64,
            "block_keys_sha256": "00" * 32,
            "tracks": ["k.raw.s0", "v.raw.s0"],
            "complete": True,
        },
        {
            "segment": 1,
            "first_block": 64,
            "blocks": 3,
            "block_keys_sha256": "11" * 32,
            "tracks": ["k.raw.s1", "v.raw.s1"],
            "complete": False,
        },
    ],
}

# kvsp-p0 §10.
P0_SCOPE_KEY = bytes(range(32))
P0_TOKENS = list(range(1, 11))
P0_CANONICAL = (
    b'{"adapters":[],"attention":"gqa","block_tokens":4,"byte_order":"little","dtype":"bf16",'
    b'"head_dim":128,"kv_heads":8,"kvsp_profile":"p0","layers":2,"layout":"thd","model":'
    b'{"id":"example/tiny-gqa","weights":"sha256:64b91ca7fe644b145a842e1006d9709c2178300072b068'
    b'ca382399e95536e646"},"position":{"applied":true,"base":"10000","origin":0,"rotary_dim":128,'
    b'"scaling":null,"type":"rope"},"quant":null,"tokenizer":"sha256:5b5df56ea0c5a2ad145c08f6f3'
    b'f2281ff911e75221579196527f885646a3003d","v_head_dim":128,"windows":null}'
)
P0_COMPAT_ID = bytes.fromhex("208d109def3e615b8bceb9e30c6ebdf4081b409f115a942cb805383e02cfbb11")
P0_KEYS = [
    bytes.fromhex("998eb2d9e89244c215ee183ad5e583b6d85a94452e8297e524bc032556aebf5e"),
    bytes.fromhex("8c0c73e2722f05dee4619cd33739eebeb15e883048b5bccc8b03b4f16bf375d2"),
]
P0_SALTED_KEYS = [
    bytes.fromhex("acba6fbb6277018e7273354ed9a2a8ed5d32e223e6767c7dbe262587ad0d5545"),
    bytes.fromhex("0e17825a17d89a5124a6dc2f50d7049696e27e3b296aa7458a243352929dac9f"),
]
P0_IMAGE_KEY_1 = bytes.fromhex("dccc409b9ab77c850a497f1856c076166c42e1b4898f54eb499ba9a31d621ce0")
P0_BLOCK_KEYS_SHA256 = bytes.fromhex(
    "fa9e398ee54ab171ac9a8973466c762c856e8aa735076ec3ae7c4df16ac04aa4"
)
P0_SHA256_K = bytes.fromhex("13de60b864b26330fa100d950ce785a52223bd83156df33b16cf3b22564a792e")
P0_SHA256_V = bytes.fromhex("27ee27e0247ca4bafdd872dd0bca09cdecfacadec87000e51ca8e1162e77d2f5")
P0_LAYER_DIGEST = bytes.fromhex("990f6c665dfdf940d63d8e891aa92bff4b0c80e711c207d61e23d882acf5fb36")
P0_HEADER = bytes.fromhex(
    "4b564f31010100000000000000000001000000000000000400000004000100000000200013de60b864b26330"
    "fa100d950ce785a52223bd83156df33b16cf3b22564a792e"
)
P0_NAMESPACE = bytes.fromhex(
    "05066b7663732d31106d1c6481cd428737da312c089db3832a20208d109def3e615b8bceb9e30c6ebdf4081b"
    "409f115a942cb805383e02cfbb11208c0c73e2722f05dee4619cd33739eebeb15e883048b5bccc8b03b4f16b"
    "f375d2100123456789abcdef0123456789abcdef"
)


def p0_descriptor(**changes: Any) -> dict[str, Any]:
    """A fresh copy of the vectors' Compatibility Descriptor, with members replaced."""
    descriptor: dict[str, Any] = json.loads(P0_CANONICAL)
    return descriptor | changes


def p0_section(layer: int, block: int, kv: int) -> bytes:
    """The section fill of kvsp-p0 §10: 4096 little-endian u16 values."""
    first = layer * 0x1000 + block * 0x100 + kv * 0x80
    return b"".join(((first + i) & 0xFFFF).to_bytes(2, "little") for i in range(4096))


def fields_of(encoded: bytes) -> tuple[bytes, ...]:
    """The fields of a serialised namespace whose count and lengths are below 128."""
    fields, at = [], 1
    while at < len(encoded):
        fields.append(encoded[at + 1 : at + 1 + encoded[at]])
        at += 1 + encoded[at]
    assert encoded[0] == len(fields)
    return tuple(fields)
