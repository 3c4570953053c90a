"""`kvcs run`: run cases, show a table, write the result and its evidence."""

from __future__ import annotations

from datetime import date
from math import isnan
from pathlib import Path

import click

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import Selection, load_cases
from kvcs_conformance.commands.choosing import choosing

LONGEST = 86400.0
"""A day, in seconds: what takes longer is no case."""


def _a_number(_: click.Context, __: click.Parameter, value: float) -> float:
    if isnan(value):  # within every range
        raise click.BadParameter("nan is no number of seconds")
    return value


@click.command()
@choosing
@click.option(
    "--link",
    type=click.Choice(["memory", "quic"]),
    help="What lies between the nodes: a simulated network (the default), or QUIC on loopback.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write results.json and the evidence into this folder.",
)
@click.option(
    "--resume",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Complete the run in DIR: what was judged there and has its evidence is not run again.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of all data; default: 0.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run each case N times; the worst verdict stands, and more than one is called flaky.",
)
@click.option("--vary-seed", is_flag=True, help="Give each repeat the next seed.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many cases run at a time, each in a process of its own; 1 is without any other "
    "process. Default: one per core where that is faster.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True, max=LONGEST),
    callback=_a_number,
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="A case that runs longer, in real time, is a harness error.",
)
@click.option(
    "--main-job",
    is_flag=True,
    help="First carry a real KV cache through two relays to two consumers, then run the cases.",
)
@click.option(
    "--mutant",
    "mutants",
    metavar="NAME",
    multiple=True,
    help="Let this known-bad peer (see `kvcs selftest`) play its role in every case; may be given "
    "once per role. Without SELECTORS the cases that it must fail are run.",
)
@click.option(
    "--relay",
    metavar="URL",
    help="A relay that runs already, such as moqt://host:4433/: it is the relay of every case. "
    "Without SELECTORS the cases of relays are run.",
)
@click.option(
    "--ca",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Who signed the certificate of --relay, PEM.",
)
@click.option("--insecure", is_flag=True, help="Let --relay show any certificate.")
@click.option(
    "--lacks",
    multiple=True,
    metavar="FEATURE",
    help="The peer under test declares this optional feature absent (see `needs` in the cases).",
)
@click.option(
    "--known",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Known failures and flakes (YAML): they do not make the exit code 1.",
)
@click.option(
    "--quic-qlog",
    is_flag=True,
    help="Keep with the evidence what the QUIC library logs of each connection of ours, as qlog.",
)
@click.option("--list-only", is_flag=True, help="Say which cases would run, and run none.")
def run(
    selection: Selection,
    link: str | None,
    out: Path | None,
    resume: Path | None,
    seed: int | None,
    repeat: int | None,
    vary_seed: bool,
    jobs: int | None,
    limit: float,
    main_job: bool,
    mutants: tuple[str, ...],
    relay: str | None,
    ca: Path | None,
    insecure: bool,
    lacks: tuple[str, ...],
    known: Path | None,
    quic_qlog: bool,
    list_only: bool,
) -> int:
    """Run the cases that SELECTORS name (default: all) against the reference.

    A selector is a glob over case ids ('relay/*'), a role, or a requirement id. Ctrl-C leaves a
    valid result, in which the rest is not run.

    Exit codes: 0 pass, 1 fail, 2 usage or harness error, 3 incomplete.
    """
    from kvcs_conformance.campaign import workers_for
    from kvcs_conformance.commands.stopping import wrapping_up
    from kvcs_conformance.evidence.files import clear_run, make_folder
    from kvcs_conformance.known import exit_code_of, load_known, overlay
    from kvcs_conformance.plan import Wanted, plan, resumed
    from kvcs_conformance.remote import remote_of
    from kvcs_conformance.report.progress import progress
    from kvcs_conformance.report.table import print_results
    from kvcs_conformance.verdicts import ExitCode

    if resume is not None and main_job:
        raise click.UsageError("--main-job is not part of what --resume completes")
    catalogue = catalogues.load()
    partial = known is None and resume is None and not lacks
    loaded = selection.load(catalogue) if partial else load_cases(catalogue)
    known_ones = load_known(known, loaded) if known is not None else ()
    wanted = Wanted(
        selection=selection,
        link=link,
        seed=seed,
        mutants=mutants,
        repeat=repeat,
        vary_seed=vary_seed,
        lacks=lacks,
        remote=remote_of(relay, ca, insecure),
        limit=limit,
        out=out,
        quic_qlog=quic_qlog,
    )
    if resume is not None:
        campaign = resumed(resume, wanted, loaded, catalogue)
    else:
        campaign = plan(wanted, loaded, catalogue)
    todo = campaign.remaining
    if list_only:
        for case in todo:
            click.echo(case.id)
        return ExitCode.PASS
    if out is not None and resume is None:
        make_folder(out)
        clear_run(out)
    job = ExitCode.PASS
    try:
        if main_job:
            from kvcs_conformance.mainjob import main_job as carry

            job = ExitCode(carry(out))
        workers = workers_for(jobs, campaign.orders.link, len(todo) * campaign.orders.repeat)
        with progress([case.id for case in todo]) as watch:
            campaign.run(workers=workers, watch=watch)
    except KeyboardInterrupt:
        click.echo("kvcs: stopped; what was not run is named as such", err=True)
    with wrapping_up():
        result = campaign.close(lambda result: overlay(result, known_ones, date.today()))
        print_results(result)
    return int(job or exit_code_of(result))
