"""`kvcs recheck`: judge saved evidence again."""

from __future__ import annotations

from pathlib import Path

import click

from kvcs_conformance import catalogue as catalogues


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def recheck(folder: Path) -> int:
    """Judge the evidence in DIR again, without any peer, and say which verdicts change.

    The cases are those saved with the evidence, the catalogue and the judges are today's.
    Nothing in DIR is changed. Exit codes: 0 the same verdicts, 1 another one, 2 unusable evidence.
    """
    from kvcs_conformance.recheck import recheck as judged
    from kvcs_conformance.report import results
    from kvcs_conformance.report.table import print_results
    from kvcs_conformance.verdicts import ExitCode

    before = results.read(folder)
    after = judged(folder, before, catalogues.load())
    print_results(after)
    verdicts = {case["id"]: (case["verdict"], case["reason"]) for case in before["cases"]}
    changed = [
        (case["id"], verdicts[case["id"]], (case["verdict"], case["reason"]))
        for case in after["cases"]
        if verdicts[case["id"]] != (case["verdict"], case["reason"])
    ]
    for name, old, new in changed:
        click.echo(f"{name}: was {_said(*old)}, is {_said(*new)}")
    if not changed:
        click.echo("every verdict is as it was")
    return int(ExitCode.FAIL if changed else ExitCode.PASS)


def _said(verdict: str, reason: str | None) -> str:
    return f"{verdict} ({reason})" if reason else verdict
