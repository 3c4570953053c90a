"""`kvcs run`: run cases, show a table, write the result and its evidence."""

from __future__ import annotations

from pathlib import Path

import click

from kvcs_conformance import catalogue as catalogues
from kvcs_conformance.cases import load_cases, select


@click.command()
@click.argument("selectors", nargs=-1)
@click.option(
    "--link",
    type=click.Choice(["memory", "quic"]),
    default="memory",
    show_default=True,
    help="What lies between the nodes: a simulated network, or QUIC on loopback.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write results.json and the evidence into this folder.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all data."
)
@click.option(
    "--main-job",
    is_flag=True,
    help="First carry a real KV cache through two relays to two consumers, then run the cases.",
)
@click.option(
    "--mutant",
    metavar="NAME",
    help="Put this known-bad peer (see `kvcs selftest`) where the peer under test stands; without "
    "SELECTORS the cases that it must fail are run.",
)
def run(
    selectors: tuple[str, ...],
    link: str,
    out: Path | None,
    seed: int,
    main_job: bool,
    mutant: str | None,
) -> int:
    """Run the cases that SELECTORS name (default: all) against the reference.

    A selector is a glob over case ids ('relay/*'), a role, or a requirement id.

    Exit codes: 0 pass, 1 fail, 2 usage or harness error, 3 incomplete.
    """
    from kvcs_conformance.evidence.files import clear_run, make_folder
    from kvcs_conformance.mutants import find_mutant
    from kvcs_conformance.outcome import Outcome, not_run
    from kvcs_conformance.report import results
    from kvcs_conformance.report.table import print_results, watched
    from kvcs_conformance.runner import REFERENCE, run_case, save
    from kvcs_conformance.verdicts import ExitCode, Verdict, exit_code

    catalogue = catalogues.load()
    loaded = load_cases(catalogue)
    peers, names = REFERENCE, None
    if mutant is not None:
        bad = find_mutant(mutant)
        peers, names = bad.peers, {bad.role: bad.id}
        loaded = tuple(case for case in loaded if case.sut == bad.role)
        if not selectors:
            selectors = tuple(case.id for case in loaded if mutant in case.killed_by)
    cases = select(loaded, selectors)
    if out is not None:
        make_folder(out)
        clear_run(out)
    job = ExitCode.PASS
    if main_job:
        from kvcs_conformance.mainjob import main_job as carry

        job = ExitCode(carry(out))
    outcomes: list[Outcome] = []
    for case in watched(cases):
        try:
            outcome = run_case(case, catalogue, link=link, seed=seed, peers=peers)
        except KeyboardInterrupt:  # what was run is a valid result, the rest is not run
            outcomes += [not_run(one) for one in cases[len(outcomes) :]]
            break
        outcomes.append(outcome)
        if out is not None:
            save(outcome, out)
    result = results.results(outcomes, catalogue, link=link, seed=seed, peers=names)
    if out is not None:
        for outcome in outcomes:
            if outcome.assessment.verdict is Verdict.NOT_RUN:
                save(outcome, out)
        results.write(out, result)
    print_results(result)
    code = exit_code(outcome.assessment.verdict for outcome in outcomes)
    return int(job or code)
