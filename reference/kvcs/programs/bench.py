"""`kvcs bench`: throughput, memory and latency on this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvcs.programs.options import FILE, InputCommand

if TYPE_CHECKING:
    from kvcs.bench.results import Results

DATAGRAM_SIZES = (1200, 1452, 16000)


@click.command(cls=InputCommand)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="How often each measurement is taken; medians are printed.",
)
@click.option("--quick", is_flag=True, help="One run of a quarter of the size, without memory.")
@click.option("--json", "target", type=FILE, metavar="FILE", help="Write the results to FILE.")
def bench(runs: int, quick: bool, target: Path | None) -> None:
    """Measure the reference: each role in a process of its own, over QUIC on loopback.

    A cache of 32 layers x 64 blocks x 32 KiB of K and of V goes from a publisher through a relay
    with 64 MiB of cache to a consumer that verifies every digest. Throughput is set against a
    plain aioquic stream copy with the same datagram size in the same run.

    \b
    Examples:
      kvcs bench --quick
      kvcs bench --runs 5 --json bench.json
    """
    from moqt.drivers.quic import write_throwaway_certificate

    from kvcs.bench.chain import Size
    from kvcs.bench.codec import measure_codec
    from kvcs.bench.measure import measure_fetches, measure_memory, measure_throughput
    from kvcs.bench.results import Results
    from kvcs.tensorfile import check_writable

    if target is not None:
        check_writable(target)
    results = Results()
    size = Size(layers=8) if quick else Size()
    with tempfile.TemporaryDirectory(prefix="kvcs-") as name:
        folder = Path(name)
        write_throwaway_certificate(folder / "cert.pem", folder / "key.pem")
        for run in range(1 if quick else runs):
            for datagram_size in DATAGRAM_SIZES:
                click.echo(f"run {run + 1}: throughput at {datagram_size} octets", err=True)
                measure_throughput(results, folder, datagram_size, size)
            click.echo(f"run {run + 1}: fetches and codec", err=True)
            measure_fetches(results, folder)
            measure_codec(results)
        if not quick:
            click.echo("memory of a relay over 1 GiB", err=True)
            measure_memory(results, folder)
    _print(results)
    if target is not None:
        results.write(target)


def _print(results: Results) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measurement (@ octets of a datagram)", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("range", justify="right", no_wrap=True)
    table.add_column("ratio", no_wrap=True)
    for row in results.rows():
        table.add_row(*row)
    Console(highlight=False, width=120).print(table)
