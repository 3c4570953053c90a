"""`kvcs explain`: why a case has its verdict."""

from __future__ import annotations

from pathlib import Path

import click

from kvcs_conformance import catalogue as catalogues


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("case")
def explain(folder: Path, case: str) -> None:
    """Explain the verdict of CASE in the run that `kvcs run --out DIR` wrote.

    Shows the clause, what was expected and seen, the side at fault, the events before it, and
    the command that runs this case again.
    """
    from kvcs_conformance.report import results
    from kvcs_conformance.report.explain import explain as told

    click.echo(told(folder, results.read(folder), case, catalogues.load()))
