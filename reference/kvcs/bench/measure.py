"""What `kvcs bench` measures, one function per kind of measurement; each adds one run's values."""

from __future__ import annotations

from pathlib import Path

from kvcs.bench import chain, fetches, relaying, stock
from kvcs.bench.processes import processes
from kvcs.bench.results import Results

MIB = 2**20
CACHE_BUDGET = 64 * MIB
STOCK_OCTETS = 32 * MIB
FETCHES = 1000
FLAT_DATAGRAM_SIZE = 16000


def measure_throughput(
    results: Results, folder: Path, datagram_size: int, size: chain.Size
) -> None:
    """One cache end to end, and the stock copies that it is set against."""
    settings = relaying.settings_for(folder, datagram_size)
    at = f" @{datagram_size}"
    with processes() as start:
        copy = stock.copy_rate(start, settings, STOCK_OCTETS, forwarded=False)
        forwarded = stock.copy_rate(start, settings, STOCK_OCTETS, forwarded=True)
        relay = start("relay", relaying.relay, settings | {"cache_budget": CACHE_BUDGET})
        port = relay.wait("ready", 30)
        done = chain.transfer(start, relay, port, settings, size)
    stock_copy, stock_forwarder = f"stock copy{at}", f"stock forwarder{at}"
    results.add(stock_copy, "MB/s", copy)
    results.add(stock_forwarder, "MB/s", forwarded)
    results.add(f"chain{at}", "MB/s", done.mb_per_s, (stock_copy, copy))
    to_forwarder = f"chain (to the forwarder){at}"
    results.add(to_forwarder, "MB/s", done.mb_per_s, (stock_forwarder, forwarded))
    results.add(f"first usable layer{at}", "ms", 1000 * done.first_layer_s)
    for role, used in done.used.items():
        results.add(f"{role}: CPU{at}", "s", used.cpu_s)
        results.add(f"{role}: peak memory{at}", "MiB", used.peak_octets / MIB)


def measure_fetches(results: Results, folder: Path) -> None:
    """Small FETCHes through a relay whose cache is warm."""
    settings = relaying.settings_for(folder, 1200) | {"count": FETCHES}
    with processes() as start:
        relay = start("relay", relaying.relay, settings | {"cache_budget": CACHE_BUDGET})
        settings["url"] = f"moqt://{relaying.LOOPBACK}:{relay.wait('ready', 30)}"
        source = start("origin", fetches.origin, settings)
        source.wait("announced", 30)
        alone, together = start("client", fetches.client, settings).wait("rates", 120)
    results.add("FETCH round trips, one after another", "1/s", alone)
    results.add(f"FETCH round trips, {fetches.SIDE_BY_SIDE} side by side", "1/s", together)


def measure_memory(results: Results, folder: Path) -> None:
    """Four caches of 128 MiB through one relay, then four more."""
    size = chain.Size()
    settings = relaying.settings_for(folder, FLAT_DATAGRAM_SIZE)
    with processes() as start:
        relay = start("relay", relaying.relay, settings | {"cache_budget": CACHE_BUDGET})
        port = relay.wait("ready", 30)
        for half in ("first", "second"):
            for _ in range(512 * MIB // size.octets):
                chain.transfer(start, relay, port, settings, size)
            peak = relay.ask_usage().peak_octets / MIB
            results.add(f"relay memory after the {half} 512 MiB", "MiB", peak)
