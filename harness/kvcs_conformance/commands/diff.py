"""`kvcs diff`: what changed between two runs, or for one run between two catalogues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kvcs_conformance.catalogue import Catalogue
    from kvcs_conformance.report.difference import ClauseChange, Difference

_RESULT = click.Path(path_type=Path)


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=_RESULT)
@click.option(
    "--catalogues",
    nargs=2,
    type=_RESULT,
    metavar="OLD NEW",
    help="Two revisions of a requirement catalogue: which clauses changed, which cases and peers "
    "of the RUNs (default: the published baselines) they touch, and, where a RUN is a folder, how "
    "its evidence is judged under each.",
)
@click.option("--exact", is_flag=True, help="Any difference is a failure, not only a worse one.")
@click.option("--accept", is_flag=True, help="Write AFTER over BEFORE, as a baseline.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(
    runs: tuple[Path, ...],
    catalogues: tuple[Path, Path] | None,
    exact: bool,
    accept: bool,
    as_json: bool,
) -> int:
    """Compare two runs BEFORE and AFTER: what is broken, gone, new, fixed, or otherwise changed.

    A RUN is the folder that `kvcs run --out` wrote, or a result file such as a baseline.

    Exit codes: 0 nothing is worse, 1 something broke or is gone (with --exact: anything differs),
    2 usage error.
    """
    from kvcs_conformance.report.difference import compare
    from kvcs_conformance.verdicts import ExitCode

    if catalogues is not None:
        if exact or accept:
            raise click.UsageError("--exact and --accept compare runs, not catalogues")
        _catalogues(runs, catalogues, as_json)
        return int(ExitCode.PASS)
    if len(runs) != 2:
        raise click.UsageError("give two runs, BEFORE and AFTER (or --catalogues OLD NEW)")
    from kvcs_conformance.report.baseline import condensed, read_result, write_baseline

    before_path, after_path = runs
    after = read_result(after_path)
    if accept:
        write_baseline(before_path, after)
        click.echo(f"{before_path}: {len(after['cases'])} cases")
        return int(ExitCode.PASS)
    difference = compare(condensed(read_result(before_path)), condensed(after))
    if as_json:
        click.echo(json.dumps(difference.as_json(), indent=2))
    else:
        _print(difference)
    failed = difference.worse or (exact and bool(difference.changes))
    return int(ExitCode.FAIL if failed else ExitCode.PASS)


def _print(difference: Difference) -> None:
    from kvcs_conformance.report.difference import MEANING, Change

    for name, before, after in difference.settings:
        click.echo(f"{name}: {_short(before)} before, {_short(after)} after")
    for kind in Change:
        changes = difference.of(kind)
        if changes:
            click.secho(f"{kind}: {MEANING[kind]}", bold=True)
        for change in changes:
            words = [word for word in (change.before, change.after) if word is not None]
            click.echo(f"  {change.case}: {' -> '.join(words)}")
            click.echo(click.wrap_text(" ".join(change.requires), 98, "      ", "      "))
    same = f"{difference.same} case{'s' if difference.same != 1 else ''} as before"
    click.echo(f"no difference, {same}" if not difference.changes else same)


def _short(value: str) -> str:
    from kvcs_conformance.report.plain import plain

    return value[:12] if len(value) == 64 else plain(value)


def _catalogues(runs: tuple[Path, ...], paths: tuple[Path, Path], as_json: bool) -> None:
    """Say what changed between two revisions, and what that means for each run."""
    from kvcs_conformance import catalogue
    from kvcs_conformance.report.baseline import baselines, read_result
    from kvcs_conformance.report.difference import compare_catalogues, touched

    runs = runs or baselines()
    before, after = (catalogue.load_with(path) for path in paths)
    clauses = compare_catalogues(before, after)
    results = {str(path): read_result(path) for path in runs}
    cases = touched(clauses, results)
    judged = {
        str(path): _rejudged(path, results[str(path)], before, after)
        for path in runs
        if path.is_dir()
    }
    if as_json:
        value: dict[str, Any] = {
            "clauses": [
                {**clause.as_json(), "cases": cases[clause.requirement]} for clause in clauses
            ],
            "runs": {name: difference.as_json() for name, difference in judged.items()},
        }
        click.echo(json.dumps(value, indent=2))
        return
    for clause in clauses:
        _print_clause(clause, results, cases[clause.requirement])
    if not clauses:
        click.echo("the catalogues ask the same")
    for name, difference in judged.items():
        click.echo()
        click.secho(f"{name} under the later catalogue", bold=True)
        _print(difference)


def _print_clause(
    clause: ClauseChange,
    results: dict[str, dict[str, Any]],
    cases: dict[str, dict[str, str]],
) -> None:
    click.secho(f"{clause.requirement}: {', '.join(clause.what)}", bold=True)
    for sign, text in (("-", clause.before), ("+", clause.after)):
        if text:
            click.echo(click.wrap_text(f"{sign} {text}", 98, "  ", "    "))
    for name, citing in cases.items():
        roles = {case["sut"] for case in results[name]["cases"] if case["id"] in citing}
        peers = results[name]["peers"]
        told = ", ".join(f"{role} {peers.get(role, 'unknown')}" for role in sorted(roles))
        click.echo(f"  touches {told} in {name}:")
        for case, verdict in citing.items():
            click.echo(f"    {case}: {verdict}")
    if not cases:
        click.echo("  no case of these runs cites it")


def _rejudged(
    folder: Path, result: dict[str, Any], before: Catalogue, after: Catalogue
) -> Difference:
    """The evidence of one run judged under both catalogues; a case that cites an entry which a
    catalogue has not is absent under it."""
    from kvcs_conformance.recheck import recheck
    from kvcs_conformance.report.difference import compare

    def under(revision: Catalogue) -> dict[str, Any]:
        cases = [
            case for case in result["cases"] if all(name in revision for name in case["requires"])
        ]
        return recheck(folder, {**result, "cases": cases}, revision)

    return compare(under(before), under(after))
