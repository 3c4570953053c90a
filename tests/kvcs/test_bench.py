"""The bench measures what it says; figures themselves are never asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kvcs.bench import fetches, relaying, stock
from kvcs.bench.chain import Size, transfer
from kvcs.bench.codec import measure_codec
from kvcs.bench.processes import Process, Start, peak_octets, processes
from kvcs.bench.results import Results
from kvcs.errors import InputError
from moqt.drivers.quic import write_throwaway_certificate


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, object]:
    """What the roles are told, with a certificate."""
    write_throwaway_certificate(tmp_path / "cert.pem", tmp_path / "key.pem")
    return relaying.settings_for(tmp_path, 1452)


def relay(start: Start, settings: dict[str, object]) -> tuple[Process, int]:
    """A relay at work, and its port."""
    process = start("relay", relaying.relay, settings | {"cache_budget": 1 << 20})
    return process, process.wait("ready", 30)


def test_results_have_the_form_of_bench_json(tmp_path: Path) -> None:
    """Median, extremes and number of runs, and the median of the ratios run by run."""
    results = Results()
    for value, other in ((3.0, 6.0), (1.0, 1.0), (2.0, 8.0)):
        results.add("copy", "MB/s", other)
        results.add("chain", "MB/s", value, ("copy", other))
    results.write(tmp_path / "bench.json")
    copy, chain = json.loads((tmp_path / "bench.json").read_text())["results"]
    assert {
        "name": "copy",
        "unit": "MB/s",
        "median": 6.0,
        "min": 1.0,
        "max": 8.0,
        "runs": 3,
    } == copy
    assert {"to": "copy", "median": 0.5} == chain["ratio"]
    assert ("chain", "2 MB/s", "1 .. 3", "0.50 of copy") == results.rows()[1]


@pytest.mark.slow
def test_the_codec_handles_every_object_that_is_counted() -> None:
    """Encode, decode, build and check each have a rate."""
    results = Results()
    measure_codec(results)
    assert ["encode", "decode", "build", "check"] == [one.name.split()[0] for one in results]
    assert all(one.values[0] > 0 for one in results)


@pytest.mark.slow
def test_a_cache_goes_through_three_processes(settings: dict[str, object]) -> None:
    """Every Object is verified at the consumer; each role tells what it used."""
    size = Size(layers=2, blocks=3)
    with processes() as start:
        process, port = relay(start, settings)
        done = transfer(start, process, port, settings, size)
    assert 2 * 2 * 3 * 32768 == done.octets
    assert 0 < done.first_layer_s <= done.seconds
    assert {"publisher", "relay", "consumer"} == set(done.used)
    assert all(used.peak_octets > 1 << 20 for used in done.used.values())


@pytest.mark.slow
def test_small_fetches_come_back(settings: dict[str, object]) -> None:
    """Two rates: one after another, and side by side."""
    with processes() as start:
        _, port = relay(start, settings)
        mine = settings | {"url": f"moqt://{relaying.LOOPBACK}:{port}", "count": 100}
        start("origin", fetches.origin, mine).wait("announced", 30)
        rates = start("client", fetches.client, mine).wait("rates", 30)
    assert 2 == len(rates)


@pytest.mark.slow
@pytest.mark.parametrize("forwarded", [False, True])
def test_the_stock_copy_delivers_everything(settings: dict[str, object], forwarded: bool) -> None:
    """A rate is given only for a copy that came whole."""
    with processes() as start:
        assert stock.copy_rate(start, settings, 1 << 20, forwarded=forwarded) > 0


@pytest.mark.slow
def test_a_role_that_fails_is_told_in_one_line(settings: dict[str, object]) -> None:
    """The other end hears of the failure instead of waiting for it."""
    with processes() as start:
        process = start("relay", relaying.relay, {})
        with pytest.raises(InputError, match="the relay failed: KeyError: 'cache_budget'"):
            process.wait("ready", 30)


def test_peak_memory_is_in_octets() -> None:
    """This process has used more than a MiB and less than a TiB."""
    assert 1 << 20 < peak_octets() < 1 << 40
