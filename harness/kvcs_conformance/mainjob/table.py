"""The main job on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kvcs_conformance.mainjob.findings import Finding
from kvcs_conformance.mainjob.job import Done
from kvcs_conformance.report.console import Page

MIB = 2**20
WIDTH = 140
"""Columns where no terminal says how many there are."""


def print_job(done: Done, findings: Sequence[Finding]) -> None:
    """What was computed, when it was usable, what crossed each link, and the verdicts."""
    console = Page(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    plan = done.plan
    console.print(
        f"KV cache of {len(plan.prompt)} tokens, {done.layers} layers, "
        f"{plan.blocks} blocks of {plan.block_tokens}, computed by the model '{done.model}'",
        style="bold",
    )
    console.print(_timeline(done))
    console.print(_links(done))
    for reader in done.readers:
        console.print(
            f"{reader.name} ({reader.mode.value}) joined at {_ms(reader.joined)}, first layer "
            f"usable {_ms(reader.first_usable - reader.joined)} later, everything verified "
            f"{_ms(reader.restored - reader.joined)} later, next token "
            f"{_ms(reader.computed - reader.joined)} later"
        )
    for name, (objects, octets) in done.stored.items():
        console.print(f"{name} holds {objects} Objects, {octets / MIB:.1f} MiB")
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        verdict = Text("pass", "green") if finding.upheld else Text("FAIL", "bold red")
        table.add_row(verdict, finding.what, Text(finding.found, "dim"))
    console.print(table)
    kept = sum(finding.upheld for finding in findings)
    console.print(f"main job: {kept} of {len(findings)} hold, {done.seconds:.1f} s\n")


def _timeline(done: Done) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("layer", justify="right")
    table.add_column("published", justify="right")
    for reader in done.readers:
        table.add_column(f"usable: {reader.name}", justify="right")
    for layer, published in enumerate(done.published):
        usable = [reader.usable.get(layer) for reader in done.readers]
        table.add_row(
            str(layer), _ms(published), *("never" if at is None else _ms(at) for at in usable)
        )
    return table


def _links(done: Done) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("link")
    table.add_column("Objects", justify="right")
    table.add_column("MiB", justify="right")
    table.add_column("by")
    for link in done.links.values():
        ways = ", ".join(f"{count} {way}" for way, count in sorted(link.ways.items()))
        table.add_row(link.name, str(link.crossed.total()), f"{link.octets / MIB:.1f}", ways)
    return table


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f} ms"
