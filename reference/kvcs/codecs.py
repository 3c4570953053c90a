"""Codecs of the profile kvsp-p0: raw, zstd and deflate (kvsp-p0 §6).

Only raw = 1 is KVSP's own value (from the KVCS example); zstd = 2 and deflate = 3 are the
profile's and are never sent to a third party as if registered. Decoding is told the section's
exact size and stops there: a small Object cannot make a consumer allocate more than one section.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import zstandard

from kvcs.errors import CodecError
from kvcs.payload import Octets

Encode: TypeAlias = Callable[[Octets], Octets]
Decode: TypeAlias = Callable[[Octets, int], Octets]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_WINDOW = 8 * 2**20
"""The window that RFC 8878 §3.1.1.1.2 asks every decoder to support."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A registered codec; `decode(data, octets)` gives exactly `octets` or raises CodecError."""

    name: str
    value: int
    encode: Encode
    decode: Decode


def _raw_encode(section: Octets) -> Octets:
    return section


def _raw_decode(data: Octets, octets: int) -> Octets:
    _check_size("raw Data", len(data), octets)
    return data


def _zstd_encode(section: Octets) -> Octets:
    return zstandard.ZstdCompressor().compress(section)


def _zstd_decode(data: Octets, octets: int) -> Octets:
    # The library trusts the frame's own Content Size when it allocates, so look at it before.
    if bytes(data[:4]) != _ZSTD_MAGIC:
        raise CodecError("zstd Data is one Zstandard frame (28b52ffd ...)")
    try:
        stated = zstandard.get_frame_parameters(data).content_size
        if stated != zstandard.CONTENTSIZE_UNKNOWN:
            _check_size("the Zstandard frame", stated, octets)
        decoder = zstandard.ZstdDecompressor(max_window_size=max(_ZSTD_WINDOW, octets))
        section = decoder.decompress(data, max_output_size=octets, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise CodecError(f"not one Zstandard frame of {octets} octets: {error}") from None
    _check_size("the Zstandard frame", len(section), octets)
    return section


def _deflate_encode(section: Octets) -> Octets:
    return zlib.compress(section)


def _deflate_decode(data: Octets, octets: int) -> Octets:
    stream = zlib.decompressobj()
    try:
        # One octet more than wanted: it lets the checksum at the end be read, or proves excess.
        section = stream.decompress(data, octets + 1)
    except zlib.error as error:
        raise CodecError(f"not a zlib stream: {error}") from None
    if len(section) > octets:
        raise CodecError(f"the zlib stream holds more than {octets} octets")
    if not stream.eof:
        raise CodecError("the zlib stream ends early")
    if stream.unused_data:
        raise CodecError("octets follow the zlib stream")
    _check_size("the zlib stream", len(section), octets)
    return section


def _check_size(what: str, found: int, right: int) -> None:
    if found != right:
        raise CodecError(f"{what} holds {found} octets, a section has {right}")


RAW = Codec("raw", 1, _raw_encode, _raw_decode)
ZSTD = Codec("zstd", 2, _zstd_encode, _zstd_decode)
DEFLATE = Codec("deflate", 3, _deflate_encode, _deflate_decode)
CODECS = (RAW, ZSTD, DEFLATE)
"""raw first."""
