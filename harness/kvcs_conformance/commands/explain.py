"""`kvcs explain`: why a case has its verdict."""

from __future__ import annotations

from pathlib import Path

import click

from kvcs_conformance import catalogue as catalogues


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("case")
@click.option("--json", "json_", is_flag=True, help="Print the explanation as JSON.")
def explain(folder: Path, case: str, json_: bool) -> None:
    """Explain the verdict of CASE in the run that `kvcs run --out DIR` wrote.

    Shows the clause, what was expected and seen, the octets by field, the side at fault, the
    events before it at both ends, and the command that runs this case again.
    """
    from kvcs_conformance.report import results
    from kvcs_conformance.report.explain import as_text, find
    from kvcs_conformance.report.explanation import explain_case

    result = results.read(folder)
    told = explain_case(folder, result, find(folder, result, case), catalogues.load())
    if json_:
        import json

        click.echo(json.dumps(told.as_json(), indent=2, ensure_ascii=False))
    else:
        click.echo(as_text(told, folder))
