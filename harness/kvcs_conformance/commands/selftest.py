"""`kvcs selftest`: prove that every case can fail."""

from __future__ import annotations

from pathlib import Path

import click

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases, select


@click.command()
@click.argument("selectors", nargs=-1)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write kill-matrix.json into this folder.",
)
@click.option(
    "--link",
    type=click.Choice(["memory", "quic"]),
    default="memory",
    show_default=True,
    help="What lies between the nodes.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def selftest(selectors: tuple[str, ...], out: Path | None, link: str, seed: int) -> int:
    """Run every case on the reference, which must pass, and every known-bad peer over the cases
    of its role: each must fail the cases that name it, for its own reason, and no other.

    Exit codes: 0 all killed, 1 a survivor, a stray kill or a reference that does not pass,
    2 usage error or a case without a mutant.
    """
    from kvcs_conformance.evidence.files import KILL_MATRIX, make_folder, write_json
    from kvcs_conformance.mutants import MUTANTS
    from kvcs_conformance.report.table import print_matrix
    from kvcs_conformance.selftest import check_links
    from kvcs_conformance.selftest import selftest as tested
    from kvcs_conformance.verdicts import ExitCode

    catalogue = catalogues.load()
    cases = load_cases(catalogue)
    check_links(cases, MUTANTS)
    chosen = select(cases, selectors)
    if out is not None:
        make_folder(out)
    matrix = tested(chosen, MUTANTS, catalogue, link=link, seed=seed)
    if out is not None:
        write_json(out / KILL_MATRIX, matrix)
    print_matrix(matrix)
    for name, told in matrix["reference"].items():
        click.echo(f"the reference does not pass {name}: {told}")
    for row in matrix["mutants"]:
        for told in row["missed_by"]:
            click.echo(f"{row['id']} is not caught by {told}")
        for told in row["strays"]:
            click.echo(f"{row['id']} fails {told}")
    summary = matrix["summary"]
    good = not matrix["reference"] and summary["killed"] == summary["total"]
    return int(ExitCode.PASS if good else ExitCode.FAIL)
