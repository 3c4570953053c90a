"""`kvcs list`: the cases, and the words that a case is written in."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from kvcs_conformance import catalogue
from kvcs_conformance.cases import Selection, load_cases
from kvcs_conformance.cases.words import STEPS, TAMPERS, WAITS
from kvcs_conformance.cases.words.faults import RELAY_FAULTS
from kvcs_conformance.commands.choosing import choosing


@click.command("list")
@choosing
@click.option("--steps", is_flag=True, help="Describe the steps, events and ways to tamper.")
@click.option("--judges", is_flag=True, help="Describe the judge words.")
@click.option("--coverage", is_flag=True, help="Count requirements with case and mutant; gaps.")
@click.option("--json", "as_json", is_flag=True, help="With --coverage: as coverage.json.")
def list_(
    selection: Selection,
    steps: bool,
    judges: bool,
    coverage: bool,
    as_json: bool,
) -> None:
    """List the cases that SELECTORS name (default: all) with level, title and
    requirements.

    A selector is a glob over case ids, a role, or a requirement id.
    """
    if steps or judges or coverage:
        if selection != Selection(roles=selection.roles if coverage else ()):
            raise click.UsageError(
                "--steps and --judges take no selection, and --coverage takes only --role"
            )
        if len(selection.roles) > 1:
            raise click.UsageError("--coverage is of all roles, or of one")
        if steps:
            _print_steps()
        if judges:
            _print_judges()
        if coverage:
            _print_coverage(selection.roles[0] if selection.roles else None, as_json)
        return
    if as_json:
        raise click.UsageError("--json goes with --coverage")
    cases = selection.of(load_cases(catalogue.load(), check=False))
    for case in cases:
        click.echo(f"{case.id}  ({case.sut}, {case.level})")
        click.echo(click.wrap_text(case.title, 98, "    ", "    "))
        click.echo(click.wrap_text(" ".join(case.requires), 98, "    ", "    "))


_KINDS = {
    "publisher": "Steps of a publisher",
    "scripted": "Steps of a scripted node",
    "relay": "Steps of a relay",
    "consumer": "Steps of a consumer",
    "network": "Steps of the network",
}


def _print_steps() -> None:
    from kvcs_conformance.evidence.wait import EVENTS

    for kind, words in STEPS.items():
        title = _KINDS.get(kind, f"Steps of {kind}")
        _section(title, [(_usage(w.name, w.options), w.doc) for w in words.values()])
    _section("Waiting", [(word.name, word.doc) for word in WAITS.values()])
    _section("Events that `expect` knows", list(EVENTS.items()))
    _section(
        "Ways to tamper with what a publisher sends", [(w.name, w.doc) for w in TAMPERS.values()]
    )
    _section(
        "Faults of a relay before a consumer (`relay-faults`)",
        [(w.name, w.doc) for w in RELAY_FAULTS.values()],
    )


def _print_judges() -> None:
    from kvcs_conformance.judge import JUDGES

    _section("Judge words", [(_usage(w.name, w.options), w.doc) for w in JUDGES.values()])


def _print_coverage(role: str | None, as_json: bool) -> None:
    from kvcs_conformance import coverage as coverages
    from kvcs_conformance import fieldcases
    from kvcs_conformance.mutants import MUTANTS
    from kvcs_conformance.report.coverage import summary

    requirements = catalogue.load()
    covered = coverages.coverage(
        requirements,
        load_cases(requirements, check=False),
        MUTANTS,
        fieldcases.load(),
        kills=coverages.read_kills(),
        role=role,
    )
    click.echo(json.dumps(covered, indent=1) if as_json else summary(covered))


def _usage(name: str, options: Iterable[str]) -> str:
    return f"{name}  {{{', '.join(options)}}}" if options else name


def _section(title: str, entries: list[tuple[str, str]]) -> None:
    if not entries:
        return
    click.secho(title, bold=True)
    for name, doc in entries:
        click.echo(f"  {name}")
        click.echo(click.wrap_text(doc, 98, "      ", "      "))
    click.echo()
