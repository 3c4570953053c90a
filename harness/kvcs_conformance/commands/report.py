"""`kvcs report`: a saved run for people and for CI."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["html", "junit", "tap", "markdown", "all"]),
    default="all",
    show_default=True,
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A folder for the reports; with one format also its file, or - for standard output.",
)
def report(folder: Path, format_: str, out: Path | None) -> None:
    """Write reports of the run that `kvcs run --out DIR` wrote.

    Without --out they go into DIR: report.html (one page, works offline), junit.xml, results.tap
    (TAP 14) and summary.md (for a CI job summary). They are made from results.json and the evidence
    alone: the same folder gives the same files.
    """
    from kvcs_conformance.errors import UsageError
    from kvcs_conformance.evidence.files import make_folder, write_atomically
    from kvcs_conformance.report import formats, results

    result = results.read(folder)
    if format_ == "all":
        if out is not None and (str(out) == "-" or out.is_file()):
            raise UsageError("--out: all formats need a folder; choose one with --format")
        if out is not None:
            make_folder(out)
        paths = formats.write(folder, result, into=out)
    elif str(out) == "-":
        click.echo(formats.text(folder, result, format_), nl=False)
        return
    elif out is None or out.is_dir():
        paths = formats.write(folder, result, [format_], into=out)
    else:
        write_atomically(out, formats.text(folder, result, format_))
        paths = [out]
    for path in paths:
        click.echo(path)
