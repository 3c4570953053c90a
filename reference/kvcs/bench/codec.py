"""How many Objects per second the codec and the checks of KVCS handle, without any transport."""

from __future__ import annotations

import os
import time

from moqt.wire.drafts import DRAFT_22
from moqt.wire.names import Location
from moqt.wire.objects import Object, SubgroupHeader
from moqt.wire.stream_decoder import SubgroupDecoder
from moqt.wire.stream_encoder import SubgroupObjectEncoder, encode_subgroup_header

from kvcs.bench.results import Results
from kvcs.names import Component
from kvcs.payload import build_payload, check_object, decode_header

OBJECTS = 20_000
HEADER = SubgroupHeader(track_alias=1, group=0, subgroup=0, priority=64)


def measure_codec(results: Results) -> None:
    """One run: subgroup streams of small Objects out and in, KVCS payloads made and checked."""
    payload = bytes(64)
    objects = [Object(Location(0, i), 0, 64, payload) for i in range(OBJECTS)]

    start = time.perf_counter()
    encoder = SubgroupObjectEncoder(HEADER)
    parts = [encode_subgroup_header(HEADER)]
    for item in objects:
        parts += (encoder.encode(item), payload)
    stream = b"".join(parts)
    _rate(results, "encode subgroup Objects of 64 octets", OBJECTS, start)

    start = time.perf_counter()
    decoder = SubgroupDecoder(DRAFT_22, stream[0])
    found = 0
    for offset in range(1, len(stream), 1200):
        items = decoder.feed(stream[offset : offset + 1200])
        found += sum(type(item) is Object for item in items)
    if found != OBJECTS:
        raise RuntimeError(f"{found} of {OBJECTS} Objects were decoded")
    _rate(results, "decode subgroup Objects of 64 octets", found, start)

    data = os.urandom(32768)
    start = time.perf_counter()
    payloads = [build_payload(Component.K, 0, i, 16 * i, 16, 1, data) for i in range(2000)]
    _rate(results, "build KVCS payloads of 32 KiB", len(payloads), start)

    start = time.perf_counter()
    bad = sum(bool(check_object(decode_header(p), p, (0, i))) for i, p in enumerate(payloads))
    _rate(results, "check KVCS payloads of 32 KiB", len(payloads) - bad, start)


def _rate(results: Results, name: str, count: int, start: float) -> None:
    results.add(name, "Objects/s", count / (time.perf_counter() - start))
