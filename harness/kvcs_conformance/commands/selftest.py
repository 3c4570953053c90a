"""`kvcs selftest`: prove that every case can fail."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Selection, load_cases
from kvcs_conformance.commands.choosing import choosing


@click.command()
@choosing
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
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes run at a time. Default: one per core where that is faster.",
)
@click.option(
    "--accept",
    is_flag=True,
    help="Make the new matrix the committed one, testcases/kill-matrix.json.",
)
def selftest(
    selection: Selection, out: Path | None, link: str, seed: int, jobs: int | None, accept: bool
) -> int:
    """Run every case on the reference, which must pass, and every known-bad peer over the cases
    of its role: each must fail the cases that name it, for its own reason, and no other. What
    kills what must be as the committed matrix says; of a selection only its part is compared.

    Exit codes: 0 all killed, 1 a survivor, a stray kill, a reference that does not pass, or a
    matrix that differs, 2 usage or harness error or a case without a mutant, 3 stopped.
    """
    from kvcs_conformance import golden as goldens
    from kvcs_conformance.campaign import workers_for
    from kvcs_conformance.evidence.files import KILL_MATRIX, make_folder, write_json
    from kvcs_conformance.mutants import MUTANTS
    from kvcs_conformance.report.progress import progress
    from kvcs_conformance.report.table import print_matrix
    from kvcs_conformance.selftest import check_links, name_trials
    from kvcs_conformance.selftest import selftest as tested
    from kvcs_conformance.verdicts import ExitCode

    if accept and (selection or link != "memory" or seed):
        raise click.UsageError("--accept takes the whole matrix, on memory with seed 0")
    catalogue = catalogues.load()
    cases = load_cases(catalogue)
    chosen = selection.of(cases)
    check_links(chosen, MUTANTS, whole=chosen == cases)
    if out is not None:
        make_folder(out)
    names = name_trials(chosen, MUTANTS, link)
    with progress(names) as watch:
        matrix = tested(
            chosen,
            MUTANTS,
            catalogue,
            link=link,
            seed=seed,
            workers=workers_for(jobs, link, len(names)),
            watch=watch,
        )
    golden = goldens.read_golden(goldens.golden_path())
    differs = [] if golden is None else [
        *goldens.drift(matrix, golden, [case.id for case in chosen], whole=chosen == cases)
    ]  # fmt: skip
    if out is not None:
        write_json(out / KILL_MATRIX, matrix)
    print_matrix(matrix)
    _tell(matrix)
    summary = matrix["summary"]
    if matrix["errors"]:
        return ExitCode.ERROR
    good = not matrix["reference"] and summary["killed"] == summary["total"]
    if accept and good:
        goldens.accept(matrix, goldens.golden_path())
        click.echo(f"{goldens.golden_path()}: written, with {len(differs)} differences")
        return ExitCode.PASS
    if accept:
        click.echo("not accepted: there is something to put right first")
    for line in differs:
        click.echo(line)
    if differs:
        click.echo("the matrix is not the committed one; `kvcs selftest --accept` makes it that")
    if golden is None:
        click.echo(f"there is no {goldens.golden_path()} to compare with")
    return int(ExitCode.PASS if good and not differs else ExitCode.FAIL)


def _tell(matrix: Mapping[str, Any]) -> None:
    """What is wrong, a line each."""
    for name, told in matrix["reference"].items():
        click.echo(f"the reference does not pass {name}: {told}")
    for row in matrix["mutants"]:
        for told in row["missed_by"]:
            click.echo(f"{row['id']} is not caught by {told}")
        for told in row["strays"]:
            click.echo(f"{row['id']} fails {told}")
    for told in matrix["errors"]:
        click.echo(f"fault of the harness: {told}")
